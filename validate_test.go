package dragoman_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

func TestInvalidValuesAreErrorsWithTheirPath(t *testing.T) {
	text := &dragoman.Text{Text: "x"}
	hot := dragoman.Number("hot")
	more := dragoman.Number(`1,"model":"other"`)
	type testCase struct {
		name string
		req  dragoman.Request
		want string
	}
	cases := []testCase{
		{"misspelled tool kind", dragoman.Request{Tools: []dragoman.ToolSpec{{Name: "f", Kind: "custom"}}}, "/tools/0/kind"},
		{"misspelled strictness of a tool", dragoman.Request{Tools: []dragoman.ToolSpec{{Name: "f", Strict: "true"}}}, "/tools/0/strict"},
		{"misspelled output kind", dragoman.Request{Output: &dragoman.OutputFormat{Kind: "schema"}}, "/output/kind"},
		{"misspelled strictness of the output", dragoman.Request{Output: &dragoman.OutputFormat{Kind: codes.OutputJSON, Strict: "yes"}}, "/output/strict"},
		{"misspelled reasoning mode", dragoman.Request{Reasoning: &dragoman.ReasoningSettings{Mode: "enabled"}}, "/reasoning/mode"},
		{"a nil part", dragoman.Request{Messages: []dragoman.Message{{Parts: []dragoman.Part{text, nil}}}}, "/messages/0/parts/1"},
		{"a nil pointer in a part", dragoman.Request{Instructions: []dragoman.Part{(*dragoman.Media)(nil)}}, "/instructions/0"},
		{
			"a nil part inside a result",
			dragoman.Request{Messages: []dragoman.Message{dragoman.ToolResults(&dragoman.ToolResult{Content: []dragoman.Part{nil}})}},
			"/messages/0/parts/0/content/0",
		},
		{"a hosted tool without a source", dragoman.Request{Tools: []dragoman.ToolSpec{{Name: "f"}, {Kind: codes.ToolHosted}}}, "/tools/1"},
		{"a number that is a word", dragoman.Request{Sampling: dragoman.Sampling{Temperature: &hot}}, "/sampling/temperature"},
		{"a number that says more than its place allows", dragoman.Request{Sampling: dragoman.Sampling{TopP: &more}}, "/sampling/top_p"},
	}
	for name, c := range map[string]struct {
		part dragoman.Part
		want string
	}{
		"media":          {&dragoman.Media{Media: "picture", URL: "https://example.com/a.png"}, "/media: unknown value \"picture\": use \"image\", \"audio\", \"video\", \"file\""},
		"call payload":   {&dragoman.ToolCall{ID: "c", Name: "f", Payload: "txt"}, "/payload: unknown value \"txt\""},
		"result payload": {&dragoman.ToolResult{CallID: "c", Payload: "object"}, "/payload: unknown value \"object\""},
		"outcome":        {&dragoman.ToolResult{CallID: "c", Outcome: "failed"}, "/outcome: unknown value \"failed\""},
		"nested media":   {&dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{&dragoman.Media{Media: "img"}}}, "/content/0/media: unknown value \"img\""},
	} {
		cases = append(cases, testCase{"misspelled " + name, dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{c.part}}}}, "/messages/0/parts/0" + c.want})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.req.Validate()
			if !errors.Is(err, dragoman.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrInvalid at %s", err, c.want)
			}
		})
	}
	sound := dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("hi")},
		Sampling: dragoman.Sampling{Temperature: dragoman.Num(0.2), TopP: dragoman.Num(1e-9)},
	}
	if err := sound.Validate(); err != nil {
		t.Error(err)
	}
	if err := dragoman.ValidateEvent(&dragoman.PartEnd{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Errorf("an event with a nil part gives %v", err)
	}
	if err := dragoman.ValidateEvent(nil); !errors.Is(err, dragoman.ErrInvalid) {
		t.Errorf("a nil event gives %v", err)
	}
	resp := dragoman.Response{Alternatives: []dragoman.Candidate{{Output: []dragoman.Message{{Parts: []dragoman.Part{nil}}}}}}
	if err := resp.Validate(); !errors.Is(err, dragoman.ErrInvalid) || !strings.Contains(err.Error(), "/alternatives/0/output/0/parts/0") {
		t.Errorf("got %v", err)
	}
}

func TestResultHasTheIdentityOfItsCall(t *testing.T) {
	call := &dragoman.ToolCall{ID: "call_1", Name: "f", Namespace: "ns", Payload: codes.PayloadText}
	res := call.ResultText("done")
	if res.CallID != "call_1" || res.Name != "f" || res.Namespace != "ns" || res.Payload != codes.PayloadText || res.Outcome != codes.OutcomeOK || res.Text() != "done" {
		t.Errorf("got %+v", res)
	}
	if res := call.Fail("no"); res.Outcome != codes.OutcomeError || res.Text() != "no" {
		t.Errorf("got %+v", res)
	}
}

func TestCountIsANumberOrUnknown(t *testing.T) {
	if got := dragoman.Counted(7).String() + " " + (dragoman.Count{}).String(); got != "7 unknown" {
		t.Errorf("got %q", got)
	}
}

func TestImageContentIsBase64(t *testing.T) {
	if m := dragoman.Image("image/png", []byte{0xff, 0x00}); m.Base64 != "/wA=" || m.MIME != "image/png" || m.Media != codes.MediaImage {
		t.Errorf("got %+v", m)
	}
}
