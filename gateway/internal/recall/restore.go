package recall

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
)

// Restore puts back into the history of a request what [Recall.Keep] remembered of its
// answers, and reports what is lost: answers of which something is known and that the
// client did not return as they were. It reads all it needs at once.
//
// The request is one that a codec decoded. It gets a new list of messages where something is put back; what it shares
// with others is not changed. Where there is an error it stays as it is.
func (r *Recall) Restore(ctx context.Context, scope Scope, req *dragoman.Request) (dragoman.Report, error) {
	h := history{scope: scope}
	h.read(req.Messages)
	if len(h.asked) == 0 {
		return dragoman.Report{}, nil
	}
	keys := make([]string, 0, 2*len(h.asked))
	for i := range h.asked {
		keys = append(keys, h.asked[i].entry, h.asked[i].mark)
	}
	notes, err := r.o.Notes.GetAll(ctx, keys)
	if err != nil {
		return dragoman.Report{}, err
	}
	rest := restorer{messages: req.Messages}
	for i := range h.asked {
		q := &h.asked[i]
		found := readAnswers(notes[2*i])
		rest.turn(q, found.List, string(notes[2*i+1]))
		r.renew(ctx, q, found, notes[2*i+1])
	}
	if rest.changed {
		rest.copy(len(req.Messages))
		req.Messages = rest.out
	}
	return rest.rep, nil
}

// renew keeps what was asked for from being forgotten, where half of its time is over.
func (r *Recall) renew(ctx context.Context, q *question, found answers, mark []byte) {
	now := r.o.Now()
	if len(found.List) == 0 || mark == nil || found.Until.Sub(now) > r.o.TTL/2 {
		return
	}
	until := now.Add(r.o.TTL)
	raw, err := encode(found.List, until, r.o.MaxState)
	if err == nil {
		err = r.o.Notes.Put(ctx, q.entry, raw, until)
	}
	if err == nil {
		_ = r.o.Notes.Put(ctx, q.mark, mark, until)
	} // else it is forgotten when its time is over: no reason to refuse a request
}

// question asks for what is known of one turn of a history.
type question struct {
	stretch
	seen        *seen
	entry, mark string
}

// history is that of a request, read once.
type history struct {
	scope Scope
	asked []question
}

func (h *history) read(messages []dragoman.Message) {
	var c identity
	for _, t := range turns(messages) {
		s := look(messages[t.first:t.end])
		if !s.empty() {
			before := c.now()
			h.asked = append(h.asked, question{t, s, h.scope.entryKey(before, s.sum()), h.scope.markKey(before)})
		}
		c.turn(s)
		c.others(messages[t.end:t.next])
	}
}

// restorer writes the list of messages anew.
type restorer struct {
	messages []dragoman.Message
	out      []dragoman.Message
	done     int // how many of messages are in out
	changed  bool
	renamed  map[string]string // ids of calls that have another now
	rep      dragoman.Report
}

// turn restores one turn, if it is one of the answers.
func (r *restorer) turn(q *question, alike []answer, mark string) {
	turn := r.messages[q.first:q.end]
	have, _ := state(turn)
	for i := range alike {
		a := &alike[i]
		if !a.fits(q.seen, turn) {
			continue
		}
		if a.Plain || a.returned(turn, have) {
			return
		}
		r.copy(q.first)
		r.out = append(r.out, r.fill(a, q.seen, turn)...)
		r.done, r.changed = q.end, true
		return
	}
	if mark == "" || signedTurn(have) {
		return // nothing is known, or it has state of its own
	}
	severity, what := dragoman.Warn, "opaque reasoning state"
	if mark == markPlain {
		severity, what = dragoman.Info, "reasoning"
	}
	r.rep.Addf(dragoman.Dropped, severity, "/messages/"+strconv.Itoa(q.first),
		"the %s of the answer to what stands before: the client returned another answer than was given, or it is not remembered any more", what)
}

// copy takes over messages up to one, results with the ids that their calls have now.
func (r *restorer) copy(end int) {
	for ; r.done < end; r.done++ {
		r.out = append(r.out, r.rename(r.messages[r.done]))
	}
}

// rename answers the calls of a message by the ids they have now.
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

// fits reports whether a turn that looks like the answer is that answer: its calls are
// the same by id, where the client's dialect has any, and it holds nothing of the
// client's own.
func (a *answer) fits(s *seen, turn []dragoman.Message) bool {
	minted := a.calls()
	if len(minted) != len(s.calls) {
		return false
	}
	for i, c := range s.calls {
		if !c.Synthetic && c.ID != minted[i].ID { // answers are told with the ids they came with
			return false
		}
	}
	known := map[sum]bool{}
	shown := 0 // media of the answer, less that of the turn
	for i := range a.Messages {
		for _, p := range a.Messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.Opaque:
				known[sameBlock(p.JSON)] = true
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
				if !known[sameBlock(p.JSON)] {
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

// spokenBy is the dialect in which a turn came.
func spokenBy(turn []dragoman.Message) dragoman.Dialect {
	for i := range turn {
		if turn[i].Origin != nil {
			return turn[i].Origin.Dialect
		}
	}
	return ""
}

// returned reports whether a turn has some of the state of the answer already, where it
// reaches the provider: in the provider's own dialect, or in a member of a call that
// tells who signed it. Then the client knows what it does.
func (a *answer) returned(turn []dragoman.Message, have map[sum]bool) bool {
	kept, _ := state(a.Messages)
	if len(kept) == 0 { // only thinking that anybody can read
		_, thinks := state(turn)
		return thinks && spokenBy(turn) == spokenBy(a.Messages)
	}
	for s := range kept {
		if _, ok := have[s]; ok {
			return true
		}
	}
	return false
}

// signedTurn reports whether there is any state of reasoning.
func signedTurn(have map[sum]bool) bool {
	for _, reasoning := range have {
		if reasoning {
			return true
		}
	}
	return false
}

// fill is the answer with what the client returned of it.
func (r *restorer) fill(a *answer, s *seen, turn []dragoman.Message) []dragoman.Message {
	f := filler{r: r, texts: a.Texts, calls: s.calls}
	f.take(turn)
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
	f.mark(out)
	return out
}

// filler hands out what the client returned, in order.
type filler struct {
	r     *restorer
	text  string
	texts []piece
	calls []*dragoman.ToolCall
	media []*dragoman.Media
	// cache is what the client asks for behind its last text, and behind the turn.
	cache, behind *dragoman.CacheHint
}

func (f *filler) take(turn []dragoman.Message) {
	var b strings.Builder
	for i := range turn {
		for _, p := range turn[i].Parts {
			if text, ok := words(p); ok {
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
			f.behind = turn[i].Cache
		}
	}
	f.text = b.String()
}

func (f *filler) part(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		p.Text = f.words()
		return p
	case *dragoman.Refusal:
		p.Text = f.words()
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

// call is a call as its provider minted it, with the client's words for what it does:
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

// words are those of the next text.
func (f *filler) words() string {
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

// mark asks for the cache where the client did, as near as can be.
func (f *filler) mark(out []dragoman.Message) {
	for i := range slices.Backward(out) {
		if f.behind != nil {
			out[i].Cache, f.behind = f.behind, nil
		}
		for _, p := range slices.Backward(out[i].Parts) {
			if t, ok := p.(*dragoman.Text); ok && f.cache != nil {
				t.Cache, f.cache = f.cache, nil
			}
		}
	}
}
