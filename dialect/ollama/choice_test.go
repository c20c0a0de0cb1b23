package ollama_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

func twoTools(c *dragoman.ToolChoice) *dragoman.Request {
	return &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("go")}, Tools: []dragoman.ToolSpec{fn("f"), fn("g")}, ToolChoice: c}
}

func ref(name string) []dragoman.ToolRef { return []dragoman.ToolRef{{Name: name}} }

func TestQuirkE1_EveryToolChoiceIsEncodedOrReported(t *testing.T) {
	for name, c := range map[string]struct {
		choice *dragoman.ToolChoice
		tools  int
		kind   dragoman.LossKind // of the loss at /tool_choice
		sev    dragoman.Severity
	}{
		"absent":           {nil, 2, "", 0},
		"auto":             {&dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, 2, "", 0},
		"none":             {&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, 0, dragoman.Lowered, dragoman.Info},
		"required":         {&dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, 2, dragoman.Lowered, dragoman.Warn},
		"named":            {&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: ref("g")}, 1, dragoman.Lowered, dragoman.Warn},
		"narrowed":         {&dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: ref("f")}, 1, dragoman.Lowered, dragoman.Warn},
		"narrowed to none": {&dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}}, 0, dragoman.Lowered, dragoman.Warn},
		"opaque":           {&dragoman.ToolChoice{Mode: codes.ChoiceOpaque}, 2, dragoman.Dropped, dragoman.Warn},
	} {
		t.Run(name, func(t *testing.T) {
			m, rep := encode(t, twoTools(c.choice), dialect.EncodeOptions{})
			if m["tool_choice"] != nil {
				t.Error("Ollama has no tool_choice field")
			}
			n := 0
			if m["tools"] != nil {
				n = len(elements(t, m["tools"]))
			}
			if n != c.tools {
				t.Errorf("%d tools, want %d: %s", n, c.tools, m["tools"])
			}
			if c.kind == "" {
				lossless(t, rep)
			} else if l := lost(t, rep, c.kind, "/tool_choice", ""); l.Severity != c.sev {
				t.Errorf("%v", l)
			}
		})
	}
	for name, req := range map[string]*dragoman.Request{
		"named tool is missing":    twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: ref("h")}),
		"two forced tools":         twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: append(ref("f"), ref("g")...)}),
		"required tool is missing": twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: ref("h")}),
	} {
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := codec.EncodeRequest(twoTools(&dragoman.ToolChoice{Mode: "maybe"}), dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
	_, rep := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}}, dialect.EncodeOptions{})
	lost(t, rep, dragoman.Dropped, "/tool_choice", "no tools remain") // quirk E3
	if _, err := codec.EncodeRequest(twoTools(nil), dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoTools: true}}}); !errors.Is(err, dragoman.ErrUnsupported) {
		t.Errorf("quirk E11: %v", err)
	}
}

// decodeBoth decodes one response with a call, from a whole body and from a stream.
func decodeBoth(t *testing.T, reg dialect.DecodeOptions) map[string]*dragoman.Response {
	t.Helper()
	body := wholeResponse(`{"role":"assistant","content":"I will.","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`, `,"done_reason":"stop"`)
	whole, _, err := codec.DecodeResponse([]byte(body), reg)
	if err != nil {
		t.Fatal(err)
	}
	d := decodeStream(t, reg, line(`{"role":"assistant","content":"I will."}`), line(`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`), last(`,"done_reason":"stop"`))
	if d.err != nil {
		t.Fatal(d.err)
	}
	return map[string]*dragoman.Response{"whole": whole, "stream": d.resp}
}

func TestQuirkE2_CallsThatWereNotAllowedDoNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		choice *dragoman.ToolChoice
		runs   bool
		reason dragoman.StopReason
	}{
		"no choice":        {nil, true, dragoman.StopToolCalls},
		"none":             {&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, false, dragoman.StopMalformedCall},
		"other tool named": {&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: ref("g")}, false, dragoman.StopMalformedCall},
		"this tool named":  {&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: ref("f")}, true, dragoman.StopToolCalls},
		"required":         {&dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, true, dragoman.StopToolCalls},
	} {
		enc, err := codec.EncodeRequest(twoTools(c.choice), dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for way, resp := range decodeBoth(t, dialect.DecodeOptions{Registry: enc.Registry}) {
			call := resp.ToolCalls()[0]
			if (call.Problem == nil) != c.runs || resp.Stop.Reason != c.reason || resp.Text() != "I will." {
				t.Errorf("%s, %s: %v, stop %s", name, way, call.Problem, resp.Stop.Reason)
			}
			if c.runs {
				continue
			}
			problem(t, *call, codes.ProblemStopped)
			// Clients that get the response do not run it either, in any dialect.
			out, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil || strings.Contains(string(out.Body), "tool_calls") {
				t.Errorf("%s, %s: a client would run %s, %v", name, way, out.Body, err)
			}
			lost(t, out.Report, dragoman.Dropped, "/output/0/parts/1", "must not run")
			chat, err := openaichat.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil || strings.Contains(string(chat.Body), `"finish_reason":"tool_calls"`) || strings.Contains(string(chat.Body), `"finish_reason":"stop"`) {
				t.Errorf("%s, %s: a client would run %s, %v", name, way, chat.Body, err)
			}
		}
		// A stream is not passed through unchanged if a client would run the call.
		d := decodeStream(t, dialect.DecodeOptions{Registry: enc.Registry}, line(`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`)+last(""))
		lines, _ := written(t, dialect.EncodeOptions{}, d.events)
		if got := strings.Contains(strings.Join(lines, ""), "tool_calls"); got != c.runs {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

func TestOnlyAllowedCallRuns(t *testing.T) {
	enc, err := codec.EncodeRequest(twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: ref("g")}), dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := codec.DecodeResponse([]byte(wholeResponse(`{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}]}`, "")), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		t.Fatal(err)
	}
	problem(t, calls(resp)[0], codes.ProblemStopped)
	if calls(resp)[1].Problem != nil || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%v, %s", calls(resp)[1].Problem, resp.Stop.Reason)
	}
	out, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || strings.Contains(string(out.Body), `"name":"f"`) || !strings.Contains(string(out.Body), `"name":"g"`) {
		t.Errorf("%s, %v", out.Body, err)
	}
}

func TestToolChoiceAppliesToOneRequestOnly(t *testing.T) {
	enc, err := codec.EncodeRequest(twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}), dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := codec.EncodeRequest(twoTools(nil), dialect.EncodeOptions{Registry: enc.Registry})
	if err != nil {
		t.Fatal(err)
	}
	for way, resp := range decodeBoth(t, dialect.DecodeOptions{Registry: again.Registry}) {
		if resp.ToolCalls()[0].Problem != nil {
			t.Errorf("%s: %v", way, resp.ToolCalls()[0].Problem)
		}
	}
	// Calls in the history were allowed when the model made them.
	body := `{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}]}`
	enc, err = codec.EncodeRequest(twoTools(&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}), dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil || req.Messages[0].ToolCalls()[0].Problem != nil {
		t.Errorf("%v %v", err, req.Messages[0].ToolCalls()[0].Problem)
	}
}
