package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/extension/servers"
)

// Extensions adapt the requests and answers of a [Client]. The zero value has none.
type Extensions struct {
	// Set are those that may be on; nil means none. [servers.All] are those that
	// this module brings.
	Set *extension.Set
	// Switches say which are on or off whatever the tags are.
	Switches extension.Switches
	// Tags beside those of the dialect, the server, the model's family and the
	// formats of the tools.
	Tags []extension.Tag
	// Config are the settings of extensions by their names, which must be in Set. Those
	// of one that is off for a request, and not switched off, are reported as lost.
	Config map[string]json.RawMessage
	// Patches is told what extensions gather while an answer comes; nil: nobody.
	Patches func(extension.Patch)
}

// toolsTag is there where a request has tools; formatTag is what the tags of their
// formats begin with.
const (
	toolsTag  extension.Tag = "tools"
	formatTag string        = "format:"
)

// tags are those of a request.
func (x *exchange) tags() []extension.Tag {
	tags := append(servers.Tags(x.limits.Dialect, x.client.Name, x.model), x.client.Extensions.Tags...)
	if x.req == nil {
		return tags
	}
	if len(x.req.Tools) > 0 {
		tags = append(tags, toolsTag)
	}
	for i := range x.req.Tools {
		if src := x.req.Tools[i].Source; src != nil {
			if tag := extension.Tag(formatTag + string(src.Format)); !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

// Target is what a request for a model is encoded for, with what extensions say of
// it, and which of them are on and why. An empty model means the client's.
func (c *Client) Target(ctx context.Context, model string) (dragoman.Target, *extension.Resolution, error) {
	x := newExchange(c, &dragoman.Request{Model: model}, false)
	x.aim(ctx)
	if err := x.extend(ctx); err != nil {
		return dragoman.Target{}, nil, err
	}
	return x.target, x.extended.Resolution, nil
}

// extend finds the extensions of this request and lets them prepare it.
func (x *exchange) extend(ctx context.Context) error {
	e := &x.client.Extensions
	r, err := e.Set.Resolve(x.tags(), e.Switches)
	if err != nil {
		return err
	}
	if name := unknownExtension(e.Set, e.Config); name != "" {
		return &SettingError{Setting: "extensions", Reason: fmt.Sprintf("there is no extension %q", name)}
	}
	x.extended = extension.NewExchange(extension.Options{
		Request: x.req, Stream: x.stream, Target: x.target, Resolution: r, Config: e.Config, Patches: e.Patches,
	})
	x.reportUnused()
	if err := x.client.initialize(ctx, x.extended); err != nil {
		return err
	}
	err = x.extended.Prepare(ctx)
	x.target = x.extended.Target
	return err
}

// initialize calls what is called once for a client.
func (c *Client) initialize(ctx context.Context, x *extension.Exchange) error {
	if !x.Initializes() {
		return nil
	}
	c.begun.Lock()
	defer c.begun.Unlock()
	if c.initialized == nil {
		c.initialized = map[string]bool{}
	}
	return x.Initialize(ctx, c.initialized)
}

// finish lets extensions map what a complete answer says in its native form, and
// what they gathered, into it.
func (x *exchange) finish(ctx context.Context, resp *dragoman.Response, native []json.RawMessage) error {
	if err := x.fromNative(resp, native); err != nil {
		return err
	}
	return x.extended.Finish(ctx, resp)
}

// readChunk shows the native bytes of some events to the extensions, as JSON,
// without the frames around it.
func (x *exchange) readChunk(ctx context.Context, raw []byte) error {
	if !x.extended.ReadsChunks() {
		return nil
	}
	show := func(body []byte) error {
		if sound := jsonwire.Check(body) == nil; sound { // not [DONE], nor a keep-alive
			return x.extended.ReadChunk(ctx, body)
		}
		return nil
	}
	switch x.limits.Dialect {
	case dragoman.Ollama:
		return show(raw)
	case dragoman.Bedrock:
		var p eventstream.Parser
		return p.Feed(raw, func(f eventstream.Frame) error { return show(f.Payload) })
	default:
		var p sse.Parser
		return errors.Join(p.Feed(raw, func(e sse.Event) error { return show(e.Data) }), p.Close(func(e sse.Event) error { return show(e.Data) }))
	}
}

// finisher lets extensions map what they gathered into an answer that comes as a
// stream: the parts that they add are handed out before its end.
type finisher struct {
	x       *exchange
	on      bool
	whole   dragoman.Collector
	indexes int
	message int
}

func (x *exchange) newFinisher() *finisher {
	return &finisher{x: x, on: x.extended.Finishes() || x.extended.Maps()}
}

// see takes an event of the first choice.
func (f *finisher) see(ev dragoman.Event) {
	if !f.on {
		return
	}
	if s, ok := ev.(*dragoman.PartStart); ok && s.Choice == 0 {
		f.indexes, f.message = max(f.indexes, s.Index+1), max(f.message, s.Message)
	}
	if _, ok := ev.(*dragoman.Chunk); !ok {
		f.whole.Add(ev)
	}
}

// finish calls the extensions at the end of a stream, and returns the events that
// tell what they added. What they changed of the response as a whole is in end.
func (f *finisher) finish(ctx context.Context, end *dragoman.ResponseEnd) ([]dragoman.Event, error) {
	if !f.on {
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
	last := len(resp.Output) - 1
	before := len(resp.Output[last].Parts)
	if err := f.x.finish(ctx, resp, f.x.gathered()); err != nil {
		return nil, err
	}
	var added []dragoman.Event
	if len(resp.Output) == last+1 && len(resp.Output[last].Parts) > before {
		for i, p := range resp.Output[last].Parts[before:] {
			start := &dragoman.PartStart{Index: f.indexes + i, Message: f.message, Part: p}
			if before == 0 && i == 0 {
				header := resp.Output[last]
				header.Parts = nil
				start.Header = &header
			}
			added = append(added, start, &dragoman.PartEnd{Index: f.indexes + i, Part: p})
		}
	}
	end.Stop, end.Usage = resp.Stop, resp.Usage
	said := *resp
	said.Output, said.Alternatives = nil, nil
	end.Response = said
	return added, nil
}
