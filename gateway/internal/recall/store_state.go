package recall

import (
	"context"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// entryKey returns the key of the indistinguishable outputs of a conversation, markKey the key of
// the mark that some response to it had state.
func (s Scope) entryKey(before, seen sum) string {
	return noteKey("recall", s.Key, s.Route, string(before[:]), string(seen[:]))
}

func (s Scope) markKey(before sum) string {
	return noteKey("recalled", s.Key, s.Route, string(before[:]))
}

// The values of a mark: opaque state was stored, or plain thinking.
const (
	markOpaque = "opaque"
	markPlain  = "plain"
)

// StoreState stores the parts of a response that a client may drop and its provider requires back,
// if there are any: reasoning, signatures, native ids, blocks that only its dialect knows. req is
// the client's request, as decoded or after [Recall.RestoreState]; resp is the response that the
// client gets. Neither is changed.
//
// If a response has more than Options.MaxState, StoreState returns a [*TooLargeError], and its
// loss is reported when the client continues.
func (r *Recall) StoreState(ctx context.Context, scope Scope, req *dragoman.Request, resp *dragoman.Response) error {
	if failed := resp == nil || resp.Error != nil; failed {
		return nil
	}
	outputs := [][]dragoman.Message{resp.Output}
	for i := range resp.Alternatives {
		outputs = append(outputs, resp.Alternatives[i].Output)
	}
	if err := resp.Validate(); err != nil { // not every model validates its response
		return err
	}
	before := conversation(req.Messages)
	var plain [][]dragoman.Message
	for _, output := range outputs {
		values, thinks := stateOf(output)
		mark := markPlain
		switch {
		case len(values) > 0:
			mark = markOpaque
		case !thinks:
			plain = append(plain, output)
			continue
		}
		if err := r.storeOutput(ctx, scope, before, newStoredOutput(output, resp.Origin), visibleOf(output), mark); err != nil {
			return err
		}
	}
	return r.storePlain(ctx, scope, before, plain, resp.Origin)
}

// storePlain stores outputs without state if another response to the same conversation had state:
// otherwise its mark would report a loss for them. Most conversations have no mark, and nothing is
// stored.
func (r *Recall) storePlain(ctx context.Context, scope Scope, before sum, outputs [][]dragoman.Message, origin *dragoman.Origin) error {
	if len(outputs) == 0 {
		return nil
	}
	keys := []string{scope.markKey(before)}
	for _, output := range outputs {
		keys = append(keys, scope.entryKey(before, visibleOf(output).sum()))
	}
	notes, err := r.o.Notes.GetAll(ctx, keys)
	if err != nil || notes[0] == nil {
		return err
	}
	for i, output := range outputs {
		key, raw := keys[i+1], notes[i+1]
		if visibleOf(output).empty() {
			continue
		}
		a := newStoredOutput(output, origin)
		a.Plain = true
		list := readOutputs(raw).List
		if len(list) >= maxAlike || slices.ContainsFunc(list, func(old storedOutput) bool { return sameIDs(&old, &a) }) {
			continue
		}
		expires := r.o.Now().Add(r.o.TTL)
		if raw, err = encodeOutputs(append(list, a), expires, r.o.MaxState); err != nil {
			return err
		}
		if err := r.o.Notes.Put(ctx, key, raw, expires); err != nil {
			return err
		}
	}
	return nil
}

// conversation identifies a whole conversation.
func conversation(messages []dragoman.Message) sum {
	var c identity
	for _, t := range turns(messages) {
		c.addTurn(visibleOf(messages[t.first:t.end]))
		c.addOthers(messages[t.end:t.next])
	}
	return c.sum()
}

func (c *identity) addOthers(messages []dragoman.Message) {
	for i := range messages {
		if role := messages[i].Role; role != dragoman.RoleSystem && role != dragoman.RoleDeveloper {
			c.addParts(messages[i].Parts)
		}
	}
}

// turnRange is a turn of the model, messages first to end, and the messages of others after it, up
// to next.
type turnRange struct{ first, end, next int }

// turns splits a conversation; the first turn may be empty.
func turns(messages []dragoman.Message) []turnRange {
	var out []turnRange
	for at := 0; at < len(messages); {
		t := turnRange{first: at}
		for at < len(messages) && messages[at].Role == dragoman.RoleAssistant {
			at++
		}
		t.end = at
		for at < len(messages) && messages[at].Role != dragoman.RoleAssistant {
			at++
		}
		t.next = at
		out = append(out, t)
	}
	return out
}

// storeOutput adds one output to the indistinguishable ones.
func (r *Recall) storeOutput(ctx context.Context, scope Scope, before sum, a storedOutput, s *visible, mark string) error {
	expires := r.o.Now().Add(r.o.TTL)
	// The mark is stored first, so that the loss of an output that cannot be stored is reported
	// too.
	if err := r.o.Notes.Put(ctx, scope.markKey(before), []byte(mark), expires); err != nil || s.empty() {
		return err
	}
	key := scope.entryKey(before, s.sum())
	raw, _, err := r.o.Notes.Get(ctx, key)
	if err != nil {
		return err
	}
	list := []storedOutput{a}
	for _, old := range readOutputs(raw).List {
		if len(list) < maxAlike && !sameIDs(&old, &a) {
			list = append(list, old)
		}
	}
	if raw, err = encodeOutputs(list, expires, r.o.MaxState); err != nil {
		return err
	}
	return r.o.Notes.Put(ctx, key, raw, expires)
}
