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

// Info describes the call that a handler runs for.
type Info struct {
	CallRef
	// Agent is the path of agents that leads to the call, outermost first.
	Agent []string
	// Attempt counts from 1. IdempotencyKey is the same for every attempt at the same call, and
	// different for every other call.
	Attempt        int
	IdempotencyKey string
	Metadata       map[string]string
}

// runningCall is the call in the context of a handler.
type runningCall struct {
	ref *execution
	// agent and metadata are those of the run when the call began.
	agent    []string
	metadata map[string]string
	// state is the state that the tool left when it was suspended.
	state json.RawMessage
	// answers are the answers to the questions of the tool.
	answers map[string]Answer
	// progress forwards progress reports until the call ends.
	mu       sync.Mutex
	progress func(parts []dragoman.Part)
	// ended reports that the call has ended; ticket is the ticket that it opened, or empty.
	ended  bool
	ticket string
}

type contextKey struct{}

func callFrom(ctx context.Context) *runningCall {
	c, _ := ctx.Value(contextKey{}).(*runningCall)
	return c
}

// InfoFrom returns the description of the call that a handler, hook or middleware runs for.
func InfoFrom(ctx context.Context) (Info, bool) {
	if c := callFrom(ctx); c != nil {
		of := c.ref.ref()
		return Info{CallRef: of, Agent: c.agent, Attempt: max(1, c.ref.attempt), IdempotencyKey: idempotencyKey(of), Metadata: c.metadata}, true
	}
	return Info{}, false
}

// idempotencyKey returns the same key for every attempt at a call. The ids of the run and the
// call may contain anything, so they are hashed.
func idempotencyKey(c CallRef) string {
	h := contentOf(&dragoman.ToolCall{Name: c.Run, Namespace: strconv.Itoa(c.Turn), Arguments: c.CallID})
	return hex.EncodeToString(h[:16])
}

// Report reports the progress of a running tool. The parts are redacted and shown to the
// observer; they never enter the history. Outside a call, or after it has ended, Report does
// nothing.
func Report(ctx context.Context, parts ...dragoman.Part) {
	c := callFrom(ctx)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress != nil {
		c.progress(parts)
	}
}

// ErrNoSecret is returned by [Secret] if the host has no secret with the name for this call.
var ErrNoSecret = errors.New("tool: unknown secret")

// Secret returns a secret of the host by its name. The model never sees it: it is removed
// from every later output, error and record of the run, and of runs that share its secrets
// (see [Run.HideSecretsOf]). Other processes do not know the secret. If it may appear
// there, as in the outcome of background work, add it to [Redactor.Secrets].
func Secret(ctx context.Context, name string) (string, error) {
	c := callFrom(ctx)
	if c == nil || c.ref.runner.Secrets == nil {
		return "", fmt.Errorf("%w: %q", ErrNoSecret, name)
	}
	s, err := c.ref.runner.Secrets(ctx, name)
	if err != nil {
		return "", fmt.Errorf("tool: secret %q: %w", name, err)
	}
	c.ref.run.addSecret(s)
	return s, nil
}

// end stops progress and tickets, and returns the ticket that the call opened.
func (c *runningCall) end() (ticket string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress, c.ended = nil, true
	return c.ticket
}

// setTicket notes a ticket of the call, and reports whether the call still runs.
func (c *runningCall) setTicket(ticket string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ticket = ticket
	}
	return !c.ended
}
