package openaichat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// choice is the state of one streamed candidate.
type choice struct {
	d      *streamDecoder
	index  int
	parts  stream.Parts
	finish string
	routed string
	opening

	text      *stream.Part
	refusal   *stream.Part
	reasoning *stream.Part
	details   detailMerger
	fields    stream.Fields
	calls     []*call // in order of arrival
	byIndex   map[int64]*call
	byID      map[string]*call // by key
}

// call is the state of a streamed tool call. Its part starts when its name is complete, which the
// first fragment of arguments shows.
type call struct {
	id       string
	key      string // identifies its deltas: the id, or a number used as one
	name     []byte
	payload  string
	held     []byte // argument fragments that arrived before the name
	part     *stream.Part
	extra    *dragoman.Extra
	position int
	index    int64 // on the wire
	indexed  bool
	// wrapped is set if the tool gets something other than the arguments on the wire, such as a
	// freeform input inside them (quirks A23, B30).
	wrapped bool
	whole   bool // its arguments arrived as a JSON value
	end     objectEnd
	// unclear is set if a delta of the call had a duplicate field.
	unclear bool
	// contradicted is the reason why readers could assign its deltas to different calls; empty if
	// there is none.
	contradicted string
	legacy       bool // from the older function_call
	// repeatOf is the call that this one seems to repeat, fragment by fragment. The call is held back
	// until it differs.
	repeatOf       *call
	repeatReported bool           // the repetition was reported
	same           int            // length of the common prefix of held and the arguments of repeatOf
	at             map[string]int // positions in extra
}

// objectEnd finds the end of an object in growing text. It scans each byte once, because some
// servers repeat the name of a call with every fragment, and each repetition requires a check
// whether the arguments are complete.
type objectEnd struct {
	at              int // bytes scanned
	depth           int
	quoted, escaped bool
	closed, invalid bool
}

// reached reports whether text is a valid object, or one of the representations of no arguments.
// Each text must begin with the text of the previous call of reached.
func (e *objectEnd) reached(text []byte) bool {
	if len(text) < 64 {
		return len(text) > 0 && dragoman.CheckArguments(string(text)) == nil
	}
	for ; e.at < len(text) && !e.invalid; e.at++ {
		c := text[e.at]
		switch {
		case e.escaped:
			e.escaped = false
		case e.quoted:
			e.escaped, e.quoted = c == '\\', c != '"'
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case e.closed || e.depth == 0 && c != '{':
			e.invalid = true
		case c == '"':
			e.quoted = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			e.depth--
			e.closed = e.depth == 0
		}
	}
	if !e.closed || e.invalid {
		return false
	}
	e.invalid = dragoman.CheckArguments(string(text)) != nil
	return !e.invalid
}

// route records the native finish reason that a router forwards. It is stored like in a whole
// response, unless an earlier reason has priority.
func (c *choice) route(word string, raw []byte) {
	have := len(c.routed)
	c.routed = combineRouted(c.routed, word)
	c.d.countGrowth(have, len(c.routed))
	switch {
	case c.routed != word:
	case c.index == 0:
		c.d.bound.Take(extra.AddCopy(&c.d.resp.Extra, name, "/choices/0", []byte("native_finish_reason"), raw))
	default:
		c.d.reportUncollected("choices.native_finish_reason", "field native_finish_reason of a streamed choice is not collected")
		c.d.held.Field(choicePath(c.index), []byte("native_finish_reason"), raw)
	}
}

// finished records a finish reason.
func (c *choice) finished(word string) {
	c.d.held.Wait = true // wait for the end, which repeats it
	have := len(c.finish)
	c.finish = combineReasons(c.finish, word)
	c.d.countGrowth(have, len(c.finish))
}

// markContradiction marks a call if a fragment contradicts it. A new id alone does not, because some
// servers generate one for each fragment (quirk C3).
func (c *choice) markContradiction(k *call, f fragment) {
	if at := c.byIndex[f.index]; f.indexed && k.indexed && k.index != f.index && at != nil && at != k {
		const why = "a fragment has the id of one call and the index of another"
		k.contradicted, at.contradicted = why, why
	}
	if f.custom && k.part != nil && k.payload != codes.PayloadText || f.legacy != k.legacy {
		k.contradicted = "the kind of the call changed while it was streamed"
	}
}

// grow adds a fragment of the arguments.
func (k *call) grow(args string) {
	if k.wrapped {
		k.part.Hold(args)
	} else {
		k.part.Append(args)
	}
}

// delta decodes one delta of the choice. Within a delta, reasoning comes before text and text
// before calls, regardless of the order of the fields (quirks C38, C39).
func (c *choice) delta() {
	r := &c.d.reader
	if r.Null() {
		return
	}
	reasoned, role, nonEmpty := false, false, false
	var content, calls []byte // deferred until the parts before them are read
	before := c.d.lookAhead(r)
	var callsAt int64
	var seen wirekit.KnownFields
	for key := range r.Object() {
		nonEmpty = nonEmpty || isContentField(key) && string(key) != "function_call" && nonEmptyValue(r)
		switch string(key) {
		case "content":
			c.d.markSeen(&seen, 0)
			if r.Kind() != 'n' && r.Offset() < before.reasoning {
				content = r.Raw()
				continue
			}
			c.content(r)
		case "tool_calls":
			c.d.markSeen(&seen, 1)
			if at := r.Offset(); content != nil || at < before.content || at < before.reasoning || at < before.refusal {
				calls = r.Raw()
				callsAt = r.Offset() - int64(len(calls))
				continue
			}
			c.toolCalls(r)
		case "reasoning_content", "reasoning", "reasoning_text":
			field := string(key)
			if noText(r) {
				c.reportInvalidField(field, r)
				continue
			}
			text := looseTextFrom(r)
			if text != "" && !reasoned { // two fields duplicate each other (quirk G1)
				reasoned = true
				c.reason(field, text)
			}
		case "reasoning_details":
			if r.Kind() != '[' {
				r.Skip()
				continue
			}
			for range r.Array() {
				text := c.details.add(c.d.clone(r.Raw()))
				if !reasoned && text != "" && !c.hasReasoningField() {
					c.reason("", text)
				}
			}
			reasoned = true
		case "refusal":
			c.d.markSeen(&seen, 2)
			if noText(r) {
				c.reportInvalidField("refusal", r)
				continue
			}
			if s := looseTextFrom(r); s != "" {
				c.closeText()
				c.closeReasoning()
				if c.refusal.Ended() {
					c.refusal = c.open(&dragoman.Refusal{}, &dragoman.Refusal{})
				}
				c.refusal.Append(s)
			}
		case "function_call":
			c.d.markSeen(&seen, 3)
			if r.Kind() == '{' && zeroFunctionCall(r.Rest()) {
				r.Skip()
				continue
			}
			nonEmpty = true
			c.legacyCall()
		case "role":
			c.d.markSeen(&seen, 4)
			role = nonEmptyValue(r)
			r.Skip()
		default:
			if c.d.caseVariant(messageKeys, key) || r.Kind() == 'n' {
				r.Skip()
				continue
			}
			c.unknown(key, r.Raw())
		}
	}
	if r.Err() != nil {
		return
	}
	c.opening.delta(role, nonEmpty)
	if content != nil {
		c.content(jsonwire.NewReader(content))
	}
	if calls != nil {
		in := jsonwire.NewReader(calls)
		c.toolCalls(in)
		if err := in.Err(); err != nil {
			c.d.fieldError = jsonwire.PlaceAt(r.Pointer()+"/tool_calls", callsAt, err)
			r.Fail(err)
		}
	}
}

// unknown collects an unknown field of a delta.
func (c *choice) unknown(key, value []byte) {
	c.d.held.Field(choicePath(c.index)+"/delta", key, value)
	if slices.Contains(deltaFields, string(key)) {
		k := string(key)
		c.d.reportUncollected("delta."+k, "field "+k+" of a streamed delta is not collected: no message has it")
		return
	}
	if c.fields.Replaced == nil {
		c.fields.Replaced = func(key string) {
			k := shortName(key)
			c.d.reportUncollected("delta."+k, "field "+k+" of a streamed delta changed; its last value is collected")
		}
	}
	if !c.fields.Add(key, value, &c.d.bound) {
		k := shortName(string(key))
		c.d.reportUncollected("delta."+k, "field "+k+" of a streamed delta is not collected: the unknown fields of the message are too many or too long")
	}
}

// deltaFields are unknown fields that are not collected. Servers send channel (Groq), index
// (Mistral) and token_id (Together) only in deltas and would refuse them in messages. Chunks of
// audio would need special rules.
var deltaFields = []string{"audio", "channel", "index", "token_id"}

// lastFields holds the offsets of the last fields of a delta that other fields wait for; -1 if
// absent.
type lastFields struct {
	content, reasoning, refusal int64
}

// mixes reports whether the rest of a chunk may have text together with reasoning or calls.
func mixes(ahead []byte) bool {
	return bytes.Contains(ahead, []byte(`"reasoning`)) || bytes.Contains(ahead, []byte(`"tool_calls"`)) &&
		(bytes.Contains(ahead, []byte(`"content"`)) || bytes.Contains(ahead, []byte(`"refusal"`)))
}

// lookAhead finds the offsets in one scan of the delta at the position of r.
func (d *streamDecoder) lookAhead(r *jsonwire.Reader) lastFields {
	ahead := r.Rest()
	if !d.scanned {
		d.scanned, d.mixed = true, mixes(ahead)
	}
	if !d.mixed { // no field has to wait
		return lastFields{-1, -1, -1}
	}
	d.ahead.Reset(ahead)
	delta := d.ahead.Raw()                          // nil if it is malformed, which its reader reports
	start := int64(len(r.RestFrom(0)) - len(ahead)) // a chunk has no leading space
	at := func(member string) int64 {
		if i := bytes.LastIndex(delta, []byte(member)); i >= 0 {
			return start + int64(i)
		}
		return -1
	}
	return lastFields{at(`"content"`), at(`"reasoning`), at(`"refusal"`)}
}

func (c *choice) toolCalls(r *jsonwire.Reader) {
	for i := range r.Array() {
		c.toolCall(r, i)
	}
}

func (c *choice) open(skeleton, value dragoman.Part) *stream.Part {
	var header *dragoman.Message
	if c.parts.Count() == 0 {
		header = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: c.d.resp.Origin}
	}
	return c.parts.Start(0, header, skeleton, value)
}

// toolCall decodes one element of tool_calls.
func (c *choice) toolCall(r *jsonwire.Reader, pos int) {
	if r.Null() {
		return
	}
	f := fragment{pos: pos}
	f.index = -1
	payloads := 0
	var seen wirekit.KnownFields
	for key := range r.Object() {
		switch string(key) {
		case "index":
			c.d.markSeen(&seen, 0)
			if r.Kind() == '0' {
				f.index = r.Int()
				f.indexed = f.index >= 0
			} else {
				r.Skip()
			}
		case "id":
			c.d.markSeen(&seen, 1)
			switch r.Kind() {
			case '"':
				f.id = r.String()
				f.key = f.id
			case '0': // distinguishes calls, but is not a valid id
				f.key = string(r.Raw())
			default:
				r.Skip()
			}
		case "type":
			c.d.markSeen(&seen, 2)
			if r.Kind() == '"' {
				f.custom = r.String() == "custom"
			} else {
				r.Skip()
			}
		case "function":
			c.d.markSeen(&seen, 3)
			if c.payload(r, &f, functionKeys, "arguments", "/function") {
				payloads++
			}
		case "custom":
			c.d.markSeen(&seen, 4)
			if c.payload(r, &f, customKeys, "input", "/custom") {
				f.custom = true
				payloads++
			}
		default:
			if c.d.caseVariant(callKeys, key) || r.Kind() == 'n' {
				r.Skip()
				continue
			}
			extra.Add(&f.extra, name, "", key, clone(r.Raw()))
		}
	}
	c.d.duplicate = c.d.duplicate || payloads > 1 // both a function and a custom tool
	if r.Err() == nil {
		c.fragment(f)
	}
}

// payload reads the name and the payload of a call. It reports false for an object whose fields
// are all empty: Snowflake Cortex sends one for the kind of tool that the call is not.
func (c *choice) payload(r *jsonwire.Reader, f *fragment, known []string, payload, place string) (filled bool) {
	var seen wirekit.KnownFields
	for key := range r.Object() {
		switch string(key) {
		case "name":
			c.d.markSeen(&seen, 0)
			if s := r.String(); s != "" {
				f.name, filled = s, true
			}
		case payload:
			c.d.markSeen(&seen, 1)
			whole := wholePayload(r)
			if s := payloadText(r); s != "" {
				f.args, f.whole, filled = s, whole, true
			}
		default:
			if c.d.caseVariant(known, key) {
				r.Skip()
				continue
			}
			filled = true
			extra.Add(&f.extra, name, place, key, clone(r.Raw()))
		}
	}
	return filled
}

// fragment is one delta of a call.
type fragment struct {
	pos     int // position among the fragments of its delta
	index   int64
	indexed bool
	id      string
	key     string // identifies the call: its id, or a number used as one
	name    string
	args    string
	whole   bool // args are a JSON value, not a fragment of a string
	custom  bool
	legacy  bool // from the older function_call
	extra   *dragoman.Extra
}

// fragment adds a delta to its call.
func (c *choice) fragment(f fragment) {
	k := c.correlate(f)
	if k == nil {
		return
	}
	c.d.touched = append(c.d.touched, k)
	if k.resent(f) {
		if !k.repeatReported {
			k.repeatReported = true
			c.d.rep.Addf(dragoman.Dropped, dragoman.Info, c.place(k), "exact repeat of call %q", k.id)
		}
		return
	}
	c.markContradiction(k, f)
	if f.key != "" && k.key == "" {
		k.id, k.key = f.id, f.key
		c.d.bound.Take(len(f.key))
		c.indexByID(k)
	}
	if f.custom {
		k.payload = codes.PayloadText
	}
	if f.extra != nil {
		for _, field := range f.extra.Fields {
			c.d.bound.Take(k.setField(field))
		}
	}
	c.rename(k, f.name)
	if f.args == "" {
		return
	}
	c.wholeArguments(k, f)
	if k.repeatOf != nil {
		k.hold(c.d, f.args)
		if k.mayRepeat() {
			return
		}
		k.repeatOf = nil
		c.start(k)
		return
	}
	if len(k.name) == 0 { // a call without a name does not start (quirk B24)
		k.hold(c.d, f.args)
		return
	}
	c.start(k)
	k.grow(f.args)
}

// wholeArguments records arguments that arrive as a JSON value. Such a value is complete (quirk
// C7), so any other arguments contradict it.
func (c *choice) wholeArguments(k *call, f fragment) {
	if !f.whole && !k.whole || strings.TrimSpace(f.args) == "" {
		return
	}
	if k.contradicted == "" && len(bytes.TrimSpace(k.text())) > 0 {
		k.contradicted = "the arguments arrived both as a JSON value and as fragments of a string"
	}
	k.whole = k.whole || f.whole
}

// setField stores an unknown field of a call; the last value of a repeated field counts. It
// returns by how many bytes the stored data grew, at least 0.
func (k *call) setField(f dragoman.Field) (kept int) {
	if i, ok := k.at[f.Path]; ok {
		kept = max(0, len(f.Value)-len(k.extra.Fields[i].Value))
		k.extra.Fields[i] = f
		return kept
	}
	if k.at == nil {
		k.at = map[string]int{}
	}
	addField(&k.extra, f)
	k.at[f.Path] = len(k.extra.Fields) - 1
	return len(f.Path) + len(f.Value)
}

// rename applies a name fragment. An empty one never overwrites, a repetition is ignored, a
// fragment before any argument is appended, and any other replaces the name (quirk C5).
func (c *choice) rename(k *call, frag string) {
	switch {
	case frag == "", string(k.name) == frag:
	case k.part == nil:
		c.d.bound.Take(len(frag))
		k.name = append(k.name, frag...)
	default:
		c.d.countGrowth(len(k.name), len(frag))
		k.name = []byte(frag)
		k.contradicted = "the name changed while the call was streamed"
	}
}

// hold stores a fragment of the arguments until the call can start.
func (k *call) hold(d *streamDecoder, args string) {
	if d.bound.Take(len(args)) {
		k.held = append(k.held, args...)
	}
}

// mayRepeat reports whether a call may still turn out to repeat repeatOf. It compares each byte
// once.
func (k *call) mayRepeat() bool {
	if string(k.name) != string(k.repeatOf.name) {
		return false
	}
	text := k.repeatOf.text()
	n := min(len(k.held), len(text))
	if string(k.held[k.same:n]) != string(text[k.same:n]) {
		return false
	}
	k.same = n
	return true
}

// text returns the arguments that have arrived.
func (k *call) text() []byte {
	if k.part == nil {
		return k.held
	}
	return k.part.Text
}

// repeats reports whether a complete call repeats repeatOf.
func (k *call) repeats() bool {
	return k.repeatOf != nil && k.mayRepeat() && len(k.held) == len(k.repeatOf.text())
}

// resent reports whether a fragment repeats the whole call (quirk C10).
func (k *call) resent(f fragment) bool {
	return f.key != "" && f.key == k.key && f.name == string(k.name) && len(f.args) > 1 && k.part != nil &&
		f.args == string(k.part.Text) && k.end.reached(k.part.Text)
}

// correlate finds the call that a delta belongs to: by id, then by index, then the latest. A new
// id with a name starts a new call even on an occupied index; a delta without a name never starts
// a second call (quirks C1, C2, C3). A known id with a name on another index is another call that
// shares the id (quirk B11).
func (c *choice) correlate(f fragment) *call {
	if f.key != "" {
		if k := c.byID[f.key]; k != nil {
			if f.indexed && f.name != "" && k.indexed && k.index != f.index && c.byIndex[f.index] == nil && !k.resent(f) {
				another := c.add(f)
				if another != nil && string(k.name) == f.name {
					another.repeatOf = k
				}
				return another
			}
			if at := c.byIndex[f.index]; f.indexed && at != nil && at.key == f.key {
				return at
			}
			return k
		}
	}
	var at *call
	if f.indexed {
		at = c.byIndex[f.index]
	} else if n := len(c.calls); n > 0 {
		at = c.calls[n-1]
	}
	switch {
	case at == nil && f.indexed && f.key == "" && f.name == "" && len(c.calls) > 0:
		return c.calls[len(c.calls)-1]
	case at == nil:
		return c.add(f)
	case f.name != "" && !f.indexed && f.key == "" && f.pos > 0:
		// Fragments of one delta belong to different calls.
		return c.add(f)
	case f.name != "" && at.key == "" && at.part != nil && at.end.reached(at.part.Text):
		// A second name after complete arguments, without ids.
		return c.add(f)
	case f.key != "" && f.name != "" && at.key != "":
		return c.add(f)
	default:
		return at
	}
}

func (c *choice) add(f fragment) *call {
	if len(c.calls) >= maxCalls {
		c.d.reader.Fail(fmt.Errorf("more than %d tool calls in one response", maxCalls))
		return nil
	}
	k := &call{id: f.id, key: f.key, position: len(c.calls), index: f.index, indexed: f.indexed, legacy: f.legacy}
	// A call whose name may have been incomplete starts before its successor.
	for _, other := range c.calls {
		if len(other.name) > 0 && other.repeatOf == nil {
			c.start(other)
		}
	}
	c.d.bound.Take(len(k.key))
	c.calls = append(c.calls, k)
	if f.indexed {
		if c.byIndex == nil {
			c.byIndex = map[int64]*call{}
		}
		c.byIndex[f.index] = k
	}
	c.indexByID(k)
	return k
}

func (c *choice) indexByID(k *call) {
	if k.key == "" || c.byID[k.key] != nil {
		return
	}
	if c.byID == nil {
		c.byID = map[string]*call{}
	}
	c.byID[k.key] = k
}

// start starts the part of a call whose name is known.
func (c *choice) start(k *call) {
	if k.part != nil {
		return
	}
	c.closeText()
	c.closeReasoning()
	id, _ := wirekit.SplitID(k.id)
	value := &dragoman.ToolCall{ID: id, Name: string(k.name), Payload: k.payload}
	if value.ID == "" {
		value.ID, value.Synthetic = wirekit.SyntheticID("call_", c.d.o.Seed, c.index, k.position), true
		c.d.rep.Addf(dragoman.Synthesized, dragoman.Info, c.place(k), "generated call id %q", value.ID)
	}
	skeleton := *value
	skeleton.ID = c.d.reg.PublicID(value.ID)
	ns, public, spec := c.d.reg.PublicName("", value.Name)
	skeleton.Namespace, skeleton.Name = ns, public
	k.wrapped = k.payload == codes.PayloadObject && c.d.reg.Translates(ns, public)
	if spec != nil && spec.Kind == codes.ToolFreeform {
		skeleton.Payload = codes.PayloadText
	}
	k.part = c.open(&skeleton, value)
	if len(k.held) > 0 {
		k.grow(string(k.held))
		k.held = nil
	}
}

func (c *choice) place(k *call) string {
	return fmt.Sprintf("/choices/%d/message/tool_calls/%d", c.index, k.position)
}

// wholePayload reports whether arguments are a JSON value other than a string.
func wholePayload(r *jsonwire.Reader) bool {
	k := r.Kind()
	return k != '"' && k != 'n' && k != 0
}

// payloadText reads a fragment of arguments: a string, or a whole object (quirks B4, C7). Null
// gives "".
func payloadText(r *jsonwire.Reader) string {
	switch r.Kind() {
	case '"':
		return r.String()
	case 'n':
		r.Skip()
		return ""
	default:
		return string(r.Raw())
	}
}

// legacyCall decodes a delta of the older function_call. A response has at most one.
func (c *choice) legacyCall() {
	r := &c.d.reader
	f := fragment{index: -2, legacy: true}
	var seen wirekit.KnownFields
	for key := range r.Object() {
		switch string(key) {
		case "name":
			c.d.markSeen(&seen, 0)
			f.name = r.String()
		case "arguments":
			c.d.markSeen(&seen, 1)
			f.whole = wholePayload(r)
			f.args = payloadText(r)
		default:
			c.d.caseVariant(functionKeys, key)
			r.Skip()
		}
	}
	if f.name == "" && f.args == "" {
		return
	}
	if len(c.calls) > 0 && f.name != "" && f.name == string(c.calls[0].name) {
		f.name = "" // a repetition (quirk C5)
	}
	c.fragment(f)
}

// end ends the choice and derives its stop.
func (c *choice) end(terminal bool) dragoman.Stop {
	fields := c.fields.Extra(name)
	c.parts.Finish(fields, c.d.resp.Origin)
	c.closeReasoning()
	c.text.End()
	c.refusal.End()
	for _, k := range c.calls {
		if k.repeats() {
			c.d.rep.Addf(dragoman.Dropped, dragoman.Info, c.place(k), "exact repeat of call %q", k.id)
			continue
		}
		if len(k.name) == 0 {
			if k.id == "" && len(k.held) == 0 {
				continue // an empty shell (quirk B24)
			}
			k.name = fmt.Appendf(nil, "tool_%d", k.position)
			c.start(k)
			k.part.Value.(*dragoman.ToolCall).Problem = &dragoman.CallProblem{Code: codes.ProblemNoName, Message: "the call has no tool name", Offset: -1}
			continue
		}
		c.start(k)
	}
	var calls []*dragoman.ToolCall
	var done []*stream.Part
	type sent struct{ id, name, args string } // values on the wire
	seen := map[string]sent{}
	for _, k := range c.calls {
		if k.part == nil {
			continue
		}
		v := k.part.Value.(*dragoman.ToolCall)
		v.Name, v.Arguments, v.Extra = string(k.name), string(k.part.Text), k.extra
		k.part.Text = nil
		if k.id != "" { // it may have arrived after the arguments started
			v.ID, v.Synthetic = k.id, false
		}
		if original, kept := wirekit.SplitCallID(v); original != "" {
			reportHidden(&c.d.rep, v.ID, kept, c.place(k))
		}
		if first, dup := seen[v.ID]; dup {
			old := v.ID
			v.ID, v.Synthetic = wirekit.SyntheticID("call_", c.d.o.Seed+old, c.index, k.position), true
			c.d.rep.Addf(dragoman.Renamed, dragoman.Warn, c.place(k), "call id %q occurs twice; the later call gets the id %q", old, v.ID)
			if first.id == k.id && first.name == string(k.name) && first.args == v.Arguments && v.Problem == nil {
				v.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Message: "the call exactly repeats another one, which runs instead", Offset: -1}
			}
		}
		seen[v.ID] = sent{k.id, string(k.name), v.Arguments}
		if k.unclear {
			v.Problem = &dragoman.CallProblem{
				Code: codes.ProblemDuplicateKey, Offset: -1,
				Message: "an event of the call has a duplicate field, so its meaning is ambiguous; make the call again",
			}
		}
		c.d.reg.ResolveCall(v, extra.At(c.place(k)), &c.d.rep)
		if k.contradicted != "" && v.Problem == nil {
			v.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Message: k.contradicted, Offset: -1}
		}
		if !terminal && v.Problem == nil {
			v.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the stream broke before the call was complete", Offset: -1}
		}
		calls, done = append(calls, v), append(done, k.part)
	}
	stop := settleStop(c.d.reg, c.finish, c.routed, terminal, calls)
	for _, p := range done {
		p.End()
	}
	c.parts.EndAll()
	if c.parts.Unfinished() {
		for _, f := range fields.Fields {
			k := shortName(string(extra.Name(f.Path)))
			c.d.reportUncollected("delta."+k, "field "+k+" of a streamed message without content is not collected")
		}
	}
	return stop
}
