package anthropic

import (
	"bytes"
	"slices"

	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// wireEvent is the JSON of one event of a stream, read in one pass. One value
// serves for a whole stream: what it holds is valid until it reads again.
type wireEvent struct {
	r     jsonwire.Reader
	typ   []byte
	index int64
	// Members as they stand; nil where there is none.
	message, opening, change, usage []byte
	// Where in the event they begin.
	messageAt, openingAt, changeAt, usageAt int64

	strays  wirekit.Strays           // the names of unread
	unread  []blockwire.UnknownField // unknown fields that nobody collects
	rest    []member                 // of a message_delta
	failure bool                     // has an error to tell, whatever its type
	twice   string                   // a member that is there twice, or in letters of another case
	noBlock bool                     // content_block is no object

	// Of a content_block_delta.
	hasDelta bool
	kind     []byte
	delta    delta
	text     []byte // where that of a delta is unescaped
}

// leave takes note of an unknown field.
func (v *wireEvent) leave(place string, name, raw []byte) {
	if string(raw) == "null" {
		return
	}
	v.unread = append(v.unread, blockwire.UnknownField{Place: place, Name: string(name), Raw: raw})
	if place != "" {
		place += "/"
	}
	v.strays.Add(place, name)
}

// delta is the delta of a content block, whatever its kind.
type delta struct {
	text     string
	exact    bool   // the text is that of the kind, which was told before it
	whole    bool   // the text is that of a value where fragments of one belong
	mistyped string // a member that should bring text and is none
	member   string // that brought the text
	citation []byte
	members  []member
}

// The members of an event, of its parts and of the delta of a block that say what
// a block holds and what runs.
var (
	eventMembers = []string{"type", "index", "delta", "content_block", "message", "usage", "error"}
	deltaMembers = []string{"type", "text", "partial_json", "thinking", "signature", "citation"}
)

// read reads the data of an event; its type is the name of the event unless the
// data say more.
func (v *wireEvent) read(data, name []byte) error {
	if v.quickDelta(data) {
		return nil
	}
	return v.readAny(data, name)
}

// clear forgets the event before; the next one has a type until its data say more.
func (v *wireEvent) clear(typ []byte) {
	v.typ, v.index = append(v.typ[:0], typ...), 0
	v.message, v.opening, v.change, v.usage, v.rest = nil, nil, nil, nil, v.rest[:0]
	v.failure, v.hasDelta, v.twice, v.noBlock = false, false, "", false
	v.strays.Reset()
	v.unread = v.unread[:0]
}

// readAny is read for an event that may be written in any way.
func (v *wireEvent) readAny(data, name []byte) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	r := &v.r
	r.Reset(data)
	v.clear(name)
	typed := false
	var seen wirekit.Members
	for key := range r.Object() {
		again := v.again(&seen, eventMembers, key)
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
			v.change, v.changeAt = rawAt(r)
		case "message":
			v.message, v.messageAt = rawAt(r)
		case "content_block":
			if v.noBlock = r.Kind() != '{'; v.noBlock {
				r.Skip()
			} else {
				v.opening, v.openingAt = rawAt(r)
			}
		case "usage":
			v.usage, v.usageAt = rawAt(r)
		case "error":
			v.failure = string(r.Raw()) != "null" || v.failure
		default:
			raw := r.Raw()
			if again { // in other letters: it is not kept
				continue
			}
			if len(v.typ) == 0 || string(v.typ) == "message_delta" {
				v.rest = append(v.rest, member{name: string(key), raw: raw})
			} else {
				v.leave("", key, raw)
			}
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if string(v.typ) != "message_delta" { // the type came behind them
		for _, m := range v.rest {
			v.leave("", []byte(m.name), m.raw)
		}
	}
	if string(v.typ) != "content_block_delta" {
		return nil
	}
	if !v.hasDelta && v.change != nil { // it came before the type
		in := jsonwire.NewReader(v.change)
		v.readDelta(in)
		if err := in.Err(); err != nil {
			return jsonwire.PlaceAt("/delta", v.changeAt, err)
		}
	}
	v.settleText()
	v.inferKind()
	return nil
}

// rawAt reads a value as it stands, and where it does.
func rawAt(r *jsonwire.Reader) (raw []byte, at int64) {
	raw = r.Raw()
	return raw, r.Offset() - int64(len(raw))
}

// again takes the next key of an object and finds the known member that it says
// again, or in other letters, which many readers ignore: two readers could see
// two values.
func (v *wireEvent) again(seen *wirekit.Members, known []string, key []byte) bool {
	again := seen.Twice(known, key)
	if again {
		v.twice = string(key)
	}
	return again
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
	var seen wirekit.Members
	for key := range r.Object() {
		again := v.again(&seen, deltaMembers, key)
		switch string(key) { // no copy of the key: this runs for every fragment
		case "type":
			if r.Kind() == '"' {
				v.kind = r.AppendString(v.kind[:0])
			} else {
				r.Skip()
			}
		case "text", "partial_json", "thinking", "signature":
			if r.Kind() == 'n' {
				r.Skip()
			} else {
				v.readText(r, key)
			}
		case "citation":
			v.delta.citation = r.Raw()
		default:
			raw := r.Raw()
			if again || string(raw) == "null" && knownDelta(v.kind) {
				continue
			}
			if knownDelta(v.kind) {
				v.leave("/delta", key, raw)
			} else {
				m := member{name: string(key), raw: bytes.Clone(raw)}
				if len(raw) > 0 && raw[0] == '"' {
					m.text, m.isText = []byte(jsonwire.Unquote(raw)), true
				}
				v.delta.members = append(v.delta.members, m)
			}
		}
	}
}

// readText reads a member of a delta that brings text. Arguments that are no text
// are a whole value, read by its text (quirks B1, C7); nothing else is read for
// what it is not.
func (v *wireEvent) readText(r *jsonwire.Reader, key []byte) {
	known := knownDelta(v.kind)
	if known && !brings(v.kind, key) { // who goes by the member reads it, who goes by the type does not
		v.twice = string(key)
		r.Skip()
		return
	}
	if r.Kind() != '"' {
		v.readMistyped(r, key, known)
		return
	}
	s := r.String()
	v.delta.text, v.delta.exact = s, known
	if !known {
		v.delta.member = string(key)
		v.delta.members = append(v.delta.members, member{name: v.delta.member, text: []byte(s), isText: true})
	}
}

// readMistyped is readText for what is no string.
func (v *wireEvent) readMistyped(r *jsonwire.Reader, key []byte, known bool) {
	v.delta.mistyped = string(key)
	raw := r.Raw()
	if v.delta.mistyped != "partial_json" {
		return
	}
	v.delta.text, v.delta.exact, v.delta.whole = string(raw), known, true
	if !known {
		v.delta.member = "partial_json"
		v.delta.members = append(v.delta.members, member{name: "partial_json", raw: bytes.Clone(raw)})
	}
}

// settleText makes the text of a delta the one that its kind brings, where the
// kind was told behind it.
func (v *wireEvent) settleText() {
	if len(v.delta.members) == 0 || !knownDelta(v.kind) {
		return
	}
	if !v.delta.exact {
		v.delta.text = ""
	}
	for _, m := range v.delta.members {
		switch {
		case brings(v.kind, []byte(m.name)):
			if !v.delta.exact {
				v.delta.text = string(m.text) + string(m.raw) // it has one of them
			}
		case slices.Contains(deltaMembers, m.name):
			v.twice = m.name
		default:
			v.leave("/delta", []byte(m.name), m.value())
		}
	}
}

// brings reports whether a delta of a known kind brings its text in a member.
func brings(kind, member []byte) bool {
	switch string(kind) {
	case "text_delta":
		return string(member) == "text"
	case "input_json_delta":
		return string(member) == "partial_json"
	case "thinking_delta":
		return string(member) == "thinking"
	case "signature_delta":
		return string(member) == "signature"
	default:
		return false
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
