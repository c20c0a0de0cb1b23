package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/modelcall"
)

// Chain calls models in order until one responds. A model that fails repeatedly is skipped for a
// while. A Chain is safe for concurrent use; its fields must not be changed once it is in use.
//
// The effect of an error depends on its cause:
//
//   - An error in the request itself (invalid, refused by a policy, not authorized) ends the
//     chain, because the next model would return the same error.
//   - If the model does not exist, or does not support the request, the chain continues and does
//     not count it as a failure of the model.
//   - Any other error is a failure of the model, and so is a response without content. The chain
//     continues with the next model.
//
// A stream can move to the next model until content, reasoning or a call arrives: earlier events
// are held back. After that, errors are returned to the caller.
type Chain struct {
	// Links are the models in order of preference.
	Links []Link
	// Health records which links failed. Chains that share links should share it. Nil means a
	// Health of this chain's own, with default settings.
	Health *Health
	// AlwaysContinue continues with the next model even after an error in the request itself.
	AlwaysContinue bool
	// Log gets a record for every link that failed; nil disables logging.
	Log *slog.Logger

	ownHealth Health
}

// Link is one model of a [Chain].
type Link struct {
	// Name identifies the link in Health and in errors, such as "openai/gpt-5".
	Name  string
	Model dragoman.Model
}

var _ dragoman.Model = (*Chain)(nil)

// ChainError reports why no model of a [Chain] responded. It wraps the errors of all links that
// were called.
type ChainError struct {
	// Attempts lists the links in the order of the chain.
	Attempts []Attempt
}

// Attempt is the outcome of one link.
type Attempt struct {
	Link string
	// Err is the error of the link; nil if it was skipped.
	Err error
	// SkippedUntil is the time until which the link is skipped; zero if the link was called.
	SkippedUntil time.Time
}

func (e *ChainError) Error() string {
	reasons := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		switch {
		case a.Err != nil:
			reasons[i] = fmt.Sprintf("%s: %v", a.Link, a.Err)
		default:
			reasons[i] = fmt.Sprintf("%s: skipped until %s after repeated failures", a.Link, a.SkippedUntil.UTC().Format(time.RFC3339))
		}
	}
	if len(reasons) == 0 {
		return "provider: the list of models is empty"
	}
	return "provider: no model of the list responded: " + strings.Join(reasons, "; ")
}

// Unwrap returns the errors of the links that were called.
func (e *ChainError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// ErrEmpty reports that a response had no text, no reasoning and no call, and did not say why.
var ErrEmpty = errors.New("provider: the model returned an empty response")

// ErrStreamStarted is wrapped by the error of an attempt in [Chain.Walk] if the caller has already seen
// part of the response, so that no other model may continue.
var ErrStreamStarted = errors.New("provider: the response has already started")

// Walk calls try for each link in order until it returns nil. Skipping links, judging errors,
// recording failures and logging work as for Generate and Stream.
//
// An error that wraps [ErrStreamStarted] ends the walk and is returned by itself. The other errors that
// it wraps count as failures of the link as usual. ErrStreamStarted itself means that the caller wants
// no more, which is not a failure. If all links fail, Walk returns a [*ChainError], or the
// error itself if there was only one link.
func (c *Chain) Walk(ctx context.Context, try func(context.Context, Link) error) error {
	return c.newWalk().walk(ctx, try)
}

func (p *chainWalk) walk(ctx context.Context, try func(context.Context, Link) error) error {
	for link := range p.links {
		if err := modelcall.CheckModel(ctx, link.Name); err != nil {
			p.record(Attempt{Link: link.Name, Err: err})
			if ctx.Err() != nil {
				return p.err()
			}
			continue // not this link's failure
		}
		err := try(ctx, link)
		switch {
		case err == nil:
			p.succeeded(link)
			return nil
		case err == ErrStreamStarted: //nolint:errorlint // ErrStreamStarted itself, not an error that wraps it
			return err
		}
		next := p.recordFailure(ctx, link, err)
		switch {
		case errors.Is(err, ErrStreamStarted):
			return err
		case !next:
			return p.stoppedErr(link, err)
		}
	}
	return p.err()
}

// stoppedErr returns the error of a chain that ends at a link. If the credential is missing or
// was refused, the text names the link and the links that were not called: the settings are
// wrong, not the request.
func (p *chainWalk) stoppedErr(at Link, cause error) error {
	err := p.err()
	var api *dragoman.APIError
	if !errors.As(cause, &api) || api.Class != dragoman.ErrorAuth {
		return err
	}
	var rest []string
	for i, l := range p.chain.Links {
		if l.Name == at.Name {
			for _, l := range p.chain.Links[i+1:] {
				rest = append(rest, l.Name)
			}
		}
	}
	if len(rest) == 0 {
		return err
	}
	return &stoppedError{err: err, link: at.Name, class: api.Class, uncalled: rest}
}

// stoppedError is the error of a chain that did not call all of its links.
type stoppedError struct {
	err      error
	link     string
	class    dragoman.ErrorClass
	uncalled []string
}

func (e *stoppedError) Error() string {
	text := e.err.Error()
	if all := new(*ChainError); !errors.As(e.err, all) { // a ChainError names its links
		text = e.link + ": " + text
	}
	return fmt.Sprintf("%s; not called: %s, because an error of class %s ends a list of models (set failover.always_continue to call the next model after any error)", text, strings.Join(e.uncalled, ", "), e.class)
}

func (e *stoppedError) Unwrap() error { return e.err }

// Generate implements [dragoman.Model]. If no model responded, Generate returns the error with
// the response of the last model, if there was one.
func (c *Chain) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	var resp *dragoman.Response
	p := c.newWalk()
	err := p.walk(ctx, func(ctx context.Context, link Link) error {
		own, err := requestFor(ctx, req, link)
		if err != nil {
			return err
		}
		resp, err = link.Model.Generate(ctx, own)
		if err == nil && stream.Empty(resp) {
			err = ErrEmpty
		}
		if err == nil {
			resp.Failover = p.failoverInfo(link)
		}
		return err
	})
	return resp, err
}

// Stream implements [dragoman.Model].
func (c *Chain) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	used := false
	return func(yield func(dragoman.Event, error) bool) {
		if used {
			yield(nil, errUsedStream)
			return
		}
		used = true
		var out startBuffer
		p := c.newWalk()
		err := p.walk(ctx, func(ctx context.Context, link Link) error {
			out = startBuffer{yield: yield, failover: p.failoverInfo(link)}
			own, err := requestFor(ctx, req, link)
			if err != nil {
				return err
			}
			err = out.fill(ctx, link.Model, own)
			switch {
			case out.stopped:
				return ErrStreamStarted
			case err != nil && out.open: // of this link only: the caller has seen its events
				return startedError{err}
			default:
				return err
			}
		})
		if more := out.flush(); !more || err == nil {
			return
		}
		var own startedError
		if errors.As(err, &own) {
			err = own.error
		}
		yield(nil, err)
	}
}

// requestFor returns the request for a link. An error is the fault of the caller, not of
// the link.
func requestFor(ctx context.Context, req *dragoman.Request, link Link) (*dragoman.Request, error) {
	own, err := modelcall.RequestFor(ctx, req, link.Model)
	if err != nil {
		return nil, requestBuildError{err}
	}
	return own, nil
}

// requestBuildError is the error of a request that could not be built for a link. It ends the walk.
type requestBuildError struct{ error }

func (u requestBuildError) Unwrap() error { return u.error }

// startedError is an error that occurred after part of the response was sent. It keeps the text of
// the original error.
type startedError struct{ error }

func (b startedError) Unwrap() []error { return []error{ErrStreamStarted, b.error} }

// fill adds the events of a model's stream to the buffer, to the end of the stream or until
// the caller wants no more. A stream without content is an error.
func (b *startBuffer) fill(ctx context.Context, model dragoman.Model, req *dragoman.Request) error {
	var err error
	if c, ok := model.(*Client); ok {
		err = c.stream(ctx, req, b)
	} else {
		for ev, failed := range model.Stream(ctx, req) {
			if err = failed; err != nil || !b.add(ev) {
				break
			}
		}
	}
	switch {
	case err != nil || b.stopped:
		return err
	case b.end == nil:
		return dragoman.ErrIncompleteStream
	case b.isEmpty():
		return ErrEmpty
	default:
		return nil
	}
}

// chainWalk is one request that a chain tries on its links.
type chainWalk struct {
	chain    *Chain
	health   *Health
	attempts []Attempt
	// called counts the links that were called.
	called int
}

func (c *Chain) newWalk() *chainWalk {
	p := &chainWalk{chain: c, health: c.Health}
	if p.health == nil {
		p.health = &c.ownHealth
	}
	return p
}

// links yields the links to call, in order, without those that Health skips. If all are
// skipped, it yields the one that becomes available first.
func (p *chainWalk) links(yield func(Link) bool) {
	var soonest *Link
	var at time.Time
	for i := range p.chain.Links {
		link := &p.chain.Links[i]
		if until, skipped := p.health.SkippedUntil(link.Name); skipped {
			if soonest == nil || until.Before(at) {
				soonest, at = link, until
			}
			p.attempts = append(p.attempts, Attempt{Link: link.Name, SkippedUntil: until})
			continue
		}
		p.called++
		if !yield(*link) {
			return
		}
	}
	if p.called == 0 && soonest != nil {
		p.called++
		yield(*soonest)
	}
}

func (p *chainWalk) succeeded(link Link) { p.health.Succeeded(link.Name) }

// recordFailure records an error and reports whether to call the next link.
func (p *chainWalk) recordFailure(ctx context.Context, link Link, err error) bool {
	var own requestBuildError
	if errors.As(err, &own) {
		p.record(Attempt{Link: link.Name, Err: own.error})
		return false
	}
	p.record(Attempt{Link: link.Name, Err: err})
	if ctx.Err() != nil {
		return false
	}
	v := judge(err)
	if v == verdictFailure {
		p.health.Failed(link.Name, err)
	}
	next := (v != verdictFinal || p.chain.AlwaysContinue) && !errors.Is(err, ErrStreamStarted)
	if p.chain.Log != nil {
		p.chain.Log.LogAttrs(ctx, slog.LevelWarn, "model failed", slog.String("model", link.Name), slog.String("error", err.Error()), slog.Bool("next", next))
	}
	return next
}

// failoverInfo describes the links that failed or were skipped before the one that responded.
func (p *chainWalk) failoverInfo(answered Link) *dragoman.Failover {
	f := &dragoman.Failover{Model: answered.Name}
	for _, a := range p.attempts {
		switch {
		case a.Link == answered.Name && a.Err == nil: // it was skipped, but was called because it became available first
		case a.Err != nil:
			f.Failed = append(f.Failed, dragoman.FailedModel{Model: a.Link, Err: a.Err})
		default:
			f.Failed = append(f.Failed, dragoman.FailedModel{Model: a.Link, Err: fmt.Errorf("skipped until %s after repeated failures", a.SkippedUntil.UTC().Format(time.RFC3339))})
		}
	}
	return f
}

// record records an attempt. It replaces an entry that says the link was skipped.
func (p *chainWalk) record(a Attempt) {
	for i := range p.attempts {
		if p.attempts[i].Link == a.Link && p.attempts[i].Err == nil {
			p.attempts[i] = a
			return
		}
	}
	p.attempts = append(p.attempts, a)
}

// err returns why the chain has no response: the error of its only attempt, or a ChainError.
func (p *chainWalk) err() error {
	if len(p.attempts) == 1 && p.attempts[0].Err != nil {
		return p.attempts[0].Err
	}
	return &ChainError{Attempts: p.attempts}
}

// verdict is the consequence of an error for a chain.
type verdict int

const (
	verdictFailure verdict = iota // a failure of the model: record it and call the next one
	verdictUnfit                  // the model does not support the request: call the next one
	verdictFinal                  // an error in the request itself
)

// judge classifies an error.
func judge(err error) verdict {
	var api *dragoman.APIError
	var setting *SettingError
	switch {
	case errors.As(err, &api):
		return judgeClass(api.Class)
	case errors.Is(err, dragoman.ErrUnsupported), errors.Is(err, dragoman.ErrTooLarge):
		return verdictUnfit
	case errors.Is(err, dragoman.ErrInvalid), errors.Is(err, dragoman.ErrUnsettledCalls), errors.As(err, &setting):
		return verdictFinal
	default:
		return verdictFailure
	}
}

func judgeClass(c dragoman.ErrorClass) verdict {
	switch c {
	case dragoman.ErrorNotFound, dragoman.ErrorContextLength, dragoman.ErrorTooLarge:
		return verdictUnfit
	case dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorPolicy:
		return verdictFinal
	default:
		return verdictFailure
	}
}
