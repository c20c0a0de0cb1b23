package native_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// aliased lists tools that some wire formats cannot name, and calls that a model makes of them.
// Clients must get a call of the tool they declared.
var aliased = []struct {
	about, called, arguments string // as the model writes it; empty means as on the wire
	tool                     dragoman.ToolSpec
	want                     string // the arguments that the client gets
}{
	{
		"a name that the wire forbids", "", `{"a":"b"}`,
		dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "näme.tool x", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		`{"a":"b"}`,
	},
	{
		"quirk B22: a prefixed name", "functions.find", `{"a":"b"}`,
		dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "find", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		`{"a":"b"}`,
	},
	{
		"quirk A42: renamed arguments", "", "",
		dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "measure", Parameters: []byte(`{"type":"object","properties":{"größe €":{"type":"string"}},"required":["größe €"]}`)},
		`{"größe €":"b"}`,
	},
	{
		"quirk A23: a union at the root of a schema", "", "",
		dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "choose", Parameters: []byte(`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`)},
		`{"a":"b"}`,
	},
	{
		"quirk B30: a freeform tool called as a function", "", `{"input":"b"}`,
		dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "patch"},
		"b",
	},
}

// upstream returns a provider's response that calls the tool, and decode options with the registry
// of its request.
func upstream(t *testing.T, c dialect.Codec, tool dragoman.ToolSpec, called, arguments string) (*dragoman.Response, dialect.DecodeOptions) {
	t.Helper()
	asked, err := c.EncodeRequest(&dragoman.Request{
		Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: []dragoman.ToolSpec{tool},
	}, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if called == "" {
		called = asked.Registry.WireName(tool.Namespace, tool.Name)
	}
	call := &dragoman.ToolCall{ID: "call_1", Name: called, Arguments: arguments}
	return &dragoman.Response{
		ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}},
	}, dialect.DecodeOptions{Registry: asked.Registry}
}

// wireArguments returns the arguments of a call as a history shows them to the model: with the names
// of the wire.
func wireArguments(t *testing.T, c dialect.Codec, tool dragoman.ToolSpec, arguments string) string {
	t.Helper()
	past := &dragoman.ToolCall{ID: "call_0", Name: tool.Name, Arguments: arguments}
	enc, err := c.EncodeRequest(&dragoman.Request{Model: "m", Tools: []dragoman.ToolSpec{tool}, Messages: []dragoman.Message{
		dragoman.UserText("hi"),
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{past}},
		{Role: dragoman.RoleTool, Parts: []dragoman.Part{&dragoman.ToolResult{CallID: "call_0", Name: tool.Name, Content: []dragoman.Part{&dragoman.Text{Text: "done"}}}}},
	}}, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req, _, err := c.DecodeRequest(enc.Body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range req.Messages {
		for _, call := range m.ToolCalls() {
			return call.Arguments
		}
	}
	t.Fatalf("no call in %s", enc.Body)
	return ""
}

// checkClientCall checks the call that a client decodes from the response passed through to it.
func checkClientCall(t *testing.T, passed *dragoman.Response, tool dragoman.ToolSpec, want string) {
	t.Helper()
	calls := passed.ToolCalls()
	if len(calls) != 1 || calls[0].Problem != nil || calls[0].Name != tool.Name {
		t.Fatalf("the client gets %+v", calls)
	}
	got := calls[0].Arguments
	if tool.Kind == codes.ToolFreeform && calls[0].Payload != codes.PayloadText {
		want = `{"input":"` + want + `"}` // the client declared it as a function
	}
	if got != want {
		t.Fatalf("the client gets the arguments %s, want %s", got, want)
	}
}

func TestAliasesInResponsesDoNotReachTheClient(t *testing.T) {
	for _, c := range crosstest.Codecs {
		for _, tc := range aliased {
			t.Run(string(c.Dialect())+"/"+tc.about, func(t *testing.T) {
				response, o := upstream(t, c, tc.tool, tc.called, cmp.Or(tc.arguments, wireArguments(t, c, tc.tool, tc.want)))
				sent, err := c.EncodeResponse(response, dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				read, _, err := c.DecodeResponse(sent.Body, o)
				if err != nil {
					t.Fatal(err)
				}
				passed, err := c.EncodeResponse(read, dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := c.DecodeResponse(passed.Body, dialect.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				checkClientCall(t, got, tc.tool, tc.want)
			})
		}
	}
}

func TestResponseWithoutAliasesPassesThrough(t *testing.T) {
	tool := dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "find", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	for _, c := range crosstest.Codecs {
		response, o := upstream(t, c, tool, "find", `{"a":"b"}`)
		sent, err := c.EncodeResponse(response, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		read, _, err := c.DecodeResponse(sent.Body, o)
		if err != nil {
			t.Fatal(err)
		}
		passed, err := c.EncodeResponse(read, dialect.EncodeOptions{})
		if err != nil || !bytes.Equal(passed.Body, sent.Body) {
			t.Errorf("%s: %v\n%s\n%s", c.Dialect(), err, passed.Body, sent.Body)
		}
	}
}

func TestAliasesInStreamsDoNotReachTheClient(t *testing.T) {
	for _, c := range crosstest.Codecs {
		for _, tc := range aliased {
			t.Run(string(c.Dialect())+"/"+tc.about, func(t *testing.T) {
				response, o := upstream(t, c, tc.tool, tc.called, cmp.Or(tc.arguments, wireArguments(t, c, tc.tool, tc.want)))
				sent, _, err := crosstest.Streamed(c, crosstest.Calling(response), dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				passed := relay(t, c, sent, o)
				checkClientCall(t, crosstest.Collect(t, c, passed, nil), tc.tool, tc.want)
			})
		}
	}
}

func TestStreamWithoutAliasesKeepsItsMeaning(t *testing.T) {
	tool := dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "find", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	for _, c := range crosstest.Codecs {
		response, o := upstream(t, c, tool, "find", `{"a":"b"}`)
		sent, _, err := crosstest.Streamed(c, crosstest.Calling(response), dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a, b := codectest.Approved(crosstest.Collect(t, c, sent, nil)), codectest.Approved(crosstest.Collect(t, c, relay(t, c, sent, o), nil))
		if len(a) != 1 || !slices.Equal(a, b) {
			t.Errorf("%s: %q became %q", c.Dialect(), a, b)
		}
	}
}

// relay re-encodes a stream as the gateway does: each event as soon as it arrives.
func relay(t *testing.T, c dialect.Codec, stream []byte, o dialect.DecodeOptions) (out []byte) {
	t.Helper()
	dec, enc := c.NewStreamDecoder(o), c.NewStreamEncoder(dialect.EncodeOptions{})
	emit := func(ev dragoman.Event) (err error) {
		out, err = enc.Encode(out, ev)
		return err
	}
	if err := dec.Feed(stream, emit); err != nil {
		t.Fatal(err)
	}
	if err := dec.Close(emit); err != nil {
		t.Fatal(err)
	}
	out, err := enc.Close(out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A provider must not reach the client's tool ns__f with a call of the tool f of namespace ns. To
// anything that inspects the response, such as a policy, that is another tool.
func TestNamespacedToolNeverTakesTheNameOfABareTool(t *testing.T) {
	bare := &dragoman.ToolCall{ID: "c2", Name: "ns__f", Arguments: "{}"}
	spaced := &dragoman.ToolCall{ID: "c1", Namespace: "ns", Name: "f", Arguments: "{}"}
	own := dragoman.ToolSpec{Kind: codes.ToolFunction, Name: "ns__f"}
	for _, c := range crosstest.Codecs {
		if c.Dialect() == dialectname.OpenAIResponses {
			continue // this dialect has namespaces
		}
		asked, err := c.EncodeRequest(&dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: []dragoman.ToolSpec{own}}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for what, o := range map[string]struct {
			calls []dragoman.Part
			o     dialect.EncodeOptions
		}{
			"both in one response":    {[]dragoman.Part{spaced, bare}, dialect.EncodeOptions{}},
			"of a tool of the client": {[]dragoman.Part{spaced}, dialect.EncodeOptions{Registry: asked.Registry}},
		} {
			enc, err := c.EncodeResponse(&dragoman.Response{
				Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: o.calls}}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
			}, o.o)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if first := got.ToolCalls()[0]; first.Name == "ns__f" {
				t.Errorf("%s, %s: the client gets %s", c.Dialect(), what, enc.Body)
			}
		}
	}
}
