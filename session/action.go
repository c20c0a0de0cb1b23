package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// Wire is a model's wire, to which a history is native, and what may act on it. Of
// a provider.Client it is the Codec, and what its method Target returns.
type Wire struct {
	Codec      dialect.Codec
	Target     dragoman.Target
	Extensions *extension.Resolution
	// Settings are those of extensions by their names; App and Base are what the
	// application tells actions of itself: see [extension.ActionInput].
	Settings  map[string]json.RawMessage
	App, Base json.RawMessage
	// Log is told when a caller's context has a reserved name; nil: nobody is.
	Log *slog.Logger
}

// Action names an action of an extension, and what to give to it.
type Action struct {
	Extension, ID string
	// Params are as the action's inputs say; nil gives none.
	Params json.RawMessage
	// Context is the caller's own, added to the layers of the library.
	Context extension.Layers
}

// ErrNoNative says that a conversation has no native history in a dialect.
var ErrNoNative = errors.New("session: the conversation has no native history there")

// Act runs an action of an extension that is on (requirement X9), and stores what
// it made: a native history that stands for the conversation toward this wire from
// now on (see [Session.For]), and metadata. The messages of the conversation stay
// as they are.
//
// The action sees the conversation as the wire's dialect has it: one message for
// each element of the native history, without the instructions that it begins with,
// which stay. Calls that wait for their results make it a *history.UnsettledError.
func (s *Session) Act(ctx context.Context, on Wire, a Action) error {
	in, c, err := s.actionInput(ctx, on, a.Context)
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

// BeforeSave runs the actions that are to run before a session is saved. It does
// nothing where there are none, and while calls wait for their results.
func (s *Session) BeforeSave(ctx context.Context, on Wire, caller extension.Layers) error {
	if on.Extensions == nil || !slices.ContainsFunc(on.Extensions.Actions(), func(a extension.NamedAction) bool {
		return slices.Contains(a.Triggers, extension.BeforeSave)
	}) {
		return nil
	}
	in, c, err := s.actionInput(ctx, on, caller)
	var unsettled *history.UnsettledError
	if errors.As(err, &unsettled) {
		return nil
	}
	if err != nil {
		return err
	}
	res, err := on.Extensions.Triggered(ctx, extension.BeforeSave, in)
	if err != nil {
		return err
	}
	return s.keep(ctx, on, c, res)
}

// converted is a conversation with its native form.
type converted struct {
	whole []dragoman.Message // as it is stored
	head  []dragoman.Message // the instructions that it begins with
	rest  []dragoman.Message // as the dialect has it, each with its native form
}

func (c converted) native() []json.RawMessage {
	out := make([]json.RawMessage, len(c.rest))
	for i := range c.rest {
		out[i] = c.rest[i].Native.Raw
	}
	return out
}

// actionView is what an action sees of a session.
type actionView struct {
	id       string
	messages []dragoman.Message
	metadata map[string]json.RawMessage
}

func (v actionView) ID() string                           { return v.id }
func (v actionView) Messages() []dragoman.Message         { return v.messages }
func (v actionView) Metadata() map[string]json.RawMessage { return v.metadata }

func (s *Session) actionInput(ctx context.Context, on Wire, caller extension.Layers) (in extension.ActionInput, c converted, err error) {
	if on.Codec == nil || on.Extensions == nil {
		return in, c, invalidf("an action needs a wire with a codec and extensions")
	}
	v, err := s.view()
	if err != nil {
		return in, c, err
	}
	if c, err = v.convert(ctx, on); err != nil {
		return in, c, about("converting", s.ID(), err)
	}
	metadata, err := s.Metadata(ctx)
	if err != nil {
		return in, c, err
	}
	return extension.ActionInput{
		Session:  actionView{s.ID(), slices.Clone(c.rest), metadata},
		Native:   c.native(),
		Origin:   on.origin(),
		Context:  caller,
		Settings: on.Settings, App: on.App, Base: on.Base, Log: on.Log,
	}, c, nil
}

func (on Wire) origin() dragoman.Origin {
	o := on.Target.Origin()
	o.Dialect = on.Codec.Dialect()
	return o
}

func (on Wire) match() dragoman.Match { return on.Codec.Limits().Replay.Messages }

// convert reads the conversation and writes it in the wire's dialect, as it would
// be sent.
func (v view) convert(ctx context.Context, on Wire) (c converted, err error) {
	if c.whole, err = v.messages(ctx); err != nil {
		return c, err
	}
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
	req := &dragoman.Request{Model: on.Target.Model, Messages: messages[head:]}
	if req, _, err = history.Normalize(req, history.Options{Target: on.Target, Limits: on.Codec.Limits()}); err != nil {
		return c, err
	}
	out, err := on.Codec.EncodeRequest(req, dialect.EncodeOptions{Target: on.Target})
	if err != nil {
		return c, err
	}
	back, _, err := on.Codec.DecodeRequest(out.Body, dialect.DecodeOptions{Registry: out.Registry, Origin: on.origin()})
	if err != nil {
		return c, err
	}
	if len(back.Instructions) > 0 {
		return c, fmt.Errorf("%w: %s has no place for instructions within it", ErrNoNative, on.Codec.Dialect())
	}
	c.rest = back.Messages
	return c, nativeEach(c.rest)
}

// nativeEach makes sure that every message has its native form.
func nativeEach(messages []dragoman.Message) error {
	for i := range messages {
		if messages[i].Native == nil {
			return fmt.Errorf("%w: message %d has no form of its own", ErrNoNative, i)
		}
	}
	return nil
}

// keep stores what an action made.
func (s *Session) keep(ctx context.Context, on Wire, c converted, res extension.ActionResult) error {
	var entries []Entry
	if res.Native != nil && !slices.EqualFunc(res.Native, c.native(), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		rest, err := on.decode(c, res.Native)
		if err != nil {
			return err
		}
		e, err := nativeEntry(originKey(on.origin(), on.match()), c.whole, slices.Concat(c.head, rest))
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
	return aboutIf("keeping what an action made of", s.ID(), s.write(ctx, entries))
}

// decode returns the messages that native elements mean. Those that the action left
// as they were are what they were.
func (on Wire) decode(c converted, elements []json.RawMessage) ([]dragoman.Message, error) {
	before := map[string][]int{} // the places of an element, in order
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

// decodeOne reads one element of a native history by itself.
func (on Wire) decodeOne(raw json.RawMessage) (m dragoman.Message, err error) {
	list := ""
	switch d := on.Codec.Dialect(); d {
	case dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama, dragoman.Bedrock:
		list = "messages"
	case dragoman.OpenAIResponses:
		list = "input"
	case dragoman.Gemini:
		list = "contents"
	default:
		return m, fmt.Errorf("%w: nobody knows how %s lists its messages", ErrNoNative, d)
	}
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
		err = errors.New("it is not one message")
	}
	if err != nil {
		return m, fmt.Errorf("%w: an element that an action made, %s: %w", ErrInvalid, strings.ToValidUTF8(string(raw[:min(len(raw), 80)]), "?"), err)
	}
	return req.Messages[0], nil
}
