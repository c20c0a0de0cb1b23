package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/tool"
)

// bodyVersion is the version of the bodies that this package writes.
const bodyVersion = 1

// Begin durably records that a call is about to run, and returns what the journal knows of
// it. It writes nothing if the call will not run, because the call
//   - has a result,
//   - was begun with other arguments, or
//   - was begun after the attempt that it continues, and is not idempotent.
func (s *Session) Begin(ctx context.Context, in tool.Intent) (tool.Prior, error) {
	key := callKey(in.CallRef)
	leave, err := s.begins.enter(ctx, key)
	if err != nil {
		return tool.Prior{}, err
	}
	defer leave()
	prior, err := s.prior(ctx, key)
	if err != nil {
		return tool.Prior{}, wrapErr("starting a call in", s.ID(), err)
	}
	if prior.Attempts > 0 && (prior.Arguments != in.Arguments || prior.Result != nil || !in.Idempotent && prior.Attempts > in.Continues) {
		return prior, nil
	}
	return prior, wrapIf("starting a call in", s.ID(), s.write(ctx, []Entry{intentEntry(key, in)}))
}

// Recall returns what the journal knows of a call, without writing.
func (s *Session) Recall(ctx context.Context, call tool.CallRef) (tool.Prior, error) {
	prior, err := s.prior(ctx, callKey(call))
	return prior, wrapIf("reading a call of", s.ID(), err)
}

// End durably records the result of a call.
func (s *Session) End(ctx context.Context, in tool.Intent, result *dragoman.ToolResult) error {
	var d detached
	if result != nil {
		result = d.parts([]dragoman.Part{result})[0].(*dragoman.ToolResult)
	}
	e, err := resultEntry(callKey(in.CallRef), in, result)
	if err != nil {
		return wrapErr("storing the result of a call in", s.ID(), err)
	}
	return wrapIf("storing the result of a call in", s.ID(), s.writeWith(ctx, &d, []Entry{e}))
}

// callKey returns the key of the entries of a call. The ids of runs and calls may have any
// characters, so they are hashed, each with its length.
func callKey(c tool.CallRef) string {
	b := binary.AppendUvarint(make([]byte, 0, 128), uint64(len(c.Run)))
	b = append(b, c.Run...)
	b = binary.AppendVarint(b, int64(c.Turn))
	b = append(b, c.CallID...)
	h := sha256.Sum256(b)
	var out [(8*sha256.Size + 5) / 6]byte
	base64.RawURLEncoding.Encode(out[:], h[:])
	return string(out[:])
}

func intentEntry(key string, in tool.Intent) Entry {
	w := jsonwire.Writer{Buf: make([]byte, 0, 256)}
	w.BeginObject()
	w.IntField("v", bodyVersion)
	writeRef(&w, in.CallRef)
	w.StringField("arguments", in.Arguments.String())
	if in.Idempotent {
		w.BoolField("idempotent", true)
	}
	w.EndObject()
	return Entry{Kind: kindIntent, Key: key, Body: w.Buf}
}

func writeRef(w *jsonwire.Writer, c tool.CallRef) {
	w.StringField("run", c.Run)
	w.IntField("turn", int64(c.Turn))
	w.StringField("call", c.CallID)
	w.StringField("tool", c.Key.QualifiedName())
}

func resultEntry(key string, in tool.Intent, result *dragoman.ToolResult) (Entry, error) {
	if result == nil {
		return Entry{}, invalidf("the result of call %q is nil", in.CallID)
	}
	body, err := result.MarshalJSON()
	if err != nil {
		return Entry{}, fmt.Errorf("%w: the result of call %q: %w", ErrInvalid, in.CallID, err)
	}
	w := jsonwire.Writer{Buf: make([]byte, 0, 256+len(body))}
	w.BeginObject()
	w.IntField("v", bodyVersion)
	writeRef(&w, in.CallRef)
	w.StringField("arguments", in.Arguments.String())
	w.StringFieldIf("error_kind", string(in.ErrorKind))
	w.Key("result")
	w.Known(body)
	w.EndObject()
	return Entry{Kind: kindResult, Key: key, Body: w.Buf}, nil
}

// record holds the fields of an intent or a result that are read.
type record struct {
	V         int             `json:"v"`
	Arguments tool.Hash       `json:"arguments"`
	ErrorKind tool.ErrorKind  `json:"error_kind"`
	Result    json.RawMessage `json:"result"`
}

// prior combines the entries of a call, including those that a rewind removed from the
// conversation.
func (s *Session) prior(ctx context.Context, key string) (p tool.Prior, err error) {
	for e, err := range s.Entries(ctx, Query{Key: key, Kinds: []string{kindIntent, kindResult}}) {
		if err != nil {
			return p, err
		}
		var r record
		if err := unmarshal(&e, &r, &r.V); err != nil {
			return p, err
		}
		if p.Attempts > 0 && r.Arguments != p.Arguments || p.Attempts == 0 && e.Kind == kindResult {
			return p, fmt.Errorf("%w: entry %d is the result of a call that was not started with these arguments", ErrCorrupt, e.Seq)
		}
		p.Arguments = r.Arguments
		if e.Kind == kindIntent {
			p.Attempts++
			continue
		}
		p.Result, p.ErrorKind = new(dragoman.ToolResult), r.ErrorKind
		if err := p.Result.UnmarshalJSON(r.Result); err != nil {
			return p, unreadable(&e, err)
		}
	}
	if p.Result != nil && hasReference(p.Result.Content) {
		m, err := s.expand(ctx, []dragoman.Message{dragoman.ToolResults(p.Result)}, nil)
		if err != nil {
			return p, err
		}
		p.Result = m[0].Parts[0].(*dragoman.ToolResult)
	}
	return p, nil
}

// unmarshal reads the body of an entry that this package wrote, and checks its version.
func unmarshal(e *Entry, body any, version *int) error {
	err := json.Unmarshal(e.Body, body)
	switch {
	case *version > bodyVersion:
		return &storage.Newer{What: fmt.Sprintf("entry %d, of kind %s,", e.Seq, e.Kind), Found: *version, Known: bodyVersion}
	case err != nil:
		return unreadable(e, err)
	case *version < 1:
		return unreadable(e, errors.New("the body has no version"))
	default:
		return nil
	}
}

// unreadable returns the error for an entry whose body does not match its kind.
func unreadable(e *Entry, err error) error {
	if errors.Is(err, dragoman.ErrVersion) {
		return fmt.Errorf("%w: entry %d: %w", ErrNewer, e.Seq, err)
	}
	return fmt.Errorf("%w: entry %d, of kind %s: %w", ErrCorrupt, e.Seq, e.Kind, err)
}

// keyed is a mutex for each key.
type keyed struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed by leave
}

func (k *keyed) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		k.mu.Lock()
		before := k.busy[key]
		if before == nil {
			if k.busy == nil {
				k.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			k.busy[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.busy, key)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
