package cohere

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The event types.
const (
	eventStart     = "message-start"
	eventContent   = "content-start"
	eventText      = "content-delta"
	eventTextEnd   = "content-end"
	eventPlan      = "tool-plan-delta"
	eventCall      = "tool-call-start"
	eventArguments = "tool-call-delta"
	eventCallEnd   = "tool-call-end"
	eventCitation  = "citation-start"
	eventCited     = "citation-end"
	eventEnd       = "message-end"
)

// streamEvent is one event of a stream. One value is reused for the whole
// stream; its slices are valid until the next read.
type streamEvent struct {
	r     jsonwire.Reader
	typ   string
	id    string
	index int64

	content      block
	plan         string
	call         []byte // the raw tool_calls object
	callAt       int64
	arguments    string
	whole        bool   // arguments is a complete JSON value instead of a fragment
	citation     []byte // the raw citations object
	nonEmptyList string // a list of message-start that is not empty

	finish    string
	usage     []byte
	usageAt   int64
	failure   string // the error of message-end
	failed    bool
	message   bool   // the event has a message string, so it is an error
	duplicate string // a duplicate field
	mistyped  string // a field that should be a string but is not

	unknownFields wirekit.UnknownKeys
	unread        []unknownField
}

// block is a content block, or a fragment of one.
type block struct {
	typ, text string
	found     bool
}

// unknownField is an unknown field of an event, below place.
type unknownField struct {
	place string
	name  []byte
	raw   []byte
}

// The known fields of an event and of its objects.
var (
	eventFields    = []string{"type", "id", "index", "delta", "message"}
	deltaFields    = []string{"message", "finish_reason", "usage", "error"}
	messageFields  = []string{"role", "content", "tool_plan", "tool_calls", "citations"}
	contentFields  = []string{"type", "text", "thinking"}
	fragmentFields = []string{"function"}
)

// clear resets v for the next event.
func (v *streamEvent) clear(typ []byte) {
	*v = streamEvent{r: v.r, typ: string(typ), unknownFields: v.unknownFields, unread: v.unread[:0]}
	v.unknownFields.Reset()
}

// addUnread stores an unknown field.
func (v *streamEvent) addUnread(place string, key, raw []byte) {
	if string(raw) == "null" || v.duplicate == string(key) {
		return
	}
	v.unread = append(v.unread, unknownField{place, bytes.Clone(key), raw})
	if place != "" {
		place += "/"
	}
	v.unknownFields.Add(place, key)
}

// checkDuplicate records the next key of an object, and notes a known field that occurs
// twice.
func (v *streamEvent) checkDuplicate(seen *wirekit.KnownFields, known []string, key []byte) {
	if seen.IsRepeated(known, key) {
		v.duplicate = string(key)
	}
}

// read reads the data of an event. Its type is the name of the event, unless
// the data has one.
func (v *streamEvent) read(data, eventName []byte) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	v.clear(eventName)
	typ := typeOf(data, v.typ)
	r := &v.r
	r.Reset(data)
	if r.Kind() != '{' && r.Err() == nil {
		return &jsonwire.Error{Err: wirekit.ErrNotObject}
	}
	v.typ = typ
	var seen wirekit.KnownFields
	for key := range r.Object() {
		v.checkDuplicate(&seen, eventFields, key)
		switch string(key) {
		case "type":
			r.Skip()
		case "id":
			if r.Kind() == '"' {
				v.id = r.String()
			} else {
				r.Skip()
			}
		case "index":
			v.index = r.Int()
		case "delta":
			v.delta()
		case "message":
			v.message = r.Kind() == '"' || v.message
			r.Skip()
		default:
			raw := r.Raw()
			v.addUnread("", key, raw)
		}
	}
	return r.End()
}

// typeOf returns the type of an event. Some servers sort the fields, so that
// the type is last.
func typeOf(data []byte, typ string) string {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return typ
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			return r.StringOneOf(eventText, eventArguments, eventPlan, eventStart, eventContent, eventTextEnd, eventCall, eventCallEnd, eventCitation, eventCited, eventEnd)
		}
		r.Skip()
	}
	return typ
}

func (v *streamEvent) expectObject() bool {
	if v.r.Kind() == '{' {
		return true
	}
	v.r.Skip()
	return false
}

func (v *streamEvent) delta() {
	if !v.expectObject() {
		return
	}
	r := &v.r
	var seen wirekit.KnownFields
	for key := range r.Object() {
		v.checkDuplicate(&seen, deltaFields, key)
		switch string(key) {
		case "message":
			v.deltaMessage()
		case "finish_reason":
			if r.Kind() == 'n' {
				r.Skip()
			} else {
				v.finish = mergeFinishReasons(v.finish, r.String())
			}
		case "usage":
			v.usage = r.Raw()
			v.usageAt = r.Offset() - int64(len(v.usage))
		case "error":
			if r.Kind() == 'n' {
				r.Skip()
				continue
			}
			v.failed = true
			v.failure = wirekit.Text(r, "")
		default:
			raw := r.Raw()
			v.addUnread("/delta", key, raw)
		}
	}
}

func (v *streamEvent) deltaMessage() {
	if !v.expectObject() {
		return
	}
	r := &v.r
	var seen wirekit.KnownFields
	for key := range r.Object() {
		v.checkDuplicate(&seen, messageFields, key)
		switch k := string(key); k {
		case "role":
			r.Skip()
		case "content":
			if v.isObject(k) {
				v.readContent()
			}
		case "tool_plan":
			v.plan = v.text(k)
		case "tool_calls":
			if !v.isObject(k) {
				continue
			}
			if v.typ != eventArguments {
				v.call = r.Raw()
				v.callAt = r.Offset() - int64(len(v.call))
				continue
			}
			v.readFragment()
		case "citations":
			if v.isObject(k) {
				v.citation = r.Raw()
			}
		default:
			raw := r.Raw()
			v.addUnread("/delta/message", key, raw)
		}
	}
}

// isObject reports whether the next value is an object. It consumes any other
// value: message-start has empty lists.
func (v *streamEvent) isObject(field string) (object bool) {
	if v.r.Kind() == '{' {
		return true
	}
	if raw := v.r.Raw(); len(raw) > 2 && raw[0] == '[' {
		v.nonEmptyList = field
	}
	return false
}

// text reads a string. It consumes any other value and returns an empty string.
func (v *streamEvent) text(field string) string {
	switch v.r.Kind() {
	case '"':
		return v.r.String()
	case 'n':
	default:
		v.mistyped = field
	}
	v.r.Skip()
	return ""
}

func (v *streamEvent) readContent() {
	r := &v.r
	v.content = block{found: true}
	var seen wirekit.KnownFields
	for key := range r.Object() {
		v.checkDuplicate(&seen, contentFields, key)
		switch k := string(key); k {
		case "type":
			if typ := v.text(k); typ != "" {
				v.content.typ = typ
			}
		case "text", "thinking":
			text := v.text(k)
			if text != "" || v.content.typ == "" {
				v.content.text += text
			}
			if v.content.typ == "" {
				v.content.typ = k
			}
		default:
			raw := r.Raw()
			v.addUnread("/delta/message/content", key, raw)
		}
	}
}

// readFragment reads a fragment of the arguments of a call.
func (v *streamEvent) readFragment() {
	r := &v.r
	var seen wirekit.KnownFields
	for key := range r.Object() {
		v.checkDuplicate(&seen, fragmentFields, key)
		if string(key) != "function" || r.Kind() != '{' {
			raw := r.Raw()
			v.addUnread("/delta/message/tool_calls", key, raw)
			continue
		}
		var inner wirekit.KnownFields
		for key := range r.Object() {
			v.checkDuplicate(&inner, functionFields, key)
			switch {
			case string(key) == "arguments" && r.Kind() == '"':
				v.arguments += r.String()
			case string(key) == "arguments" && r.Kind() != 'n':
				v.arguments, v.whole = string(r.Raw()), true
			default:
				raw := r.Raw()
				v.addUnread("/delta/message/tool_calls/function", key, raw)
			}
		}
	}
}
