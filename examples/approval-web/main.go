// Approval-web is an HTTP handler: one request starts a run, and another one approves its call.
//
//	$ go run ./examples/approval-web
//	prompt=Delete+old.txt: 202 waiting: call_cacd38786a20b35f delete_file {"path":"old.txt"}
//	approve=call_cacd38786a20b35f: 200 delete_file says: deleted old.txt
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

type File struct {
	Path string `json:"path"`
}

var deleteFile = tool.New("delete_file", "Deletes a file.",
	func(_ context.Context, f File) (string, error) { return "deleted " + f.Path, nil }, tool.NeedsApproval())

type handler struct {
	agent agent.Agent
	store session.Store // with a database, another process can continue the run
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	res, err := h.run(r)
	switch {
	case errors.Is(err, agent.ErrInterrupted):
		w.WriteHeader(http.StatusAccepted)
		for _, p := range res.Pending {
			fmt.Fprintln(w, "waiting:", p.Binding.CallID, p.Tool(), string(p.Input.Arguments))
		}
	case err != nil:
		log.Print(err)
		http.Error(w, "the run failed", http.StatusInternalServerError)
	default:
		fmt.Fprintln(w, res.Output)
	}
}

func (h *handler) run(r *http.Request) (*agent.Result, error) {
	s, err := session.OpenOrCreate(r.Context(), h.store, r.FormValue("run")) // of the current user
	if err != nil {
		return nil, err
	}
	if prompt := r.FormValue("prompt"); prompt != "" {
		return h.agent.Run(r.Context(), prompt, agent.In(s))
	}
	state, err := agent.LoadState(r.Context(), s)
	if err != nil {
		return nil, err
	}
	opts := []agent.Option{agent.In(s)}
	for _, p := range state.Pending() {
		if p.Binding.CallID == r.FormValue("approve") { // only the call that the user saw
			opts = append(opts, agent.Approve(p)) // or agent.Reject
		}
	}
	return h.agent.Resume(r.Context(), state, opts...) // waits again if nothing was decided
}

func main() {
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{deleteFile}}
	h := &handler{agent: a, store: &session.Memory{}} // next: http.ListenAndServe("127.0.0.1:8080", h)
	for _, query := range []string{"prompt=Delete+old.txt", "approve=call_cacd38786a20b35f"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/?run=1&"+query, nil))
		fmt.Print(query, ": ", w.Code, " ", w.Body)
	}
}
