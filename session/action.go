package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// ActionContext adds to the context that actions of extensions get. The zero value adds
// nothing.
type ActionContext struct {
	// App and Base describe the application and its base configuration, as JSON: the
	// layers "app" and "base_config".
	App, Base json.RawMessage
	// Layers are further layers of the caller. A reserved name keeps the library's value,
	// and a warning is logged.
	Layers map[string]json.RawMessage
	// Values are live values of the application, in [extension.Runtime].Values.
	Values map[string]any
	// Log gets warnings, and the errors of actions that run automatically; nil means
	// slog.Default().
	Log *slog.Logger
}

// Action selects an action of an extension, and its input.
type Action struct {
	// Extension is the name of the extension; empty means the only one that has an
	// action of that ID.
	Extension, ID string
	// Model names the model for a client that serves several, or a link of a
	// [provider.Chain]; empty means the client's own model, or the link that
	// [Session.ActionModel] returns.
	Model string
	// Params are the parameters, as the action's inputs define them; nil means none.
	Params json.RawMessage
	// Context is added to the layers of the library and of [Session.ActionContext].
	Context map[string]json.RawMessage
}

// ErrNoWire means that a model has no native history, because it sends no requests to a
// provider: a simulator, or an application's own model.
var ErrNoWire = errors.New("session: the model sends no requests to a provider")

// errNoNative means that the conversation cannot be written in the dialect of the model.
var errNoNative = errors.New("session: the conversation has no native history in this dialect")

// connection is a session's wire to a model, for one call.
type connection struct {
	modelcall.Wire
	model dragoman.Model
}

func connectionTo(ctx context.Context, model dragoman.Model, name string) (connection, error) {
	w, err := wireOf(ctx, model, name)
	if err == nil && (w.Codec == nil || w.Extensions == nil) {
		err = invalidf("the wire of %T has no codec or no extensions", model)
	}
	return connection{w, model}, err
}

// wireOf returns the wire of a model. A model that is not a provider's, such as a simulator,
// has no wire.
func wireOf(ctx context.Context, model dragoman.Model, name string) (modelcall.Wire, error) {
	switch m := model.(type) {
	case modelcall.Model:
		return m.Wire(ctx, name)
	case *provider.Chain:
		return modelcall.Wire{}, fmt.Errorf("%w: a chain has several models: use one of them", ErrNoWire)
	default:
		return modelcall.Wire{}, fmt.Errorf("%w: %T; use a model that was opened by package provider", ErrNoWire, model)
	}
}

// Connect connects the session to a model of a provider, such as provider.MustOpen
// returns, or to a [provider.Chain] of them: from now on [Session.Save] runs the actions
// with the trigger [extension.BeforeSave] of the model's extensions. Nil disconnects it.
// The error wraps [ErrNoWire] if no provider serves the model or a model of the
// chain.
//
// For a chain, each save runs the actions of the link that gave the last response; see
// [Session.ActionModel].
//
// An agent that runs in the session connects it to its model automatically.
func (s *Session) Connect(ctx context.Context, model dragoman.Model) error {
	if model != nil {
		if _, err := connectionsTo(ctx, model, ""); err != nil {
			return wrapErr("connecting", s.ID(), err)
		}
	}
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	s.link = model
	return nil
}

func (s *Session) connected() dragoman.Model {
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	return s.link
}

// Actions returns the actions on the session that the extensions of a model offer. For a
// [provider.Chain], these are the actions of [Session.ActionModel]. The name chooses a
// model as in [Action].
func (s *Session) Actions(ctx context.Context, model dragoman.Model, name string) ([]extension.Action, error) {
	on, err := s.connection(ctx, model, name, nil)
	if err != nil {
		return nil, wrapErr("listing actions on", s.ID(), err)
	}
	actions, err := on.Extensions.Actions()
	if err != nil {
		return nil, wrapErr("listing actions on", s.ID(), err)
	}
	return actions, nil
}

// Act runs an action of one of the model's active extensions (requirement X9), and stores
// its result: a native history that replaces the conversation in requests to this model's
// wire from now on (see [Session.MessagesFor]), and metadata. The stored messages do not change.
//
// The action sees the conversation in the wire's dialect: one message for each element of
// the native history, without the leading instructions, which are kept. If calls wait for
// their results, the error is a *history.UnsettledError.
//
// For a [provider.Chain], the action runs for one link; see [Session.ActionModel]. The
// requests to the other links do not change.
func (s *Session) Act(ctx context.Context, model dragoman.Model, a Action) error {
	on, err := s.connection(ctx, model, a.Model, nil)
	if err != nil {
		return wrapErr("running an action on", s.ID(), err)
	}
	if a.Extension == "" {
		if a.Extension, err = on.extensionWith(a.ID); err != nil {
			return wrapErr("running an action on", s.ID(), err)
		}
	}
	in, c, err := s.actionInput(ctx, on, a.Context, nil)
	if err != nil {
		return err
	}
	in.Params = a.Params
	res, err := on.Extensions.Run(ctx, a.Extension, a.ID, in)
	if err != nil {
		return err
	}
	return s.keep(ctx, on, c, res)
}

// extensionWith returns the extension that has an action, if there is exactly one.
func (on connection) extensionWith(id string) (string, error) {
	var owners, all []string
	actions, err := on.Extensions.Actions()
	if err != nil {
		return "", err
	}
	for _, a := range actions {
		all = append(all, a.ID)
		if a.ID == id {
			owners = append(owners, a.Extension)
		}
	}
	switch len(owners) {
	case 1:
		return owners[0], nil
	case 0:
		return "", fmt.Errorf("%w: %q; the model's extensions have %s", extension.ErrNoAction, id, orNone(all))
	default:
		return "", fmt.Errorf("%w: %q is an action of several extensions: name one of %s", extension.ErrNoAction, id, strings.Join(owners, ", "))
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// BeforeSave runs the actions with the trigger [extension.BeforeSave] on the conversation,
// including the messages that are about to be saved. Each action gets the result of those
// before it. An action that fails changes nothing, and does not prevent the others; its error
// is returned after they ran. BeforeSave does nothing if there are no such actions, if the model has no wire,
// or while calls wait for their results. [Session.Save] of a connected session calls it,
// and agents do.
//
// For a [provider.Chain], it runs the actions of the link that gave the last response in
// the conversation and messages, as [Session.ActionModel] does.
func (s *Session) BeforeSave(ctx context.Context, model dragoman.Model, name string, messages []dragoman.Message) error {
	if hasNoActions(model) {
		return nil
	}
	all, err := connectionsTo(ctx, model, name)
	switch {
	case errors.Is(err, ErrNoWire):
		return nil
	case err != nil:
		return wrapErr("preparing to save", s.ID(), err)
	case !slices.ContainsFunc(all, connection.mayTrigger):
		return nil
	}
	on, err := s.lastOf(ctx, all, messages)
	if err != nil {
		return wrapErr("preparing to save", s.ID(), err)
	}
	switch triggers, err := on.hasAutomaticActions(); {
	case err != nil:
		return wrapErr("preparing to save", s.ID(), err)
	case !triggers:
		return nil
	}
	in, c, err := s.actionInput(ctx, on, nil, messages)
	var unsettled *history.UnsettledError
	if errors.As(err, &unsettled) {
		return nil
	}
	if err != nil {
		return err
	}
	res, err := on.Extensions.Triggered(ctx, extension.BeforeSave, in)
	if kept := s.keep(ctx, on, c, res); kept != nil {
		err = errors.Join(err, kept)
	}
	s.linkMu.Lock()
	s.prepared = preparedSave{head: s.Head(), messages: len(messages), done: true}
	s.linkMu.Unlock()
	return err
}

// hasNoActions reports whether no extension of a model, or of the models of a chain, has
// actions, on or off. It avoids resolving the extensions before every save.
func hasNoActions(model dragoman.Model) bool {
	switch m := model.(type) {
	case *provider.Client:
		return !slices.ContainsFunc(m.Extensions.Set.All(), hasActions)
	case *provider.Chain:
		return !slices.ContainsFunc(m.Links, func(l provider.Link) bool { return !hasNoActions(l.Model) })
	default:
		return false
	}
}

func hasActions(e extension.Extension) bool {
	_, ok := e.(interface {
		Actions(env extension.Env) []extension.Action
	})
	return ok
}

// hasAutomaticActions reports whether there are actions to run before a save.
func (on connection) hasAutomaticActions() (bool, error) {
	actions, err := on.Extensions.Actions()
	return slices.ContainsFunc(actions, func(a extension.Action) bool { return slices.Contains(a.Triggers, extension.BeforeSave) }), err
}

// mayTrigger reports whether triggers returns true or an error.
func (on connection) mayTrigger() bool {
	triggers, err := on.hasAutomaticActions()
	return triggers || err != nil
}

// preparedSave is the save that the actions ran for.
type preparedSave struct {
	head     int64
	messages int
	done     bool
}

// prepareSave runs the actions before messages are saved, unless they have just run for
// them. It logs their errors; the messages are saved anyway.
func (s *Session) prepareSave(ctx context.Context, messages []dragoman.Message) {
	model := s.connected()
	if model == nil || len(messages) == 0 {
		return
	}
	head := s.Head()
	s.linkMu.Lock()
	done := s.prepared == preparedSave{head: head, messages: len(messages), done: true}
	s.linkMu.Unlock()
	if done {
		return
	}
	if err := s.BeforeSave(ctx, model, "", messages); err != nil {
		s.log().Warn("an action before saving a session failed; the messages are saved anyway", "session", s.ID(), "error", err)
	}
}

func (s *Session) log() *slog.Logger {
	if s.ActionContext.Log != nil {
		return s.ActionContext.Log
	}
	return slog.Default()
}

// converted is a conversation with its native form.
type converted struct {
	whole []dragoman.Message // as stored
	head  []dragoman.Message // the leading instructions
	rest  []dragoman.Message // in the dialect, each with its native form
}

func (c converted) native() []json.RawMessage {
	out := make([]json.RawMessage, len(c.rest))
	for i := range c.rest {
		out[i] = c.rest[i].Native.Raw
	}
	return out
}

// actionView is the session as an action sees it.
type actionView struct {
	id       string
	messages []dragoman.Message
	metadata map[string]json.RawMessage
}

func (v actionView) ID() string                           { return v.id }
func (v actionView) Messages() []dragoman.Message         { return v.messages }
func (v actionView) Metadata() map[string]json.RawMessage { return v.metadata }

func (s *Session) actionInput(ctx context.Context, on connection, caller map[string]json.RawMessage, added []dragoman.Message) (in extension.ActionInput, c converted, err error) {
	v, err := s.view()
	if err != nil {
		return in, c, err
	}
	if c, err = v.convert(ctx, on, added); err != nil {
		return in, c, wrapErr("converting", s.ID(), err)
	}
	metadata, err := s.Metadata(ctx)
	if err != nil {
		return in, c, err
	}
	more := s.ActionContext
	layers := maps.Clone(more.Layers)
	if layers == nil {
		layers = map[string]json.RawMessage{}
	}
	maps.Copy(layers, caller)
	view := actionView{s.ID(), slices.Clone(c.rest), metadata}
	return extension.ActionInput{
		Session:  view,
		Native:   c.native(),
		Origin:   on.origin(),
		Context:  layers,
		Settings: on.Config, App: more.App, Base: more.Base, Log: s.log(),
		Runtime: extension.Runtime{
			Model: gatedModel{on.model, on.policyName()}, Target: on.Target, Encode: on.encode, Position: modelcall.Position(ctx), Values: more.Values,
		},
		Rebuild: func(res extension.ActionResult) (extension.Session, error) {
			next := actionView{view.id, view.messages, maps.Clone(view.metadata)}
			if res.Native != nil {
				messages, err := on.decode(c, res.Native)
				if err != nil {
					return nil, err
				}
				next.messages = messages
			}
			if res.Metadata != nil {
				if err := patchMetadata(next.metadata, res.Metadata); err != nil {
					return nil, err
				}
			}
			view = next
			return next, nil
		},
	}, c, nil
}

// gatedModel is a model that actions call: the policy of the run that they are part of
// decides on each call, and the run counts its usage.
type gatedModel struct {
	dragoman.Model
	name string
}

// Generate implements [dragoman.Model].
func (m gatedModel) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if err := modelcall.CheckModel(ctx, m.name); err != nil {
		return nil, err
	}
	resp, err := m.Model.Generate(ctx, req)
	if resp != nil {
		modelcall.Spent(ctx, resp.Usage)
	}
	return resp, err
}

// Stream implements [dragoman.Model].
func (m gatedModel) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		if err := modelcall.CheckModel(ctx, m.name); err != nil {
			yield(nil, err)
			return
		}
		for ev, err := range m.Model.Stream(ctx, req) {
			switch ev := ev.(type) {
			case *dragoman.ResponseEnd:
				modelcall.Spent(ctx, ev.Usage)
			case *dragoman.StreamError:
				modelcall.Spent(ctx, ev.Usage)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// policyName is the name of the model for policies.
func (on connection) policyName() string {
	if on.Target.Provider == "" {
		return on.Target.Model
	}
	return on.Target.Provider + "/" + on.Target.Model
}

func (on connection) origin() dragoman.Origin {
	o := on.Target.Origin()
	o.Dialect = on.Codec.Dialect()
	return o
}

func (on connection) match() targets.Match { return on.Codec.Limits().Replay.Messages }

// encode writes messages in the dialect of the wire, one element for each.
func (on connection) encode(messages []dragoman.Message) ([]json.RawMessage, error) {
	out, err := on.nativeOf(messages)
	if err != nil {
		return nil, err
	}
	native := make([]json.RawMessage, len(out))
	for i := range out {
		native[i] = out[i].Native.Raw
	}
	return native, nil
}

// nativeOf returns messages as the wire's dialect has them, each with its native form.
func (on connection) nativeOf(messages []dragoman.Message) ([]dragoman.Message, error) {
	target := on.Target
	target.Caps.NoPrefill = false // the conversation continues: add nothing after its last message
	req, _, err := history.Normalize(&dragoman.Request{Model: target.Model, Messages: messages}, history.Options{Target: target, Limits: on.Codec.Limits()})
	if err != nil {
		return nil, err
	}
	out, err := on.Codec.EncodeRequest(req, dialect.EncodeOptions{Target: target})
	if err != nil {
		return nil, err
	}
	back, _, err := on.Codec.DecodeRequest(out.Body, dialect.DecodeOptions{Registry: out.Registry, Origin: on.origin()})
	if err != nil {
		return nil, err
	}
	if len(back.Instructions) > 0 {
		return nil, fmt.Errorf("%w: %s does not support instructions within the conversation", errNoNative, on.Codec.Dialect())
	}
	return back.Messages, nativeEach(back.Messages)
}

// convert reads the conversation, including messages that are not stored yet, and converts it
// to the wire's dialect, as a request would send it.
func (v view) convert(ctx context.Context, on connection, added []dragoman.Message) (c converted, err error) {
	if c.whole, err = v.messages(ctx); err != nil {
		return c, err
	}
	var d detached
	c.whole = append(c.whole, d.messages(added)...) // as they will be stored
	messages, err := v.replaced(ctx, c.whole, on.origin(), on.match())
	if err != nil {
		return c, err
	}
	head := 0
	for head < len(messages) && (messages[head].Role == dragoman.RoleSystem || messages[head].Role == dragoman.RoleDeveloper) {
		head++
	}
	c.head = messages[:head:head]
	if head == len(messages) {
		return c, nil
	}
	expanded, err := v.s.expand(ctx, messages[head:], &d)
	if err != nil {
		return c, err
	}
	c.rest, err = on.nativeOf(expanded)
	return c, err
}

// nativeEach checks that every message has a native form.
func nativeEach(messages []dragoman.Message) error {
	for i := range messages {
		if messages[i].Native == nil {
			return fmt.Errorf("%w: message %d has no native form", errNoNative, i)
		}
	}
	return nil
}

// keep stores the result of an action.
func (s *Session) keep(ctx context.Context, on connection, c converted, res extension.ActionResult) error {
	var entries []Entry
	var d detached
	if res.Native != nil && !slices.EqualFunc(res.Native, c.native(), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		rest, err := on.decode(c, res.Native)
		if err != nil {
			return err
		}
		e, err := nativeEntry(originKey(on.origin(), on.match()), c.whole, d.messages(slices.Concat(c.head, rest)))
		if err != nil {
			return err
		}
		entries = append(entries, e)
		s.native.Store(someNative)
	}
	if res.Metadata != nil {
		e, err := metaEntry(res.Metadata)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return wrapIf("storing the result of an action on", s.ID(), s.writeWith(ctx, &d, entries))
}

// decode returns the messages for native elements. Elements that the action did not change
// keep their messages.
func (on connection) decode(c converted, elements []json.RawMessage) ([]dragoman.Message, error) {
	before := map[string][]int{} // indexes by element, in order
	for i := range c.rest {
		raw := string(c.rest[i].Native.Raw)
		before[raw] = append(before[raw], i)
	}
	out := make([]dragoman.Message, len(elements))
	for i, raw := range elements {
		if at := before[string(raw)]; len(at) > 0 {
			out[i] = c.rest[at[0]]
			before[string(raw)] = at[1:]
			continue
		}
		made, err := on.decodeOne(raw)
		if err != nil {
			return nil, err
		}
		out[i] = made
	}
	return out, nil
}

// decodeOne decodes one element of a native history.
func (on connection) decodeOne(raw json.RawMessage) (m dragoman.Message, err error) {
	if _, known := dialects.Named(on.Codec.Dialect()); !known {
		return m, fmt.Errorf("%w: the list of messages in %s is unknown", errNoNative, on.Codec.Dialect())
	}
	list := wire.Of(on.Codec).Body.Messages
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("model", on.Target.Model)
	w.Key(list)
	w.BeginArray()
	w.Raw(raw)
	w.EndArray()
	w.EndObject()
	req, _, err := on.Codec.DecodeRequest(w.Buf, dialect.DecodeOptions{Origin: on.origin()})
	if err = errors.Join(w.Err(), err); err == nil && (len(req.Messages) != 1 || req.Messages[0].Native == nil) {
		err = errors.New("it does not decode to exactly one message")
	}
	if err != nil {
		return m, fmt.Errorf("%w: the action returned the element %s: %w", ErrInvalid, strings.ToValidUTF8(string(raw[:min(len(raw), 80)]), "?"), err)
	}
	return req.Messages[0], nil
}
