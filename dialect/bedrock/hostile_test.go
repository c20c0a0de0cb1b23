package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/framing"
)

func TestQuirkC4_BlockLimit(t *testing.T) {
	var b strings.Builder
	b.WriteString(startLine)
	for i := range stream.MaxParts + 1 {
		b.WriteString(textLine(i, "x") + stopLine(i))
	}
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, binary(b.String()))
	if !errors.Is(err, dragoman.ErrTooLarge) || len(evs) > 4*stream.MaxParts {
		t.Errorf("%v, %d events", err, len(evs))
	}
}

func TestSizeLimits(t *testing.T) {
	many := strings.Repeat("0,", framing.MaxValues+1) + "0"
	large := strings.Repeat("x", 2000)
	o := dialect.DecodeOptions{MaxBytes: 1000}
	_, _, reqErr := codec.DecodeRequest([]byte(`{"x":"`+large+`"}`), o)
	_, _, respErr := codec.DecodeResponse([]byte(`{"x":"`+large+`"}`), o)
	_, eventErr := drain(o, binary(startLine+textLine(0, large)))
	_, _, valuesErr := codec.DecodeRequest([]byte(`{"x":[`+many+`]}`), dialect.DecodeOptions{})
	_, valuesEvent := drain(dialect.DecodeOptions{}, binary(startLine+`{"metadata":{"x":[`+many+`]}}`))
	for what, err := range map[string]error{"request": reqErr, "response": respErr, "event": eventErr, "values": valuesErr, "values of an event": valuesEvent} {
		var at *dragoman.DecodeError
		if !errors.Is(err, dragoman.ErrTooLarge) || !errors.As(err, &at) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// linear fails the test if ten times the input takes much more than ten times
// as long.
func linear(t *testing.T, n int, run func(n int)) {
	t.Helper()
	took := func(n int) time.Duration {
		best := time.Hour
		for range 3 {
			start := time.Now()
			run(n)
			best = min(best, time.Since(start))
		}
		return best
	}
	small := took(n)
	if large := took(10 * n); large > 60*small+200*time.Millisecond {
		t.Errorf("%d took %v, %d took %v", n, small, 10*n, large)
	}
}

func TestHostileRequestIsLinear(t *testing.T) {
	for name, make := range map[string]func(n int) string{
		"documents with the same name": func(n int) string {
			return `{"messages":[{"role":"user","content":[` + strings.Repeat(`{"document":{"name":"a","format":"txt","source":{"text":"x"}}},`, n) + `{"text":"q"}]}]}`
		},
		"cache points": func(n int) string {
			return `{"messages":[{"role":"user","content":[` + strings.Repeat(`{"text":"a"},{"cachePoint":{"type":"default"}},`, n) + `{"text":"q"}]}]}`
		},
		"results of the same call": func(n int) string {
			return `{"messages":[{"role":"user","content":[` + strings.Repeat(`{"toolResult":{"toolUseId":"a","content":[]}},`, n) + `{"text":"q"}]}]}`
		},
		"members": func(n int) string {
			return `{` + strings.Repeat(`"x":1,"y":2,`, n) + `"messages":[{"role":"user","content":[{"text":"q"}]}]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			linear(t, 1000, func(n int) {
				req, _, err := codec.DecodeRequest([]byte(make(n)), dialect.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true}); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestSmallFragmentsAreLinear(t *testing.T) {
	linear(t, 3000, func(n int) {
		body := callStream(n)
		for _, size := range []int{len(body), 37} {
			var c dragoman.Collector
			d := codec.NewStreamDecoder(dialect.DecodeOptions{})
			emit := func(ev dragoman.Event) error { c.Add(ev); return nil }
			for rest := body; len(rest) > 0; {
				k := min(size, len(rest))
				if err := d.Feed(rest[:k], emit); err != nil {
					t.Fatal(err)
				}
				rest = rest[k:]
			}
			if err := d.Close(emit); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDeepNestingIsError(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	if _, _, err := codec.DecodeRequest([]byte(`{"x":`+deep), dialect.DecodeOptions{}); err == nil {
		t.Error("a deeply nested request is accepted")
	}
	if _, err := drain(dialect.DecodeOptions{}, binary(startLine+`{"metadata":{"x":`+deep+`}}`)); err == nil {
		t.Error("a deeply nested stream is accepted")
	}
}

// failing is an accessor that always fails.
type failing struct{}

func (failing) Format() dragoman.Format { return toolformat.BedrockToolUse }

func (failing) InspectCall(json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	return nil, dragoman.Report{}, errors.New("unreadable")
}

func TestUnreadableCallIsKept(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Contributions = []dragoman.Contribution{{Source: "x", Calls: []dragoman.CallAccessor{failing{}}}}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	resp, rep, err := codec.DecodeResponse([]byte(responseBody("tool_use", oneCall)), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil || len(resp.ToolCalls()) != 1 || resp.ToolCalls()[0].Problem == nil || len(rep.Losses) == 0 {
		t.Errorf("%v %+v %s", err, resp.ToolCalls(), rep)
	}
}

func TestNameAliasesAreReversed(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{tool("9.lives"), {Kind: codes.ToolFreeform, Name: "patch"}}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	wire := field(v, "toolConfig", "tools", 0, "toolSpec", "name").(string)
	o := dialect.DecodeOptions{Registry: enc.Registry, NoNative: true}
	resp, _, err := codec.DecodeResponse([]byte(responseBody("tool_use", fmt.Sprintf(`[{"toolUse":{"toolUseId":"a","name":%q,"input":{}}},{"toolUse":{"toolUseId":"b","name":"patch","input":{"input":"*** x"}}}]`, wire))), o)
	if err != nil || resp.ToolCalls()[0].Name != "9.lives" || resp.ToolCalls()[1].Arguments != "*** x" || resp.ToolCalls()[1].Payload != codes.PayloadText {
		t.Errorf("%v %+v", err, resp.ToolCalls())
	}
	evs, err := drain(o, binary(startLine+callLine(0, "a", wire)+inputLine(0, "{}")+callLine(1, "b", "patch")+inputLine(1, `{"input":"*** x"}`)+endLines("tool_use")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ev := range evs {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			names = append(names, ev.Part.(*dragoman.ToolCall).Name)
		case *dragoman.PartEnd:
			c := ev.Part.(*dragoman.ToolCall)
			names = append(names, c.Name+c.Arguments)
		}
	}
	if got := strings.Join(names, " "); got != "9.lives patch 9.lives{} patch*** x" {
		t.Error(got)
	}
}
