package cohere

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// responseFields lists the response fields that must not occur twice, because
// readers would read them differently.
var responseFields = []string{"id", "finish_reason", "message", "usage"}

var errNoMessage = errors.New("no message: is this a response of the Cohere chat API, version 2?")

// DecodeResponse implements [dialect.Codec]. The response aliases body, which
// must not change afterwards.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	d := responseDecoder{messageDecoder: newMessageDecoder(c, o)}
	d.inResponse = true
	resp := &d.resp
	resp.Origin = d.origin
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, d.rep)
	if err != nil {
		return resp, *d.rep, err
	}
	defer r.Return()
	d.r, d.ambiguousInput = r, !sure
	rewritten := d.reg.Rewritten()
	var seen wirekit.KnownFields
	for key := range r.Object() {
		if seen.IsRepeated(responseFields, key) {
			d.ambiguous("/"+extra.Escape(string(key)), "duplicate field")
		}
		d.field(key)
	}
	wirekit.DropCaseVariants(&resp.Extra, "", responseFields)
	if err = r.End(); err == nil {
		err = d.err
	}
	if err == nil && !d.found {
		if failure := d.failure(body); failure != nil {
			resp.Error, resp.Stop = failure, dragoman.Stop{Reason: dragoman.StopError}
			return resp, *d.rep, nil
		}
		err = errNoMessage
	}
	if err != nil {
		return resp, *d.rep, wirekit.DecodeError(name, "response", err)
	}
	calls := resp.ToolCalls()
	resp.Stop = settleStop(d.reg, d.finishReason, true, calls)
	for _, c := range calls {
		d.ambiguousInput = d.reg.Forbid(c) || d.ambiguousInput // a client that gets the original bytes would run it
	}
	if !o.NoNative && !d.ambiguousInput && d.reg.Rewritten() == rewritten {
		resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: resp.Fingerprint()}
	}
	return resp, *d.rep, nil
}

type responseDecoder struct {
	messageDecoder
	r            *jsonwire.Reader
	resp         dragoman.Response
	found        bool // there is a message
	text         bool // the message is a string, as in an error
	finishReason string
	err          error
}

// failure returns the error that was sent instead of a response, or nil.
func (d *responseDecoder) failure(body []byte) *dragoman.APIError {
	if !d.text {
		return nil
	}
	return Codec{}.DecodeError(0, nil, body)
}

func (d *responseDecoder) field(key []byte) {
	r, resp := d.r, &d.resp
	switch string(key) {
	case "id":
		resp.ID = r.String()
	case "finish_reason":
		if r.Kind() == 'n' {
			extra.Add(&resp.Extra, name, "", key, r.Raw())
			return
		}
		d.finishReason = mergeFinishReasons(d.finishReason, r.String())
	case "usage":
		resp.Usage = readUsage(r, d.rep)
	case "message":
		d.message(r)
	default:
		extra.Add(&resp.Extra, name, "", key, r.Raw())
	}
}

func (d *responseDecoder) message(r *jsonwire.Reader) {
	switch r.Kind() {
	case '"': // the last one counts
		d.text, d.found, d.resp.Output = true, false, nil
		r.Skip()
		return
	case 'n':
		r.Skip()
		return
	}
	raw := r.Raw()
	if r.Err() != nil || d.err != nil {
		return
	}
	d.found, d.text = true, false
	at := extra.At("/message")
	m, err := d.messageDecoder.message(raw, at, 0)
	if err != nil {
		d.err = jsonwire.PlaceAt(at.String(), r.Offset()-int64(len(raw)), err)
		return
	}
	if hasOpaqueCall(&m) {
		m.Native, d.ambiguousInput = nil, true
	}
	d.resp.Output = nil
	if len(m.Parts) > 0 || m.Extra != nil {
		d.resp.Output = []dragoman.Message{m}
	}
}
