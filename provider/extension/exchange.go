package extension

import (
	"context"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// Exchange is one request and its response, as extensions see them. It belongs to that request,
// and to one goroutine at a time.
type Exchange struct {
	// Request is the request. It must not be changed. It is validated after all Prepare hooks
	// ran; an invalid one is refused then.
	Request *dragoman.Request
	// Stream reports that a stream is requested.
	Stream bool
	// Target is the target that the request is encoded for. Prepare may change its
	// capabilities.
	Target targets.Target
	// Resolution lists the extensions that are on, and the tags. Changing it has no effect.
	Resolution *Resolution
	// Registry is the registry of this request; nil before it is composed. Do not keep it.
	Registry *interop.Registry
	// Payload is the native body. It is empty until the request is encoded. Fields that a
	// Prepare hook writes replace those of the encoded body.
	Payload Object
	// Report collects the losses of an extension's changes to the request. They are reported
	// with all other losses.
	Report dragoman.Report
	// partial is the collected object; sums are the sums that accumulators have not written into
	// it yet.
	partial Object
	sums    []sum
	// failed is the error of the first sum that could not be written.
	failed error
	// gathered holds the keys of accumulators that have a sum.
	gathered []any

	// resolution is the resolution in use; changes to Resolution do not affect it.
	resolution *Resolution
	// config holds the settings of extensions by name.
	config map[string]json.RawMessage
	// active is the extension whose hook is running.
	active  string
	values  map[any]any
	patches func(Patch)
	// position is the run, the turn and the message of the response.
	position Position
	// changes are the changes of chunk readers to the message, in order.
	changes []change
}

// change is a change to the message of a response, and the extension that makes it.
type change struct {
	owner string
	do    func(*dragoman.Message) error
}

// Options are the options of [NewExchange].
type Options struct {
	Request    *dragoman.Request
	Stream     bool
	Target     targets.Target
	Resolution *Resolution
	// Config holds the settings of extensions by name.
	Config map[string]json.RawMessage
	// Patches gets the values that an [Accumulator] collects while the response streams; nil
	// drops them.
	Patches func(Patch)
	// Position is the run, the turn and the message of the response.
	Position Position
}

// NewExchange returns the exchange for one request.
func NewExchange(o Options) *Exchange {
	if o.Resolution == nil {
		o.Resolution = &Resolution{}
	}
	return &Exchange{
		Request: o.Request, Stream: o.Stream, Target: o.Target, Resolution: o.Resolution, resolution: o.Resolution,
		config: o.Config, patches: o.Patches, position: o.Position,
	}
}

// Config decodes the settings of the extension whose hook is running into v. It
// reports whether there are any.
func (x *Exchange) Config(v any) (found bool, err error) {
	raw, ok := x.config[x.active]
	if !ok || len(raw) == 0 {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// sum is the pending sum of an accumulator and its extension.
type sum struct {
	owner string
	write func() error
}

// Partial returns what has been collected of the response so far. Extensions share it, so merge
// values instead of replacing those of others. If a sum cannot be written, because it cannot be
// marshaled or because its path leads through something that is not an object, the hook that
// called Partial fails with an [Error] of the extension that collects the sum.
func (x *Exchange) Partial() *Object {
	for _, s := range x.sums {
		if err := s.write(); err != nil && x.failed == nil {
			x.failed = &Error{Extension: s.owner, Hook: "accumulate", Err: err}
		}
	}
	return &x.partial
}

// Change registers a change of the last message of the response. ReadChunk hooks call it.
// Changes run in the order of the calls, when the response is complete, before FromNative
// and Finish, whether or not the response is streamed.
func (x *Exchange) Change(f func(m *dragoman.Message) error) {
	x.changes = append(x.changes, change{x.active, f})
}

// Changes reports whether a chunk reader changes the message.
func (x *Exchange) Changes() bool { return len(x.changes) > 0 }

// Has reports whether the request has a tag.
func (x *Exchange) Has(t Tag) bool { return x.resolution.Has(t) }

// Key identifies a value of an exchange. Two keys are always different, even if their names are
// equal, so only code that has the key can overwrite a value.
type Key[T any] struct{ name string }

// NewKey returns a new key. The name is for display.
func NewKey[T any](name string) *Key[T] { return &Key[T]{name} }

// String returns the name of the key.
func (k *Key[T]) String() string { return k.name }

// Put stores a value for the rest of the exchange.
func (k *Key[T]) Put(x *Exchange, value T) { x.put(k, value) }

func (x *Exchange) put(key, value any) {
	if x.values == nil {
		x.values = map[any]any{}
	}
	x.values[key] = value
}

// Get returns the stored value, or the zero value.
func (k *Key[T]) Get(x *Exchange) T {
	value, _ := x.values[k].(T)
	return value
}

// Initialize calls the hook of every extension for which done is false, and then sets done. A
// caller that shares done among exchanges must hold a lock.
func (x *Exchange) Initialize(ctx context.Context, done map[string]bool) error {
	return each(x, "initialize", func(i initializer) error {
		if done[x.active] {
			return nil
		}
		err := i.Initialize(ctx, x.config[x.active])
		done[x.active] = err == nil
		return err
	})
}

// Initializes reports whether an extension has Initialize.
func (x *Exchange) Initializes() bool { return anyHas[initializer](x) }

// Prepare calls the Prepare hooks.
func (x *Exchange) Prepare(ctx context.Context) error {
	return each(x, "prepare", func(p preparer) error { return p.Prepare(ctx, x) })
}

// Contributions returns the contributions of all Contribute hooks, in order.
func (x *Exchange) Contributions() (out []dragoman.Contribution, err error) {
	err = each(x, "contribute", func(c contributor) error {
		for _, more := range c.Contribute(x) {
			if more.Source == "" {
				more.Source = x.active
			}
			out = append(out, guarded(more))
		}
		return nil
	})
	return out, err
}

// Decorate merges the fields that Prepare hooks wrote into Payload over the payload, calls
// every Decorate hook with it, and returns the result.
func (x *Exchange) Decorate(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	if !anyHas[decorator](x) && x.Payload.isEmpty() {
		return payload, nil
	}
	object, err := NewObject(payload)
	if err != nil {
		return nil, err
	}
	if !x.Payload.isEmpty() {
		if err := object.Merge(x.Payload.JSON()); err != nil {
			return nil, err
		}
	}
	x.Payload = object
	err = each(x, "decorate", func(d decorator) error { return d.Decorate(ctx, x) })
	return x.Payload.JSON(), err
}

// WritesNative reports whether an extension has ToNative.
func (x *Exchange) WritesNative() bool { return anyHas[nativeWriter](x) }

// ReadsNative reports whether an extension has FromNative.
func (x *Exchange) ReadsNative() bool { return anyHas[nativeReader](x) }

// ToNative calls the ToNative hooks, in order. It ignores a result with another number of
// messages.
func (x *Exchange) ToNative(messages []dragoman.Message, native []json.RawMessage) ([]json.RawMessage, error) {
	err := each(x, "to native", func(m nativeWriter) error {
		if out := m.ToNative(messages, native); len(out) == len(native) {
			native = out
		}
		return nil
	})
	return native, err
}

// FromNative calls the FromNative hooks, in order. It ignores a result with another number of
// messages.
func (x *Exchange) FromNative(native []json.RawMessage, messages []dragoman.Message) ([]dragoman.Message, error) {
	err := each(x, "from native", func(m nativeReader) error {
		if out := m.FromNative(native, messages); len(out) == len(messages) {
			messages = out
		}
		return nil
	})
	return messages, err
}

// Restart discards what was collected from the response, before another attempt.
func (x *Exchange) Restart() {
	x.partial, x.sums, x.failed = Object{}, nil, nil
	for _, a := range x.gathered {
		delete(x.values, a)
	}
	x.gathered, x.changes = nil, nil
}

// Finishes reports whether an extension has Finish.
func (x *Exchange) Finishes() bool { return anyHas[finisher](x) }

// ReadsChunks reports whether an extension has ReadChunk.
func (x *Exchange) ReadsChunks() bool { return anyHas[chunkReader](x) }

// ReadChunk calls the ReadChunk hooks.
func (x *Exchange) ReadChunk(ctx context.Context, chunk json.RawMessage) error {
	return each(x, "read chunk", func(r chunkReader) error { return r.ReadChunk(ctx, x, chunk) })
}

// ApplyChanges applies the changes of chunk readers to the last message of a response. It
// adds a message if there is none.
func (x *Exchange) ApplyChanges(resp *dragoman.Response) error {
	if len(x.changes) == 0 {
		return nil
	}
	if len(resp.Output) == 0 {
		resp.Output = []dragoman.Message{{Role: dragoman.RoleAssistant, Origin: resp.Origin}}
	}
	for _, c := range x.changes {
		if err := x.run(c.owner, func() error { return c.do(&resp.Output[len(resp.Output)-1]) }); err != nil {
			return &Error{Extension: c.owner, Hook: "change message", Err: err}
		}
	}
	return nil
}

// Finish calls the Finish hooks.
func (x *Exchange) Finish(ctx context.Context, resp *dragoman.Response) error {
	return each(x, "finish", func(f finisher) error { return f.Finish(ctx, x, resp) })
}

// anyHas reports whether an active extension has a hook.
func anyHas[H any](x *Exchange) bool {
	for _, e := range x.resolution.On {
		if _, ok := e.(H); ok {
			return true
		}
	}
	return false
}

// each calls one hook of all active extensions that have it, in order, until one fails. A panic
// is a failure.
func each[H any](x *Exchange, hook string, call func(H) error) error {
	for _, e := range x.resolution.On {
		h, ok := e.(H)
		if !ok {
			continue
		}
		name := e.Info().Name
		if err := x.run(name, func() error { return call(h) }); err != nil {
			return &Error{Extension: name, Hook: hook, Err: err}
		}
		if x.failed != nil {
			return x.failed
		}
	}
	return nil
}
