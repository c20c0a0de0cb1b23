package openaichat

import (
	"strconv"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// maxChoices bounds the candidates of one response: an index beyond it is no
// answer to any request (quirk C4).
const maxChoices = 128

// DecodeResponse implements [dialect.Codec]. The response keeps slices of
// body, which must not change afterwards.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	resp := &dragoman.Response{Origin: wirekit.Origin(name, o)}
	var rep dragoman.Report
	if err := wirekit.CheckSize(name, "response", body, o); err != nil {
		return resp, rep, err
	}
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' && r.Err() == nil {
		return resp, rep, wirekit.DecodeError(name, "response", errNotObject)
	}
	d := &messageDecoder{reg: wirekit.DecodeRegistry(c.Limits(), o), o: o, origin: resp.Origin, rep: &rep}
	var failed error
	var groq dragoman.Usage
	for key := range r.Object() {
		switch string(key) {
		case "id":
			resp.ID = r.String()
		case "object":
			r.Skip()
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
			resp.Usage = readUsage(r)
		case "choices":
			for i := range r.Array() {
				raw := r.Raw()
				if r.Err() != nil || failed != nil {
					break
				}
				failed = d.choice(resp, raw, i)
			}
		case "error":
			if r.Kind() == 'n' {
				extra.Add(&resp.Extra, name, "", key, r.Raw())
				continue
			}
			resp.Error = &dragoman.APIError{}
			readErrorObject(r, resp.Error)
			resp.Error.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: body}
			resp.Error.Class = classOf(resp.Error)
		case "x_groq":
			raw := r.Raw()
			groq = groqUsage(raw)
			extra.Add(&resp.Extra, name, "", []byte("x_groq"), raw)
		default:
			extra.Add(&resp.Extra, name, "", key, r.Raw())
		}
	}
	err := r.End()
	if err == nil {
		err = failed
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
	if !o.NoNative {
		resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: resp.Fingerprint()}
	}
	return resp, rep, nil
}

func unix(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}

// groqUsage reads the usage that Groq puts into a member of its own.
func groqUsage(raw []byte) (u dragoman.Usage) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return u
	}
	for key := range r.Object() {
		if string(key) == "usage" {
			u = readUsage(r)
		} else {
			r.Skip()
		}
	}
	return u
}

// choice reads one candidate. The first is the response's output, the others
// are alternatives.
func (d *messageDecoder) choice(resp *dragoman.Response, raw []byte, i int) error {
	place := "/choices/" + strconv.Itoa(i)
	r := jsonwire.NewReader(raw)
	var (
		m              dragoman.Message
		index          = int64(i)
		finish, routed string
		ex             *dragoman.Extra
		msg            []byte
	)
	for key := range r.Object() {
		switch string(key) {
		case "index":
			index = r.Int()
		case "message":
			msg = r.Raw()
		case "finish_reason":
			if r.Kind() == '"' {
				finish = r.String()
			} else {
				extra.Add(&ex, name, place, key, r.Raw())
			}
		case "native_finish_reason":
			raw := r.Raw()
			routed, _ = looseText(raw)
			extra.Add(&ex, name, place, []byte("native_finish_reason"), raw)
		default:
			extra.Add(&ex, name, place, key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return placeAt("/choices", i, err)
	}
	if index < 0 || index >= maxChoices {
		rep := d.rep
		rep.Addf(dragoman.Renamed, dragoman.Info, place+"/index", "index %d read as %d", index, i)
	}
	var out []dragoman.Message
	var calls []*dragoman.ToolCall
	if msg != nil && string(msg) != "null" {
		var err error
		if m, err = d.message(msg, place+"/message", i); err != nil {
			return placeAt(place+"/message", i, err)
		}
		calls = m.ToolCalls()
		out = []dragoman.Message{m}
	}
	stop := settleStop(finish, routed, true, calls)
	if i == 0 {
		resp.Output, resp.Stop = out, stop
		if ex != nil {
			for _, f := range ex.Fields {
				addField(&resp.Extra, f)
			}
		}
		return nil
	}
	resp.Alternatives = append(resp.Alternatives, dragoman.Candidate{Index: i, Output: out, Stop: stop, Extra: ex})
	return nil
}

func addField(e **dragoman.Extra, f dragoman.Field) {
	if *e == nil {
		*e = &dragoman.Extra{Dialect: name}
	}
	(*e).Fields = append((*e).Fields, f)
}
