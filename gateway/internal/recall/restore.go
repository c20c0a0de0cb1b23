package recall

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
)

// RestoreState restores the state that [Recall.StoreState] stored in the history of a request, and
// reports losses: responses that had state and that the client did not return unchanged. It reads
// all notes at once.
//
// The request must be one that a codec decoded. If something is restored, it gets a new list of
// messages; shared values are not changed. On an error the request is not changed.
func (r *Recall) RestoreState(ctx context.Context, scope Scope, req *dragoman.Request) (dragoman.Report, error) {
	h := history{scope: scope}
	h.read(req.Messages)
	if len(h.lookups) == 0 {
		return dragoman.Report{}, nil
	}
	keys := make([]string, 0, 2*len(h.lookups))
	for i := range h.lookups {
		keys = append(keys, h.lookups[i].entry, h.lookups[i].mark)
	}
	notes, err := r.o.Notes.GetAll(ctx, keys)
	if err != nil {
		return dragoman.Report{}, err
	}
	rest := restorer{messages: req.Messages}
	for i := range h.lookups {
		q := &h.lookups[i]
		found := readOutputs(notes[2*i])
		rest.turn(q, found.List, string(notes[2*i+1]))
		r.renew(ctx, q, found, notes[2*i+1])
	}
	if rest.changed {
		rest.copy(len(req.Messages))
		req.Messages = rest.out
	}
	return rest.rep, nil
}

// renew extends the lifetime of used outputs if half of it is over.
func (r *Recall) renew(ctx context.Context, q *lookup, found storedOutputs, mark []byte) {
	now := r.o.Now()
	if len(found.List) == 0 || mark == nil || found.Until.Sub(now) > r.o.TTL/2 {
		return
	}
	until := now.Add(r.o.TTL)
	raw, err := encodeOutputs(found.List, until, r.o.MaxState)
	if err == nil {
		err = r.o.Notes.Put(ctx, q.entry, raw, until)
	}
	if err == nil {
		_ = r.o.Notes.Put(ctx, q.mark, mark, until)
	} // if this fails, it expires: no reason to refuse a request
}

// lookup is a turn of a history, and the keys of the outputs stored for it.
type lookup struct {
	turnRange
	seen        *visible
	entry, mark string
}

// history is the history of a request, read once.
type history struct {
	scope   Scope
	lookups []lookup
}

func (h *history) read(messages []dragoman.Message) {
	var c identity
	for _, t := range turns(messages) {
		s := visibleOf(messages[t.first:t.end])
		if !s.empty() {
			before := c.sum()
			h.lookups = append(h.lookups, lookup{t, s, h.scope.entryKey(before, s.sum()), h.scope.markKey(before)})
		}
		c.addTurn(s)
		c.addOthers(messages[t.end:t.next])
	}
}

// restorer writes the new list of messages.
type restorer struct {
	messages []dragoman.Message
	out      []dragoman.Message
	done     int // the number of messages in out
	changed  bool
	renamed  map[string]string // new ids of calls by their old ones
	rep      dragoman.Report
}

// turn restores one turn, if it matches one of the stored outputs.
func (r *restorer) turn(q *lookup, alike []storedOutput, mark string) {
	turn := r.messages[q.first:q.end]
	have, _ := stateOf(turn)
	for i := range alike {
		a := &alike[i]
		if !a.matches(q.seen, turn) {
			continue
		}
		if a.Plain || a.wasReturned(turn, have) {
			return
		}
		r.copy(q.first)
		r.out = append(r.out, r.fill(a, q.seen, turn)...)
		r.done, r.changed = q.end, true
		return
	}
	if mark == "" || signedTurn(have) {
		return // no known state, or the turn has its own
	}
	severity, what := dragoman.Warn, "opaque reasoning state"
	if mark == markPlain {
		severity, what = dragoman.Info, "reasoning"
	}
	r.rep.Addf(dragoman.Dropped, severity, "/messages/"+strconv.Itoa(q.first),
		"the %s of the response: the client changed the response, or its state is no longer stored", what)
}

// copy copies messages up to end, with the new ids of calls in results.
func (r *restorer) copy(end int) {
	for ; r.done < end; r.done++ {
		r.out = append(r.out, r.rename(r.messages[r.done]))
	}
}

// rename replaces ids of calls in a message with the new ones.
func (r *restorer) rename(m dragoman.Message) dragoman.Message {
	if len(r.renamed) == 0 {
		return m
	}
	touched := false
	for j, p := range m.Parts {
		res, ok := p.(*dragoman.ToolResult)
		if !ok || r.renamed[res.CallID] == "" {
			continue
		}
		if !touched {
			m.Parts, m.Native, touched = slices.Clone(m.Parts), nil, true
		}
		named := *res
		named.CallID = r.renamed[res.CallID]
		m.Parts[j] = &named
	}
	return m
}

// matches reports whether a turn with the same visible content is this output: its calls have the
// same ids, if the client's dialect has ids, and the client added nothing.
func (a *storedOutput) matches(s *visible, turn []dragoman.Message) bool {
	minted := a.calls()
	if len(minted) != len(s.calls) {
		return false
	}
	for i, c := range s.calls {
		if !c.Synthetic && c.ID != minted[i].ID { // clients get the original ids
			return false
		}
	}
	known := map[sum]bool{}
	shown := 0 // media of the output, less that of the turn
	for i := range a.Messages {
		for _, p := range a.Messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.Opaque:
				known[hashBlock(p.JSON)] = true
			case *dragoman.Media:
				shown++
			}
		}
	}
	left := shown
	for i := range turn {
		for _, p := range turn[i].Parts {
			switch p := p.(type) {
			case *dragoman.Opaque:
				if !known[hashBlock(p.JSON)] {
					return false
				}
			case *dragoman.Media:
				left--
			case *dragoman.ToolResult:
				return false
			}
		}
	}
	return left == 0 || left == shown // all of it, or none
}

// dialectOf returns the dialect of a turn; empty if unknown.
func dialectOf(turn []dragoman.Message) dragoman.Dialect {
	for i := range turn {
		if turn[i].Origin != nil {
			return turn[i].Origin.Dialect
		}
	}
	return ""
}

// wasReturned reports whether a turn already has some of the output's state in a form that reaches
// the provider: in the provider's own dialect, or in a field of a call that names the signer. The
// client then handles state itself.
func (a *storedOutput) wasReturned(turn []dragoman.Message, have map[sum]bool) bool {
	kept, _ := stateOf(a.Messages)
	if len(kept) == 0 { // only plain thinking
		_, thinks := stateOf(turn)
		return thinks && dialectOf(turn) == dialectOf(a.Messages)
	}
	for s := range kept {
		if _, ok := have[s]; ok {
			return true
		}
	}
	return false
}

// signedTurn reports whether there is any reasoning state.
func signedTurn(have map[sum]bool) bool {
	for _, reasoning := range have {
		if reasoning {
			return true
		}
	}
	return false
}

// fill returns the output, filled in with the content that the client returned.
func (r *restorer) fill(a *storedOutput, s *visible, turn []dragoman.Message) []dragoman.Message {
	f := filler{r: r, texts: a.Texts, calls: s.calls}
	f.collect(turn)
	out := make([]dragoman.Message, 0, len(a.Messages))
	for i := range a.Messages {
		m := a.Messages[i]
		parts := m.Parts
		m.Parts = make([]dragoman.Part, 0, len(parts))
		for _, p := range parts {
			if p = f.part(p); p != nil {
				m.Parts = append(m.Parts, p)
			}
		}
		if len(m.Parts) > 0 || len(parts) == 0 {
			out = append(out, m)
		}
	}
	f.setCacheHints(out)
	return out
}

// filler takes the client's content from a turn and hands it out in order.
type filler struct {
	r     *restorer
	text  string
	texts []textShape
	calls []*dragoman.ToolCall
	media []*dragoman.Media
	// cache is the client's cache hint after its last text, cacheAfterTurn the one after the turn.
	cache, cacheAfterTurn *dragoman.CacheHint
}

func (f *filler) collect(turn []dragoman.Message) {
	var b strings.Builder
	for i := range turn {
		for _, p := range turn[i].Parts {
			if text, ok := visibleText(p); ok {
				b.WriteString(text)
			}
			switch p := p.(type) {
			case *dragoman.Text:
				if p.Cache != nil {
					f.cache = p.Cache
				}
			case *dragoman.Media:
				f.media = append(f.media, p)
			}
		}
		if turn[i].Cache != nil {
			f.cacheAfterTurn = turn[i].Cache
		}
	}
	f.text = b.String()
}

func (f *filler) part(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		p.Text = f.nextText()
		return p
	case *dragoman.Refusal:
		p.Text = f.nextText()
		return p
	case *dragoman.Media:
		if len(f.media) == 0 {
			return nil // the client dropped it
		}
		m := *f.media[0]
		m.Extra = p.Extra
		f.media = f.media[1:]
		return &m
	case *dragoman.ToolCall:
		if p.Hosted {
			return p
		}
		return f.call(p)
	default:
		return p
	}
}

// call returns a call with the provider's opaque state and the client's names and arguments:
// the tools of the request are the client's.
func (f *filler) call(p *dragoman.ToolCall) dragoman.Part {
	c := f.calls[0]
	f.calls = f.calls[1:]
	p.Name, p.Namespace, p.Payload, p.Arguments = c.Name, c.Namespace, c.Payload, c.Arguments
	p.Problem, p.Cache = c.Problem, c.Cache
	if p.ID != c.ID {
		if f.r.renamed == nil {
			f.r.renamed = map[string]string{}
		}
		f.r.renamed[c.ID] = p.ID
	}
	return p
}

// nextText returns the next text.
func (f *filler) nextText() string {
	if len(f.texts) == 0 {
		return ""
	}
	p := f.texts[0]
	f.texts = f.texts[1:]
	if p.Length == 0 {
		return p.Lead + p.Trail
	}
	rest := strings.TrimLeftFunc(f.text, unicode.IsSpace)
	end, left := len(rest), p.Length
	for i, r := range rest {
		if left == 0 {
			end = i
			break
		}
		if !unicode.IsSpace(r) {
			left--
		}
	}
	f.text = rest[end:]
	return p.Lead + rest[:end] + p.Trail
}

// setCacheHints sets the client's cache hint, at the nearest possible place.
func (f *filler) setCacheHints(out []dragoman.Message) {
	for i := range slices.Backward(out) {
		if f.cacheAfterTurn != nil {
			out[i].Cache, f.cacheAfterTurn = f.cacheAfterTurn, nil
		}
		for _, p := range slices.Backward(out[i].Parts) {
			if t, ok := p.(*dragoman.Text); ok && f.cache != nil {
				t.Cache, f.cache = f.cache, nil
			}
		}
	}
}
