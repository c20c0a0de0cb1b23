package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dragoman-go/dragoman/tool"
)

// decision is the body of an entry of "decision".
type decision struct {
	V int `json:"v"`
	tool.Ruling
}

// Decide writes what was decided on calls that needed approval, durably, all or
// nothing. Whoever acts upon a decision writes it first.
func (s *Session) Decide(ctx context.Context, rulings ...tool.Ruling) error {
	entries := make([]Entry, len(rulings))
	for i := range rulings {
		b := &rulings[i].Binding
		body, err := json.Marshal(decision{bodyVersion, rulings[i]})
		if err != nil {
			return fmt.Errorf("%w: the decision on call %q: %w", ErrInvalid, b.CallID, err)
		}
		entries[i] = Entry{Kind: kindDecision, Key: decisionKey(*b), Body: body}
	}
	return aboutIf("deciding in", s.ID(), s.write(ctx, entries))
}

// Decided returns the last decision on exactly this call: its arguments, its tool as
// it was, the same policy. Nil: there is none, or a rewind has taken it back.
func (s *Session) Decided(ctx context.Context, b tool.Binding) (*tool.Ruling, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	entries, err := v.last(ctx, Query{Kinds: []string{kindDecision}, Key: decisionKey(b)})
	if err != nil {
		return nil, about("looking for a decision in", s.ID(), err)
	}
	var last *tool.Ruling
	for _, e := range entries {
		r, err := e.Decision()
		if err != nil {
			return nil, about("looking for a decision in", s.ID(), err)
		}
		if r.Binding == b {
			last = &r
		}
	}
	return last, nil
}

// Decision reads an entry of the kind "decision": what a human, or a rule in their place,
// decided on a call that needed approval.
//
//	for e, err := range s.Entries(ctx, session.Query{Kinds: []string{"decision"}}) {
//		…
//		ruling, err := e.Decision()
//	}
func (e Entry) Decision() (tool.Ruling, error) {
	if e.Kind != kindDecision {
		return tool.Ruling{}, invalidf("entry %d is of kind %s, and no decision", e.Seq, e.Kind)
	}
	var d decision
	err := unmarshal(&e, &d, &d.V)
	return d.Ruling, err
}

// decisionKey is that of the call's other entries.
func decisionKey(b tool.Binding) string {
	return callKey(tool.CallRef{Run: b.Run, Turn: b.Turn, CallID: b.CallID})
}
