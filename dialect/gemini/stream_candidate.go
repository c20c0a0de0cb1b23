package gemini

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// streamCandidate is the state of one streamed candidate.
type streamCandidate struct {
	d            *streamDecoder
	index        int
	parts        stream.Parts
	finishReason string

	// open is the text or thought that the next chunk may continue.
	open *stream.Part
	// changeReported reports that a changed extra field of a text was reported.
	changeReported bool
	calls          []*streamedCall // in order of arrival
	byID           map[string]*streamedCall
	// building is the call whose arguments are still arriving.
	building *streamedCall
	// last and now hold the calls without an id of the previous and the current
	// chunk, by position.
	last, now map[int]sentCall
}

// sentCall identifies a call of a chunk. It holds a digest, so that the bytes
// of the calls need not be stored for every candidate.
type sentCall struct {
	sum      [sha256.Size]byte
	reported bool // the repetition was reported
}

// streamedCall is a call of a stream.
type streamedCall struct {
	id         string
	name       string
	args       string
	fragments  partialArgs
	fragmented bool
	signature  string
	extra      *dragoman.Extra
	problem    *dragoman.CallProblem
	part       *stream.Part
	wrapped    bool // the registry changes the arguments before the tool gets them
	repeated   bool // the repetition was reported
}

// Errors for call fields of the wrong type.
var (
	errNameType      = errors.New("name must be a string")
	errFragmentsType = errors.New("partialArgs must be a list")
	errContinueType  = errors.New("willContinue must be true or false")
)

var errManyParts = fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts)

func (c *streamCandidate) path() extra.Path { return extra.Elem("/candidates", c.index) }

// finish records a finish reason.
func (c *streamCandidate) finish(reason string) {
	c.d.held.Wait = true // wait for the end, which repeats it
	c.finishReason = mergeFinishReasons(c.finishReason, reason)
}

// content decodes the parts of a chunk.
func (c *streamCandidate) content(raw []byte) error {
	r := &c.d.inner
	r.Reset(raw)
	if r.Null() {
		return r.Err()
	}
	c.now = nil
	var failed error
	var seen seenFields
	for key := range r.Object() {
		c.d.checkDuplicate(&seen, contentFields, key)
		switch string(key) {
		case "parts":
			for i := range r.Array() {
				part := r.Raw()
				if r.Err() != nil || failed != nil {
					continue
				}
				if err := c.part(part, i); err != nil {
					failed = jsonwire.PlaceAt(extra.Elem("/parts", i).String(), r.Offset()-int64(len(part)), err)
				}
			}
		case "role": // always "model"
			r.Skip()
		default:
			if r.Null() {
				continue
			}
			c.d.unknownFields.Add("/content/", key)
			c.d.held.Field(candidatePath(c.index)+"/content", key, r.Raw())
		}
	}
	c.last = c.now
	if r.Err() != nil {
		return r.Err()
	}
	return failed
}

func (c *streamCandidate) part(raw []byte, pos int) error {
	p, err := c.d.open(raw)
	if err != nil {
		return err
	}
	if p.repeated != "" && c.d.repeated == "" {
		c.d.repeated = p.repeated
	}
	switch {
	case p.call:
		return c.call(&p, pos)
	case p.isText():
		return c.text(&p, pos)
	}
	if err := c.d.addPart(); err != nil {
		return err
	}
	c.d.charge(len(raw))
	whole, err := c.d.part(bytes.Clone(raw), c.path().Elem("content/parts", pos), 0, c.index)
	if err != nil {
		return err
	}
	c.closeText()
	c.parts.Whole(0, c.header(), whole)
	return nil
}

// header returns the message header for the first part, and nil after that.
func (c *streamCandidate) header() *dragoman.Message {
	if c.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: c.d.origin}
}

func (c *streamCandidate) closeText() {
	c.open.End()
	c.open = nil
}

// text decodes a text or a thought. It continues the part before it unless one
// of the two is signed: a signature belongs to exactly the part it came with
// (quirks B16, C30). The signature of a thought ends the open thought, as in
// other dialects (quirk C22).
func (c *streamCandidate) text(p *rawPart, pos int) error {
	text, err := c.d.textOf(p)
	if err != nil {
		return err
	}
	if text == "" && p.signature == "" && !hasSetFields(p.extra) {
		return nil // the API ends streams with an empty text
	}
	kind := codes.KindText
	if p.thought {
		kind = codes.KindReasoning
	}
	if c.open != nil && pos == 0 && p.signature == "" && c.open.Value.Kind() == kind {
		c.open.Append(text)
		c.addFields(p)
		return nil
	}
	if c.isSignedEnd(p, pos) {
		c.open.Append(text)
		c.addFields(p)
		c.d.charge(len(p.signature))
		c.open.Value.(*dragoman.Reasoning).Signature = p.signature
		c.closeText()
		return nil
	}
	if err := c.d.addPart(); err != nil {
		return err
	}
	c.closeText()
	c.d.charge(len(p.signature))
	var skeleton, value dragoman.Part
	ex := c.d.copied(p.extra)
	if p.thought {
		skeleton, value = &dragoman.Reasoning{Signature: p.signature}, &dragoman.Reasoning{Signature: p.signature, Extra: ex}
	} else {
		skeleton, value = &dragoman.Text{Signature: p.signature}, &dragoman.Text{Signature: p.signature, Extra: ex}
	}
	part := c.parts.Start(0, c.header(), skeleton, value)
	part.Append(text)
	if p.signature != "" {
		part.End()
		return nil
	}
	c.open = part
	return nil
}

// isSignedEnd reports whether a part is the signed end of the open thought.
func (c *streamCandidate) isSignedEnd(p *rawPart, pos int) bool {
	return c.open != nil && pos == 0 && p.thought && p.signature != "" && c.open.Value.Kind() == codes.KindReasoning
}

// addFields stores the extra fields of a part that continues a text. A later value
// of a field replaces the earlier one.
func (c *streamCandidate) addFields(p *rawPart) {
	kept := extraOf(c.open.Value)
	for _, f := range p.extra.For(name) {
		key := extra.Name(f.Path)
		if old, ok := extra.Replaces(*kept, "", key); ok && !bytes.Equal(old, f.Value) && !c.changeReported {
			c.changeReported = true
			c.d.rep.Addf(dragoman.Dropped, dragoman.Warn, c.path().String(), "%.40s of a text; a later chunk replaces it", key)
		}
		c.d.bound.Take(extra.AddCopy(kept, name, "", key, f.Value))
	}
}

// extraOf returns the extra fields of a text or a thought.
func extraOf(p dragoman.Part) **dragoman.Extra {
	if r, ok := p.(*dragoman.Reasoning); ok {
		return &r.Extra
	}
	return &p.(*dragoman.Text).Extra
}

// copied returns a copy of the extra fields of a part.
func (d *streamDecoder) copied(e *dragoman.Extra) *dragoman.Extra {
	var out *dragoman.Extra
	for _, f := range e.For(name) {
		d.charge(extra.AddCopy(&out, name, "", extra.Name(f.Path), f.Value))
	}
	return out
}

// fragment holds the fields of a functionCall.
type fragment struct {
	id, name   string
	args       string
	hasArgs    bool
	continues  bool
	fieldCount int
	extra      *dragoman.Extra // aliases the event
}

// call decodes a part that holds a call or a fragment of one (quirks C27, C28).
func (c *streamCandidate) call(p *rawPart, pos int) error {
	k := c.building
	f, bad, err := c.fragment(p)
	if err != nil {
		return jsonwire.PlaceAt("/functionCall", p.start, err)
	}
	switch {
	case f.name == "" && k != nil:
	case f.fieldCount == 0 && bad == nil && p.repeated == "" && p.kinds == 0 && p.kind == "functionCall":
		return nil // the end marker of a call, and no call is open (quirk B24)
	default:
		if c.resent(p, &f, pos) {
			return nil
		}
		if k, err = c.begin(&f); k == nil || err != nil {
			return err
		}
	}
	c.d.touched = append(c.d.touched, k)
	c.addFragment(k, p, &f, bad)
	if f.continues {
		c.building = k
		return nil
	}
	c.building = nil
	c.emitArguments(k)
	return nil
}

// fragment reads the call of a part without its partialArgs, which
// [streamCandidate.applyFragments] reads. bad is the reason why the call must not run.
func (c *streamCandidate) fragment(p *rawPart) (f fragment, bad, err error) {
	r := &c.d.calls
	r.Reset(p.data)
	if r.Kind() != '{' && r.Err() == nil {
		return f, wirekit.ErrNotObject, nil
	}
	var seen seenFields
	for key := range r.Object() {
		f.fieldCount++
		camel := jsonwire.Camel(key)
		c.d.checkDuplicate(&seen, streamCallFields, camel)
		switch field := string(camel); {
		case r.Kind() == 'n':
			r.Skip()
		case field == "id" && r.Kind() == '"':
			f.id = r.String()
		case field == "id":
			r.Skip() // a number is not an id (requirement I8)
		case field == "name" && r.Kind() == '"':
			f.name = r.String()
		case field == "args":
			f.hasArgs = true
			if r.Kind() == '"' {
				f.args = r.String()
			} else {
				f.args = string(r.Raw())
			}
		case field == "willContinue" && (r.Kind() == 't' || r.Kind() == 'f'):
			f.continues = r.Bool()
		case field == "partialArgs" && r.Kind() != '[':
			r.Skip()
			bad = errFragmentsType
		case field == "partialArgs":
			r.Skip() // read later, when the call they belong to is known
		case field == "name":
			r.Skip()
			bad = errNameType
		case field == "willContinue":
			// It is unknown whether the call continues, so what follows without
			// a name belongs to it.
			extra.Add(&f.extra, name, "", camel, r.Raw())
			f.continues, bad = true, errContinueType
		default:
			extra.Add(&f.extra, name, "", key, r.Raw())
		}
	}
	return f, bad, r.Err()
}

// resent reports whether a part without an id repeats the part at the same
// position of the previous chunk (quirk C27).
func (c *streamCandidate) resent(p *rawPart, f *fragment, pos int) bool {
	if f.id != "" || f.continues {
		return false
	}
	sent := sentCall{sum: sha256.Sum256(p.raw)}
	before, again := c.last[pos]
	if again = again && before.sum == sent.sum; again {
		if sent.reported = true; !before.reported {
			c.d.rep.Addf(dragoman.Dropped, dragoman.Warn, c.path().Elem("content/parts", pos).String(), "call of %.80q repeats the call in the previous chunk", f.name)
		}
	}
	if c.now == nil {
		c.now = map[int]sentCall{}
	}
	c.now[pos] = sent
	return again
}

// begin starts a call. It returns nil for an exact repeat (quirk B11).
func (c *streamCandidate) begin(f *fragment) (*streamedCall, error) {
	if c.building != nil { // the previous call did not end
		c.block(c.building, truncatedCall())
		c.emitArguments(c.building)
		c.building = nil
	}
	if first := c.byID[f.id]; f.id != "" && first != nil {
		if first.name == f.name && first.args == f.args && !first.fragmented && !f.continues {
			if !first.repeated {
				first.repeated = true
				c.d.rep.Addf(dragoman.Dropped, dragoman.Info, c.path().String(), "call %.64q is repeated exactly", f.id)
			}
			return nil, nil
		}
	}
	if err := c.d.addPart(); err != nil {
		return nil, err
	}
	c.closeText()
	c.d.bound.Take(len(f.id) + len(f.name))
	k := &streamedCall{id: f.id, name: f.name, fragments: partialArgs{bound: &c.d.bound}}
	value := &dragoman.ToolCall{ID: f.id, Name: f.name}
	c.identify(k, value)
	skeleton := *value
	skeleton.ID = c.d.reg.PublicID(value.ID)
	ns, public, spec := c.d.reg.PublicName("", f.name)
	skeleton.Namespace, skeleton.Name = ns, public
	k.wrapped = c.d.reg.Translates(ns, public)
	if spec != nil && spec.Kind == codes.ToolFreeform {
		skeleton.Payload = codes.PayloadText
	}
	k.part = c.parts.Start(0, c.header(), &skeleton, value)
	c.calls = append(c.calls, k)
	return k, nil
}

// identify sets the id of a call. It synthesizes one if the id is missing or
// another call has the same id (quirks B10, B11).
func (c *streamCandidate) identify(k *streamedCall, value *dragoman.ToolCall) {
	place := []int{c.index, len(c.calls)}
	switch {
	case k.id == "":
		value.ID, value.Synthetic = wirekit.SyntheticID(idPrefix, c.d.o.Seed, place...), true
		c.d.rep.Addf(dragoman.Synthesized, dragoman.Info, c.path().String(), "call id %q", value.ID)
	case c.byID[k.id] != nil:
		value.ID, value.Synthetic = wirekit.SyntheticID(idPrefix, c.d.o.Seed+k.id, place...), true
		c.d.rep.Addf(dragoman.Renamed, dragoman.Warn, c.path().String(), "call id %.64q occurs twice; the later call is %q", k.id, value.ID)
		return
	}
	if c.byID == nil {
		c.byID = map[string]*streamedCall{}
	}
	c.byID[value.ID] = k
}

func (c *streamCandidate) addFragment(k *streamedCall, p *rawPart, f *fragment, bad error) {
	if p.signature != "" {
		c.d.bound.Take(len(p.signature) - len(k.signature))
		k.signature = p.signature
	}
	for _, x := range p.extra.For(name) {
		c.d.bound.Take(extra.AddCopy(&k.extra, name, partPrefix, extra.Name(x.Path), x.Value))
	}
	for _, x := range f.extra.For(name) {
		c.d.bound.Take(extra.AddCopy(&k.extra, name, "", extra.Name(x.Path), x.Value))
	}
	switch {
	case p.repeated != "":
		c.block(k, wirekit.RepeatedField(p.repeated))
	case p.kinds > 0 || p.kind != "functionCall":
		c.block(k, wirekit.RepeatedField("functionCall")) // the part is also something else
	case bad != nil:
		c.block(k, &dragoman.CallProblem{Code: codes.ProblemUnreadable, Message: "the call cannot be decoded: " + bad.Error(), Offset: -1})
	case f.id != "" && f.id != k.id:
		c.block(k, &dragoman.CallProblem{Code: codes.ProblemStopped, Message: "the id of the call changed while it was streamed", Offset: -1})
	}
	if f.hasArgs {
		if k.args != "" || k.fragmented {
			c.block(k, badFragment(errArgDuplicate))
		}
		c.setArgs(k, f.args)
	}
	c.applyFragments(k, p)
}

// applyFragments applies the partialArgs of a part.
func (c *streamCandidate) applyFragments(k *streamedCall, p *rawPart) {
	if !bytes.Contains(p.data, []byte("rgs")) { // partialArgs, partial_args: most parts have neither
		return
	}
	r := &c.d.calls
	r.Reset(p.data)
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(jsonwire.Camel(key)) != "partialArgs" || r.Kind() == 'n' {
			r.Skip()
			continue
		}
		if r.Kind() != '[' { // unknown form
			c.block(k, badFragment(errArgList))
			r.Skip()
			continue
		}
		if k.fragmented = true; k.args != "" && k.args != "{}" {
			c.block(k, badFragment(errArgDuplicate))
		}
		for range r.Array() {
			if err := k.fragments.add(r); err != nil {
				c.block(k, badFragment(err))
			}
			if k.fragments.hasUnknown {
				c.d.pendingLosses.Addf(c.d.rep, dragoman.Dropped, dragoman.Info, c.path().String(), "unknown fields in partialArgs")
			}
		}
	}
	if err := r.Err(); err != nil {
		c.block(k, badFragment(err))
	}
}

// block marks a call as one that must not run. Only the first problem counts.
func (c *streamCandidate) block(k *streamedCall, problem *dragoman.CallProblem) {
	if k.problem == nil {
		k.problem = problem
		c.d.pendingLosses.Addf(c.d.rep, dragoman.Lowered, dragoman.Warn, c.path().String(), "%s", problem.Message)
	}
}

// truncatedCall returns the problem of a call that did not end.
func truncatedCall() *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemTruncated, Offset: -1,
		Message: "the stream continued before the call was complete; make the call again",
	}
}

// emitArguments emits the arguments of a complete call.
func (c *streamCandidate) emitArguments(k *streamedCall) {
	if k.fragmented {
		if p := k.fragments.problem(); p != nil {
			c.block(k, p)
		}
		c.setArgs(k, k.fragments.text())
		k.fragments.drop()
	}
	if !k.wrapped {
		k.part.Emit(k.args)
	}
}

// setArgs replaces the arguments of a call.
func (c *streamCandidate) setArgs(k *streamedCall, args string) {
	c.d.bound.Take(len(args) - len(k.args))
	k.args = args
}

func (c *streamCandidate) end(terminal bool) dragoman.Stop {
	c.closeText()
	if k := c.building; k != nil {
		if k.problem == nil {
			k.problem = truncatedCall()
		}
		c.emitArguments(k)
		c.building = nil
	}
	calls := make([]*dragoman.ToolCall, len(c.calls))
	for i, k := range c.calls {
		v := k.part.Value.(*dragoman.ToolCall)
		v.Arguments, v.Signature, v.Extra, v.Problem = k.args, k.signature, k.extra, k.problem
		c.d.reg.ResolveCall(v, c.path(), c.d.rep)
		if !terminal && v.Problem == nil {
			v.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the stream ended before the call was complete", Offset: -1}
		}
		calls[i] = v
	}
	reason := decodeStop(c.finishReason)
	if c.d.blocked != "" {
		reason = dragoman.StopContentFilter
	}
	stop := dragoman.Stop{Reason: wirekit.SettleStop(c.d.reg, reason, terminal, calls), Native: c.finishReason}
	c.parts.EndAll()
	return stop
}
