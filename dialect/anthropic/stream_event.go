package anthropic

import (
	"bytes"
	"slices"

	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// wireEvent is the JSON of one stream event, read in one pass. One value is
// reused for the whole stream; its contents are valid until the next read.
type wireEvent struct {
	r     jsonwire.Reader
	typ   []byte
	index int64
	// Raw fields; nil if absent.
	message, opening, change, usage []byte
	// Their offsets in the event.
	messageAt, openingAt, changeAt, usageAt int64

	unknownFields wirekit.UnknownKeys      // the names of unread
	unread        []blockwire.UnknownField // unknown fields that no part stores
	otherFields   []field                  // other fields of a message_delta
	failure       bool                     // has an error field, whatever its type
	duplicate     string                   // a duplicate field
	badStart      bool                     // content_block is not an object

	// Fields of a content_block_delta.
	hasDelta bool
	kind     []byte
	delta    delta
	text     []byte // buffer for unescaping the text of a delta
}

// addUnread records an unknown field.
func (v *wireEvent) addUnread(place string, name, raw []byte) {
	if string(raw) == "null" {
		return
	}
	v.unread = append(v.unread, blockwire.UnknownField{Place: place, Name: string(name), Raw: raw})
	if place != "" {
		place += "/"
	}
	v.unknownFields.Add(place, name)
}

// delta is the delta of a content block of any kind.
type delta struct {
	text      string
	exact     bool   // the type preceded the text, and the field matches it
	whole     bool   // the text is a complete value instead of a fragment
	mistyped  string // a text field that is not a string
	textField string // the field that held the text
	citation  []byte
	fields    []field
}

// The fields of an event, of its objects and of a block delta that decide what
// a block holds and what runs.
var (
	eventFields = []string{"type", "index", "delta", "content_block", "message", "usage", "error"}
	deltaFields = []string{"type", "text", "partial_json", "thinking", "signature", "citation"}
)

// read reads the data of an event. name is its type unless the data have one.
func (v *wireEvent) read(data, name []byte) error {
	if v.quickDelta(data) {
		return nil
	}
	return v.readAny(data, name)
}

// clear resets v. typ is the type of the next event unless its data have one.
func (v *wireEvent) clear(typ []byte) {
	v.typ, v.index = append(v.typ[:0], typ...), 0
	v.message, v.opening, v.change, v.usage, v.otherFields = nil, nil, nil, nil, v.otherFields[:0]
	v.failure, v.hasDelta, v.duplicate, v.badStart = false, false, "", false
	v.unknownFields.Reset()
	v.unread = v.unread[:0]
}

// readAny reads an event in any JSON form.
func (v *wireEvent) readAny(data, name []byte) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	r := &v.r
	r.Reset(data)
	v.clear(name)
	typed := false
	var seen wirekit.KnownFields
	for key := range r.Object() {
		again := v.checkDuplicate(&seen, eventFields, key)
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
			if v.badStart = r.Kind() != '{'; v.badStart {
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
			if again { // another letter case: not stored
				continue
			}
			if len(v.typ) == 0 || string(v.typ) == "message_delta" {
				v.otherFields = append(v.otherFields, field{name: string(key), raw: raw})
			} else {
				v.addUnread("", key, raw)
			}
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if string(v.typ) != "message_delta" { // the type followed them
		for _, m := range v.otherFields {
			v.addUnread("", []byte(m.name), m.raw)
		}
	}
	if string(v.typ) != "content_block_delta" {
		return nil
	}
	if !v.hasDelta && v.change != nil { // it preceded the type
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

// rawAt reads a raw value and its offset.
func rawAt(r *jsonwire.Reader) (raw []byte, at int64) {
	raw = r.Raw()
	return raw, r.Offset() - int64(len(raw))
}

// checkDuplicate records the next key of an object. It reports whether the key repeats a
// known field, or is another letter case of one, which many readers ignore: two
// readers could see different values.
func (v *wireEvent) checkDuplicate(seen *wirekit.KnownFields, known []string, key []byte) bool {
	again := seen.IsRepeated(known, key)
	if again {
		v.duplicate = string(key)
	}
	return again
}

// readIndex reads a small number without copying its text.
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
	v.delta = delta{fields: v.delta.fields[:0]}
	var seen wirekit.KnownFields
	for key := range r.Object() {
		again := v.checkDuplicate(&seen, deltaFields, key)
		switch string(key) { // no copy of the key, because this runs for every fragment
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
				v.addUnread("/delta", key, raw)
			} else {
				m := field{name: string(key), raw: bytes.Clone(raw)}
				if len(raw) > 0 && raw[0] == '"' {
					m.text, m.isText = []byte(jsonwire.Unquote(raw)), true
				}
				v.delta.fields = append(v.delta.fields, m)
			}
		}
	}
}

// readText reads a text field of a delta. Arguments that are not a string are a
// complete value, used as JSON text (quirks B1, C7). Other fields of the wrong
// type are ignored.
func (v *wireEvent) readText(r *jsonwire.Reader, key []byte) {
	known := knownDelta(v.kind)
	if known && !isTextField(v.kind, key) { // some readers use the field, others the type
		v.duplicate = string(key)
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
		v.delta.textField = string(key)
		v.delta.fields = append(v.delta.fields, field{name: v.delta.textField, text: []byte(s), isText: true})
	}
}

// readMistyped reads a text field that is not a string.
func (v *wireEvent) readMistyped(r *jsonwire.Reader, key []byte, known bool) {
	v.delta.mistyped = string(key)
	raw := r.Raw()
	if v.delta.mistyped != "partial_json" {
		return
	}
	v.delta.text, v.delta.exact, v.delta.whole = string(raw), known, true
	if !known {
		v.delta.textField = "partial_json"
		v.delta.fields = append(v.delta.fields, field{name: "partial_json", raw: bytes.Clone(raw)})
	}
}

// settleText selects the text that belongs to the kind of the delta, if the
// kind followed it.
func (v *wireEvent) settleText() {
	if len(v.delta.fields) == 0 || !knownDelta(v.kind) {
		return
	}
	if !v.delta.exact {
		v.delta.text = ""
	}
	for _, m := range v.delta.fields {
		switch {
		case isTextField(v.kind, []byte(m.name)):
			if !v.delta.exact {
				v.delta.text = string(m.text) + string(m.raw) // only one of the two is set
			}
		case slices.Contains(deltaFields, m.name):
			v.duplicate = m.name
		default:
			v.addUnread("/delta", []byte(m.name), m.value())
		}
	}
}

// isTextField reports whether a delta of a known kind has its text in a field.
func isTextField(kind, name []byte) bool {
	switch string(kind) {
	case "text_delta":
		return string(name) == "text"
	case "input_json_delta":
		return string(name) == "partial_json"
	case "thinking_delta":
		return string(name) == "thinking"
	case "signature_delta":
		return string(name) == "signature"
	default:
		return false
	}
}

// inferKind derives the kind of a delta without a type from its only field.
func (v *wireEvent) inferKind() {
	if len(v.kind) > 0 || len(v.delta.fields) > 1 {
		return
	}
	switch v.delta.textField {
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
