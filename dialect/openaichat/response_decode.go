package openaichat

import (
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

// maxChoices bounds the candidates of one response. A larger index is invalid (quirk C4).
const maxChoices = 128

// DecodeResponse implements [dialect.Codec]. The response retains slices of body, which must not
// change afterwards.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	resp := &dragoman.Response{Origin: wirekit.Origin(name, o)}
	var rep dragoman.Report
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, &rep)
	if err != nil {
		return resp, rep, err
	}
	defer r.Return()
	d := &messageDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: resp.Origin, rep: &rep, once: sure, unclear: !sure}
	rewritten := d.reg.Rewritten()
	var failed error
	var groq dragoman.Usage
	hasChoices, flat := false, false // flat: an error without its envelope
	broken := false                  // the whole response failed
	for key := range r.Object() {
		switch string(key) {
		case "id":
			resp.ID = r.String()
		case "object":
			if r.Kind() == '"' {
				flat = r.String() == "error"
			} else {
				r.Skip()
			}
		case "created":
			resp.Created = unix(r.Int())
		case "model":
			resp.Model = r.String()
		case "service_tier":
			if r.Kind() == '"' {
				resp.ServiceTier = r.String()
			} else {
				extra.Add(&resp.Extra, name, "", key, r.Raw())
			}
		case "usage":
			resp.Usage = readUsage(r, &rep)
		case "choices":
			if hasChoices {
				d.ambiguous("/choices", "the response has duplicate choices")
			}
			hasChoices = true
			for i := range r.Array() {
				raw := r.Raw()
				if r.Err() != nil || failed != nil {
					continue // after an invalid choice, only the JSON syntax is checked
				}
				failed = d.choice(resp, raw, i, r.Offset()-int64(len(raw)))
			}
		case "error":
			if r.Kind() == 'n' { // some clients treat the field itself as a failure
				r.Skip()
				continue
			}
			broken = true
			resp.Error = &dragoman.APIError{}
			readErrorObject(r, resp.Error)
			resp.Error.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: body}
			resp.Error.Class = classOf(resp.Error)
		case "x_groq":
			raw := r.Raw()
			groq = groqUsage(raw, &rep)
			extra.Add(&resp.Extra, name, "", []byte("x_groq"), raw)
		default:
			if d.caseVariant(chunkKeys, key, extra.At("")) {
				r.Skip()
				continue
			}
			extra.Add(&resp.Extra, name, "", key, r.Raw())
		}
	}
	if broken { // no call of a failed response may run
		for i := range resp.Alternatives {
			failChoice(&resp.Alternatives[i])
		}
	}
	if sortCandidates(resp) {
		d.ambiguous("/choices", "the choices are not in the order of their indexes")
	}
	err = r.End()
	if err == nil {
		err = failed
	}
	if err == nil && flat && !hasChoices && resp.Error == nil {
		resp.Error = Codec{}.DecodeError(0, nil, body)
	}
	if err == nil && !hasChoices && resp.Error == nil {
		err = errNoChoices
	}
	if err != nil {
		return resp, rep, wirekit.DecodeError(name, "response", err)
	}
	if !hasUsage(resp.Usage) && hasUsage(groq) {
		resp.Usage = groq
	}
	if resp.Error != nil && resp.Output == nil {
		resp.Stop = dragoman.Stop{Reason: dragoman.StopError}
	}
	if !o.NoNative && !d.unclear && d.reg.Rewritten() == rewritten {
		resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: resp.Fingerprint()}
	}
	return resp, rep, nil
}

var errManyChoices = fmt.Errorf("more than %d choices", maxChoices)

var errNoChoices = errors.New("no choices: check that this is a Chat Completions response")

func unix(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}

// groqUsage reads the usage from the field x_groq.
func groqUsage(raw []byte, rep *dragoman.Report) (u dragoman.Usage) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return u
	}
	for key := range r.Object() {
		if string(key) == "usage" {
			u = readUsage(r, rep)
		} else {
			r.Skip()
		}
	}
	return u
}

func unreadableCall(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == codes.ProblemUnreadable
}

// failChoice marks a candidate of a failed response.
func failChoice(c *dragoman.Candidate) {
	c.Stop.Reason = dragoman.StopError
	for i := range c.Output {
		wirekit.ForbidCalls(dragoman.StopError, c.Output[i].ToolCalls())
	}
}

// choice decodes one candidate and appends it to the alternatives.
func (d *messageDecoder) choice(resp *dragoman.Response, raw []byte, i int, start int64) error {
	place := "/choices/" + strconv.Itoa(i)
	r := jsonwire.Borrow(raw)
	defer r.Return()
	var (
		m              dragoman.Message
		index          = int64(i)
		finish, routed string
		ex             *dragoman.Extra
		msg            []byte
		msgStart       int64
		failure        *dragoman.APIError
		failureRaw     []byte
	)
	for key := range r.Object() {
		switch string(key) {
		case "index":
			index = r.Int()
		case "message":
			if msg != nil {
				d.ambiguous(place, "the choice has a duplicate message")
			}
			msg = r.Raw()
			msgStart = r.Offset() - int64(len(msg))
		case "finish_reason":
			if r.Kind() != 'n' { // a value that is not a string is an error: it is unknown what may run
				word := r.String()
				if finish != "" && word != finish {
					d.ambiguous(place, "the choice has a duplicate finish_reason")
				}
				finish = combineReasons(finish, word)
			} else {
				extra.Add(&ex, name, "", key, r.Raw())
			}
		case "error":
			raw := r.Raw()
			extra.Add(&ex, name, "", []byte("error"), raw)
			if len(raw) > 0 && raw[0] != 'n' {
				failure, failureRaw = &dragoman.APIError{}, raw
				readErrorObject(jsonwire.NewReader(raw), failure)
			}
		case "native_finish_reason":
			raw := r.Raw()
			word, _ := looseText(raw)
			routed = combineRouted(routed, word)
			extra.Add(&ex, name, "", []byte("native_finish_reason"), raw)
		default:
			if d.caseVariant(choiceKeys, key, extra.At(place)) {
				r.Skip()
				continue
			}
			extra.Add(&ex, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return jsonwire.PlaceAt(place, start, err)
	}
	if index < 0 || index >= maxChoices {
		if i >= maxChoices {
			return jsonwire.PlaceAt(place, start, errManyChoices)
		}
		d.rep.Addf(dragoman.Renamed, dragoman.Info, place+"/index", "index %d is read as %d", index, i)
		index = int64(i)
	}
	var out []dragoman.Message
	var calls []*dragoman.ToolCall
	if failure != nil && resp.Error == nil { // OpenRouter
		failure.Class = classOf(failure)
		failure.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: errorEnvelope(failureRaw)}
		resp.Error = failure
	}
	if msg != nil && string(msg) != "null" {
		var err error
		at := extra.At(place + "/message")
		if m, err = d.message(msg, at, i); err != nil {
			return jsonwire.PlaceAt(at.String(), start+msgStart, err)
		}
		if m.Role != dragoman.RoleAssistant { // its calls are not read
			d.ambiguous(place, "the message of a response has the role "+strconv.Quote(roleOf(msg, d.once)))
			m.Native = nil
		}
		calls = m.ToolCalls()
		// Do not forward malformed calls to clients, nor calls that they would run twice or
		// confuse with each other.
		if d.clash || d.trimmed || hasOpaqueCall(&m) || slices.ContainsFunc(calls, unreadableCall) {
			m.Native, d.unclear = nil, true
		}
		out = []dragoman.Message{m}
	}
	stop := settleStop(d.reg, finish, routed, true, calls)
	if failure != nil {
		stop.Reason = dragoman.StopError
		wirekit.ForbidCalls(stop.Reason, calls)
	}
	resp.Alternatives = append(resp.Alternatives, dragoman.Candidate{Index: int(index), Output: out, Stop: stop, Extra: ex})
	return nil
}

// sortCandidates sorts the candidates by index. The first becomes the output of the response, the
// others the alternatives. It reports whether they were out of order or shared an index: many
// clients use the first one they see.
func sortCandidates(resp *dragoman.Response) (moved bool) {
	all := resp.Alternatives
	resp.Alternatives = nil
	for i := range all {
		moved = moved || i > 0 && all[i].Index <= all[i-1].Index
	}
	slices.SortStableFunc(all, func(a, b dragoman.Candidate) int { return a.Index - b.Index })
	for i, a := range all {
		if a.Extra != nil {
			for j := range a.Extra.Fields {
				f := &a.Extra.Fields[j]
				f.Path = "/choices/" + strconv.Itoa(i) + f.Path
			}
		}
		if i > 0 {
			a.Index = i
			resp.Alternatives = append(resp.Alternatives, a)
			continue
		}
		resp.Output, resp.Stop = a.Output, a.Stop
		if a.Extra != nil {
			for _, f := range a.Extra.Fields {
				addField(&resp.Extra, f)
			}
		}
	}
	return moved
}

func addField(e **dragoman.Extra, f dragoman.Field) {
	if *e == nil {
		*e = &dragoman.Extra{Dialect: name}
	}
	(*e).Fields = append((*e).Fields, f)
}
