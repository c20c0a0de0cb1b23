package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

// The outcome of background work is delivered once, to the agent that speaks when the work
// ends. The two agents may have different ticket stores, or the second one none.
func TestT13_OutcomesReachTheAgentThatTookOver(t *testing.T) {
	for name, other := range map[string]*tool.Runner{
		"none":        nil,
		"its own":     {Tickets: &tool.Tickets{Store: &tool.MemoryTickets{}}},
		"the same":    {},
		"same, apart": {},
	} {
		tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
		switch name {
		case "the same":
			other.Tickets = tickets
		case "same, apart":
			other.Tickets = &tool.Tickets{Store: tickets.Store}
		}
		var id string
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		})
		finish := tool.New("finish", "Ends the work.", func(ctx context.Context, _ word) (string, error) {
			return "", tickets.Resolve(ctx, id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}})
		})
		m := model(calls("c finish"), calls("d look"), says("done"))
		var did counted
		second := &agent.Agent{Name: "second", Model: m, Tools: []tool.Tool{finish, did.tool("look")}, Runner: other}
		first := agent.Agent{
			Name: "first", Model: model(calls("a build"), calls("b transfer_to_second")), Tools: []tool.Tool{build},
			Runner: &tool.Runner{Tickets: tickets}, Handoffs: []agent.Handoff{{To: second}},
		}
		res := must[*agent.Result](t)(first.Run(t.Context(), "go"))
		if n := strings.Count(script(res.Messages), "is resolved."); n != 1 || !strings.Contains(script(m.asked[1].Messages), "the outcome") {
			t.Errorf("%s: told %d times:\n%s", name, n, script(res.Messages))
		}
	}
}
