package anthropic

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// DecodeResponse implements [dialect.Codec]. The response keeps slices of
// body, which must not change afterwards. What was decoded before an error is
// returned with it.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	d := newBlockDecoder(c, o)
	a := answer{decoder: &d, keep: func(b []byte) []byte { return b }}
	a.resp.Origin = d.origin
	if err := wirekit.CheckSize(name, "response", body, o); err != nil {
		return &a.resp, *d.rep, err
	}
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' && r.Err() == nil {
		return &a.resp, *d.rep, wirekit.DecodeError(name, "response", errNotObject)
	}
	content := a.read(r)
	err := r.End()
	a.finish(content, true)
	if err != nil {
		return &a.resp, *d.rep, wirekit.DecodeError(name, "response", err)
	}
	if a.failed {
		a.resp.Error = Codec{}.DecodeError(0, nil, body)
		a.resp.Stop = dragoman.Stop{Reason: dragoman.StopError}
	}
	if !o.NoNative {
		a.resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: a.resp.Fingerprint()}
	}
	return &a.resp, *d.rep, nil
}

// answer is a message object being read: the body of a response, or what a
// stream says of it at its start and end.
type answer struct {
	decoder *blockDecoder
	// keep copies what outlives the document.
	keep func([]byte) []byte
	resp dragoman.Response

	word     string // stop_reason
	sequence string
	details  *dragoman.Native
	counters counters
	failed   bool // an error envelope instead of a message
}

// read reads a message object and returns its content, unread.
func (a *answer) read(r *jsonwire.Reader) (content []byte) {
	for key := range r.Object() {
		switch k := string(key); k {
		case "id":
			a.resp.ID = r.String()
		case "model":
			a.resp.Model = r.String()
		case "type":
			a.failed = text(r) == "error"
		case "role":
			r.Skip()
		case "content":
			content = r.Raw()
		case "usage":
			a.counters.read(r, a.keep)
		case "stop_reason", "stop_sequence", "stop_details":
			a.stop(r, k)
		default:
			extra.Add(&a.resp.Extra, name, "", key, a.keep(r.Raw()))
		}
	}
	a.resp.ServiceTier = a.counters.tier
	return content
}

// stop reads one of the members that say why a message ended. Null says
// nothing and erases nothing.
func (a *answer) stop(r *jsonwire.Reader, key string) {
	if r.Kind() == 'n' {
		raw := r.Raw()
		if key == "stop_details" && a.details == nil {
			extra.Add(&a.resp.Extra, name, "", []byte(key), a.keep(raw))
		}
		return
	}
	switch key {
	case "stop_reason":
		a.word = r.String()
	case "stop_sequence":
		a.sequence = r.String()
	case "stop_details":
		first := a.details == nil // a null may have been kept before
		a.details = &dragoman.Native{Format: formatDetails, JSON: a.keep(r.Raw())}
		if first && a.resp.Extra != nil {
			a.resp.Extra.Fields = slices.DeleteFunc(a.resp.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/stop_details" })
			if len(a.resp.Extra.Fields) == 0 {
				a.resp.Extra = nil
			}
		}
	}
}

// finish settles the content, the stop and the usage of a whole message.
func (a *answer) finish(content []byte, terminal bool) {
	d := a.decoder
	parts, changed := d.settleDuplicates(d.content(content))
	var calls []*dragoman.ToolCall
	for _, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	a.resp.Stop = a.settledStop(terminal, calls)
	a.resp.Usage = a.counters.usage()
	if len(parts) == 0 {
		return
	}
	m := dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts, Origin: d.origin}
	if !d.o.NoNative && !changed && content[0] == '[' {
		// What goes back is the message a request holds, not the response.
		raw := make([]byte, 0, len(content)+32)
		raw = append(raw, `{"role":"assistant","content":`...)
		raw = append(append(raw, content...), '}')
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	a.resp.Output = []dragoman.Message{m}
}

func (a *answer) settledStop(terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	return dragoman.Stop{
		Reason: settleStop(a.word, terminal, calls),
		Native: a.word, Sequence: a.sequence, Details: a.details,
	}
}

// content reads the blocks of a response. Text instead of blocks is taken as
// one; anything else has none.
func (d *blockDecoder) content(raw []byte) []dragoman.Part {
	if len(raw) == 0 {
		return nil
	}
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case '"':
		if s := r.String(); s != "" {
			return []dragoman.Part{&dragoman.Text{Text: s}}
		}
		return nil
	case '[':
		var parts []dragoman.Part
		for i := range r.Array() {
			block := r.Raw()
			if r.Err() != nil {
				break
			}
			if string(block) != "null" {
				parts = append(parts, d.block(block, extra.Elem("/content", i), i))
			}
		}
		return parts
	default:
		return nil
	}
}
