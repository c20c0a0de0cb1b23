package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

func TestCallbackThatPanicsFailsTheRun(t *testing.T) {
	look := tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	for name, set := range map[string]func(*agent.Agent){
		"AfterTools": func(a *agent.Agent) {
			a.AfterTools = func(context.Context, []agent.ToolOutcome) (string, bool, error) { panic("broken") }
		},
		"Steer": func(a *agent.Agent) {
			a.Steer = func(context.Context, agent.Turn) ([]dragoman.Message, error) { panic("broken") }
		},
		"Compact": func(a *agent.Agent) {
			a.Compact = func(context.Context, []dragoman.Message) ([]dragoman.Message, error) { panic("broken") }
		},
		"Instruct": func(a *agent.Agent) {
			a.Instruct = func(context.Context, agent.Turn) (string, error) { panic("broken") }
		},
		"Price": func(a *agent.Agent) {
			a.Price = func(dragoman.Usage) float64 { panic("broken") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent.Agent{Model: model(calls("a look"), textResponse("done")), Tools: []tool.Tool{look}}
			set(&a)
			_, err := a.Run(t.Context(), "go")
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "panicked: broken") {
				t.Errorf("error %v", err)
			}
			var panicked *tool.PanicError
			if !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
				t.Errorf("error %v has no stack", err)
			}
		})
	}
}

func TestHandoffFilterThatPanicsFailsTheRun(t *testing.T) {
	other := &agent.Agent{Name: "other", Model: model(textResponse("done"))}
	a := agent.Agent{Model: model(calls("a transfer_to_other"), textResponse("done")), Handoffs: []agent.Handoff{{
		To: other, Filter: func([]dragoman.Message) []dragoman.Message { panic("broken") },
	}}}
	_, err := a.Run(t.Context(), "go")
	if err == nil || !strings.Contains(err.Error(), "the filter of the handoff to other: panicked: broken") {
		t.Errorf("error %v", err)
	}
}

func TestRefusalOfTypedOutputIsNotCorrected(t *testing.T) {
	refused := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Refusal{Text: "I will not name a word."}}}
	for name, resp := range map[string]*dragoman.Response{
		"a refusal part":               {Output: []dragoman.Message{refused}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}},
		"a refusal as text":            {Output: []dragoman.Message{dragoman.AssistantText("I will not name a word.")}, Stop: dragoman.Stop{Reason: dragoman.StopRefusal}},
		"a refusal with a valid value": {Output: []dragoman.Message{dragoman.AssistantText(`{"word":"I will not name a word."}`)}, Stop: dragoman.Stop{Reason: dragoman.StopRefusal}},
		"a refusal of words":           {Output: []dragoman.Message{refused}, Stop: dragoman.Stop{Reason: dragoman.StopRefusal}},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(resp, textResponse(`{"word":"w"}`))
			_, _, err := agent.Generate[word](t.Context(), agent.Agent{Model: m}, "go")
			if !errors.Is(err, agent.ErrResponse) || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "I will not name a word.") {
				t.Errorf("error %v", err)
			}
			var corrected *agent.OutputError
			if errors.As(err, &corrected) {
				t.Errorf("the refusal was corrected: %v", err)
			}
		})
	}
}
