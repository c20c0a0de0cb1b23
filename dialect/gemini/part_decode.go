package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// idPrefix starts the ids synthesized for calls without one.
const idPrefix = "call_"

// partDecoder decodes parts. Each wire part becomes one canonical part.
type partDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// ambiguous reports that two readers could see different messages in the
	// input, so its bytes must not be passed through.
	ambiguous bool
	// in is reused for one part after the other.
	in jsonwire.Reader
}

func newPartDecoder(c Codec, o dialect.DecodeOptions) partDecoder {
	return partDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report)}
}

// rawPart is a wire part split into its fields.
type rawPart struct {
	raw json.RawMessage
	// kind is the name of the field that holds the data; empty if there is no
	// such field.
	kind string
	// data is the value of that field.
	data      json.RawMessage
	thought   bool
	signature string
	repeated  string // a field that occurs twice
	kinds     int    // number of data fields beyond the first
	start     int64  // offset of the data within raw
	extra     *dragoman.Extra
	// call reports that some reader could find a call in the part.
	call bool
}

// annotation reports whether a field describes the data of its part.
func annotation(field string) bool {
	switch field {
	case "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "mediaProcessing",
		"partMetadata", "speechMetadata", "audioTranscription":
		return true
	default:
		return false
	}
}

// holdsData reports whether a field holds data. A part should have only one
// such field.
func holdsData(field string) bool {
	return field != "thought" && field != "thoughtSignature" && slices.Contains(partFields, field) ||
		strings.EqualFold(field, "functionCall")
}

// open splits a part into its fields. A signature does not make a part a
// thought; only the flag does (quirk G8). An unknown field is stored as an
// extra field, or is the data if the part has no other.
func (d *partDecoder) open(raw json.RawMessage) (rawPart, error) {
	p := rawPart{raw: raw}
	r := &d.in
	r.Reset(raw)
	if r.Kind() != '{' && r.Err() == nil {
		return p, wirekit.ErrNotObject
	}
	var seen seenFields
	var otherCase string // a known field in another letter case, which most readers do not recognize
	var otherCaseValue []byte
	var otherCaseStart int64
	var unknown *dragoman.Extra
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		field := string(camel)
		duplicate := seen.duplicate(partFields, camel)
		if duplicate && p.repeated == "" {
			p.repeated = field
		}
		switch {
		case duplicate && !slices.Contains(partFields, field) && !strings.EqualFold(field, "functionCall"):
			otherCase, otherCaseValue = field, r.Raw()
			otherCaseStart = r.Offset() - int64(len(otherCaseValue))
		case field == "thought" && r.Kind() == 't':
			p.thought = r.Bool()
		case field == "thoughtSignature" && r.Kind() == '"':
			p.signature = r.String()
		case annotation(field), r.Kind() == 'n':
			extra.Add(&p.extra, name, "", key, r.Raw())
		case holdsData(field):
			value := r.Raw()
			p.take(field, value, r.Offset()-int64(len(value)))
		default:
			extra.Add(&unknown, name, "", key, r.Raw())
		}
	}
	p.keep(unknown)
	if otherCase != "" {
		d.ambiguous = true
		if p.kind == "" && !p.thought && p.signature == "" { // the part has nothing else
			p.take(otherCase, otherCaseValue, otherCaseStart)
		}
	}
	return p, r.End()
}

// keep stores the unknown fields.
func (p *rawPart) keep(unknown *dragoman.Extra) {
	hasData := p.kind != ""
	for _, f := range unknown.For(name) {
		if hasData {
			extra.Add(&p.extra, name, "", extra.Name(f.Path), f.Value)
		} else {
			p.take(string(jsonwire.Camel(extra.Name(f.Path))), f.Value, 0)
		}
	}
}

// hasSetFields reports whether e has a field that is set: not null and not false.
func hasSetFields(e *dragoman.Extra) bool {
	return slices.ContainsFunc(e.For(name), func(f dragoman.Field) bool {
		return string(f.Value) != "null" && string(f.Value) != "false"
	})
}

// take stores a field that holds data. It ignores an empty text next to other
// data. Anything that some reader could read as a call is a call.
func (p *rawPart) take(field string, value []byte, start int64) {
	if field == "text" && string(value) == `""` && p.kind != "" && p.kind != "text" {
		return
	}
	if p.kind != "" && (p.kind != "text" || string(p.data) != `""`) {
		p.kinds++
	}
	if strings.EqualFold(field, "functionCall") {
		p.call = true
	} else if p.call {
		return
	}
	p.kind, p.data, p.start = field, value, start
}

// isText reports whether a part is a text, a thought, or only the signature of
// one.
func (p *rawPart) isText() bool {
	if p.call || p.kinds > 0 {
		return false
	}
	return p.kind == "text" || p.kind == "" && (p.signature != "" || p.thought)
}

// part decodes one part. A call without an id gets one derived from ordinal,
// the number of calls before it, and place, the position that ordinal counts
// from. An unknown part is stored unchanged.
func (d *partDecoder) part(raw json.RawMessage, at extra.Path, ordinal int, place ...int) (dragoman.Part, error) {
	p, err := d.open(raw)
	if err != nil {
		return nil, err
	}
	switch {
	case p.call:
		c := d.call(&p, at)
		d.identify(c, at, append(place, ordinal)...)
		return c, nil
	case p.kinds > 0:
		return opaque(&p), nil
	case p.kind == "functionResponse":
		return d.result(&p, at), nil
	case p.kind == "inlineData", p.kind == "fileData":
		if m := readMedia(raw); m != nil {
			return m, nil
		}
		return opaque(&p), nil
	case !p.isText():
		return opaque(&p), nil
	default:
		return d.text(&p)
	}
}

// text reads a text or a thought, which may consist of only a signature (quirk
// C30).
func (d *partDecoder) text(p *rawPart) (dragoman.Part, error) {
	text, err := d.textOf(p)
	if err != nil {
		return nil, err
	}
	if p.thought {
		return &dragoman.Reasoning{Text: text, Signature: p.signature, Extra: p.extra}, nil
	}
	return &dragoman.Text{Text: text, Signature: p.signature, Extra: p.extra}, nil
}

func (d *partDecoder) textOf(p *rawPart) (string, error) {
	if p.data == nil {
		return "", nil
	}
	d.in.Reset(p.data)
	text := d.in.String()
	if err := d.in.Err(); err != nil {
		return "", jsonwire.PlaceAt("/text", p.start, err)
	}
	return text, nil
}

// call decodes a call. A call that cannot be decoded is still returned, with a
// problem that keeps it from running, because clients would see it.
func (d *partDecoder) call(p *rawPart, at extra.Path) *dragoman.ToolCall {
	c, err := d.reg.ReadCall(p.data, at, d.rep)
	if err != nil || p.kind != "functionCall" {
		c = &dragoman.ToolCall{Problem: &dragoman.CallProblem{
			Code: codes.ProblemNoName, Message: "the call cannot be decoded", Offset: -1,
		}}
		if err != nil {
			c.Problem.Message += ": " + err.Error()
		}
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "%s", c.Problem.Message)
		d.ambiguous = true
	}
	switch {
	case p.repeated != "":
		c.Problem = wirekit.RepeatedField(p.repeated)
	case p.kinds > 0:
		c.Problem = wirekit.RepeatedField("functionCall") // the part is also something else
	}
	if wirekit.IsTruncated(c) {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "%s", c.Problem.Message)
	}
	if q := c.Problem; q != nil && q.Code == codes.ProblemDuplicateKey && q.Offset < 0 {
		d.ambiguous = true // the call itself is ambiguous, not only its arguments
	}
	c.Signature = p.signature
	for _, f := range p.extra.For(name) {
		extra.Add(&c.Extra, name, partPrefix, extra.Name(f.Path), f.Value)
	}
	return c
}

// partPrefix is the path under which a call or a result stores the other fields
// of its part.
const partPrefix = "/part"

func (d *partDecoder) result(p *rawPart, at extra.Path) dragoman.Part {
	res, err := d.reg.ReadResult(p.data, d.o.LiftErrors, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "result passed through unchanged: %v", err)
		return opaque(p)
	}
	for _, f := range p.extra.For(name) {
		extra.Add(&res.Extra, name, partPrefix, extra.Name(f.Path), f.Value)
	}
	if p.signature != "" {
		extra.Add(&res.Extra, name, partPrefix, []byte("thoughtSignature"), jsonwire.Quote(p.signature))
	}
	return res
}

// identify gives a call without an id a synthetic one (quirk B10).
func (d *partDecoder) identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(idPrefix, d.o.Seed, place...), true
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
}

// opaque stores a part unchanged. The call and the result of a tool that the
// provider runs have the same id.
func opaque(p *rawPart) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: p.kind, JSON: p.raw}
	switch p.kind {
	case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
	default:
		return o
	}
	o.Hosted = true
	r := jsonwire.NewReader(p.data)
	if r.Kind() != '{' {
		return o
	}
	for key := range r.Object() {
		if string(key) == "id" && r.Kind() == '"' {
			o.CallID = r.String()
		} else {
			r.Skip()
		}
	}
	return o
}
