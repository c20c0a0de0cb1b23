package agent_test

import (
	"context"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// trusted omits the fence, whose boundary is random.
var trusted = tool.Set(func(s *tool.Settings) { s.Trusted = true })

// inPlace are edits that callers make in the messages they get.
var inPlace = map[string]func(ms []dragoman.Message) []dragoman.Message{
	"replaces a message": func(ms []dragoman.Message) []dragoman.Message {
		ms[0] = dragoman.UserText("(summary)")
		return ms
	},
	"deletes messages": func(ms []dragoman.Message) []dragoman.Message {
		if len(ms) < 3 {
			return ms
		}
		return slices.Delete(ms, 1, 3)
	},
	"deletes parts": func(ms []dragoman.Message) []dragoman.Message {
		ms[0].Parts = slices.DeleteFunc(ms[0].Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia })
		return ms
	},
	"edits a text": func(ms []dragoman.Message) []dragoman.Message {
		ms[0].Parts[len(ms[0].Parts)-1].(*dragoman.Text).Text = "(cut)"
		return ms
	},
	"edits a result": func(ms []dragoman.Message) []dragoman.Message {
		for _, m := range ms {
			for _, p := range m.Parts {
				if r, ok := p.(*dragoman.ToolResult); ok {
					r.Content[0].(*dragoman.Text).Text = "(cut)"
				}
			}
		}
		return ms
	},
}

func TestL8_CompactMayEditInPlace(t *testing.T) {
	for name, edit := range inPlace {
		t.Run(name, func(t *testing.T) {
			run := func(compact func(context.Context, []dragoman.Message) ([]dragoman.Message, error)) (kept, stored string) {
				var did counted
				store := &memory{}
				a := agent.Agent{Model: model(calls("a look"), calls("b look"), textResponse("done")), Tools: []tool.Tool{did.tool("look", trusted)}, Compact: compact}
				first := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{dragoman.Image("image/png", []byte("x")), &dragoman.Text{Text: "look at it"}}}
				res := must[*agent.Result](t)(a.Run(t.Context(), "go", agent.Messages(first), agent.In(store), agent.ID("r")))
				return marshal(t, res.Messages), marshal(t, store.messages)
			}
			wantKept, wantStored := run(nil)
			kept, stored := run(func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) { return edit(ms), nil })
			if kept != wantKept {
				t.Errorf("result\n%s\nwant\n%s", kept, wantKept)
			}
			if stored != wantStored {
				t.Errorf("stored\n%s\nwant\n%s", stored, wantStored)
			}
		})
	}
}

func TestL5_FilterMayEditInPlace(t *testing.T) {
	for name, edit := range inPlace {
		t.Run(name, func(t *testing.T) {
			run := func(filter func([]dragoman.Message) []dragoman.Message) string {
				var did counted
				to := &agent.Agent{Name: "second", Model: model(textResponse("done"))}
				a := agent.Agent{
					Name: "first", Model: model(calls("a look"), calls("b transfer_to_second")), Tools: []tool.Tool{did.tool("look", trusted)},
					Handoffs: []agent.Handoff{{To: to, Name: "transfer_to_second", Filter: filter}},
				}
				first := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{dragoman.Image("image/png", []byte("x")), &dragoman.Text{Text: "look at it"}}}
				return marshal(t, must[*agent.Result](t)(a.Run(t.Context(), "go", agent.Messages(first), agent.ID("r"))).Messages)
			}
			if got, want := run(edit), run(nil); got != want {
				t.Errorf("kept\n%s\nwant\n%s", got, want)
			}
		})
	}
}
