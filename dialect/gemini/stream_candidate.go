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

// streamed is one candidate being streamed.
type streamed struct {
	d     *streamDecoder
	index int
	parts stream.Parts
	word  string

	// open is the text or thought that the next chunk may go on with.
	open *stream.Part
	// renoted: it was reported that what stands beside a text changed.
	renoted bool
	calls   []*streamedCall // in order of arrival
	byID    map[string]*streamedCall
	// building is the call whose arguments still come in pieces.
	building *streamedCall
	// last are the calls without an id of the chunk before, by their position.
	last, now map[int]sentCall
}

// sentCall is a call as a chunk sent it. A digest stands for its bytes, which
// would have to be kept of every candidate.
type sentCall struct {
	sum  [sha256.Size]byte
	told bool // it was reported that it came again
}

// streamedCall is a call of a stream.
type streamedCall struct {
	id        string
	name      string
	args      string
	pieces    partialArgs
	inPieces  bool
	signature string
	extra     *dragoman.Extra
	problem   *dragoman.CallProblem
	part      *stream.Part
	wrapped   bool // the tool will get other arguments than those of the wire
	repeated  bool // it was reported that it came again
}

// What is wrong with a member of a call that says what runs.
var (
	errNameType   = errors.New("name must be a string")
	errPiecesType = errors.New("partialArgs must be a list")
	errGoesOnType = errors.New("willContinue must be true or false")
)

var errManyParts = fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts)

func (c *streamed) path() extra.Path { return extra.Elem("/candidates", c.index) }

// finish takes a finish reason.
func (c *streamed) finish(word string) {
	c.d.held.Wait = true // for the end, which says it again
	c.word = laterWord(c.word, word)
}

// content takes the parts that a chunk brings.
func (c *streamed) content(raw []byte) error {
	r := &c.d.inner
	r.Reset(raw)
	if r.Null() {
		return r.Err()
	}
	c.now = nil
	var failed error
	var seen members
	for key := range r.Object() {
		c.d.once(&seen, contentMembers, key)
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
		case "role": // the model's
			r.Skip()
		default:
			if r.Null() {
				continue
			}
			c.d.strays.Add("/content/", key)
			c.d.held.Field(candidatePath(c.index)+"/content", key, r.Raw())
		}
	}
	c.last = c.now
	if r.Err() != nil {
		return r.Err()
	}
	return failed
}

func (c *streamed) part(raw []byte, pos int) error {
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
	if err := c.d.room(); err != nil {
		return err
	}
	c.d.pass(len(raw))
	whole, err := c.d.part(bytes.Clone(raw), c.path().Elem("content/parts", pos), 0, c.index)
	if err != nil {
		return err
	}
	c.closeText()
	c.parts.Whole(0, c.header(), whole)
	return nil
}

// header is that of the message, for its first part.
func (c *streamed) header() *dragoman.Message {
	if c.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: c.d.origin}
}

func (c *streamed) closeText() {
	c.open.End()
	c.open = nil
}

// text takes a text or a thought. It goes on with the one before it, unless
// either is signed: a signature belongs to the very part it came with (quirks
// B16, C30). That of a thought ends the thought that it came behind, as it does
// elsewhere (quirk C22).
func (c *streamed) text(p *rawPart, pos int) error {
	said, err := c.d.said(p)
	if err != nil {
		return err
	}
	if said == "" && p.signature == "" && !noted(p.extra) {
		return nil // the API ends streams with one
	}
	kind := codes.KindText
	if p.thought {
		kind = codes.KindReasoning
	}
	if c.open != nil && pos == 0 && p.signature == "" && c.open.Value.Kind() == kind {
		c.open.Append(said)
		c.note(p)
		return nil
	}
	if c.signs(p, pos) {
		c.open.Append(said)
		c.note(p)
		c.d.pass(len(p.signature))
		c.open.Value.(*dragoman.Reasoning).Signature = p.signature
		c.closeText()
		return nil
	}
	if err := c.d.room(); err != nil {
		return err
	}
	c.closeText()
	c.d.pass(len(p.signature))
	var skeleton, value dragoman.Part
	ex := c.d.copied(p.extra)
	if p.thought {
		skeleton, value = &dragoman.Reasoning{Signature: p.signature}, &dragoman.Reasoning{Signature: p.signature, Extra: ex}
	} else {
		skeleton, value = &dragoman.Text{Signature: p.signature}, &dragoman.Text{Signature: p.signature, Extra: ex}
	}
	part := c.parts.Start(0, c.header(), skeleton, value)
	part.Append(said)
	if p.signature != "" {
		part.End()
		return nil
	}
	c.open = part
	return nil
}

// signs reports whether a part is the signed end of the thought that is open.
func (c *streamed) signs(p *rawPart, pos int) bool {
	return c.open != nil && pos == 0 && p.thought && p.signature != "" && c.open.Value.Kind() == codes.KindReasoning
}

// note keeps what stands beside a text that goes on. Where it is not what stood
// beside the text before, the later one counts.
func (c *streamed) note(p *rawPart) {
	kept := notes(c.open.Value)
	for _, f := range p.extra.For(name) {
		key := extra.Name(f.Path)
		if old, ok := extra.Replaces(*kept, "", key); ok && !bytes.Equal(old, f.Value) && !c.renoted {
			c.renoted = true
			c.d.rep.Addf(dragoman.Dropped, dragoman.Warn, c.path().String(), "%.40s beside a text, in place of which another came with a later piece", key)
		}
		c.d.bound.Take(extra.AddCopy(kept, name, "", key, f.Value))
	}
}

// notes is where a text or a thought keeps what stands beside it.
func notes(p dragoman.Part) **dragoman.Extra {
	if r, ok := p.(*dragoman.Reasoning); ok {
		return &r.Extra
	}
	return &p.(*dragoman.Text).Extra
}

// copied is what was kept of a part, in memory of its own.
func (d *streamDecoder) copied(e *dragoman.Extra) *dragoman.Extra {
	var out *dragoman.Extra
	for _, f := range e.For(name) {
		d.pass(extra.AddCopy(&out, name, "", extra.Name(f.Path), f.Value))
	}
	return out
}

// fragment is what a part says of a call.
type fragment struct {
	id, name string
	args     string
	hasArgs  bool
	goesOn   bool
	members  int
	extra    *dragoman.Extra // in memory of the event
}

// call takes a part of a call: a whole one, or a piece of one (quirks C27,
// C28).
func (c *streamed) call(p *rawPart, pos int) error {
	k := c.building
	f, bad, err := c.fragment(p)
	if err != nil {
		return jsonwire.PlaceAt("/functionCall", p.start, err)
	}
	switch {
	case f.name == "" && k != nil:
	case f.members == 0 && bad == nil && p.repeated == "" && p.kinds == 0 && p.kind == "functionCall":
		return nil // the end of a call that has none (quirk B24)
	default:
		if c.resent(p, &f, pos) {
			return nil
		}
		if k, err = c.begin(&f); k == nil || err != nil {
			return err
		}
	}
	c.d.touched = append(c.d.touched, k)
	c.take(k, p, &f, bad)
	if f.goesOn {
		c.building = k
		return nil
	}
	c.building = nil
	c.show(k)
	return nil
}

// fragment reads the call of a part. Pieces of arguments go to the call that is
// being built, or to the one that this part begins; bad is why they cannot.
func (c *streamed) fragment(p *rawPart) (f fragment, bad, err error) {
	r := &c.d.calls
	r.Reset(p.data)
	if r.Kind() != '{' && r.Err() == nil {
		return f, wirekit.ErrNotObject, nil
	}
	var seen members
	for key := range r.Object() {
		f.members++
		camel := jsonwire.Camel(key)
		c.d.once(&seen, callMembers, camel)
		switch member := string(camel); {
		case r.Kind() == 'n':
			r.Skip()
		case member == "id" && r.Kind() == '"':
			f.id = r.String()
		case member == "id":
			r.Skip() // a number is no id (requirement I8)
		case member == "name" && r.Kind() == '"':
			f.name = r.String()
		case member == "args":
			f.hasArgs = true
			if r.Kind() == '"' {
				f.args = r.String()
			} else {
				f.args = string(r.Raw())
			}
		case member == "willContinue" && (r.Kind() == 't' || r.Kind() == 'f'):
			f.goesOn = r.Bool()
		case member == "partialArgs" && r.Kind() != '[':
			r.Skip()
			bad = errPiecesType
		case member == "partialArgs":
			r.Skip() // taken when it is known whose they are
		case member == "name":
			r.Skip()
			bad = errNameType
		case member == "willContinue":
			// Nobody knows whether it goes on: what follows without a name is its own.
			extra.Add(&f.extra, name, "", camel, r.Raw())
			f.goesOn, bad = true, errGoesOnType
		default:
			extra.Add(&f.extra, name, "", key, r.Raw())
		}
	}
	return f, bad, r.Err()
}

// resent reports whether a part without an id is the one that stood in the same
// place of the chunk before, sent again (quirk C27).
func (c *streamed) resent(p *rawPart, f *fragment, pos int) bool {
	if f.id != "" || f.goesOn {
		return false
	}
	sent := sentCall{sum: sha256.Sum256(p.raw)}
	before, again := c.last[pos]
	if again = again && before.sum == sent.sum; again {
		if sent.told = true; !before.told {
			c.d.rep.Addf(dragoman.Dropped, dragoman.Warn, c.path().Elem("content/parts", pos).String(), "a call of %.80q that the chunk before brought already", f.name)
		}
	}
	if c.now == nil {
		c.now = map[int]sentCall{}
	}
	c.now[pos] = sent
	return again
}

// begin opens a call; nil for an exact repeat of one (quirk B11).
func (c *streamed) begin(f *fragment) (*streamedCall, error) {
	if c.building != nil { // a call begins before the last one ended
		c.spoil(c.building, half())
		c.show(c.building)
		c.building = nil
	}
	if first := c.byID[f.id]; f.id != "" && first != nil {
		if first.name == f.name && first.args == f.args && !first.inPieces && !f.goesOn {
			if !first.repeated {
				first.repeated = true
				c.d.rep.Addf(dragoman.Dropped, dragoman.Info, c.path().String(), "call %.64q is repeated exactly", f.id)
			}
			return nil, nil
		}
	}
	if err := c.d.room(); err != nil {
		return nil, err
	}
	c.closeText()
	c.d.bound.Take(len(f.id) + len(f.name))
	k := &streamedCall{id: f.id, name: f.name, pieces: partialArgs{bound: &c.d.bound}}
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

// identify gives a call its id: its own, unless it has none or another call has
// it (quirks B10, B11).
func (c *streamed) identify(k *streamedCall, value *dragoman.ToolCall) {
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

// take adds what a part says to its call.
func (c *streamed) take(k *streamedCall, p *rawPart, f *fragment, bad error) {
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
		c.spoil(k, wirekit.RepeatedMember(p.repeated))
	case p.kinds > 0 || p.kind != "functionCall":
		c.spoil(k, wirekit.RepeatedMember("functionCall")) // it is something else, too
	case bad != nil:
		c.spoil(k, &dragoman.CallProblem{Code: codes.ProblemUnreadable, Message: "the call cannot be read: " + bad.Error(), Offset: -1})
	case f.id != "" && f.id != k.id:
		c.spoil(k, &dragoman.CallProblem{Code: codes.ProblemStopped, Message: "the id of the call changed while it was streamed", Offset: -1})
	}
	if f.hasArgs {
		if k.args != "" || k.inPieces {
			c.spoil(k, badPiece(errArgTwice))
		}
		c.setArgs(k, f.args)
	}
	c.pieces(k, p)
}

// pieces takes the pieces of arguments that a part brings.
func (c *streamed) pieces(k *streamedCall, p *rawPart) {
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
		if r.Kind() != '[' { // nobody knows what they are
			c.spoil(k, badPiece(errArgList))
			r.Skip()
			continue
		}
		if k.inPieces = true; k.args != "" && k.args != "{}" {
			c.spoil(k, badPiece(errArgTwice))
		}
		for range r.Array() {
			if err := k.pieces.add(r); err != nil {
				c.spoil(k, badPiece(err))
			}
			if k.pieces.strange {
				c.d.untold.Addf(c.d.rep, dragoman.Dropped, dragoman.Info, c.path().String(), "members that nobody knows, beside pieces of arguments")
			}
		}
	}
	if err := r.Err(); err != nil {
		c.spoil(k, badPiece(err))
	}
}

// spoil says that a call must not run; the first reason counts.
func (c *streamed) spoil(k *streamedCall, problem *dragoman.CallProblem) {
	if k.problem == nil {
		k.problem = problem
		c.d.untold.Addf(c.d.rep, dragoman.Lowered, dragoman.Warn, c.path().String(), "%s", problem.Message)
	}
}

// half is the problem of a call whose end never came.
func half() *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemTruncated, Offset: -1,
		Message: "the stream went on before the call was complete; make it again",
	}
}

// show tells of the arguments of a call that is complete.
func (c *streamed) show(k *streamedCall) {
	if k.inPieces {
		if p := k.pieces.wanting(); p != nil {
			c.spoil(k, p)
		}
		c.setArgs(k, k.pieces.text())
		k.pieces.drop()
	}
	if !k.wrapped {
		k.part.Tell(k.args)
	}
}

// setArgs keeps the arguments of a call in place of those it had.
func (c *streamed) setArgs(k *streamedCall, args string) {
	c.d.bound.Take(len(args) - len(k.args))
	k.args = args
}

// end closes the candidate and derives its stop.
func (c *streamed) end(terminal bool) dragoman.Stop {
	c.closeText()
	if k := c.building; k != nil {
		if k.problem == nil {
			k.problem = half()
		}
		c.show(k)
		c.building = nil
	}
	calls := make([]*dragoman.ToolCall, len(c.calls))
	for i, k := range c.calls {
		v := k.part.Value.(*dragoman.ToolCall)
		v.Arguments, v.Signature, v.Extra, v.Problem = k.args, k.signature, k.extra, k.problem
		c.d.reg.Settle(v, c.path(), c.d.rep)
		if !terminal && v.Problem == nil {
			v.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the stream broke before the call was complete", Offset: -1}
		}
		calls[i] = v
	}
	reason := stopOf(c.word)
	if c.d.blocked != "" {
		reason = dragoman.StopContentFilter
	}
	stop := dragoman.Stop{Reason: wirekit.SettleStop(c.d.reg, reason, terminal, calls), Native: c.word}
	c.parts.EndAll()
	return stop
}
