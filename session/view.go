package session

import (
	"context"
	"fmt"
	"slices"
	"sort"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// rewind is an entry that resets the conversation to an earlier entry.
type rewind struct{ at, to int64 }

// rewindKey is the key of all rewinds, so that Open finds them quickly.
const rewindKey = "rewind"

func (r rewind) entry() Entry {
	var w jsonwire.Writer
	w.BeginObject()
	w.IntField("v", 1)
	w.IntField("to", r.to)
	w.EndObject()
	return Entry{Kind: kindRewind, Key: rewindKey, Body: w.Buf}
}

func readRewind(e *Entry) (rewind, error) {
	var body struct {
		V  int   `json:"v"`
		To int64 `json:"to"`
	}
	if err := unmarshal(e, &body, &body.V); err != nil {
		return rewind{}, err
	}
	if body.To < 0 || body.To >= e.Seq {
		return rewind{}, fmt.Errorf("%w: entry %d rewinds to %d", ErrCorrupt, e.Seq, body.To)
	}
	return rewind{e.Seq, body.To}, nil
}

// span is a range of the log: after < seq <= until.
type span struct{ after, until int64 }

// spans returns the ranges of the log that form the conversation when the log ends with
// head, in order. A rewind jumps back to an earlier entry and restores the conversation of
// that time: rewinds before that entry count, and those after it do not, so that a later
// rewind can undo a rewind.
func spans(rewinds []rewind, head int64) []span {
	var out []span
	for head > 0 {
		i := sort.Search(len(rewinds), func(i int) bool { return rewinds[i].at > head })
		if i == 0 {
			out = append(out, span{0, head})
			break
		}
		r := rewinds[i-1]
		if r.at < head {
			out = append(out, span{r.at, head})
		}
		head = r.to
	}
	slices.Reverse(out)
	return out
}

// view is the conversation at one point of the log.
type view struct {
	s     *Session
	head  int64
	spans []span
}

// known returns the last entry that this writer knows, or the conflict that ended it.
func (s *Session) known() (head int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head, s.lost
}

// view returns the conversation as this writer knows it, or the conflict that ended it.
func (s *Session) view() (view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return view{}, s.lost
	}
	return view{s: s, head: s.head, spans: spans(s.rewinds, s.head)}, nil
}

// messages returns the messages of the conversation.
func (v view) messages(ctx context.Context) (out []dragoman.Message, err error) {
	for _, sp := range v.spans {
		for e, err := range v.s.store.Read(ctx, v.s.ID(), Query{After: sp.after, Until: sp.until, Kinds: []string{kindMessage}}) {
			if err != nil {
				return nil, err
			}
			m, err := readMessage(&e)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// last returns the last entries of the conversation that a query selects, in order.
func (v view) last(ctx context.Context, q Query) ([]Entry, error) {
	var parts [][]Entry
	for left := q.Last; len(v.spans) > 0; {
		sp := v.spans[len(v.spans)-1]
		v.spans = v.spans[:len(v.spans)-1]
		q.After, q.Until, q.Last = sp.after, sp.until, left
		var part []Entry
		for e, err := range v.s.store.Read(ctx, v.s.ID(), q) {
			if err != nil {
				return nil, err
			}
			part = append(part, e)
		}
		parts = append(parts, part)
		if left > 0 {
			if left -= len(part); left == 0 {
				break
			}
		}
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}

// Rewind resets the conversation and its state to what they were when entry to was the last
// one; 0 is the beginning. [Session.Head] and [Stored] give the positions of entries.
// Nothing is removed from the log: a later rewind can undo this one.
//
// A message precedes the state that was saved with it. To resume a run after a message,
// rewind to the entry of that state.
//
// Effects are not undone, and the journal still has them. A run that continues from an
// earlier state needs a new id; otherwise a call may get the result that the same call had
// before.
func (s *Session) Rewind(ctx context.Context, to int64) error {
	head := s.Head()
	if to < 0 || to > head {
		return invalidf("session %s has no entry %d to rewind to: its entries are 1 to %d", s.ID(), to, head)
	}
	return wrapIf("rewinding", s.ID(), s.write(ctx, []Entry{rewind{to: to}.entry()}))
}
