package gateway_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

func reasoningOf(resp *dragoman.Response) *dragoman.Reasoning {
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if r, ok := p.(*dragoman.Reasoning); ok {
				return r
			}
		}
	}
	return &dragoman.Reasoning{}
}

func TestG1_ThinkingIsSentAsRequestedSummary(t *testing.T) {
	w := newWorld(t, "")
	for _, up := range []string{"sim/planner", "anthropic/sim/planner", "gemini/sim/planner", "bedrock/sim/planner"} {
		for _, stream := range []bool{false, true} {
			ask := func(summary string) *dragoman.Reasoning {
				t.Helper()
				c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
				resp, err := c.generate(&dragoman.Request{
					Model: up, Stream: stream, MaxOutputTokens: new(int64(4000)), Reasoning: &dragoman.ReasoningSettings{Effort: "high", Summary: summary},
					Messages: []dragoman.Message{userSays("Say hello.")},
				})
				if err != nil {
					t.Fatal(err)
				}
				return reasoningOf(resp)
			}
			if r := ask("auto"); len(r.Summary) != 1 || !strings.Contains(r.Summary[0], "No tool is needed") || r.Text != "" {
				t.Errorf("%s streamed %v: %+v", up, stream, r)
			}
			if r := ask(""); len(r.Summary) != 0 || !strings.Contains(r.Text, "No tool is needed") && up == "sim/planner" {
				t.Errorf("%s streamed %v, not requested: %+v", up, stream, r)
			}
		}
	}
}

func TestQuirkB17_ReturnedSummaryRestoresThinking(t *testing.T) {
	model := &scriptedServer{responses: []string{anthropicThinks}}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: anthropic/model}}\n", model.ServeHTTP)
	c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
	req := &dragoman.Request{
		Model: "m", MaxOutputTokens: new(int64(4000)), Tools: []dragoman.ToolSpec{weatherTool()}, Store: new(false),
		Reasoning: &dragoman.ReasoningSettings{Effort: "high", Summary: "auto"}, Messages: []dragoman.Message{userSays("The weather in Oslo?")},
	}
	resp, err := c.generate(req)
	if err != nil || len(reasoningOf(resp).Summary) != 1 {
		t.Fatalf("%+v %v", resp, err)
	}
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{callsOf(resp)[0].ResultText("snow")}})
	if _, err := c.generate(req); err != nil {
		t.Fatal(err)
	}
	if requests := model.requests[1]; strings.Count(requests, "signature-of-the-thinking") != 1 || strings.Count(requests, `"type":"thinking"`) != 1 {
		t.Errorf("the thinking did not come back whole: %s", requests)
	}
}
