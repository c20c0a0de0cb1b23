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

// Settings are what all models of this package have in common. The zero value
// answers at once.
type Settings struct {
	// Seed goes into every id. The same seed and the same conversation give the
	// same ids; empty is a seed like any other. Ids of the Responses API also depend on
	// the other fields of the request.
	Seed string
	Pace Pace

	// origin is what mints answers that cross a wire: opaque reasoning state goes
	// only to where it came from, and here that is the server itself.
	origin *dragoman.Origin
	// request identifies a Responses request, whose response may be stored; empty for others.
	request string
}

// on is the settings of a model that answers on a dialect's wire.
func (s Settings) on(d dragoman.Dialect, model string) Settings {
	s.origin = &dragoman.Origin{Dialect: d, Provider: "sim", Model: model}
	return s
}

// idKind is what the ids of answers begin with: clients of Responses know theirs by it.
func (s Settings) idKind() string {
	if s.origin != nil && dialects.WireOf(s.origin.Dialect).State.Responses {
		return "resp"
	}
	return "sim"
}

// Pace says how fast an answer comes. The zero value is as fast as it can be.
type Pace struct {
	// First is the wait before the first event.
	First time.Duration
	// TokensPerSecond is how many fragments come in a second; 0 means no wait
	// between them.
	TokensPerSecond float64
	// Wait waits for a time, or until the context ends, whose error it returns.
	// Nil waits on the real clock; tests give one that only takes note.
	Wait func(ctx context.Context, d time.Duration) error
}

// begin waits for the first event.
func (p Pace) begin(ctx context.Context) error { return p.wait(ctx, p.First) }

// next waits for one more fragment.
func (p Pace) next(ctx context.Context) error {
	if !(p.TokensPerSecond > 0) { // nor where it is no number
		return ctx.Err()
	}
	return p.wait(ctx, time.Duration(min(float64(time.Second)/p.TokensPerSecond, float64(stallTime))))
}

// sensible reports whether a pace can be kept.
func (p Pace) sensible() bool {
	return p.First >= 0 && p.TokensPerSecond >= 0 && !math.IsInf(p.TokensPerSecond, 0)
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

// or returns the pace with what it leaves open taken from another.
func (p Pace) or(other Pace) Pace {
	if p.First == 0 {
		p.First = other.First
	}
	if p.TokensPerSecond == 0 {
		p.TokensPerSecond = other.TokensPerSecond
	}
	if p.Wait == nil {
		p.Wait = other.Wait
	}
	return p
}

// mint makes the ids of one answer: they follow from the seed, from what was said
// so far, and from their place, so that no two turns of a conversation share one.
type mint struct{ sum [sha256.Size]byte }

func (s Settings) mint(req *dragoman.Request) mint {
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
	var m mint
	h.Sum(m.sum[:0])
	return m
}

// id is the n-th id of a kind.
func (m mint) id(kind string, n int) string { return kind + "_" + m.opaque(kind, n)[:16] }

// opaque is the n-th text of a kind that only we can read. It is base64, as some
// clients want it to be.
func (m mint) opaque(kind string, n int) string {
	b := binary.BigEndian.AppendUint64(append(m.sum[:], kind...), uint64(n))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
