package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
	"github.com/dragoman-go/dragoman/targets"
)

// Extensions adapt the requests and responses of a [Client]. The zero value has none.
type Extensions struct {
	// Set holds the extensions that may be on; nil means none. A client that a [Config] opens
	// has this module's extensions for its server.
	Set *extension.Set
	// Switches turn extensions on or off regardless of tags.
	Switches extension.Switches
	// Tags are added to the tags of the dialect, the server, the model's family, and the names
	// and formats of the tools.
	Tags []extension.Tag
	// TagsFor returns more tags for a request, given the settings, the model and the
	// tools; nil adds none.
	TagsFor func(setup extension.Setup) []extension.Tag
	// Config holds the settings of extensions by name. The names must be in Set. Settings of an
	// extension that is off for a request, but not switched off, are reported as lost.
	Config map[string]json.RawMessage
	// Patches receives the values that extensions collect while a response streams; nil
	// drops them. Patches of an attempt that failed before its first content are not sent.
	Patches func(extension.Patch)
}

// toolsTag is set for requests with tools; formatTag and toolTag are the prefixes of the
// tags for the tools' formats and qualified names.
const (
	toolsTag  extension.Tag = "tools"
	formatTag string        = "format:"
	toolTag   string        = "tool:"
)

// serverTags returns the tags of a dialect, a server and a model. A provider of the user's
// own also has a tag with its name, for the user's extensions, unless it has the name of a
// built-in provider: a name does not identify the server.
func serverTags(d dragoman.Dialect, name, server, model string) []extension.Tag {
	tags := servers.Tags(d, server, model)
	if _, builtin := builtinNamed(name); !builtin && name != "" {
		tags = append(tags, servers.ServerTag(name))
	}
	return tags
}

// tags returns the tags of a request.
func (x *exchange) tags() []extension.Tag {
	tags := append(serverTags(x.limits.Dialect, x.client.Name, x.client.Server, x.model), x.client.Extensions.Tags...)
	if f := x.client.Extensions.TagsFor; f != nil {
		tags = append(tags, f(x.setup())...)
	}
	if x.req == nil {
		return tags
	}
	if len(x.req.Tools) > 0 {
		tags = append(tags, toolsTag)
	}
	add := func(t extension.Tag) {
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	for i := range x.req.Tools {
		t := &x.req.Tools[i]
		if t.Source != nil {
			add(extension.Tag(formatTag + string(t.Source.Format)))
		}
	}
	for _, t := range x.client.Extensions.tagsWithPrefix(toolTag) {
		if slices.ContainsFunc(x.req.Tools, func(s dragoman.ToolSpec) bool { return toolTag+s.QualifiedName() == string(t) }) {
			add(t)
		}
	}
	return tags
}

// setup returns the configuration and request that extensions are resolved for.
func (x *exchange) setup() extension.Setup {
	s := extension.Setup{Config: x.client.Extensions.Config, Model: x.model}
	if x.req != nil {
		s.Tools = x.req.Tools
	}
	return s
}

// Target returns the target that a request for a model is encoded for, after extensions changed
// it, and which extensions are on and why. An empty model means the client's.
func (c *Client) Target(ctx context.Context, model string) (targets.Target, *extension.Resolution, error) {
	x := newExchange(c, &dragoman.Request{Model: model}, false)
	x.setTarget(ctx)
	if err := x.prepareExtensions(ctx); err != nil {
		return targets.Target{}, nil, err
	}
	return x.target, x.extended.Resolution, nil
}

// prepareExtensions finds the extensions of this request and lets them prepare it.
func (x *exchange) prepareExtensions(ctx context.Context) error {
	e := &x.client.Extensions
	r, err := e.Set.ResolveFor(x.tags(), e.Switches, x.setup())
	if err != nil {
		return err
	}
	if name := unknownExtension(e.Set, e.Config); name != "" {
		return &SettingError{Setting: "extensions", Reason: fmt.Sprintf("unknown extension %q", name)}
	}
	x.extended = extension.NewExchange(extension.Options{
		Request: x.req, Stream: x.stream, Target: x.target, Resolution: r, Config: e.Config,
		Patches: x.patchReceiver(modelcall.Patches(ctx)), Position: modelcall.Position(ctx),
	})
	x.reportUnused()
	if err := x.client.initialize(ctx, x.extended); err != nil {
		return err
	}
	err = x.extended.Prepare(ctx)
	if x.client.Override != nil {
		x.client.Override(&x.extended.Target.Caps)
	}
	x.target = x.extended.Target
	return err
}

// initialize calls the hooks that run once per client.
func (c *Client) initialize(ctx context.Context, x *extension.Exchange) error {
	if !x.Initializes() {
		return nil
	}
	c.initMu.Lock()
	defer c.initMu.Unlock()
	if c.initialized == nil {
		c.initialized = map[string]bool{}
	}
	return x.Initialize(ctx, c.initialized)
}

// patchReceiver buffers patches until [exchange.sendPatches]. It is nil if there is no
// receiver.
func (x *exchange) patchReceiver(more func(extension.Patch)) func(extension.Patch) {
	x.patchesTo = nil
	for _, f := range []func(extension.Patch){x.client.Extensions.Patches, more} {
		if f != nil {
			x.patchesTo = append(x.patchesTo, f)
		}
	}
	if x.patchesTo == nil {
		return nil
	}
	return func(p extension.Patch) { x.patches = append(x.patches, p) }
}

// sendPatches sends the patches that were collected since the last call, and reports
// whether there were any.
func (x *exchange) sendPatches() bool {
	patches := x.patches
	x.patches = nil
	for _, p := range patches {
		for _, f := range x.patchesTo {
			f(p)
		}
	}
	return len(patches) > 0
}

// restart discards what was collected from an earlier attempt.
func (x *exchange) restart() {
	x.extended.Restart()
	x.patches, x.deltas = nil, nil
}

// finish lets extensions map the native form of a complete response, and what they collected,
// into the response.
func (x *exchange) finish(ctx context.Context, resp *dragoman.Response, native func(*dragoman.Response) ([]json.RawMessage, error)) error {
	if err := x.extended.ApplyChanges(resp); err != nil {
		return err
	}
	if x.extended.ReadsNative() {
		form, err := native(resp)
		if err != nil {
			return err
		}
		if err := x.fromNative(resp, form); err != nil {
			return err
		}
	}
	return x.extended.Finish(ctx, resp)
}

// collectedMessage is the path below which extensions collect fields of the message.
const collectedMessage = "/message"

// hasCollectedFields reports whether extensions collected fields of the message.
func (x *exchange) hasCollectedFields() bool {
	return x.extended.ReadsChunks() && x.extended.Partial().Get(collectedMessage) != nil
}

// completeFields replaces the unknown fields of a streamed message with the values that extensions
// collected: a chunk has only a fragment of a value.
func (x *exchange) completeFields(m *dragoman.Message) {
	if !x.hasCollectedFields() {
		return
	}
	for i, f := range m.Extra.For(x.limits.Dialect) {
		complete := x.extended.Partial().Get(collectedMessage + f.Path)
		if len(complete) > 0 && len(f.Value) > 0 && complete[0] == f.Value[0] {
			m.Extra.Fields[i].Value = bytes.Clone(complete)
		}
	}
}

// readChunk passes the native bytes of some events to the extensions, as JSON without framing.
func (x *exchange) readChunk(ctx context.Context, raw []byte) error {
	if !x.extended.ReadsChunks() && !x.extended.ReadsNative() {
		return nil
	}
	show := func(body []byte) error {
		if sound := jsonwire.Check(body) == nil; !sound { // [DONE], or a keep-alive
			return nil
		}
		x.collectDelta(body)
		return x.extended.ReadChunk(ctx, body)
	}
	return x.wire.Stream.Framing.Split(raw, func(e framing.Event) error { return show(e.Data) })
}

// finisher lets extensions map what they collected into a streamed response.
type finisher struct {
	x       *exchange
	on      bool
	whole   dragoman.Collector
	indexes int
	message int
}

func (x *exchange) newFinisher() *finisher {
	return &finisher{x: x, on: x.extended.Finishes() || x.extended.ReadsNative() || x.extended.ReadsChunks()}
}

// record records an event that is sent to the caller. Call it only if the finisher is on.
func (f *finisher) record(ev dragoman.Event) {
	if s, ok := ev.(*dragoman.PartStart); ok && s.Choice == 0 {
		f.indexes, f.message = max(f.indexes, s.Index+1), max(f.message, s.Message)
	}
	if _, ok := ev.(*dragoman.Chunk); !ok {
		f.whole.Add(ev)
	}
}

// finish calls the extensions at the end of a stream, and returns events for the parts
// that they added after the last one. If they changed the output in any way, end has the
// whole output, so that collecting the stream gives the same result as a whole response.
func (f *finisher) finish(ctx context.Context, end *dragoman.ResponseEnd) ([]dragoman.Event, error) {
	if !f.on || !f.x.extended.Finishes() && !f.x.extended.ReadsNative() && !f.x.extended.Changes() && !f.x.hasCollectedFields() {
		return nil, nil
	}
	f.whole.Add(end)
	resp, err := f.whole.Response()
	if err != nil {
		return nil, err
	}
	if len(resp.Output) == 0 {
		resp.Output = []dragoman.Message{{Role: dragoman.RoleAssistant, Origin: resp.Origin}}
	}
	before, err := json.Marshal(resp.Output)
	if err != nil {
		return nil, err
	}
	// Extensions get a copy: the caller already has the parts.
	var sent []dragoman.Message
	sent, resp.Output = resp.Output, nil
	if err := json.Unmarshal(before, &resp.Output); err != nil {
		return nil, err
	}
	f.x.completeFields(&resp.Output[len(resp.Output)-1])
	if err := f.x.finish(ctx, resp, f.x.streamedNative); err != nil {
		return nil, err
	}
	after, err := json.Marshal(resp.Output)
	if err != nil {
		return nil, err
	}
	var output []dragoman.Message
	var added []dragoman.Event
	if !bytes.Equal(before, after) {
		output = resp.Output
		added = f.addedParts(sent, output)
	}
	end.Stop, end.Usage = resp.Stop, resp.Usage
	seen := *resp
	seen.Output, seen.Alternatives = output, nil
	end.Response = seen
	return added, nil
}

// addedParts returns the events of parts after the last one that was sent.
func (f *finisher) addedParts(sent, output []dragoman.Message) (out []dragoman.Event) {
	last := len(sent) - 1
	if len(output) != len(sent) || len(output[last].Parts) <= len(sent[last].Parts) {
		return nil
	}
	before := len(sent[last].Parts)
	for i := range before { // a part was inserted before others, so none was added at the end
		if !bytes.Equal(partJSON(sent[last].Parts[i]), partJSON(output[last].Parts[i])) {
			return nil
		}
	}
	for i, p := range output[last].Parts[before:] {
		start := &dragoman.PartStart{Index: f.indexes + i, Message: f.message, Part: p}
		if before == 0 && i == 0 {
			header := output[last]
			header.Parts = nil
			start.Header = &header
		}
		out = append(out, start, &dragoman.PartEnd{Index: f.indexes + i, Part: p})
	}
	return out
}

// partJSON returns the stored form of a part, for comparing.
func partJSON(p dragoman.Part) []byte {
	b, _ := dragoman.MarshalPart(p) // a part without a stored form equals no other part
	return b
}
