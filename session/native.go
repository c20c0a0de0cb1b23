package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
)

// Messages have their own native form with its origin, so that a request replays what is
// still valid and rebuilds the rest. This file stores native histories that an action
// replaced, each for one origin.

// native is the body of an entry of kind "native".
type native struct {
	V int `json:"v"`
	// Covers is the number of messages of the conversation that it replaces, and Mirror
	// identifies them.
	Covers int    `json:"covers"`
	Mirror string `json:"mirror"`
	// Messages replace them, with their native form.
	Messages []dragoman.Message `json:"messages"`
}

// MessagesFor returns the conversation to send to a target. If an action has replaced the native
// history of the target's origin (see [Session.Act]), it returns the replacement and all
// later messages; otherwise it returns the whole conversation, as [Session.Load] does. match
// selects the fields of an origin that must agree: use that of the codec's limits,
// targets.Limits.Replay.Messages.
//
// A replacement is no longer used after a rewind to before it, or if the conversation is no
// longer the one that was replaced. Large media are references, as in [Session.Load].
//
// [Session.MessagesForModel] is MessagesFor with the origin and the limits of a model.
func (s *Session) MessagesFor(ctx context.Context, target dragoman.Origin, match targets.Match) ([]dragoman.Message, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	messages, err := v.messages(ctx)
	if err != nil {
		return nil, wrapErr("loading", s.ID(), err)
	}
	out, err := v.replaced(ctx, messages, target, match)
	return out, wrapIf("loading", s.ID(), err)
}

// MessagesForModel is [Session.MessagesFor] with the origin and the limits of a model. The name chooses a
// model as in [Action]. For a [provider.Chain], it names a link; empty means the link that
// [Session.ActionModel] returns. The error wraps [ErrNoWire] if no provider serves the model.
func (s *Session) MessagesForModel(ctx context.Context, model dragoman.Model, name string) ([]dragoman.Message, error) {
	on, err := s.connection(ctx, model, name, nil)
	if err != nil {
		return nil, wrapErr("loading", s.ID(), err)
	}
	return s.MessagesFor(ctx, on.Target.Origin(), on.Codec.Limits().Replay.Messages)
}

// MessagesInPlaceOf is [Session.MessagesFor] for a caller that has already loaded the
// conversation: it returns the messages to send to a target in place of messages, or messages
// itself. It reads only the native history.
func (s *Session) MessagesInPlaceOf(ctx context.Context, messages []dragoman.Message, target dragoman.Origin, match targets.Match) ([]dragoman.Message, error) {
	if some, err := s.anyNative(ctx); err != nil || !some {
		return messages, wrapIf("loading", s.ID(), err)
	}
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	out, err := v.replaced(ctx, messages, target, match)
	return out, wrapIf("loading", s.ID(), err)
}

// The values of Session.native; zero means unknown.
const (
	noNative int32 = iota + 1
	someNative
)

// anyNative reports whether the log may have native histories.
func (s *Session) anyNative(ctx context.Context) (bool, error) {
	if known := s.native.Load(); known != 0 {
		return known == someNative, nil
	}
	for _, err := range s.Entries(ctx, Query{Kinds: []string{kindNative}, Last: 1}) {
		if err == nil {
			s.native.Store(someNative)
		}
		return true, err
	}
	return !s.native.CompareAndSwap(0, noNative), nil // unless another goroutine has just written one
}

// replaced returns the messages to send to a target in place of the conversation.
func (v view) replaced(ctx context.Context, messages []dragoman.Message, target dragoman.Origin, match targets.Match) ([]dragoman.Message, error) {
	last, err := v.last(ctx, Query{Kinds: []string{kindNative}, Key: originKey(target, match), Last: 1})
	if err != nil || len(last) == 0 {
		return messages, err
	}
	n, err := readNative(&last[0])
	if err != nil {
		return nil, err
	}
	if n.Covers > len(messages) {
		return messages, nil
	}
	var d detached // the mirror was computed from the messages as stored
	if hashOf(d.messages(messages[:n.Covers])) != n.Mirror {
		return messages, nil
	}
	return append(n.Messages, messages[n.Covers:]...), nil
}

// originKey returns the key of the native history of an origin. It covers the fields that
// must agree.
func originKey(o dragoman.Origin, match targets.Match) string {
	h := sha256.New()
	for _, f := range []struct {
		bit   targets.Match
		value string
	}{
		{targets.MatchDialect, string(o.Dialect)},
		{targets.MatchProvider, o.Provider},
		{targets.MatchScope, o.Scope},
		{targets.MatchModel, o.Model},
	} {
		if match&f.bit == 0 {
			f.value = ""
		}
		h.Write(binary.AppendUvarint(nil, uint64(len(f.value))))
		h.Write([]byte(f.value))
	}
	return "native:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// hashOf identifies a conversation.
func hashOf(messages []dragoman.Message) string {
	h := sha256.New()
	for i := range messages {
		f := messages[i].Fingerprint()
		h.Write(f[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func readNative(e *Entry) (n native, err error) {
	if err := unmarshal(e, &n, &n.V); err != nil {
		return n, err
	}
	if n.Covers < 0 {
		return n, fmt.Errorf("%w: entry %d covers %d messages", ErrCorrupt, e.Seq, n.Covers)
	}
	return n, nil
}

// nativeEntry returns the entry with the messages that replace a conversation.
func nativeEntry(key string, covered, instead []dragoman.Message) (Entry, error) {
	list, err := json.Marshal(instead)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: the native history: %w", ErrInvalid, err)
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.IntField("v", bodyVersion)
	w.IntField("covers", int64(len(covered)))
	w.StringField("mirror", hashOf(covered))
	w.RawField("messages", list)
	w.EndObject()
	return Entry{Kind: kindNative, Key: key, Body: w.Buf}, w.Err()
}
