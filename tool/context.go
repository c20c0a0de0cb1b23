package tool

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
)

// Info tells a handler which call it runs for.
type Info struct {
	CallRef
	// Agent is the path of agents that leads to the call, the outermost first.
	Agent []string
	// Attempt counts from 1. IdempotencyKey is the same for every attempt at the
	// same call, and for no other call.
	Attempt        int
	IdempotencyKey string
	Metadata       map[string]string
}

// runningCall is what a handler's context carries.
type runningCall struct {
	of *execution
	// agent and metadata are the run's when the call began.
	agent    []string
	metadata map[string]string
	// state is what the tool left when it was suspended.
	state json.RawMessage
	// tell passes progress on, until the call has ended.
	mu   sync.Mutex
	tell func(parts []dragoman.Part)
	// over says that the call has ended; ticket is the ticket that it opened, or empty.
	over   bool
	ticket string
}

type contextKey struct{}

func callFrom(ctx context.Context) *runningCall {
	c, _ := ctx.Value(contextKey{}).(*runningCall)
	return c
}

// InfoFrom returns what is known of the call that a handler, hook or middleware
// runs for.
func InfoFrom(ctx context.Context) (Info, bool) {
	if c := callFrom(ctx); c != nil {
		of := c.of.ref()
		return Info{CallRef: of, Agent: c.agent, Attempt: max(1, c.of.attempt), IdempotencyKey: idempotencyKey(of), Metadata: c.metadata}, true
	}
	return Info{}, false
}

// idempotencyKey is the same for every attempt at a call. The run's id and the
// call's may hold anything, so they are hashed.
func idempotencyKey(c CallRef) string {
	h := contentOf(&dragoman.ToolCall{Name: c.Run, Namespace: strconv.Itoa(c.Turn), Arguments: c.CallID})
	return hex.EncodeToString(h[:16])
}

// Report tells of the work of a tool while it runs: parts that are shown, redacted,
// and never enter the history. Without a call, or after it has ended, they go
// nowhere.
func Report(ctx context.Context, parts ...dragoman.Part) {
	c := callFrom(ctx)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tell != nil {
		c.tell(parts)
	}
}

// ErrNoSecret says that the host has no secret of a name for this call.
var ErrNoSecret = errors.New("tool: there is no such secret")

// Secret returns a secret of the host by its name. The model never sees it: it is removed
// from every later output, error and record of the run, and of runs that share its secrets
// (see [Run.HideSecretsOf]). Other processes do not know the secret. If it may appear
// there, as in the outcome of background work, add it to [Redactor.Secrets].
func Secret(ctx context.Context, name string) (string, error) {
	c := callFrom(ctx)
	if c == nil || c.of.runner.Secrets == nil {
		return "", fmt.Errorf("%w: %q", ErrNoSecret, name)
	}
	s, err := c.of.runner.Secrets(ctx, name)
	if err != nil {
		return "", fmt.Errorf("tool: secret %q: %w", name, err)
	}
	c.of.run.learn(s)
	return s, nil
}

// end stops progress and tickets, and returns the ticket that the call opened.
func (c *runningCall) end() (ticket string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell, c.over = nil, true
	return c.ticket
}

// opens notes a ticket of the call, and reports whether the call still runs.
func (c *runningCall) opens(ticket string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.ticket = ticket
	}
	return !c.over
}
