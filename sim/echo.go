package sim

import (
	"context"
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
)

// Echo is a model that repeats the text of the last message that is not from the model. It
// calls no tools. The zero value is ready to use.
type Echo struct{ Settings }

var _ dragoman.Model = Echo{}

// Generate implements [dragoman.Model].
func (e Echo) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	return e.actor().generate(ctx, req)
}

// Stream implements [dragoman.Model].
func (e Echo) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return e.actor().stream(ctx, req)
}

// String returns the model's name, "sim/echo".
func (e Echo) String() string { return e.actor().name }

func (e Echo) actor() actor {
	return actor{name: "sim/echo", settings: e.Settings, respond: func(req *dragoman.Request, _ idGenerator) (response, error) {
		a := response{stop: dragoman.Stop{Reason: dragoman.StopEnd}}
		if text := lastInput(req); text != "" {
			a.parts = []dragoman.Part{&dragoman.Text{Text: text}}
		}
		return a, nil
	}}
}

// lastInput returns the text of the last message that is not from the model.
func lastInput(req *dragoman.Request) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		if m.Role == dragoman.RoleAssistant {
			continue
		}
		text := m.Text()
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				text += r.Text()
			}
		}
		return text
	}
	return ""
}
