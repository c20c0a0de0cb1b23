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

// Options say for whom to normalise. The zero value is refused: Limits are
// needed.
type Options struct {
	// Target is the model and server behind the wire. Its Dialect may be left
	// empty, its Model too.
	Target targets.Target
	// Limits are those of the codec that will encode the request.
	Limits targets.Limits
	// Abandon says which calls without a result are given up, beside those that can never
	// run:
	//   - empty takes every call without a result for pending.
	//   - "passed" gives up calls that the conversation has passed: later messages follow
	//     them. It suits histories that others wrote, and new input while calls are pending.
	//   - "all" gives up every call without a result, as after a crash.
	Abandon string
	// ReasoningAsText keeps the visible thinking of other models as plain text
	// of the assistant. Otherwise it is left out (quirk D26).
	ReasoningAsText bool
}

// check refuses options that name no target, or two.
func (o *Options) check() error {
	switch d := o.Limits.Dialect; {
	case d == "":
		return fmt.Errorf("history: %w: no Limits; give those of the codec that will encode the request", dragoman.ErrInvalid)
	case o.Target.Dialect != "" && o.Target.Dialect != d:
		return fmt.Errorf("history: %w: a target that speaks %s, with the limits of %s", dragoman.ErrInvalid, o.Target.Dialect, d)
	}
	switch o.Abandon {
	case codes.AbandonNone, codes.AbandonPassed, codes.AbandonAll:
		return nil
	default:
		return fmt.Errorf("history: %w: unknown Abandon %.40q: use passed or all", dragoman.ErrInvalid, o.Abandon)
	}
}

// UnsettledError says which calls a conversation still waits for. It wraps
// [dragoman.ErrUnsettledCalls].
type UnsettledError struct {
	Calls []UnsettledCall
}

// UnsettledCall is a call that waits for its result.
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
	return fmt.Sprintf("%v: %s; answer or abandon them first", dragoman.ErrUnsettledCalls, strings.Join(names, ", "))
}

// Unwrap returns [dragoman.ErrUnsettledCalls].
func (e *UnsettledError) Unwrap() error { return dragoman.ErrUnsettledCalls }

// Normalize returns the request with a conversation that the target accepts,
// and what it did to make it so. The request given is never changed; it is
// returned itself where nothing had to be done.
//
// The error is an [*UnsettledError] if calls wait for their results. It wraps
// [dragoman.ErrInvalid] for a request that no dialect can express, and
// [dragoman.ErrUnsupported] for one that refers to conversation that another server
// stores. The report is returned in each case.
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
	n := newNormaliser(req, o)
	defer n.done()
	n.roles()
	n.prune()
	n.unmix()
	n.pair()
	if err := n.settle(); err != nil {
		return nil, n.rep, err
	}
	n.dropHalves()
	n.thin()
	n.arrange()
	n.flatten()
	n.shape()
	n.few()
	n.forget()
	n.sign()
	n.unthink()
	return n.result(), n.rep, nil
}

// normaliser is one conversation on its way.
type normaliser struct {
	req *dragoman.Request
	// abandon and asText are the options of these names.
	abandon string
	asText  bool
	target  targets.Target
	limits  targets.Limits
	rep     dragoman.Report

	// ms is the conversation as far as it got, turns its shape.
	ms    []draft
	turns []*turn
	// thinking is how the model is asked to think.
	thinking *dragoman.ReasoningSettings
	// stored says that the server keeps a part of the conversation.
	stored bool
	// moved says that ms is no longer the list of the request, message by
	// message.
	moved bool
	lists *lists
}

func newNormaliser(req *dragoman.Request, o Options) *normaliser {
	l := listPool.Get().(*lists)
	n := &l.normaliser
	*n = normaliser{
		req: req, abandon: o.Abandon, asText: o.ReasoningAsText, target: o.Target, limits: o.Limits,
		thinking: req.Reasoning, lists: l,
	}
	n.turns = n.lists.order
	n.ms = slices.Grow(n.lists.came, len(req.Messages))[:len(req.Messages)]
	n.lists.came = n.ms
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
	n.stored = n.keptByServer()
	return n
}

// lists are the memory in which a conversation is normalised: its drafts, as they
// came and arranged, who works on them, and what is known of its turns, calls and results. Every turn
// of an agent writes all of them again, so that the memory is used again. Nothing
// of a result points into it.
type lists struct {
	normaliser     normaliser
	came, arranged []draft
	order          []*turn
	turns          stock[turn]
	slots          stock[slot]
	answers        stock[answer]
	known          stock[callID]
	calls          stock[*slot]
	results        stock[*answer]
	ids            map[string]*callID
}

func newLists() *lists { return &lists{ids: map[string]*callID{}} }

var listPool = sync.Pool{New: func() any { return newLists() }}

// mostKept is how many of each are kept for the next conversation.
const mostKept = 1024

// large says that the lists are of a conversation that few are like.
func (l *lists) large() bool {
	return max(cap(l.came), cap(l.arranged), cap(l.order), cap(l.turns.block), cap(l.slots.block), cap(l.answers.block),
		cap(l.known.block), cap(l.calls.block), cap(l.results.block)) > mostKept
}

// done gives the lists back, empty.
func (n *normaliser) done() {
	l := n.lists
	if len(l.arranged) > 0 && cap(n.ms) == cap(l.arranged) { // it may have grown in its place
		l.arranged = n.ms
	}
	*n = normaliser{}
	if l.large() {
		return
	}
	empty(&l.came)
	empty(&l.arranged)
	empty(&l.order)
	l.turns.empty()
	l.slots.empty()
	l.answers.empty()
	l.known.empty()
	l.calls.empty()
	l.results.empty()
	clear(l.ids)
	listPool.Put(l)
}

// empty takes all out of a list, whose memory stays.
func empty[T any](list *[]T) {
	clear(*list)
	*list = (*list)[:0]
}

// stock hands out values, which all go back at once. What was handed out stays
// where it is when the stock grows.
type stock[T any] struct{ block []T }

// next is a value like v.
func (s *stock[T]) next(v T) *T {
	out := &s.row(1)[0]
	*out = v
	return out
}

// row are n zero values in a row.
func (s *stock[T]) row(n int) []T {
	const first = 16
	start := len(s.block)
	if cap(s.block)-start < n {
		s.block, start = make([]T, 0, max(first, 2*cap(s.block), n)), 0
	}
	s.block = s.block[:start+n]
	return s.block[start : start+n : start+n]
}

func (s *stock[T]) empty() { empty(&s.block) }

// keptByServer reports whether a part of the conversation is not in the
// request.
func (n *normaliser) keptByServer() bool {
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

// result is the request with the conversation as it is now.
func (n *normaliser) result() *dragoman.Request {
	tools, choice := n.declare()
	changed := n.moved || tools != nil || n.thinking != n.req.Reasoning
	for i := range n.ms {
		changed = changed || n.ms[i].touched
	}
	if !changed {
		return n.req
	}
	// The sidecar stays: it mirrors another conversation by now, so that it is
	// not replayed, but it tells encoders whose words the settings are.
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
