package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// Settings holds the settings that all models of this package share. The zero value responds
// without delay.
type Settings struct {
	// Seed is part of every id. The same seed and the same conversation give the same ids.
	// The empty seed is valid. Ids of the Responses API also depend on the other fields of
	// the request.
	Seed string
	Pace Pace

	// origin is set for responses that are encoded. Opaque reasoning state is only sent back
	// to its origin, which is the simulator itself.
	origin *dragoman.Origin
	// request identifies a Responses request, whose response may be stored; empty for others.
	request string
}

// forDialect returns the settings of a model whose responses are encoded in dialect d.
func (s Settings) forDialect(d dragoman.Dialect, model string) Settings {
	s.origin = &dragoman.Origin{Dialect: d, Provider: "sim", Model: model}
	return s
}

// idKind returns the prefix of response ids. Responses clients expect their own prefix.
func (s Settings) idKind() string {
	if s.origin != nil && dialects.WireOf(s.origin.Dialect).State.Responses {
		return "resp"
	}
	return "sim"
}

// Pace sets the speed of a response. The zero value has no delays.
type Pace struct {
	// FirstToken is the delay before the first event.
	FirstToken time.Duration
	// TokensPerSecond is the number of fragments per second. 0 means no delay between them.
	TokensPerSecond float64
	// Wait waits for d, or until ctx ends, and then returns the error of ctx. Nil means the
	// real clock; tests use a function that only records d.
	Wait func(ctx context.Context, d time.Duration) error
}

// begin waits before the first event.
func (p Pace) begin(ctx context.Context) error { return p.wait(ctx, p.FirstToken) }

// next waits before the next fragment.
func (p Pace) next(ctx context.Context) error {
	if !(p.TokensPerSecond > 0) { // also true for NaN
		return ctx.Err()
	}
	return p.wait(ctx, time.Duration(min(float64(time.Second)/p.TokensPerSecond, float64(stallTime))))
}

// isValid reports whether a pace is valid.
func (p Pace) isValid() bool {
	return p.FirstToken >= 0 && p.TokensPerSecond >= 0 && !math.IsInf(p.TokensPerSecond, 0)
}

func (p Pace) wait(ctx context.Context, d time.Duration) error {
	switch {
	case ctx.Err() != nil || d <= 0:
		return ctx.Err()
	case p.Wait != nil:
		return p.Wait(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// orElse returns the pace with unset fields taken from other.
func (p Pace) orElse(other Pace) Pace {
	if p.FirstToken == 0 {
		p.FirstToken = other.FirstToken
	}
	if p.TokensPerSecond == 0 {
		p.TokensPerSecond = other.TokensPerSecond
	}
	if p.Wait == nil {
		p.Wait = other.Wait
	}
	return p
}

// idGenerator generates the ids of one response. They are derived from the seed, the conversation so
// far, and a counter, so that no two turns of a conversation share an id.
type idGenerator struct{ sum [sha256.Size]byte }

func (s Settings) mint(req *dragoman.Request) idGenerator {
	h := sha256.New()
	put := func(texts ...string) {
		for _, t := range texts {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(t)))
			_, _ = h.Write(n[:])
			_, _ = io.WriteString(h, t)
		}
	}
	put(s.Seed)
	if s.request != "" {
		put("request", s.request)
	}
	for i := range req.Messages {
		put(string(req.Messages[i].Role))
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				put("text", p.Text)
			case *dragoman.ToolCall:
				put("call", p.Name, p.Arguments)
			case *dragoman.ToolResult:
				put("result", p.Text())
			}
		}
	}
	var m idGenerator
	h.Sum(m.sum[:0])
	return m
}

// id returns the n-th id of a kind.
func (m idGenerator) id(kind string, n int) string { return kind + "_" + m.opaque(kind, n)[:16] }

// opaque returns the n-th opaque text of a kind. It is base64, as some clients require.
func (m idGenerator) opaque(kind string, n int) string {
	b := binary.BigEndian.AppendUint64(append(m.sum[:], kind...), uint64(n))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
