package quirks_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A call that a program builds, without a Problem, is written like a decoded call with the same
// arguments: a call that must not run does not run.
func TestQuirkB7_HandMadeCallIsCheckedWhenWritten(t *testing.T) {
	for _, args := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"a":1}{"a":2}`, `{"a":NaN}`, `{`, `[1]`, `{}`, ``} {
		for _, stop := range []dragoman.Stop{{Reason: dragoman.StopToolCalls}, {Reason: dragoman.StopUnknown, Native: "moon"}, {}} {
			for _, c := range crosstest.Codecs {
				made := written(t, c, args, nil, stop)
				decoded := written(t, c, args, dragoman.CheckArguments(args), stop)
				for way := range made {
					if made[way] != decoded[way] {
						t.Errorf("%s, %s after %q:\nmade    %s\ndecoded %s", c.Dialect(), args, stop.Reason, made[way], decoded[way])
					}
				}
			}
		}
	}
}

// written encodes a call in a whole response, as deltas of a stream and only at the end of a
// stream, each with its report.
func written(t *testing.T, c dialect.Codec, args string, problem *dragoman.CallProblem, stop dragoman.Stop) [3]string {
	t.Helper()
	call := &dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: args, Problem: problem}
	origin := &dragoman.Origin{Dialect: c.Dialect()}
	resp := dragoman.Response{ID: "r", Model: "m", Origin: origin, Stop: stop}
	start := []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m", Origin: origin}},
		&dragoman.PartStart{Header: &dragoman.Message{Role: dragoman.RoleAssistant}, Part: &dragoman.ToolCall{ID: "call_1", Name: "f"}},
	}
	end := []dragoman.Event{&dragoman.PartEnd{Part: call}, &dragoman.ResponseEnd{Stop: stop, Response: resp}}
	var pieces []dragoman.Event
	pieces = append(pieces, start...)
	if args != "" {
		pieces = append(pieces, &dragoman.PartDelta{Kind: codes.KindToolCall, Text: args})
	}
	whole := resp
	whole.Output = []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}}
	enc, err := c.EncodeResponse(&whole, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	streamed := func(evs []dragoman.Event) string {
		wire, rep, err := crosstest.Streamed(c, evs, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(wire) + rep.String()
	}
	return [3]string{string(enc.Body) + enc.Report.String(), streamed(append(pieces, end...)), streamed(append(start[:2:2], end...))}
}
