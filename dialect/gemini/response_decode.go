package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// maxCandidates bounds the candidates of one response: an index beyond it is no
// answer to any request (quirk C4).
const maxCandidates = 128

var (
	errNoCandidates   = errors.New("no candidates: is this a generateContent response?")
	errManyCandidates = fmt.Errorf("more than %d candidates", maxCandidates)
)

// DecodeResponse implements [dialect.Codec]. The response keeps slices of body,
// which must not change afterwards. What was decoded before an error is
// returned with it.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	a := answer{partDecoder: newPartDecoder(c, o)}
	a.resp.Origin = a.origin
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, a.rep)
	if err != nil {
		return &a.resp, *a.rep, err
	}
	defer r.Return()
	a.ambiguous = !sure
	rewritten := a.reg.Rewritten()
	var seen members
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.twice(responseMembers, camel) {
			a.unclear(string(camel))
		}
		a.member(r, key, string(camel))
	}
	wirekit.DropTwins(&a.resp.Extra, "", responseMembers)
	if err = r.End(); err == nil {
		err = a.err
	}
	if err == nil && !a.answered {
		err = errNoCandidates
	}
	a.finish()
	if err != nil {
		return &a.resp, *a.rep, wirekit.DecodeError(name, "response", err)
	}
	if a.failed {
		a.resp.Error = c.DecodeError(0, nil, body)
		if len(a.calls) > 0 {
			// A client that overlooks the error would run the calls beside it.
			a.ambiguous, a.resp.Error.Native = true, nil
		}
	}
	if !o.NoNative && !a.ambiguous && a.reg.Rewritten() == rewritten {
		a.resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: a.resp.Fingerprint()}
	}
	return &a.resp, *a.rep, nil
}

// answer is a response being read.
type answer struct {
	partDecoder
	resp     dragoman.Response
	counters counters
	found    []candidate
	calls    []*dragoman.ToolCall // of all candidates
	failed   bool                 // an error stands there
	answered bool                 // anything that is an answer stands there
	blocked  string               // why the prompt was refused
	err      error
}

// candidate is one of the answers.
type candidate struct {
	messages []dragoman.Message
	word     string
	calls    []*dragoman.ToolCall
}

func (a *answer) member(r *jsonwire.Reader, key []byte, camel string) {
	switch camel {
	case "candidates":
		if r.Kind() != 'n' {
			a.answered = true
		}
		for i := range r.Array() {
			raw := r.Raw()
			if r.Err() != nil || a.err != nil {
				continue // what follows a bad candidate is only checked as JSON
			}
			if err := a.candidate(raw, i); err != nil {
				a.err = jsonwire.PlaceAt(extra.Elem("/candidates", i).String(), r.Offset()-int64(len(raw)), err)
			}
		}
	case "promptFeedback":
		raw := r.Raw()
		if reason := blockReason(raw); reason != "" {
			a.answered, a.blocked = true, reason
			a.resp.Stop.Details = &dragoman.Native{Format: formatFeedback, JSON: raw}
			return
		}
		extra.Add(&a.resp.Extra, name, "", key, raw)
	case "usageMetadata":
		a.counters.read(r, a.rep)
	case "modelVersion":
		a.resp.Model = r.String()
	case "responseId":
		a.resp.ID = r.String()
	case "createTime":
		raw := r.Raw()
		if a.resp.Created = timeOf(raw); a.resp.Created.IsZero() {
			extra.Add(&a.resp.Extra, name, "", key, raw)
		}
	case "error":
		if r.Kind() == 'n' {
			r.Skip()
			return
		}
		a.failed, a.answered = true, true
		extra.Add(&a.resp.Extra, name, "", key, r.Raw())
	default:
		extra.Add(&a.resp.Extra, name, "", key, r.Raw())
	}
}

// timeOf reads a time; the zero one where it is none.
func timeOf(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339, jsonwire.Unquote(raw))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// blockReason reads why a prompt was refused; empty where it was not.
func blockReason(raw []byte) (reason string) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(jsonwire.Camel(key)) == "blockReason" {
			reason = word(r)
		} else {
			r.Skip()
		}
	}
	if reason == "BLOCK_REASON_UNSPECIFIED" || reason == "0" {
		return ""
	}
	return reason
}

// unclear says that two readers could find two answers in this one.
func (a *answer) unclear(member string) {
	a.ambiguous = true
	a.rep.Addf(dragoman.Dropped, dragoman.Warn, "", "the member %.40q stands there twice, or in other letters; the native form is not kept", member)
	for _, c := range a.calls {
		c.Problem = wirekit.RepeatedMember(member)
	}
}

// candidate reads one answer. What we do not model of it is kept with the
// response, under its place.
func (a *answer) candidate(raw json.RawMessage, i int) error {
	if i >= maxCandidates {
		return errManyCandidates
	}
	prefix := "/candidates/" + strconv.Itoa(i)
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' && r.Err() == nil {
		return wirekit.ErrNotObject
	}
	var c candidate
	var seen members
	twice := ""
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.twice(candidateMembers, camel) {
			twice = string(camel)
		}
		switch string(camel) {
		case "content":
			content := r.Raw()
			if r.Err() != nil {
				break
			}
			if err := a.content(&c, content, i); err != nil {
				return jsonwire.PlaceAt("/content", r.Offset()-int64(len(content)), err)
			}
		case "finishReason":
			c.word = laterWord(c.word, word(r))
		case "index":
			r.Skip()
		default:
			extra.Add(&a.resp.Extra, name, prefix, key, r.Raw())
		}
	}
	wirekit.DropTwins(&a.resp.Extra, prefix, candidateMembers)
	if err := r.End(); err != nil {
		return err
	}
	a.calls = append(a.calls, c.calls...)
	if twice != "" {
		a.unclear(twice)
	}
	a.found = append(a.found, c)
	return nil
}

// laterWord settles a finish reason that comes twice: one after which nothing
// runs stays, whatever a later one says.
func laterWord(have, next string) string {
	if next == "" || forbids(have) && !forbids(next) {
		return have
	}
	return next
}

// content reads the parts of a candidate.
func (a *answer) content(c *candidate, raw json.RawMessage, index int) error {
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: a.origin}
	r := jsonwire.NewReader(raw)
	if r.Kind() == 'n' {
		return nil
	}
	if r.Kind() != '{' && r.Err() == nil {
		return wirekit.ErrNotObject
	}
	role, changed := "", false
	var ids callIDs
	var seen members
	for key := range r.Object() {
		if seen.twice(contentMembers, key) {
			a.unclear(string(key))
			changed = true
			defer func() {
				for _, k := range c.calls {
					k.Problem = wirekit.RepeatedMember("parts")
				}
			}()
		}
		switch string(key) {
		case "role":
			role = word(r)
		case "parts":
			// Of what another list said before, only the calls are told, as such
			// that must not run.
			m.Parts = slices.DeleteFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() != codes.KindToolCall })
			for i := range r.Array() {
				part := r.Raw()
				if r.Err() != nil {
					break
				}
				at := extra.Elem("/candidates", index).Elem("content/parts", i)
				p, err := a.part(part, at, len(c.calls), index)
				if err != nil {
					return jsonwire.PlaceAt(extra.Elem("/parts", i).String(), r.Offset()-int64(len(part)), err)
				}
				if silent(p) {
					continue
				}
				if call, ok := p.(*dragoman.ToolCall); ok {
					fresh, touched := ids.settle(&a.partDecoder, call, at, index, len(c.calls))
					changed = changed || touched
					if !fresh {
						continue
					}
					c.calls = append(c.calls, call)
				}
				m.Parts = append(m.Parts, p)
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	wirekit.DropTwins(&m.Extra, "", contentMembers)
	if err := r.End(); err != nil {
		return err
	}
	if len(m.Parts) == 0 {
		return nil
	}
	if !a.o.NoNative && !changed && !a.ambiguous && role == wireModel {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	c.messages = []dragoman.Message{m}
	return nil
}

// silent reports whether a part of an answer says nothing: the API ends streams
// with an empty text. What stands beside it says something.
func silent(p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text == "" && p.Signature == "" && !noted(p.Extra)
	case *dragoman.Reasoning:
		return p.Text == "" && p.Signature == "" && !noted(p.Extra)
	default:
		return false
	}
}

// callIDs are the calls of one candidate by id.
type callIDs struct{ wirekit.CallIDs }

// settle takes the next call: fresh is false for an exact repeat, and touched
// says that the answer no longer reads as it came.
func (s *callIDs) settle(d *partDecoder, c *dragoman.ToolCall, at extra.Path, place ...int) (fresh, touched bool) {
	fresh, renamed := s.Settle(c, at, d.rep, func(old string) string {
		return wirekit.SyntheticID(idPrefix, d.o.Seed+old, place...)
	})
	d.ambiguous = d.ambiguous || renamed || !fresh // a client would run it twice, or take it for another
	return fresh, !fresh || renamed
}

// finish settles the stops and the usage.
func (a *answer) finish() {
	a.resp.Usage, a.resp.ServiceTier = a.counters.usage(), a.counters.tier
	details := a.resp.Stop.Details
	for i, c := range a.found {
		stop := dragoman.Stop{Reason: a.settle(c.word, c.calls), Native: c.word}
		if i == 0 {
			a.resp.Output, a.resp.Stop = c.messages, stop
			continue
		}
		a.resp.Alternatives = append(a.resp.Alternatives, dragoman.Candidate{Index: i, Output: c.messages, Stop: stop})
	}
	a.resp.Stop.Details = details
	switch {
	case a.blocked != "": // nothing of an answer to a refused prompt runs
		a.resp.Stop.Reason = dragoman.StopContentFilter
		if len(a.found) == 0 {
			a.resp.Stop.Native = a.blocked
		}
		wirekit.ForbidCalls(dragoman.StopContentFilter, a.calls)
	case len(a.found) == 0:
		a.resp.Stop = dragoman.Stop{Reason: dragoman.StopError}
	}
}

func (a *answer) settle(word string, calls []*dragoman.ToolCall) dragoman.StopReason {
	reason := stopOf(word)
	if a.failed {
		reason = dragoman.StopError // whatever it says: nothing runs beside an error
	}
	return wirekit.SettleStop(a.reg, reason, true, calls)
}
