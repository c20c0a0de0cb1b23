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

// idPrefix starts the ids of calls that came without one.
const idPrefix = "call_"

// partDecoder reads parts, one part of the wire to one of ours.
type partDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// ambiguous says that two readers could see two messages in what was read,
	// so that its bytes must not be passed on.
	ambiguous bool
	// in reads parts, one after the other.
	in jsonwire.Reader
}

func newPartDecoder(c Codec, o dialect.DecodeOptions) partDecoder {
	return partDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report)}
}

// rawPart is a part of the wire with its members told apart.
type rawPart struct {
	raw json.RawMessage
	// kind is the member that holds the data; empty where there is none.
	kind string
	// data is its value.
	data      json.RawMessage
	thought   bool
	signature string
	repeated  string // a member that stands there twice
	kinds     int    // members that hold data, beyond the first
	start     int64  // of the data, within raw
	extra     *dragoman.Extra
	// call: a reader could find a call in it.
	call bool
}

// annotation reports whether a member says something of the data beside it.
func annotation(member string) bool {
	switch member {
	case "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "mediaProcessing",
		"partMetadata", "speechMetadata", "audioTranscription":
		return true
	default:
		return false
	}
}

// holdsData reports whether a member is one of those that a part has one of.
func holdsData(member string) bool {
	return member != "thought" && member != "thoughtSignature" && slices.Contains(partMembers, member) ||
		strings.EqualFold(member, "functionCall")
}

// open tells the members of a part apart. A signature is no thought: only the
// flag makes one (quirk G8). A member that we do not know is kept beside the data,
// and is it where there is no other.
func (d *partDecoder) open(raw json.RawMessage) (rawPart, error) {
	p := rawPart{raw: raw}
	r := &d.in
	r.Reset(raw)
	if r.Kind() != '{' && r.Err() == nil {
		return p, wirekit.ErrNotObject
	}
	var seen members
	var stray string // a member in letters of another case, which most readers do not know
	var strayed []byte
	var strayAt int64
	var unknown *dragoman.Extra
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		member := string(camel)
		twice := seen.twice(partMembers, camel)
		if twice && p.repeated == "" {
			p.repeated = member
		}
		switch {
		case twice && !slices.Contains(partMembers, member) && !strings.EqualFold(member, "functionCall"):
			stray, strayed = member, r.Raw()
			strayAt = r.Offset() - int64(len(strayed))
		case member == "thought" && r.Kind() == 't':
			p.thought = r.Bool()
		case member == "thoughtSignature" && r.Kind() == '"':
			p.signature = r.String()
		case annotation(member), r.Kind() == 'n':
			extra.Add(&p.extra, name, "", key, r.Raw())
		case holdsData(member):
			value := r.Raw()
			p.take(member, value, r.Offset()-int64(len(value)))
		default:
			extra.Add(&unknown, name, "", key, r.Raw())
		}
	}
	p.keep(unknown)
	if stray != "" {
		d.ambiguous = true
		if p.kind == "" && !p.thought && p.signature == "" { // it is all there is
			p.take(stray, strayed, strayAt)
		}
	}
	return p, r.End()
}

// keep takes the members that nobody knows.
func (p *rawPart) keep(unknown *dragoman.Extra) {
	beside := p.kind != ""
	for _, f := range unknown.For(name) {
		if beside {
			extra.Add(&p.extra, name, "", extra.Name(f.Path), f.Value)
		} else {
			p.take(string(jsonwire.Camel(extra.Name(f.Path))), f.Value, 0)
		}
	}
}

// noted reports whether members beside a text say anything: a flag that is not
// set does not.
func noted(e *dragoman.Extra) bool {
	return slices.ContainsFunc(e.For(name), func(f dragoman.Field) bool {
		return string(f.Value) != "null" && string(f.Value) != "false"
	})
}

// take takes a member that holds data. An empty text beside other data says
// nothing; what any reader could take for a call is one.
func (p *rawPart) take(member string, value []byte, start int64) {
	if member == "text" && string(value) == `""` && p.kind != "" && p.kind != "text" {
		return
	}
	if p.kind != "" && (p.kind != "text" || string(p.data) != `""`) {
		p.kinds++
	}
	if strings.EqualFold(member, "functionCall") {
		p.call = true
	} else if p.call {
		return
	}
	p.kind, p.data, p.start = member, value, start
}

// isText reports whether a part is a text or a thought, or the signature of one.
func (p *rawPart) isText() bool {
	if p.call || p.kinds > 0 {
		return false
	}
	return p.kind == "text" || p.kind == "" && (p.signature != "" || p.thought)
}

// part reads one part; ordinal is the number of the calls before it, from which
// a call without an id gets one, and place what that number counts from. A part
// that we do not know is kept as it is.
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

// text reads a text or a thought, which may be no more than its signature
// (quirk C30).
func (d *partDecoder) text(p *rawPart) (dragoman.Part, error) {
	said, err := d.said(p)
	if err != nil {
		return nil, err
	}
	if p.thought {
		return &dragoman.Reasoning{Text: said, Signature: p.signature, Extra: p.extra}, nil
	}
	return &dragoman.Text{Text: said, Signature: p.signature, Extra: p.extra}, nil
}

// said is the text of a part.
func (d *partDecoder) said(p *rawPart) (string, error) {
	if p.data == nil {
		return "", nil
	}
	d.in.Reset(p.data)
	said := d.in.String()
	if err := d.in.Err(); err != nil {
		return "", jsonwire.PlaceAt("/text", p.start, err)
	}
	return said, nil
}

// call reads a call. One that cannot be read is still one, which must not run:
// clients would see it all the same.
func (d *partDecoder) call(p *rawPart, at extra.Path) *dragoman.ToolCall {
	c, err := d.reg.ReadCall(p.data, at, d.rep)
	if err != nil || p.kind != "functionCall" {
		c = &dragoman.ToolCall{Problem: &dragoman.CallProblem{
			Code: codes.ProblemNoName, Message: "the call cannot be read", Offset: -1,
		}}
		if err != nil {
			c.Problem.Message += ": " + err.Error()
		}
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "%s", c.Problem.Message)
		d.ambiguous = true
	}
	switch {
	case p.repeated != "":
		c.Problem = wirekit.RepeatedMember(p.repeated)
	case p.kinds > 0:
		c.Problem = wirekit.RepeatedMember("functionCall") // it is something else, too
	}
	if wirekit.Cut(c) {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "%s", c.Problem.Message)
	}
	if q := c.Problem; q != nil && q.Code == codes.ProblemDuplicateKey && q.Offset < 0 {
		d.ambiguous = true // the call around the arguments, not they
	}
	c.Signature = p.signature
	for _, f := range p.extra.For(name) {
		extra.Add(&c.Extra, name, partPrefix, extra.Name(f.Path), f.Value)
	}
	return c
}

// partPrefix is where a call and a result keep the members that stood beside
// them in their part.
const partPrefix = "/part"

func (d *partDecoder) result(p *rawPart, at extra.Path) dragoman.Part {
	res, err := d.reg.ReadResult(p.data, d.o.LiftErrors, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
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

// identify gives a call without an id one of its own (quirk B10).
func (d *partDecoder) identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(idPrefix, d.o.Seed, place...), true
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
}

// opaque keeps a part as it is. The two halves of a tool that the provider runs
// carry the same id.
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
