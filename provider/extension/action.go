package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Action is an operation of an extension on a session. It runs on request, or automatically at
// a moment in the life of the session.
type Action struct {
	// Extension is the name of the extension; [Resolution.Actions] sets it.
	Extension string `json:"extension"`
	// ID is unique within the extension.
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// Inputs is a JSON Schema of the parameters, which are validated before Run; nil means no
	// parameters.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Triggers are the moments at which the action runs automatically, such as [BeforeSave].
	Triggers []string `json:"triggers,omitempty"`
	// Run runs the action.
	Run func(ctx context.Context, in ActionInput) (ActionResult, error) `json:"-"`
}

// BeforeSave is the moment before messages are saved in a session: by the session's Save
// once it is connected to a model, and by an agent that runs in the session. Actions see
// the conversation with the messages that are about to be saved.
const BeforeSave = "session_save_prepare"

// Session is the view that an action has of a session.
type Session interface {
	ID() string
	// Messages returns the messages of the conversation, in order. They must not be changed.
	Messages() []dragoman.Message
	// Metadata returns the metadata that is stored with the messages.
	Metadata() map[string]json.RawMessage
}

// ActionInput is the input of an action.
type ActionInput struct {
	Session Session
	// Native is the native history, in the dialect of its origin.
	Native []json.RawMessage
	Origin dragoman.Origin
	Params json.RawMessage
	// Context says where the action was called from, in layers by name. What the caller
	// supplies is added to the layers of the library, which are always there. Their names are
	// reserved; a value of the caller under one of them is ignored:
	//
	//	core         {"extension", "version", "action"}
	//	config       the settings of the extension, {} without any
	//	trigger      {"source"}: "call", or "lifecycle" for an action that runs by itself
	//	session      {"id", "messages", "native", "dialect", "provider", "model"}
	//	lifecycle    {"moment"}, such as "session_save_prepare"; {} for a call
	//	request      {"tags", "model", "run", "turn"}
	//	runtime      {"extensions", "model", "encode", "values"}
	//	app          what the application says about itself
	//	base_config  its configuration
	Context map[string]json.RawMessage

	// Settings holds the settings of extensions by name. An action sees those of its extension.
	Settings map[string]json.RawMessage
	// App and Base describe the application and the configuration that it started with; nil
	// adds no layer.
	App, Base json.RawMessage
	// Log gets warnings about the caller's context; nil means slog.Default().
	Log *slog.Logger

	// Runtime holds the live values that Context, which is JSON, cannot.
	Runtime Runtime
	// Rebuild returns the session as it is after an action, so that the next action of
	// the same moment sees its result; nil means that later actions see Session unchanged.
	Rebuild func(ActionResult) (Session, error)
}

// Runtime holds the live values of an action's context (requirement X10).
type Runtime struct {
	// Model is the model that the session is connected to, such as for a summary; nil
	// means none. Target is the target that its requests are encoded for.
	Model  dragoman.Model
	Target targets.Target
	// Resolution holds the active extensions; Run and Triggered set it.
	Resolution *Resolution
	// Encode writes messages in the dialect of the native history, one element for each;
	// nil means that there is no encoder.
	Encode func(messages []dragoman.Message) ([]json.RawMessage, error)
	// Position is the run and the turn that the action was triggered in; zero outside of
	// a run.
	Position Position
	// Values are live values of the application, by name.
	Values map[string]any
}

// ActionResult is the result of an action.
type ActionResult struct {
	// Native replaces the native history; nil leaves it unchanged.
	Native []json.RawMessage
	// Metadata is an object whose fields replace those of the session's metadata; null removes
	// a field. Nil changes nothing.
	Metadata json.RawMessage
}

// ActionError reports why an action could not run.
type ActionError struct {
	// Code is a stable identifier, such as "nothing_to_do".
	Code    string
	Message string
}

func (e *ActionError) Error() string { return "extension: " + e.Message + " (" + e.Code + ")" }

// codeParams is the code for invalid parameters.
const codeParams = "invalid_params"

// ErrNoAction reports that no active extension has the action.
var ErrNoAction = errors.New("extension: unknown action")

// The names of the layers that belong to the library and to the application. Values that a
// caller supplies under these names are ignored. The first seven are present for every action;
// those of the application only if it supplies them.
const (
	// layerCore is {"extension", "version", "action"}.
	layerCore = "core"
	// layerConfig is the settings of the extension, {} if it has none.
	layerConfig = "config"
	// layerTrigger is {"source"}: "call" for an action that was requested, "lifecycle" for one
	// that runs automatically.
	layerTrigger = "trigger"
	// layerSession is {"id", "messages", "native", "dialect", "provider", "model"}: the number
	// of messages, and the origin of the native history.
	layerSession = "session"
	// layerLifecycle is {"moment"}, such as "session_save_prepare"; {} for an action that was
	// requested.
	layerLifecycle = "lifecycle"
	// layerRequest is {"tags", "model", "run", "turn"}: the tags that the extensions were
	// resolved for, the model, and the run and turn if there is one.
	layerRequest = "request"
	// layerRuntime is {"extensions", "model", "encode", "values"}: the extensions that
	// are on, whether there are a model and an encoder, and the names of live values. The
	// values themselves are in [Runtime].
	layerRuntime = "runtime"
	// layerApp and layerBase are what the application supplies about itself and its base
	// configuration.
	layerApp  = "app"
	layerBase = "base_config"
)

func reserved(name string) bool {
	switch name {
	case layerCore, layerConfig, layerTrigger, layerSession, layerLifecycle, layerRequest, layerRuntime, layerApp, layerBase:
		return true
	default:
		return false
	}
}

// addLayers adds the caller's layers. A reserved name keeps its value, and a warning is logged,
// to slog.Default() if log is nil.
func addLayers(layers, more map[string]json.RawMessage, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if reserved(name) {
			if log == nil {
				log = slog.Default()
			}
			log.Warn("the context of an action has a reserved key; the caller's value is ignored", "key", name)
			continue
		}
		layers[name] = more[name]
	}
}

// Actions returns the actions of the extensions that are on, each with the name of its
// extension, in order. If an extension panics, the error is an [*Error].
func (r *Resolution) Actions() ([]Action, error) {
	var out []Action
	for _, e := range r.On {
		a, ok := e.(actor)
		if !ok {
			continue
		}
		name := e.Info().Name
		actions, err := actionsOf(a, name, r.setup.Env(name))
		if err != nil {
			return nil, err
		}
		for _, action := range actions {
			action.Extension = name
			out = append(out, action)
		}
	}
	return out, nil
}

func actionsOf(a actor, name string, env Env) (out []Action, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, &Error{Extension: name, Hook: "actions", Err: fmt.Errorf("panicked: %v", v)}
		}
	}()
	return a.Actions(env), nil
}

// check validates the parameters. It ignores those of an action without parameters.
func (a Action) check(params json.RawMessage) error {
	if a.Inputs == nil {
		return nil
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	v, err := schema.Compile(a.Inputs)
	if err != nil {
		return fmt.Errorf("the schema of its inputs: %w", err)
	}
	if err := v.Validate(params); err != nil {
		return &ActionError{codeParams, "invalid parameters: " + err.Error()}
	}
	return nil
}

// layers returns the layers of the library and of the application for one action.
func (r *Resolution) layers(a Action, moment string, in ActionInput) map[string]json.RawMessage {
	var names []string
	version := ""
	for _, e := range r.On {
		info := e.Info()
		names = append(names, info.Name)
		if info.Name == a.Extension {
			version = info.Version
		}
	}
	session := map[string]any{
		"native": len(in.Native), "dialect": in.Origin.Dialect, "provider": in.Origin.Provider, "model": in.Origin.Model,
	}
	if in.Session != nil {
		session["id"], session["messages"] = in.Session.ID(), len(in.Session.Messages())
	}
	request := map[string]any{"tags": r.Tags}
	if m := in.Runtime.Target.Model; m != "" {
		request["model"] = m
	}
	if p := in.Runtime.Position; p.Run != "" {
		request["run"], request["turn"] = p.Run, p.Turn
	}
	runtime := map[string]any{"extensions": names, "model": in.Runtime.Model != nil, "encode": in.Runtime.Encode != nil}
	if len(in.Runtime.Values) > 0 {
		runtime["values"] = slices.Sorted(maps.Keys(in.Runtime.Values))
	}
	out := map[string]json.RawMessage{
		layerCore:      layer(map[string]any{"extension": a.Extension, "version": version, "action": a.ID}),
		layerConfig:    layer(nil),
		layerTrigger:   layer(map[string]any{"source": "call"}),
		layerSession:   layer(session),
		layerLifecycle: layer(nil),
		layerRequest:   layer(request),
		layerRuntime:   layer(runtime),
	}
	if set := in.Settings[a.Extension]; len(set) > 0 {
		out[layerConfig] = set
	}
	if moment != "" {
		out[layerTrigger], out[layerLifecycle] = layer(map[string]any{"source": "lifecycle"}), layer(map[string]any{"moment": moment})
	}
	if in.App != nil {
		out[layerApp] = in.App
	}
	if in.Base != nil {
		out[layerBase] = in.Base
	}
	return out
}

// layer marshals strings, numbers and lists of strings, which cannot fail.
func layer(fields map[string]any) json.RawMessage {
	raw, err := encode(fields)
	if err != nil || fields == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// Run runs one action of an active extension. If the action panics, Run returns an error.
func (r *Resolution) Run(ctx context.Context, extension, id string, in ActionInput) (ActionResult, error) {
	return r.run(ctx, extension, id, "", in)
}

func (r *Resolution) run(ctx context.Context, extension, id, moment string, in ActionInput) (res ActionResult, err error) {
	actions, err := r.Actions()
	if err != nil {
		return ActionResult{}, err
	}
	for _, a := range actions {
		if a.Extension != extension || a.ID != id || a.Run == nil {
			continue
		}
		defer func() {
			if v := recover(); v != nil {
				res, err = ActionResult{}, &Error{Extension: extension, Hook: "action " + id, Err: fmt.Errorf("panicked: %v", v)}
			}
		}()
		if err := a.check(in.Params); err != nil {
			return ActionResult{}, &Error{Extension: extension, Hook: "action " + id, Err: err}
		}
		in.Runtime.Resolution = r
		layers := r.layers(a, moment, in)
		addLayers(layers, in.Context, in.Log)
		in.Context = layers
		res, err := a.Run(ctx, in)
		if err != nil {
			return ActionResult{}, &Error{Extension: extension, Hook: "action " + id, Err: err}
		}
		return res, nil
	}
	return ActionResult{}, fmt.Errorf("%w: %s of %s", ErrNoAction, id, extension)
}

// Triggered runs all actions of a moment, in order. Each gets the native history and the
// metadata as the previous ones left them. An action that fails changes neither, and does not
// prevent the next ones: the result is that of the actions that succeeded, and the error joins
// the errors of the others.
func (r *Resolution) Triggered(ctx context.Context, moment string, in ActionInput) (ActionResult, error) {
	var out ActionResult
	actions, err := r.Actions()
	if err != nil {
		return out, err
	}
	var failed []error
	for _, a := range actions {
		if !slices.Contains(a.Triggers, moment) {
			continue
		}
		if ctx.Err() != nil && len(failed) > 0 {
			break
		}
		res, err := r.run(ctx, a.Extension, a.ID, moment, in)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if err := out.add(res, &in); err != nil {
			failed = append(failed, &Error{Extension: a.Extension, Hook: "action " + a.ID, Err: err})
		}
	}
	return out, errors.Join(failed...)
}

// add adds the result of an action, and changes the input of the next action accordingly. An
// error changes nothing.
func (out *ActionResult) add(res ActionResult, in *ActionInput) error {
	metadata := out.Metadata
	if res.Metadata != nil {
		var err error
		if metadata, err = withFields(metadata, res.Metadata); err != nil {
			return err
		}
	}
	if in.Rebuild != nil && (res.Native != nil || res.Metadata != nil) {
		session, err := in.Rebuild(res)
		if err != nil {
			return err
		}
		in.Session = session
	}
	if res.Native != nil {
		in.Native, out.Native = res.Native, res.Native
	}
	out.Metadata = metadata
	return nil
}

// withFields returns an object with the fields of a patch. As in the metadata of a session, a
// field replaces the earlier one of its name.
func withFields(object, patch json.RawMessage) (json.RawMessage, error) {
	p, err := NewObject(patch)
	if err != nil {
		return nil, err
	}
	r := jsonwire.NewReader(p.raw)
	for key := range r.Object() {
		name, value := string(key), json.RawMessage(r.Raw())
		object, err = edit(object, []string{name}, func(json.RawMessage) (json.RawMessage, error) { return value, nil })
		if err != nil {
			return nil, err
		}
	}
	if object == nil {
		object = json.RawMessage("{}")
	}
	return object, r.End()
}
