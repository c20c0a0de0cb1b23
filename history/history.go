package history

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/targets"
)

// Options configure [Normalize]. Limits is required.
type Options struct {
	// Target is the model and server. Dialect and Model may be empty.
	Target targets.Target
	// Limits are the limits of the codec that will encode the request.
	Limits targets.Limits
	// Abandon selects the calls without a result that are abandoned, in addition to those that
	// can never run:
	//   - empty: none; every call without a result is pending.
	//   - "passed": calls that later messages follow. Use it for histories from other
	//     programs, and for new input while calls are pending.
	//   - "all": every call without a result, for example after a crash.
	Abandon string
	// ReasoningAsText keeps the visible reasoning of other models as assistant text.
	// Otherwise it is dropped (quirk D26).
	ReasoningAsText bool
}

// check validates the options.
func (o *Options) check() error {
	switch d := o.Limits.Dialect; {
	case d == "":
		return fmt.Errorf("history: %w: Limits is empty: pass the Limits of the codec that will encode the request", dragoman.ErrInvalid)
	case o.Target.Dialect != "" && o.Target.Dialect != d:
		return fmt.Errorf("history: %w: Target.Dialect is %s, but Limits.Dialect is %s", dragoman.ErrInvalid, o.Target.Dialect, d)
	}
	switch o.Abandon {
	case codes.AbandonNone, codes.AbandonPassed, codes.AbandonAll:
		return nil
	default:
		return fmt.Errorf("history: %w: unknown Abandon %.40q: use passed or all", dragoman.ErrInvalid, o.Abandon)
	}
}

// UnsettledError lists the pending calls of a conversation. It wraps
// [dragoman.ErrUnsettledCalls].
type UnsettledError struct {
	Calls []UnsettledCall
}

// UnsettledCall is a call without a result.
type UnsettledCall struct {
	ID string
	// Name is the qualified name of the tool.
	Name string
	// Path is the JSON pointer of the call in the request.
	Path string
}

func (e *UnsettledError) Error() string {
	const most = 5
	var names []string
	for i, c := range e.Calls {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(e.Calls)-most))
			break
		}
		names = append(names, fmt.Sprintf("%.60q of %.60s at %s", c.ID, c.Name, c.Path))
	}
	return fmt.Sprintf("%v: %s; add their results or abandon them", dragoman.ErrUnsettledCalls, strings.Join(names, ", "))
}

// Unwrap returns [dragoman.ErrUnsettledCalls].
func (e *UnsettledError) Unwrap() error { return dragoman.ErrUnsettledCalls }

// Normalize returns the request with a conversation that the target accepts, and a report of the
// changes. It never changes req; if no change is needed, it returns req itself.
//
// The error is an [*UnsettledError] if calls are pending. It wraps [dragoman.ErrInvalid] for a
// request that no dialect can express, and [dragoman.ErrUnsupported] for a request that refers to
// a conversation stored on another server. The report is returned in each case.
func Normalize(req *dragoman.Request, o Options) (*dragoman.Request, dragoman.Report, error) {
	if err := req.Validate(); err != nil {
		return nil, dragoman.Report{}, err
	}
	if err := o.check(); err != nil {
		return nil, dragoman.Report{}, err
	}
	if err := wirekit.CheckReferences(req, o.Limits); err != nil {
		return nil, dragoman.Report{}, fmt.Errorf("history: %w", err)
	}
	n := newNormalizer(req, o)
	defer n.done()
	n.fixRoles()
	n.prune()
	n.extractResults()
	n.pair()
	if err := n.settle(); err != nil {
		return nil, n.rep, err
	}
	n.dropUnfinished()
	n.dropDangling()
	n.arrange()
	n.flattenTools()
	n.shape()
	n.limitMedia()
	n.dropOldReasoning()
	n.addDummySignatures()
	n.disableThinking()
	return n.result(), n.rep, nil
}

// normalizer holds the state of one Normalize call.
type normalizer struct {
	req *dragoman.Request
	// abandon and asText are Options.Abandon and Options.ReasoningAsText.
	abandon string
	asText  bool
	target  targets.Target
	limits  targets.Limits
	rep     dragoman.Report

	// ms is the conversation so far; turns is its structure.
	ms    []draft
	turns []*turn
	// thinking holds the reasoning settings to send.
	thinking *dragoman.ReasoningSettings
	// stored reports whether the server stores a part of the conversation.
	stored bool
	// moved reports whether ms no longer matches the messages of the request one
	// to one.
	moved bool
	lists *lists
}

func newNormalizer(req *dragoman.Request, o Options) *normalizer {
	l := listPool.Get().(*lists)
	n := &l.normalizer
	*n = normalizer{
		req: req, abandon: o.Abandon, asText: o.ReasoningAsText, target: o.Target, limits: o.Limits,
		thinking: req.Reasoning, lists: l,
	}
	n.turns = n.lists.order
	n.ms = slices.Grow(n.lists.input, len(req.Messages))[:len(req.Messages)]
	n.lists.input = n.ms
	n.target.Dialect = o.Limits.Dialect
	if n.target.Model == "" {
		n.target.Model = req.Model
	}
	if n.target.Caps.SplitCalls || n.target.Caps.AssistantAfterTools {
		n.limits.LooseResults, n.limits.AsyncCalls = false, false
	}
	for i := range req.Messages {
		n.ms[i] = draft{Message: req.Messages[i], from: i}
	}
	n.stored = n.partlyStored()
	return n
}

// lists is the memory of one Normalize call: the normalizer, the drafts before and after arranging,
// and the turns, calls and results. Every turn of an agent needs all of it again, so it is pooled.
// The returned request never points into it.
type lists struct {
	normalizer      normalizer
	input, arranged []draft
	order           []*turn
	turns           arena[turn]
	slots           arena[slot]
	placed          arena[placedResult]
	known           arena[callID]
	calls           arena[*slot]
	results         arena[*placedResult]
	ids             map[string]*callID
}

func newLists() *lists { return &lists{ids: map[string]*callID{}} }

var listPool = sync.Pool{New: func() any { return newLists() }}

// maxPooled is the largest capacity of a list that is returned to the pool.
const maxPooled = 1024

// large reports whether a list is too large for the pool.
func (l *lists) large() bool {
	return max(cap(l.input), cap(l.arranged), cap(l.order), cap(l.turns.block), cap(l.slots.block), cap(l.placed.block),
		cap(l.known.block), cap(l.calls.block), cap(l.results.block)) > maxPooled
}

// done clears the lists and returns them to the pool.
func (n *normalizer) done() {
	l := n.lists
	if len(l.arranged) > 0 && cap(n.ms) == cap(l.arranged) { // it may have grown in place
		l.arranged = n.ms
	}
	*n = normalizer{}
	if l.large() {
		return
	}
	empty(&l.input)
	empty(&l.arranged)
	empty(&l.order)
	l.turns.empty()
	l.slots.empty()
	l.placed.empty()
	l.known.empty()
	l.calls.empty()
	l.results.empty()
	clear(l.ids)
	listPool.Put(l)
}

// empty clears a list and keeps its memory.
func empty[T any](list *[]T) {
	clear(*list)
	*list = (*list)[:0]
}

// arena allocates values that are freed together. Values do not move when the arena grows.
type arena[T any] struct{ block []T }

// next allocates a copy of v.
func (s *arena[T]) next(v T) *T {
	out := &s.row(1)[0]
	*out = v
	return out
}

// row allocates n consecutive zero values.
func (s *arena[T]) row(n int) []T {
	const first = 16
	start := len(s.block)
	if cap(s.block)-start < n {
		s.block, start = make([]T, 0, max(first, 2*cap(s.block), n)), 0
	}
	s.block = s.block[:start+n]
	return s.block[start : start+n : start+n]
}

func (s *arena[T]) empty() { empty(&s.block) }

// partlyStored reports whether the server stores a part of the conversation that the
// request does not contain.
func (n *normalizer) partlyStored() bool {
	for _, name := range n.limits.StoredBy {
		if name == "previous_response_id" && n.req.PreviousResponseID != "" {
			return true
		}
		for _, f := range n.req.Extra.For(n.limits.Dialect) {
			if f.Path == "/"+name && string(f.Value) != "null" {
				return true
			}
		}
	}
	if len(n.limits.StoredBy) == 0 {
		return false
	}
	for i := range n.ms {
		for _, p := range n.ms[i].Parts {
			if o, ok := p.(*dragoman.Opaque); ok && o.Dialect == n.limits.Dialect && contains(n.limits.StoredBy, o.Type) {
				return true
			}
		}
	}
	return false
}

// result returns the normalized request.
func (n *normalizer) result() *dragoman.Request {
	tools, choice := n.declareTools()
	changed := n.moved || tools != nil || n.thinking != n.req.Reasoning
	for i := range n.ms {
		changed = changed || n.ms[i].touched
	}
	if !changed {
		return n.req
	}
	// The request keeps its native form. It no longer matches the conversation, so it is not
	// replayed, but encoders use it to find the dialect of the settings.
	out := *n.req
	out.Messages = make([]dragoman.Message, len(n.ms))
	for i := range n.ms {
		out.Messages[i] = n.ms[i].Message
	}
	out.Reasoning = n.thinking
	if tools != nil {
		out.Tools = tools
		out.ToolChoice = choice
	}
	return &out
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
