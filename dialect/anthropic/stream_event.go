package anthropic

import (
	"bytes"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// wireEvent is the JSON of one event of a stream, read in one pass. One value
// serves for a whole stream: what it holds is valid until it reads again.
type wireEvent struct {
	r     jsonwire.Reader
	typ   []byte
	index int64
	// Members as they stand; nil where there is none.
	message, opening, change, usage []byte
	rest                            []member // of a message_delta
	failure                         bool     // has an error to tell, whatever its type
	twice                           string   // a member that is there twice
	noBlock                         bool     // content_block is no object

	// Of a content_block_delta.
	hasDelta bool
	kind     []byte
	delta    delta
}

// delta is the delta of a content block, whatever its kind.
type delta struct {
	text     string
	member   string // that brought the text
	citation []byte
	members  []member
}

// read reads the data of an event; its type is the name of the event unless the
// data say more.
func (v *wireEvent) read(data, name []byte) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	r := &v.r
	r.Reset(data)
	v.typ, v.index = append(v.typ[:0], name...), 0
	v.message, v.opening, v.change, v.usage, v.rest = nil, nil, nil, nil, v.rest[:0]
	v.failure, v.hasDelta, v.twice, v.noBlock = false, false, "", false
	typed := false
	seen := 0
	for key := range r.Object() {
		v.once(&seen, key)
		switch string(key) {
		case "type":
			if r.Kind() == '"' && !typed {
				v.typ, typed = r.AppendString(v.typ[:0]), true
			} else {
				r.Skip()
			}
		case "index":
			v.index = readIndex(r)
		case "delta":
			if string(v.typ) == "content_block_delta" && !v.hasDelta {
				v.readDelta(r)
				continue
			}
			v.change = r.Raw()
		case "message":
			v.message = r.Raw()
		case "content_block":
			if v.noBlock = r.Kind() != '{'; v.noBlock {
				r.Skip()
			} else {
				v.opening = r.Raw()
			}
		case "usage":
			v.usage = r.Raw()
		case "error":
			v.failure = string(r.Raw()) != "null" || v.failure
		default:
			raw := r.Raw()
			if len(v.typ) == 0 || string(v.typ) == "message_delta" {
				v.rest = append(v.rest, member{name: string(key), raw: raw})
			}
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if string(v.typ) != "content_block_delta" {
		return nil
	}
	if !v.hasDelta && v.change != nil { // it came before the type
		in := jsonwire.NewReader(v.change)
		v.readDelta(in)
		if err := in.Err(); err != nil {
			return placeAt("/delta", -1, err)
		}
	}
	v.inferKind()
	return nil
}

// once takes note of a member that says what a block holds, and finds the one
// that comes again: two readers could see two values.
func (v *wireEvent) once(seen *int, key []byte) {
	bit := 0
	switch string(key) { // no copy of the key: this runs for every fragment
	case "type":
		bit = 1
	case "index":
		bit = 2
	case "delta", "text":
		bit = 4
	case "content_block", "partial_json":
		bit = 8
	case "message", "thinking":
		bit = 16
	case "error", "signature":
		bit = 32
	}
	if *seen&bit != 0 {
		v.twice = string(key)
	}
	*seen |= bit
}

// readIndex reads a small number without a copy of its text.
func readIndex(r *jsonwire.Reader) int64 {
	if r.Kind() != '0' {
		return r.Int()
	}
	raw := r.Raw()
	n := int64(0)
	for _, c := range raw {
		if c < '0' || c > '9' || len(raw) > 18 {
			return jsonwire.NewReader(raw).Int()
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// readDelta reads the delta of a block in one pass, before its kind is known.
func (v *wireEvent) readDelta(r *jsonwire.Reader) {
	v.hasDelta, v.kind = true, v.kind[:0]
	v.delta = delta{members: v.delta.members[:0]}
	seen := 0
	for key := range r.Object() {
		v.once(&seen, key)
		switch string(key) { // no copy of the key: this runs for every fragment
		case "type":
			if r.Kind() == '"' {
				v.kind = r.AppendString(v.kind[:0])
			} else {
				r.Skip()
			}
		case "text", "partial_json", "thinking", "signature":
			if r.Kind() == '"' {
				var k string
				if !knownDelta(v.kind) {
					k = string(key)
				}
				s := r.String()
				v.delta.text = s
				if k != "" {
					v.delta.member = k
					v.delta.members = append(v.delta.members, member{name: k, text: []byte(s), isText: true})
				}
				continue
			}
			r.Skip()
		case "citation":
			v.delta.citation = r.Raw()
		default:
			if strings.EqualFold(string(key), "partial_json") { // many readers ignore case
				v.twice = "partial_json"
			}
			raw := r.Raw()
			if !knownDelta(v.kind) {
				m := member{name: string(key), raw: bytes.Clone(raw)}
				if len(raw) > 0 && raw[0] == '"' {
					m.text, m.isText = []byte(unquote(raw)), true
				}
				v.delta.members = append(v.delta.members, m)
			}
		}
	}
}

// inferKind names a delta that came without a type by the member it has.
func (v *wireEvent) inferKind() {
	if len(v.kind) > 0 || len(v.delta.members) > 1 {
		return
	}
	switch v.delta.member {
	case "text":
		v.kind = append(v.kind, "text_delta"...)
	case "thinking":
		v.kind = append(v.kind, "thinking_delta"...)
	case "signature":
		v.kind = append(v.kind, "signature_delta"...)
	case "partial_json":
		v.kind = append(v.kind, "input_json_delta"...)
	}
}

func knownEvent(typ []byte) bool {
	switch string(typ) {
	case "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error":
		return true
	default:
		return false
	}
}

func knownDelta(kind []byte) bool {
	switch string(kind) {
	case "text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta":
		return true
	default:
		return false
	}
}
