package quirks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A call of a tool that the request does not offer keeps its name, in a whole response and in every
// event of a stream. It is not mapped to a tool with a similar name, and no tool spec is found for it.
func TestQuirkB37_CallOfUnofferedToolMatchesNoTool(t *testing.T) {
	offered := map[string][]dragoman.ToolSpec{
		"no tools": nil,
		"one tool": {{Kind: codes.ToolFunction, Name: "read_file", Parameters: []byte(`{"type":"object"}`)}},
	}
	response := crosstest.FullResponse()
	response.Stop = dragoman.Stop{Reason: dragoman.StopToolCalls}
	response.Output[0].Parts = []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "functions_x", Arguments: `{"path":"a"}`, Payload: codes.PayloadObject}}
	for _, c := range crosstest.Codecs {
		for what, tools := range offered {
			for _, name := range []string{"container_exec", "read_files", "read_fil", "file", "read", "rm_read_file"} {
				t.Run(string(c.Dialect())+" "+what+" "+name, func(t *testing.T) {
					sent, err := c.EncodeRequest(&dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: tools}, dialect.EncodeOptions{})
					if err != nil {
						t.Fatal(err)
					}
					enc, err := c.EncodeResponse(response, dialect.EncodeOptions{})
					if err != nil {
						t.Fatal(err)
					}
					body := []byte(strings.ReplaceAll(string(enc.Body), "functions_x", name))
					o := dialect.DecodeOptions{Registry: sent.Registry}
					whole, _, err := c.DecodeResponse(body, o)
					if err != nil {
						t.Fatal(err)
					}
					var called []*dragoman.ToolCall
					called = append(called, whole.ToolCalls()...)
					for _, ev := range decodeAll(t, c, crosstest.StreamOf(t, c.Dialect(), body), o) {
						switch ev := ev.(type) {
						case *dragoman.PartStart:
							called = append(called, ev.Part.(*dragoman.ToolCall))
						case *dragoman.PartEnd:
							called = append(called, ev.Part.(*dragoman.ToolCall))
						}
					}
					if len(called) != 3 {
						t.Fatalf("the call occurs %d times, want once in the response and twice in the stream", len(called))
					}
					for _, call := range called {
						if call.Name != name || call.Namespace != "" || call.Hosted {
							t.Errorf("it became %+v", call)
						}
						if _, _, spec := sent.Registry.PublicName("", call.Name); spec != nil {
							t.Errorf("%s would run %s", call.Name, spec.Name)
						}
					}
				})
			}
		}
	}
}

// decodeAll returns the events of a stream.
func decodeAll(t *testing.T, c dialect.Codec, body []byte, o dialect.DecodeOptions) (evs []dragoman.Event) {
	t.Helper()
	d := c.NewStreamDecoder(o)
	emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
	if err := d.Feed(body, emit); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(emit); err != nil {
		t.Fatal(err)
	}
	return evs
}

// If the request offers no tools, or forbids them, a call in the response does not run:
// neither here nor at a client, in the same dialect or another, whole or streamed.
func TestQuirkB37_UnrequestedCallNeverRuns(t *testing.T) {
	tool := dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "rm", Parameters: []byte(`{"type":"object"}`)}
	response := &dragoman.Response{
		ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "rm", Arguments: `{"a":1}`}}}},
	}
	for what, req := range map[string]*dragoman.Request{
		"no tools":    {Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}},
		"choice none": {Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: []dragoman.ToolSpec{tool}, ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}},
	} {
		for _, c := range crosstest.Codecs {
			sent, err := c.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			o := dialect.DecodeOptions{Registry: sent.Registry}
			enc, err := c.EncodeResponse(response, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wire, _, err := crosstest.Streamed(c, crosstest.Calling(response), dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			whole, _, err := c.DecodeResponse(enc.Body, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range whole.ToolCalls() {
				if call.Problem == nil {
					t.Errorf("%s, %s: the call may run", c.Dialect(), what)
				}
			}
			for _, to := range crosstest.Codecs {
				passed, err := to.EncodeResponse(whole, dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got, _, err := to.DecodeResponse(passed.Body, dialect.DecodeOptions{}); err == nil && runs(got) {
					t.Errorf("%s to %s, %s: a client runs %s", c.Dialect(), to.Dialect(), what, passed.Body)
				}
				var out []byte
				dec, relayed := c.NewStreamDecoder(o), to.NewStreamEncoder(dialect.EncodeOptions{})
				emit := func(ev dragoman.Event) (err error) {
					out, err = relayed.Encode(out, ev)
					return err
				}
				if err := errors.Join(dec.Feed(wire, emit), dec.Close(emit)); err != nil {
					t.Fatal(err)
				}
				if out, err = relayed.Close(out); err != nil {
					t.Fatal(err)
				}
				var col dragoman.Collector
				read := to.NewStreamDecoder(dialect.DecodeOptions{})
				add := func(ev dragoman.Event) error { col.Add(ev); return nil }
				_ = errors.Join(read.Feed(out, add), read.Close(add))
				if got, err := col.Response(); err == nil && runs(got) {
					t.Errorf("%s to %s, %s, as a stream: a client runs\n%s", c.Dialect(), to.Dialect(), what, out)
				}
			}
		}
	}
}

// runs reports whether a client would run a call of the response.
func runs(resp *dragoman.Response) bool {
	return resp.Stop.Reason.Runs() && slices.ContainsFunc(resp.ToolCalls(), func(c *dragoman.ToolCall) bool { return c.Problem == nil })
}
