package dialect_test

import (
	"bytes"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// aliased are tools that some wire cannot name, and calls that a model makes of
// them: what reaches a client is a call of the tool it has.
var aliased = []struct {
	about, called, arguments string // as the model says it; called "": by the wire's name
	tool                     dragoman.ToolSpec
	want                     string // the arguments that the client gets
}{
	{
		"a name that the wire forbids", "", `{"a":"b"}`,
		dragoman.ToolSpec{Kind: dragoman.ToolFunction, Name: "näme.tool x", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		`{"a":"b"}`,
	},
	{
		"quirk B22: a decorated name", "functions.find", `{"a":"b"}`,
		dragoman.ToolSpec{Kind: dragoman.ToolFunction, Name: "find", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		`{"a":"b"}`,
	},
	{
		"quirk B30: a freeform tool that was called as a function", "", `{"input":"b"}`,
		dragoman.ToolSpec{Kind: dragoman.ToolFreeform, Name: "patch"},
		"b",
	},
}

// upstream is the answer of a provider that calls the tool, and the registry it
// was asked with.
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

// clientGets checks the call that a client reads in what was passed on to it.
func clientGets(t *testing.T, passed *dragoman.Response, tool dragoman.ToolSpec, want string) {
	t.Helper()
	calls := passed.ToolCalls()
	if len(calls) != 1 || calls[0].Problem != nil || calls[0].Name != tool.Name {
		t.Fatalf("the client gets %+v", calls)
	}
	got := calls[0].Arguments
	if tool.Kind == dragoman.ToolFreeform && calls[0].Payload != dragoman.PayloadText {
		want = `{"input":"` + want + `"}` // the client was told of it as a function, and knows no other way
	}
	if got != want {
		t.Fatalf("the client gets the arguments %s, want %s", got, want)
	}
}

func TestAnAnswerIsNotPassedOnWithNamesThatOnlyTheProviderKnows(t *testing.T) {
	for _, c := range codecs {
		for _, tc := range aliased {
			t.Run(string(c.Dialect())+"/"+tc.about, func(t *testing.T) {
				answer, o := upstream(t, c, tc.tool, tc.called, tc.arguments)
				sent, err := c.EncodeResponse(answer, dialect.EncodeOptions{})
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
				clientGets(t, got, tc.tool, tc.want)
			})
		}
	}
}

func TestAnAnswerThatNothingWasAliasedInIsPassedOnAsItCame(t *testing.T) {
	tool := dragoman.ToolSpec{Kind: dragoman.ToolFunction, Name: "find", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	for _, c := range codecs {
		answer, o := upstream(t, c, tool, "find", `{"a":"b"}`)
		sent, err := c.EncodeResponse(answer, dialect.EncodeOptions{})
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
