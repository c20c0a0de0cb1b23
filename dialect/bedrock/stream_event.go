package bedrock

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The event types.
const (
	eventStart      = "messageStart"
	eventBlockStart = "contentBlockStart"
	eventDelta      = "contentBlockDelta"
	eventBlockStop  = "contentBlockStop"
	eventStop       = "messageStop"
	eventMetadata   = "metadata"
)

func knownEvent(typ []byte) bool {
	switch string(typ) {
	case eventStart, eventBlockStart, eventDelta, eventBlockStop, eventStop, eventMetadata, "initial-response":
		return true
	default:
		return false
	}
}

// deltaKind is the kind of a delta.
type deltaKind int

const (
	deltaNone deltaKind = iota
	deltaText
	deltaInput
	deltaThinking
	deltaSignature
	deltaRedacted
	deltaCitation
	deltaResult
	deltaImage
)

// wireEvent is the payload of one stream event, read in one pass. One value is
// reused for the whole stream; its contents are valid until the next read.
type wireEvent struct {
	r             jsonwire.Reader
	typ           []byte
	index         int64
	hasIndex      bool
	opening       []byte // raw start
	badStart      bool   // start is not an object
	duplicate     string // a duplicate field
	stopReason    string
	usage         []byte
	otherFields   []rawField // other fields of the response
	unknownFields wirekit.UnknownKeys
	unread        []blockwire.UnknownField // unknown fields that are not stored

	// Fields of a contentBlockDelta.
	kind deltaKind
	text string
	// whole reports that text is a complete value instead of a fragment.
	whole bool
	raw   []byte // a citation, the blocks of a result, or the source of an image
	name  string // an unknown field of the delta
}

// addUnread records the unknown field at r.
func (v *wireEvent) addUnread(place string, key []byte, r *jsonwire.Reader) {
	name := string(key)
	if raw := r.Raw(); string(raw) != "null" {
		v.unread = append(v.unread, blockwire.UnknownField{Place: place, Name: name, Raw: raw})
	}
}

// rawField is a raw field of an object.
type rawField struct {
	name string
	raw  []byte
}

// The fields that decide what runs, in wire spelling.
var (
	eventFields    = []string{"contentBlockIndex", "start", "delta", "stopReason", "role", "usage"}
	deltaFields    = []string{"text", "toolUse", "reasoningContent", "citation", "toolResult", "image"}
	inputFields    = []string{"input"}
	thinkingFields = []string{"text", "signature", "redactedContent", "reasoningText"}
)

// checkDuplicate records a field. It reports whether the field occurs again or in another
// letter case, which many readers ignore: two readers could see different
// values.
func (v *wireEvent) checkDuplicate(known []string, seen *uint, key []byte) (again bool) {
	for i, k := range known {
		if string(key) == k {
			if *seen&(1<<i) != 0 {
				v.duplicate, again = k, true
			}
			*seen |= 1 << i
			return again
		}
	}
	for _, k := range known {
		if bytes.EqualFold(key, []byte(k)) {
			v.duplicate, again = k, true
		}
	}
	return again
}

// read reads the payload of an event of the given type.
func (v *wireEvent) read(payload, typ []byte) error {
	if err := wirekit.CheckValues(payload); err != nil {
		return err
	}
	r := &v.r
	r.Reset(payload)
	v.typ = append(v.typ[:0], typ...)
	v.index, v.hasIndex, v.opening, v.duplicate, v.stopReason, v.usage, v.otherFields = 0, false, nil, "", "", nil, v.otherFields[:0]
	v.unknownFields.Reset()
	v.unread = v.unread[:0]
	v.kind, v.text, v.raw, v.name, v.whole, v.badStart = deltaNone, "", nil, "", false, false
	var seen uint
	for key := range r.Object() {
		again := v.checkDuplicate(eventFields, &seen, key)
		switch string(key) { // no copy of the key, because this runs for every fragment
		case "p", "role": // padding, and the role, which is always assistant
			r.Skip()
		case "contentBlockIndex":
			v.hasIndex = r.Kind() != 'n'
			v.index = r.Int()
		case "delta":
			v.readDelta(r)
		case "start":
			if r.Kind() == '{' {
				v.opening = r.Raw()
			} else {
				v.badStart = r.Kind() != 'n'
				r.Skip()
			}
		case "stopReason":
			v.stopReason = r.String()
		case "usage":
			if r.Kind() == '{' {
				v.usage = r.Raw()
			} else {
				r.Skip()
			}
		default:
			if again { // another letter case: not stored
				r.Skip()
				continue
			}
			if !v.ofResponse() {
				if r.Kind() != 'n' {
					v.unknownFields.Add("", key)
				}
				v.addUnread("", key, r)
				continue
			}
			k := string(key)
			v.otherFields = append(v.otherFields, rawField{name: k, raw: r.Raw()})
		}
	}
	return r.End()
}

// ofResponse reports whether the fields of the event belong to the response.
func (v *wireEvent) ofResponse() bool {
	switch string(v.typ) {
	case eventBlockStart, eventDelta, eventBlockStop:
		return false
	default:
		return true
	}
}

// readDelta reads a delta, which should hold one field. A delta that holds a
// fragment of a call and another known field is read as the fragment and marked
// ambiguous. Unknown fields and null do not make it ambiguous (quirk C8).
func (v *wireEvent) readDelta(r *jsonwire.Reader) {
	if r.Null() {
		return
	}
	var seen uint
	for key := range r.Object() {
		again := v.checkDuplicate(deltaFields, &seen, key)
		kind := deltaOf(key)
		switch {
		case kind == deltaNone && !again:
			v.addUnknown("/delta", key, r)
			continue
		case kind == deltaNone, r.Kind() == 'n':
			r.Skip()
			continue
		case v.kind != deltaNone:
			v.duplicate = "delta"
		}
		if v.kind == deltaInput {
			r.Skip()
			continue
		}
		v.kind, v.text, v.raw = kind, "", nil
		switch kind {
		case deltaText:
			v.text = r.String()
		case deltaInput:
			v.readInput(r)
		case deltaThinking:
			v.readThinking(r)
		default:
			v.raw = r.Raw()
		}
	}
}

// deltaOf returns the kind of a delta field; deltaNone if it is unknown.
func deltaOf(key []byte) deltaKind {
	switch string(key) {
	case "text":
		return deltaText
	case "toolUse":
		return deltaInput
	case "reasoningContent":
		return deltaThinking
	case "citation":
		return deltaCitation
	case "toolResult":
		return deltaResult
	case "image":
		return deltaImage
	default:
		return deltaNone
	}
}

// addUnknown records an unknown field of a delta.
func (v *wireEvent) addUnknown(place string, key []byte, r *jsonwire.Reader) {
	if v.name == "" {
		v.name = string(key)
	}
	v.addUnread(place, key, r)
}

// readInput reads a fragment of a call's arguments. If it is not a string, as
// some servers send it, it is a complete value (quirks B1, C7).
func (v *wireEvent) readInput(r *jsonwire.Reader) {
	var seen uint
	for key := range r.Object() {
		again := v.checkDuplicate(inputFields, &seen, key)
		switch {
		case string(key) != "input" && !again:
			v.addUnknown("/delta/"+keyCall, key, r)
		case string(key) != "input":
			r.Skip()
		case r.Kind() == 'n':
			r.Skip()
		case r.Kind() == '"':
			v.text = r.String()
		default:
			v.text, v.whole = string(r.Raw()), true
		}
	}
}

func (v *wireEvent) readThinking(r *jsonwire.Reader) {
	var seen uint
	for key := range r.Object() {
		again := v.checkDuplicate(thinkingFields, &seen, key)
		switch string(key) {
		case "text":
			v.kind, v.text = deltaThinking, r.String()
		case "signature":
			v.kind, v.text = deltaSignature, r.String()
		case "redactedContent":
			v.kind, v.text = deltaRedacted, r.String()
		case "reasoningText": // complete, as in a response
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) == "text" {
					v.kind, v.text = deltaThinking, r.String()
				} else {
					v.addUnknown("/delta/"+keyReasoning, key, r)
				}
			}
		default:
			if again {
				r.Skip()
			} else {
				v.addUnknown("/delta/"+keyReasoning, key, r)
			}
		}
	}
}
