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

// maxCandidates limits the candidates of one response. A larger index is
// invalid (quirk C4).
const maxCandidates = 128

var (
	errNoCandidates   = errors.New("no candidates: is this a generateContent response?")
	errManyCandidates = fmt.Errorf("more than %d candidates", maxCandidates)
)

// DecodeResponse implements [dialect.Codec]. The response aliases body, which
// must not change afterwards. On error it returns what was decoded so far.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	a := responseDecoder{partDecoder: newPartDecoder(c, o)}
	a.resp.Origin = a.origin
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, a.rep)
	if err != nil {
		return &a.resp, *a.rep, err
	}
	defer r.Return()
	a.ambiguous = !sure
	rewritten := a.reg.Rewritten()
	var seen seenFields
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.duplicate(responseFields, camel) {
			a.markAmbiguous(string(camel))
		}
		a.field(r, key, string(camel))
	}
	wirekit.DropCaseVariants(&a.resp.Extra, "", responseFields)
	if err = r.End(); err == nil {
		err = a.err
	}
	if err == nil && !a.hasResponse {
		err = errNoCandidates
	}
	a.finish()
	if err != nil {
		return &a.resp, *a.rep, wirekit.DecodeError(name, "response", err)
	}
	if a.failed {
		a.resp.Error = c.DecodeError(0, nil, body)
		if len(a.calls) > 0 {
			// A client that ignores the error would run the calls.
			a.ambiguous, a.resp.Error.Native = true, nil
		}
	}
	if !o.NoNative && !a.ambiguous && a.reg.Rewritten() == rewritten {
		a.resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: a.resp.Fingerprint()}
	}
	return &a.resp, *a.rep, nil
}

// responseDecoder decodes one response.
type responseDecoder struct {
	partDecoder
	resp        dragoman.Response
	counters    counters
	candidates  []candidate
	calls       []*dragoman.ToolCall // of all candidates
	failed      bool                 // there is an error field
	hasResponse bool                 // there is a candidate, an error or a block reason
	blocked     string               // why the prompt was blocked
	err         error
}

// candidate is one decoded candidate.
type candidate struct {
	messages     []dragoman.Message
	finishReason string
	calls        []*dragoman.ToolCall
}

func (a *responseDecoder) field(r *jsonwire.Reader, key []byte, camel string) {
	switch camel {
	case "candidates":
		if r.Kind() != 'n' {
			a.hasResponse = true
		}
		for i := range r.Array() {
			raw := r.Raw()
			if r.Err() != nil || a.err != nil {
				continue // after a bad candidate the rest is only checked as JSON
			}
			if err := a.candidate(raw, i); err != nil {
				a.err = jsonwire.PlaceAt(extra.Elem("/candidates", i).String(), r.Offset()-int64(len(raw)), err)
			}
		}
	case "promptFeedback":
		raw := r.Raw()
		if reason := blockReason(raw); reason != "" {
			a.hasResponse, a.blocked = true, reason
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
		a.failed, a.hasResponse = true, true
		extra.Add(&a.resp.Extra, name, "", key, r.Raw())
	default:
		extra.Add(&a.resp.Extra, name, "", key, r.Raw())
	}
}

// timeOf parses a time. It returns the zero time if raw is not one.
func timeOf(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339, jsonwire.Unquote(raw))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// blockReason returns why the prompt was blocked; empty if it was not.
func blockReason(raw []byte) (reason string) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(jsonwire.Camel(key)) == "blockReason" {
			reason = enumName(r)
		} else {
			r.Skip()
		}
	}
	if reason == "BLOCK_REASON_UNSPECIFIED" || reason == "0" {
		return ""
	}
	return reason
}

// markAmbiguous records that two readers could read this response differently.
func (a *responseDecoder) markAmbiguous(field string) {
	a.ambiguous = true
	a.rep.Addf(dragoman.Dropped, dragoman.Warn, "", "field %.40q occurs twice or in another letter case; the original bytes are not kept", field)
	for _, c := range a.calls {
		c.Problem = wirekit.RepeatedField(field)
	}
}

// candidate decodes one candidate. Unknown fields are stored with the response,
// under the candidate's path.
func (a *responseDecoder) candidate(raw json.RawMessage, i int) error {
	if i >= maxCandidates {
		return errManyCandidates
	}
	prefix := "/candidates/" + strconv.Itoa(i)
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' && r.Err() == nil {
		return wirekit.ErrNotObject
	}
	var c candidate
	var seen seenFields
	duplicate := ""
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.duplicate(candidateFields, camel) {
			duplicate = string(camel)
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
			c.finishReason = mergeFinishReasons(c.finishReason, enumName(r))
		case "index":
			r.Skip()
		default:
			extra.Add(&a.resp.Extra, name, prefix, key, r.Raw())
		}
	}
	wirekit.DropCaseVariants(&a.resp.Extra, prefix, candidateFields)
	if err := r.End(); err != nil {
		return err
	}
	a.calls = append(a.calls, c.calls...)
	if duplicate != "" {
		a.markAmbiguous(duplicate)
	}
	a.candidates = append(a.candidates, c)
	return nil
}

// mergeFinishReasons merges a finish reason that occurs twice. A reason that blocks
// calls is never replaced by one that does not.
func mergeFinishReasons(have, next string) string {
	if next == "" || blocksCalls(have) && !blocksCalls(next) {
		return have
	}
	return next
}

// content decodes the parts of a candidate.
func (a *responseDecoder) content(c *candidate, raw json.RawMessage, index int) error {
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
	var seen seenFields
	for key := range r.Object() {
		if seen.duplicate(contentFields, key) {
			a.markAmbiguous(string(key))
			changed = true
			defer func() {
				for _, k := range c.calls {
					k.Problem = wirekit.RepeatedField("parts")
				}
			}()
		}
		switch string(key) {
		case "role":
			role = enumName(r)
		case "parts":
			// If an earlier list had calls, keep them. They are reported as
			// calls that must not run.
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
				if isEmpty(p) {
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
	wirekit.DropCaseVariants(&m.Extra, "", contentFields)
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

// isEmpty reports whether a part is empty: the API ends streams with an empty
// text. A part with set extra fields is not empty.
func isEmpty(p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text == "" && p.Signature == "" && !hasSetFields(p.Extra)
	case *dragoman.Reasoning:
		return p.Text == "" && p.Signature == "" && !hasSetFields(p.Extra)
	default:
		return false
	}
}

// callIDs holds the calls of one candidate by id.
type callIDs struct{ wirekit.CallIDs }

// settle records the next call. fresh is false for an exact repeat; touched
// reports that the response no longer matches its original bytes.
func (s *callIDs) settle(d *partDecoder, c *dragoman.ToolCall, at extra.Path, place ...int) (fresh, touched bool) {
	fresh, renamed := s.Settle(c, at, d.rep, func(old string) string {
		return wirekit.SyntheticID(idPrefix, d.o.Seed+old, place...)
	})
	d.ambiguous = d.ambiguous || renamed || !fresh // a client would run the call twice, or confuse two calls
	return fresh, !fresh || renamed
}

// finish sets the stop reasons and the usage.
func (a *responseDecoder) finish() {
	a.resp.Usage, a.resp.ServiceTier = a.counters.usage(), a.counters.tier
	details := a.resp.Stop.Details
	for i, c := range a.candidates {
		stop := dragoman.Stop{Reason: a.settle(c.finishReason, c.calls), Native: c.finishReason}
		if i == 0 {
			a.resp.Output, a.resp.Stop = c.messages, stop
			continue
		}
		a.resp.Alternatives = append(a.resp.Alternatives, dragoman.Candidate{Index: i, Output: c.messages, Stop: stop})
	}
	a.resp.Stop.Details = details
	switch {
	case a.blocked != "": // no call runs if the prompt was blocked
		a.resp.Stop.Reason = dragoman.StopContentFilter
		if len(a.candidates) == 0 {
			a.resp.Stop.Native = a.blocked
		}
		wirekit.ForbidCalls(dragoman.StopContentFilter, a.calls)
	case len(a.candidates) == 0:
		a.resp.Stop = dragoman.Stop{Reason: dragoman.StopError}
	}
}

func (a *responseDecoder) settle(finish string, calls []*dragoman.ToolCall) dragoman.StopReason {
	reason := decodeStop(finish)
	if a.failed {
		reason = dragoman.StopError // no call runs if there is an error
	}
	return wirekit.SettleStop(a.reg, reason, true, calls)
}
