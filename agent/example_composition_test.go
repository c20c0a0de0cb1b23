package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// refund is a tool that needs approval.
var refund = tool.New("refund_order", "Refunds an order.", func(_ context.Context, in struct {
	Order int `json:"order"`
},
) (string, error) {
	return fmt.Sprintf("order %d is refunded", in.Order), nil
}, tool.NeedsApproval())

// desk is a web service. One request starts the run, which stops for approval and is stored. A
// later request decides and resumes it. Different processes may serve the two requests, because
// they share only the stored state.
type desk struct {
	agent  agent.Agent
	mu     sync.Mutex
	states map[string][]byte // use a database in production
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var res *agent.Result
	var err error
	switch r.URL.Path {
	case "/ask":
		prompt, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
		res, err = d.agent.Run(r.Context(), string(prompt))
	case "/decide":
		var state agent.State
		d.mu.Lock()
		err = json.Unmarshal(d.states[r.FormValue("run")], &state)
		d.mu.Unlock()
		if err != nil {
			http.Error(w, "no such run", http.StatusNotFound)
			return
		}
		var decisions []agent.Option
		for _, p := range state.Pending() {
			if r.FormValue("verdict") == "yes" {
				decisions = append(decisions, agent.Approve(p))
			} else {
				decisions = append(decisions, agent.Reject(p, "not approved"))
			}
		}
		res, err = d.agent.Resume(r.Context(), &state, decisions...)
	}
	switch {
	case errors.Is(err, agent.ErrInterrupted):
		state, _ := json.Marshal(res.State)
		d.mu.Lock()
		d.states[res.Run] = state
		d.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		for _, p := range res.Pending {
			fmt.Fprintf(w, "%s wants %s %s\n", res.Run, p.Tool(), p.Input.Arguments)
		}
	case err != nil:
		http.Error(w, "the agent failed", http.StatusBadGateway)
	default:
		fmt.Fprintln(w, res.Records[0].Plain)
	}
}

// Approval in a web handler: stop, store, resume in a later request.
func ExampleAgent_Resume_webHandler() {
	server := httptest.NewServer(&desk{
		agent: agent.Agent{
			Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{refund}, NewID: func() string { return "run-7" },
		},
		states: map[string][]byte{},
	})
	defer server.Close()
	post := func(path, body string) {
		resp, err := http.Post(server.URL+path, "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		fmt.Printf("%d %s", resp.StatusCode, text)
	}
	post("/ask", "Refund order 4711.")
	post("/decide", "run=run-7&verdict=yes")
	// Output:
	// 202 run-7 wants refund_order {"order":4711}
	// 200 order 4711 is refunded
}

// Approval across two processes: a session in a file stores the run and its pending calls.
func ExampleAgent_Resume_session() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{refund}}
	open := func() *sqlite.Store {
		store, err := sqlite.Open(ctx, filepath.Join(dir, "sessions.db"), sqlite.Options{})
		if err != nil {
			log.Fatal(err)
		}
		return store
	}

	// The first process starts the run.
	store := open()
	s, err := session.Create(ctx, store, session.Info{ID: "order-4711"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = a.Run(ctx, "Refund order 4711.", agent.In(s))
	fmt.Println(err)
	store.Close()

	// The second one shows the pending calls, and resumes with the decision.
	store = open()
	defer store.Close()
	if s, err = session.Open(ctx, store, "order-4711"); err != nil {
		log.Fatal(err)
	}
	state, err := agent.LoadState(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	decisions := []agent.Option{agent.In(s)}
	for _, p := range state.Pending() {
		fmt.Println("approve?", p.Tool(), string(p.Input.Arguments))
		decisions = append(decisions, agent.Approve(p))
	}
	res, err := a.Resume(ctx, nil, decisions...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Records[0].Plain)
	// Output:
	// agent: calls wait for approval: decide on Result.Pending, and resume
	// approve? refund_order {"order":4711}
	// order 4711 is refunded
}

// A conversation continues with another provider: the session has the whole conversation,
// and each model gets it in its own wire format.
func Example_switchProvider() {
	ctx := context.Background()
	s, err := session.Create(ctx, new(session.Memory), session.Info{})
	if err != nil {
		log.Fatal(err)
	}
	first := agent.Agent{Model: provider.MustOpen("sim/planner")}
	if _, err := first.Run(ctx, "Good morning.", agent.In(s)); err != nil {
		log.Fatal(err)
	}
	second := agent.Agent{Model: provider.MustOpen("sim/echo")} // use another provider in production
	res, err := second.Run(ctx, "Where were we?", agent.In(s))
	if err != nil {
		log.Fatal(err)
	}
	messages, _, err := s.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(messages), "messages;", res.Output)
	// Output: 4 messages; Where were we?
}

// An agent that another agent calls as a tool.
func ExampleAgent_AsTool() {
	translator := agent.Agent{Name: "translator", Description: "Translates a text into French.", Model: provider.MustOpen("sim/echo")}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{translator.AsTool()}}
	res, err := a.Run(context.Background(), `Ask the translator with task "good morning".`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Records[0].Tool, res.Records[0].Plain)
	// Output: translator good morning
}

// Deferred tools, which the model finds with a search. The simulator's planner needs a hint in
// the prompt to search.
func ExampleSearch() {
	var tools []tool.Tool
	for _, verb := range []string{"create", "update", "archive"} {
		for _, thing := range []string{"invoice", "customer", "printer"} {
			tools = append(tools, tool.New(verb+"_"+thing, verb+" a "+thing+".", func(_ context.Context, in struct {
				Name string `json:"name"`
			},
			) (string, error) {
				return fmt.Sprintf("%s %s: done", verb, in.Name), nil
			}, tool.Deferred()))
		}
	}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: tools}
	res, err := a.Run(context.Background(), `Use tool_search with query "archive printer", then archive the printer "Bob".`)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range res.Records {
		fmt.Println(r.Tool, r.Raw)
	}
	// Output:
	// tool_search {"query":"archive printer"}
	// archive_printer {"name":"Bob"}
}

// An agent that takes over, and a guardrail that checks the input.
func ExampleHandoff() {
	ctx := context.Background()
	model := provider.MustOpen("sim/planner")
	billing := agent.Agent{Name: "billing", Description: "Knows about invoices.", Model: model}
	front := agent.Agent{
		Name: "front", Model: model, Handoffs: []agent.Handoff{{To: &billing}},
		Guardrails: agent.Guardrails{Input: []agent.InputGuardrail{{
			Name: "no cards",
			Check: func(_ context.Context, messages []dragoman.Message) (agent.Verdict, error) {
				for _, m := range messages {
					if strings.Contains(m.Text(), "card number") {
						return agent.Verdict{Stop: true, Reason: "cards are not for models"}, nil
					}
				}
				return agent.Verdict{}, nil
			},
		}}},
	}
	res, err := front.Run(ctx, "Transfer me to billing.")
	fmt.Println(res.Agent, err)
	_, err = front.Run(ctx, "My card number is 4711.")
	fmt.Println(errors.Is(err, agent.ErrGuardrail), err)
	// Output:
	// billing <nil>
	// true agent: stopped by a guardrail: no cards, at input: cards are not for models
}
