package bedrock

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The types of event.
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

// deltaKind says what a delta brings.
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

// wireEvent is the payload of one event of a stream, read in one pass. One
// value serves for a whole stream: what it holds is valid until it reads again.
type wireEvent struct {
	r        jsonwire.Reader
	typ      []byte
	index    int64
	hasIndex bool
	opening  []byte // start, as it stands
	noBlock  bool   // start is no object
	twice    string // a member that is there twice, or in two spellings
	word     string // stopReason
	usage    []byte
	rest     []member // further members of the response
	strays   wirekit.Strays
	unread   []blockwire.UnknownField // that are not collected

	// Of a contentBlockDelta.
	kind deltaKind
	text string
	// whole: the text is that of a value where a fragment of one belongs.
	whole bool
	raw   []byte // a citation, a result's blocks, an image's source
	name  string // of a member of the delta that we do not know
}

// leave takes note of the unknown field that r is at.
func (v *wireEvent) leave(place string, key []byte, r *jsonwire.Reader) {
	name := string(key)
	if raw := r.Raw(); string(raw) != "null" {
		v.unread = append(v.unread, blockwire.UnknownField{Place: place, Name: name, Raw: raw})
	}
}

// member is a member of an object as it stands.
type member struct {
	name string
	raw  []byte
}

// The members that decide what runs, as the wire spells them.
var (
	eventMembers    = []string{"contentBlockIndex", "start", "delta", "stopReason", "role", "usage"}
	deltaMembers    = []string{"text", "toolUse", "reasoningContent", "citation", "toolResult", "image"}
	inputMembers    = []string{"input"}
	thinkingMembers = []string{"text", "signature", "redactedContent", "reasoningText"}
)

// once takes note of a member and finds the one that comes again, or in other
// letters, which many readers ignore: two readers could see two values.
func (v *wireEvent) once(known []string, seen *uint, key []byte) (again bool) {
	for i, k := range known {
		if string(key) == k {
			if *seen&(1<<i) != 0 {
				v.twice, again = k, true
			}
			*seen |= 1 << i
			return again
		}
	}
	for _, k := range known {
		if bytes.EqualFold(key, []byte(k)) {
			v.twice, again = k, true
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
	v.index, v.hasIndex, v.opening, v.twice, v.word, v.usage, v.rest = 0, false, nil, "", "", nil, v.rest[:0]
	v.strays.Reset()
	v.unread = v.unread[:0]
	v.kind, v.text, v.raw, v.name, v.whole, v.noBlock = deltaNone, "", nil, "", false, false
	var seen uint
	for key := range r.Object() {
		again := v.once(eventMembers, &seen, key)
		switch string(key) { // no copy of the key: this runs for every fragment
		case "p", "role": // padding, and what is always the assistant
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
				v.noBlock = r.Kind() != 'n'
				r.Skip()
			}
		case "stopReason":
			v.word = r.String()
		case "usage":
			if r.Kind() == '{' {
				v.usage = r.Raw()
			} else {
				r.Skip()
			}
		default:
			if again { // in other letters: it is not kept
				r.Skip()
				continue
			}
			if !v.ofAnswer() {
				if r.Kind() != 'n' {
					v.strays.Add("", key)
				}
				v.leave("", key, r)
				continue
			}
			k := string(key)
			v.rest = append(v.rest, member{name: k, raw: r.Raw()})
		}
	}
	return r.End()
}

// ofAnswer reports whether the members of the event are the answer's.
func (v *wireEvent) ofAnswer() bool {
	switch string(v.typ) {
	case eventBlockStart, eventDelta, eventBlockStop:
		return false
	default:
		return true
	}
}

// readDelta reads a delta, which holds one thing. One that holds a fragment of
// a call beside another is read as the fragment, and as one that is not clear.
// A member that nobody knows makes nothing unclear, nor does null (quirk C8).
func (v *wireEvent) readDelta(r *jsonwire.Reader) {
	if r.Null() {
		return
	}
	var seen uint
	for key := range r.Object() {
		again := v.once(deltaMembers, &seen, key)
		kind := deltaOf(key)
		switch {
		case kind == deltaNone && !again:
			v.stray("/delta", key, r)
			continue
		case kind == deltaNone, r.Kind() == 'n':
			r.Skip()
			continue
		case v.kind != deltaNone:
			v.twice = "delta"
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

// deltaOf is what a member of a delta brings; none for one that we do not know.
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

// stray takes note of an unknown field of a delta.
func (v *wireEvent) stray(place string, key []byte, r *jsonwire.Reader) {
	if v.name == "" {
		v.name = string(key)
	}
	v.leave(place, key, r)
}

// readInput reads a fragment of a call's arguments. One that is no string, as
// some servers send it, is a whole value (quirks B1, C7).
func (v *wireEvent) readInput(r *jsonwire.Reader) {
	var seen uint
	for key := range r.Object() {
		again := v.once(inputMembers, &seen, key)
		switch {
		case string(key) != "input" && !again:
			v.stray("/delta/"+keyCall, key, r)
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
		again := v.once(thinkingMembers, &seen, key)
		switch string(key) {
		case "text":
			v.kind, v.text = deltaThinking, r.String()
		case "signature":
			v.kind, v.text = deltaSignature, r.String()
		case "redactedContent":
			v.kind, v.text = deltaRedacted, r.String()
		case "reasoningText": // whole, as in a response
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) == "text" {
					v.kind, v.text = deltaThinking, r.String()
				} else {
					v.stray("/delta/"+keyReasoning, key, r)
				}
			}
		default:
			if again {
				r.Skip()
			} else {
				v.stray("/delta/"+keyReasoning, key, r)
			}
		}
	}
}
