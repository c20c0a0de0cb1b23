package dialect_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// hostileLists are the places in a body where a list of tiny elements becomes a list of large
// canonical values.
var hostileLists = map[dragoman.Dialect][]string{
	dialectname.OpenAIChat: {
		`{"model":"m","messages":[%s]}`,
		`{"model":"m","tools":[%s]}`,
		`{"model":"m","messages":[{"role":"user","content":[%s]}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[%s]}]}`,
	},
	"cohere.chat": {
		`{"model":"m","messages":[%s]}`,
		`{"model":"m","tools":[%s]}`,
		`{"model":"m","messages":[{"role":"user","content":[%s]}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[%s]}]}`,
	},
	dialectname.Ollama: {
		`{"model":"m","messages":[%s]}`,
		`{"model":"m","tools":[%s]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[%s]}]}`,
	},
	dialectname.Gemini: {
		`{"contents":[%s]}`,
		`{"contents":[],"tools":[%s]}`,
		`{"contents":[],"tools":[{"functionDeclarations":[%s]}]}`,
		`{"contents":[],"systemInstruction":{"parts":[%s]}}`,
		`{"contents":[{"role":"user","parts":[%s]}]}`,
	},
	dialectname.Bedrock: {
		`{"messages":[%s]}`,
		`{"messages":[],"toolConfig":{"tools":[%s]}}`,
		`{"messages":[],"system":[%s]}`,
		`{"messages":[{"role":"user","content":[%s]}]}`,
	},
	dialectname.OpenAIResponses: {
		`{"model":"m","input":[%s]}`,
		`{"model":"m","tools":[%s]}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":[%s]}]}`,
	},
	dialectname.Anthropic: {
		`{"model":"m","max_tokens":1,"messages":[%s]}`,
		`{"model":"m","max_tokens":1,"tools":[%s]}`,
		`{"model":"m","max_tokens":1,"system":[%s]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[%s]}]}`,
	},
}

func listOf(format, element string, n int) []byte {
	return fmt.Appendf(nil, format, strings.Repeat(element+",", n-1)+element)
}

func TestTooManyValuesAreRefusedBeforeAllocation(t *testing.T) {
	for _, c := range crosstest.Codecs {
		if hostileLists[c.Dialect()] == nil {
			t.Errorf("no hostile lists for %s", c.Dialect())
		}
		for _, format := range hostileLists[c.Dialect()] {
			body := listOf(format, "{}", framing.MaxValues+1)
			for what, decode := range map[string]func() error{
				"request":  func() error { _, _, err := c.DecodeRequest(body, dialect.DecodeOptions{}); return err },
				"response": func() error { _, _, err := c.DecodeResponse(body, dialect.DecodeOptions{}); return err },
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := decode()
				runtime.ReadMemStats(&after)
				if !errors.Is(err, dragoman.ErrTooLarge) || !strings.Contains(err.Error(), "values") {
					t.Errorf("%s, %s %s: %v", c.Dialect(), what, format, err)
				}
				if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
					t.Errorf("%s, %s %s: the refusal allocated %d bytes", c.Dialect(), what, format, took)
				}
			}
		}
	}
}

// Commas within strings are not counted as values.
func TestLongTextIsNotTooManyValues(t *testing.T) {
	text := `{"type":"text","role":"user","text":"\"` + strings.Repeat(",", framing.MaxValues+1) + `\\"}`
	for _, c := range crosstest.Codecs {
		for _, format := range hostileLists[c.Dialect()] {
			if _, _, err := c.DecodeRequest(listOf(format, text, 1), dialect.DecodeOptions{}); err != nil {
				t.Errorf("%s, %s: %.200v", c.Dialect(), format, err)
			}
		}
	}
}

// The memory of an accepted body stays proportional to the bound.
func TestEachValueTakesAtMostAKilobyte(t *testing.T) {
	const n = 20_000
	for _, c := range crosstest.Codecs {
		for _, format := range hostileLists[c.Dialect()] {
			for _, element := range []string{`null`, `1`, `""`, `[]`, `{}`, `{"role":"user"}`, `{"type":"x"}`, `{"type":"function_call"}`} {
				body := listOf(format, element, n)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				req, _, err := c.DecodeRequest(body, dialect.DecodeOptions{})
				runtime.GC()
				runtime.ReadMemStats(&after)
				if held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; err == nil && held > 1024 {
					t.Errorf("%s, %s of %s: %d bytes for each element", c.Dialect(), format, element, held)
				}
				runtime.KeepAlive(req)
			}
		}
	}
}

// The bound on values also applies to each event of a stream.
func TestEventWithTooManyValuesIsRefused(t *testing.T) {
	lists := map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[%s]}}]}`,
		dialectname.OpenAIResponses: `{"type":"response.completed","response":{"id":"r","output":[%s]}}`,
		dialectname.Anthropic:       `{"type":"message_start","message":{"id":"x","content":[%s]}}`,
	}
	for _, c := range crosstest.Codecs {
		format, ok := lists[c.Dialect()]
		if !ok {
			continue
		}
		body := append([]byte("data: "), listOf(format, "{}", framing.MaxValues+1)...)
		body = append(body, "\n\n"...)
		err := c.NewStreamDecoder(dialect.DecodeOptions{}).Feed(body, func(dragoman.Event) error { return nil })
		if !errors.Is(err, dragoman.ErrTooLarge) || !strings.Contains(err.Error(), "values") {
			t.Errorf("%s: %.200v", c.Dialect(), err)
		}
	}
}

// A stream has no length, but a response has: the memory kept for all events together has the
// bound of a body. The decoder emits the events that came before.
func TestStreamMemoryIsBoundedLikeABody(t *testing.T) {
	const limit, chunk, chunks = 1 << 20, 64 << 10, 160
	text := strings.Repeat("x", chunk)
	grow := func(p dragoman.Part) []dragoman.Event {
		evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}}, &dragoman.PartStart{Part: p}}
		if p.Kind() == codes.KindToolCall {
			evs = append(evs, &dragoman.PartDelta{Kind: p.Kind(), Text: `{"x":"`})
		}
		for range chunks {
			evs = append(evs, &dragoman.PartDelta{Kind: p.Kind(), Text: text})
		}
		return evs
	}
	for _, c := range crosstest.Codecs {
		for what, p := range map[string]dragoman.Part{
			"text":      &dragoman.Text{},
			"thinking":  &dragoman.Reasoning{},
			"arguments": &dragoman.ToolCall{ID: "c", Name: "f"},
		} {
			wire, _, err := crosstest.Streamed(c, grow(p), dialect.EncodeOptions{})
			if err != nil && !errors.Is(err, dragoman.ErrIncompleteStream) {
				t.Fatal(err)
			}
			if len(wire) < chunks*chunk {
				continue // this dialect sends calls whole
			}
			emitted := 0
			dec := c.NewStreamDecoder(dialect.DecodeOptions{MaxBytes: limit})
			err = dec.Feed(wire, func(ev dragoman.Event) error {
				if d, ok := ev.(*dragoman.PartDelta); ok {
					emitted += len(d.Text)
				}
				return nil
			})
			if !errors.Is(err, dragoman.ErrTooLarge) || emitted > 3*limit || emitted < limit/2 {
				t.Errorf("%s, %s: emitted %d bytes, then %v", c.Dialect(), what, emitted, err)
			}
			if c.Dialect() == dialectname.OpenAIResponses {
				continue // its last events repeat the whole text, each within its own bound
			}
			only := c.NewStreamDecoder(dialect.DecodeOptions{MaxBytes: limit, DeltasOnly: true})
			err = only.Feed(wire, func(dragoman.Event) error { return nil })
			if keeps := p.Kind() == codes.KindToolCall; keeps != errors.Is(err, dragoman.ErrTooLarge) {
				t.Errorf("%s, %s, deltas only: %v", c.Dialect(), what, err)
			}
		}
	}
}
