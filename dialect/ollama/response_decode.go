package ollama

import (
	"errors"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// responseKeys are the fields of a response, or of a stream line, that readers interpret
// differently if they occur twice or differ in case.
var responseKeys = []string{"message", "done", "done_reason", "error", "model", "created_at", "prompt_eval_count", "eval_count"}

// DecodeResponse implements [dialect.Codec]. The response retains slices of body, which must not
// change afterwards.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	d := responseDecoder{messageDecoder: newMessageDecoder(c, o), done: true}
	d.isResponse = true
	resp := &d.resp
	resp.Origin = d.origin
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, d.rep)
	if err != nil {
		return resp, *d.rep, err
	}
	defer r.Return()
	d.r, d.unclear = r, !sure
	rewritten := d.reg.Rewritten()
	var seen wirekit.KnownFields
	for key := range r.Object() {
		if seen.IsRepeated(responseKeys, key) {
			d.ambiguous("/"+extra.Escape(string(key)), "the response has this field twice")
		}
		d.decodeField(key)
	}
	wirekit.DropCaseVariants(&resp.Extra, "", responseKeys)
	if err = r.End(); err == nil {
		err = d.err
	}
	if err == nil && d.msg == nil && resp.Error == nil {
		err = errNoMessage
	}
	if err != nil {
		return resp, *d.rep, wirekit.DecodeError(name, "response", err)
	}
	d.finish()
	if resp.Error != nil {
		resp.Error.Native = &dragoman.Native{Format: formatError, JSON: body}
	}
	if !o.NoNative && !d.unclear && d.reg.Rewritten() == rewritten {
		resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: resp.Fingerprint()}
	}
	return resp, *d.rep, nil
}

var errNoMessage = errors.New("no message field: check that this is a response of the Ollama chat API")

type responseDecoder struct {
	messageDecoder
	r          *jsonwire.Reader
	resp       dragoman.Response
	msg        []byte // nil if there is no message
	done       bool
	doneReason string
	err        error
}

func (d *responseDecoder) decodeField(key []byte) {
	r, resp := d.r, &d.resp
	switch string(key) {
	case "model":
		resp.Model = r.String()
	case "created_at":
		raw := r.Raw()
		resp.Created = readTime(raw)
		if !roundTrips(resp.Created, raw) {
			extra.Add(&resp.Extra, name, "", key, raw)
		}
	case "message":
		d.message(r.Raw())
	case "done":
		d.done = r.Bool()
	case "done_reason":
		if r.Kind() == 'n' {
			extra.Add(&resp.Extra, name, "", key, r.Raw())
			return
		}
		word := r.String()
		if word == "" {
			extra.Add(&resp.Extra, name, "", []byte("done_reason"), []byte(`""`))
		}
		d.doneReason = combineReasons(d.doneReason, word)
	case "error":
		if r.Null() {
			return
		}
		resp.Error = &dragoman.APIError{}
		readError(r, resp.Error)
		resp.Error.Class = classOf(resp.Error)
	default:
		if !readUsage(r, key, &resp.Usage, d.rep) {
			extra.Add(&resp.Extra, name, "", key, r.Raw())
		}
	}
}

// message decodes the message of the response; null means no message.
func (d *responseDecoder) message(raw []byte) {
	if len(raw) == 0 || raw[0] == 'n' || d.err != nil {
		return
	}
	d.msg = raw
	at := extra.At("/message")
	m, err := d.messageDecoder.message(raw, at, 0)
	if err != nil {
		d.err = jsonwire.PlaceAt(at.String(), d.r.Offset()-int64(len(raw)), err)
		return
	}
	if hasOpaqueCall(&m) { // do not forward a malformed call to clients
		m.Native, d.unclear = nil, true
	}
	d.resp.Output = nil
	if len(m.Parts) > 0 || m.Extra != nil {
		d.resp.Output = []dragoman.Message{m}
	}
}

// finish derives the stop reason. No call of a failed response may run.
func (d *responseDecoder) finish() {
	resp := &d.resp
	calls := resp.ToolCalls()
	if resp.Error != nil {
		resp.Stop = dragoman.Stop{Reason: dragoman.StopError, Native: d.doneReason}
		wirekit.ForbidCalls(dragoman.StopError, calls)
		return
	}
	resp.Stop = settleStop(d.reg, d.doneReason, d.done, calls)
	for _, c := range calls {
		// A client that gets the original bytes would run it.
		d.unclear = d.reg.Forbid(c) || d.unclear
	}
}

// readTime reads a timestamp. It returns zero for an invalid time and for the epoch, which means
// no time.
func readTime(raw []byte) time.Time {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '"' {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, r.String())
	if err != nil || t.Unix() == 0 && t.Nanosecond() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

// roundTrips reports whether encoding t gives raw.
func roundTrips(t time.Time, raw []byte) bool {
	var w jsonwire.Writer
	w.String(timestamp(t))
	return string(w.Buf) == string(raw)
}

// timestamp formats a time for the wire. Strict clients require one, so the zero time is written
// as the epoch.
func timestamp(t time.Time) string {
	if t = t.UTC(); t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		t = time.Unix(0, 0).UTC()
	}
	return t.Format(time.RFC3339Nano)
}
