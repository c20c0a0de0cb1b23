package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	dragoman "github.com/dragoman-go/dragoman"
)

// The hooks. [Extension] documents them.
type (
	initializer interface {
		Initialize(ctx context.Context, settings json.RawMessage) error
	}
	preparer interface {
		Prepare(ctx context.Context, x *Exchange) error
	}
	contributor interface {
		Contribute(x *Exchange) []dragoman.Contribution
	}
	nativeWriter interface {
		ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage
	}
	decorator interface {
		Decorate(ctx context.Context, x *Exchange) error
	}
	chunkReader interface {
		ReadChunk(ctx context.Context, x *Exchange, chunk json.RawMessage) error
	}
	nativeReader interface {
		FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message
	}
	finisher interface {
		Finish(ctx context.Context, x *Exchange, resp *dragoman.Response) error
	}
	tagger interface{ Tags(env Env) []Tag }
	idler  interface {
		Idle(settings json.RawMessage) bool
	}
	configurable interface{ ConfigSchema() json.RawMessage }
	presenter    interface{ Elements(env Env) []Element }
	actor        interface{ Actions(env Env) []Action }
)

// checkHooks returns an error if a method of an extension has the name of a hook but another
// signature.
func checkHooks(e Extension) error {
	p := reflect.ValueOf(e)
	if p.Kind() != reflect.Pointer {
		p = reflect.New(p.Type())
	}
	// The names are constants, so that the linker can still drop methods of other names.
	for _, h := range []struct {
		name   string
		is     bool
		method reflect.Value
		want   reflect.Type
	}{
		{"Initialize", is[initializer](e), p.MethodByName("Initialize"), reflect.TypeFor[func(context.Context, json.RawMessage) error]()},
		{"Prepare", is[preparer](e), p.MethodByName("Prepare"), reflect.TypeFor[func(context.Context, *Exchange) error]()},
		{"Contribute", is[contributor](e), p.MethodByName("Contribute"), reflect.TypeFor[func(*Exchange) []dragoman.Contribution]()},
		{"ToNative", is[nativeWriter](e), p.MethodByName("ToNative"), reflect.TypeFor[func([]dragoman.Message, []json.RawMessage) []json.RawMessage]()},
		{"Decorate", is[decorator](e), p.MethodByName("Decorate"), reflect.TypeFor[func(context.Context, *Exchange) error]()},
		{"ReadChunk", is[chunkReader](e), p.MethodByName("ReadChunk"), reflect.TypeFor[func(context.Context, *Exchange, json.RawMessage) error]()},
		{"FromNative", is[nativeReader](e), p.MethodByName("FromNative"), reflect.TypeFor[func([]json.RawMessage, []dragoman.Message) []dragoman.Message]()},
		{"Finish", is[finisher](e), p.MethodByName("Finish"), reflect.TypeFor[func(context.Context, *Exchange, *dragoman.Response) error]()},
		{"Tags", is[tagger](e), p.MethodByName("Tags"), reflect.TypeFor[func(Env) []Tag]()},
		{"Idle", is[idler](e), p.MethodByName("Idle"), reflect.TypeFor[func(json.RawMessage) bool]()},
		{"ConfigSchema", is[configurable](e), p.MethodByName("ConfigSchema"), reflect.TypeFor[func() json.RawMessage]()},
		{"Elements", is[presenter](e), p.MethodByName("Elements"), reflect.TypeFor[func(Env) []Element]()},
		{"Actions", is[actor](e), p.MethodByName("Actions"), reflect.TypeFor[func(Env) []Action]()},
	} {
		switch {
		case h.is || !h.method.IsValid():
		case h.method.Type() == h.want:
			return fmt.Errorf("method %s is only on the pointer: register a pointer to %T", h.name, e)
		default:
			return fmt.Errorf("method %s of %T is a %v, want a %v", h.name, e, h.method.Type(), h.want)
		}
	}
	return nil
}

func is[H any](e Extension) bool {
	_, ok := e.(H)
	return ok
}
