package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dragoman-go/dragoman/tool"
)

// decision is the body of an entry of kind "decision".
type decision struct {
	V int `json:"v"`
	tool.Ruling
}

// Decide durably stores decisions on calls that needed approval, all or nothing. Call it
// before you act on a decision.
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
	return wrapIf("deciding in", s.ID(), s.write(ctx, entries))
}

// Decided returns the last decision on exactly this call: the same arguments, the same tool
// definition and the same policy. It returns nil if there is none, or if a rewind removed it.
func (s *Session) Decided(ctx context.Context, b tool.Binding) (*tool.Ruling, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	entries, err := v.last(ctx, Query{Kinds: []string{kindDecision}, Key: decisionKey(b)})
	if err != nil {
		return nil, wrapErr("reading a decision of", s.ID(), err)
	}
	var last *tool.Ruling
	for _, e := range entries {
		r, err := e.Decision()
		if err != nil {
			return nil, wrapErr("reading a decision of", s.ID(), err)
		}
		if r.Binding == b {
			last = &r
		}
	}
	return last, nil
}

// Decision reads an entry of the kind "decision": the decision of a human, or of a rule in
// their place, on a call that needed approval.
//
//	for e, err := range s.Entries(ctx, session.Query{Kinds: []string{"decision"}}) {
//		…
//		ruling, err := e.Decision()
//	}
func (e Entry) Decision() (tool.Ruling, error) {
	if e.Kind != kindDecision {
		return tool.Ruling{}, invalidf("entry %d has the kind %s, want decision", e.Seq, e.Kind)
	}
	var d decision
	err := unmarshal(&e, &d, &d.V)
	return d.Ruling, err
}

// decisionKey returns the key of the call's other entries.
func decisionKey(b tool.Binding) string {
	return callKey(tool.CallRef{Run: b.Run, Turn: b.Turn, CallID: b.CallID})
}
