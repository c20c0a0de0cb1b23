package gateway

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
)

var tapped = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}}

// streamOf returns a response of the simulator as a stream of a dialect.
func streamOf(t testing.TB, codec dialect.Codec, says string) []byte {
	t.Helper()
	model, err := sim.Open("sim/echo")
	if err != nil {
		t.Fatal(err)
	}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", StreamUsage: true})
	var out []byte
	req := &dragoman.Request{Model: "sim/echo", Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: says}}}}}
	for ev, err := range model.Stream(context.Background(), req) {
		if err == nil {
			out, err = enc.Encode(out, ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err = enc.Close(out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tappedBy passes a stream through a tap in chunks of whole events, read in pieces of size bytes.
func tappedBy(codec dialect.Codec, stream []byte, size int) *tap {
	t := newTap(codec)
	var held []byte
	for len(stream) > 0 {
		n := min(size, len(stream))
		held, stream = append(held, stream[:n]...), stream[n:]
		whole := t.wholeEvents(held)
		if whole > 0 {
			t.read(held[:whole])
		}
		held = bytes.Clone(held[whole:])
	}
	if t.complete(held) && len(held) > 0 {
		t.read(held)
	}
	return t
}

func TestTapFindsEndAndUsageAtEverySplit(t *testing.T) {
	for _, codec := range tapped {
		for name, says := range map[string]string{
			"short": "hello", "long": string(bytes.Repeat([]byte("many words "), 1000)), "confusing": `"usage":{"x":1} message_stop [DONE] "finish_reason":"stop" event: message_stop`,
		} {
			t.Run(string(codec.Dialect())+" "+name, func(t *testing.T) {
				stream := streamOf(t, codec, says)
				want := dragoman.Usage{}
				for ev, err := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(stream)) {
					if err != nil {
						t.Fatal(err)
					}
					if end, ok := ev.(*dragoman.ResponseEnd); ok {
						want = end.Usage
					}
				}
				for _, size := range []int{1, 2, 3, 7, 64, 1000, 4096, len(stream)} {
					if size < 1000 && name == "long" {
						continue // slow, and the same result
					}
					ended, usage := tappedBy(codec, stream, size).end()
					if !ended || usage.Input != want.Input || usage.Output != want.Output {
						t.Fatalf("pieces of %d: ended %v, %v, want %v", size, ended, usage, want)
					}
				}
			})
		}
	}
}

func TestTapDetectsTruncatedStream(t *testing.T) {
	for _, codec := range tapped {
		stream := streamOf(t, codec, `it says message_stop, response.completed, [DONE] and "finish_reason":"stop", "done":true, "finishReason":"STOP"`)
		sep := []byte("\n\n")
		if codec.Dialect() == dialectname.Ollama {
			sep = sep[:1]
		}
		events := bytes.SplitAfter(bytes.TrimSuffix(stream, sep), sep)
		for n := range events {
			part := bytes.Join(events[:n], nil)
			// The decoder of the whole stream decides what an end is.
			ends := false
			for ev := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(part)) {
				if _, ok := ev.(*dragoman.ResponseEnd); ok {
					ends = true
				}
			}
			if ended, _ := tappedBy(codec, part, 100).end(); ended != ends {
				t.Errorf("%s: %d of %d events: ended %v, want %v", codec.Dialect(), n, len(events), ended, ends)
			}
		}
	}
}

// FuzzTap: for any input, a tap neither panics nor loses a byte of a complete event.
func FuzzTap(f *testing.F) {
	for i, codec := range tapped {
		f.Add(uint8(i), streamOf(f, codec, "hello"), uint8(5))
	}
	f.Add(uint8(0), []byte("data: {\"usage\":{\"prompt_tokens\":1}}\r\n\r\ndata: [DONE]\r\n\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, which uint8, stream []byte, size uint8) {
		codec := tapped[int(which)%len(tapped)]
		tap := tappedBy(codec, stream, int(size)+1)
		tap.end()
		tap.errorEvents("s", &dragoman.APIError{Class: dragoman.ErrorServer, Message: "broken"})
		if n := tap.wholeEvents(stream); n < 0 || n > len(stream) {
			t.Fatalf("%d of %d bytes are whole", n, len(stream))
		}
	})
}

// byLine returns a stream with other line ends.
func byLine(stream []byte, end string) []byte {
	return bytes.ReplaceAll(stream, []byte("\n"), []byte(end))
}

func TestQuirkC18_TapAcceptsEveryLineEnd(t *testing.T) {
	for _, codec := range tapped {
		if codec.Dialect() == dialectname.Ollama {
			continue // its events are lines
		}
		plain := streamOf(t, codec, "hello")
		_, want := tappedBy(codec, plain, len(plain)).end()
		for _, end := range []string{"\n", "\r\n", "\r"} {
			stream := byLine(plain, end)
			for _, size := range []int{1, 2, 3, 50, len(stream)} {
				tap := tappedBy(codec, stream, size)
				if ended, usage := tap.end(); !ended || usage != want || tap.open {
					t.Errorf("%s, lines that end with %q, pieces of %d: ended %v, %v, want %v", codec.Dialect(), end, size, ended, usage, want)
				}
			}
			// An event is complete with its blank line, and not before.
			first := stream[:bytes.Index(stream, []byte(end+end))+2*len(end)]
			if tap := newTap(codec); tap.wholeEvents(first) != len(first) || tap.wholeEvents(first[:len(first)-1]) != 0 {
				t.Errorf("%s, %q: of %d bytes %d are whole", codec.Dialect(), end, len(first), tap.wholeEvents(first))
			}
		}
	}
}

func TestTapFindsEndInALongEvent(t *testing.T) {
	long := string(bytes.Repeat([]byte("long "), 4000))
	for name, tc := range map[string]struct {
		codec  dialect.Codec
		stream string
		output int64 // 0: not reported
	}{
		"Responses, without a count": {openairesponses.Codec{}, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"instructions\":\"" + long + "\",\"output\":[]}}\n\n", 0},
		"Responses, failed":          {openairesponses.Codec{}, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"failed\",\"instructions\":\"" + long + "\",\"usage\":null,\"output\":[]}}\n\n", 0},
		"Responses, with a count":    {openairesponses.Codec{}, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"instructions\":\"" + long + "\",\"output\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":7,\"total_tokens\":8}}}\n\ndata: [DONE]\n\n", 7},
		"Responses, without a name":  {openairesponses.Codec{}, "data: {\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"instructions\":\"" + long + "\",\"output\":[]},\"type\":\"response.completed\"}\n\n", 0},
		"Anthropic":                  {anthropic.Codec{}, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"container\":\"" + long + "\"},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\",\"x\":\"" + long + "\"}\n\n", 7},
		"Anthropic, an error":        {anthropic.Codec{}, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"" + long + "\"}}\n\n", 0},
		"Chat":                       {openaichat.Codec{}, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + long + "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":7,\"total_tokens\":8}}\n\n", 7},
		"Chat, and its count behind": {openaichat.Codec{}, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + long + "\"},\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":7,\"total_tokens\":8}}\n\ndata: [DONE]\n\n", 7},
		"Gemini":                     {gemini.Codec{}, "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"" + long + "\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":7}}\n\n", 7},
		"Ollama":                     {ollama.Codec{}, "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"" + long + "\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":1,\"eval_count\":7}\n", 7},
	} {
		for _, size := range []int{1000, len(tc.stream)} {
			tap := tappedBy(tc.codec, []byte(tc.stream), size)
			if ended, usage := tap.end(); !ended || tap.unreadable || usage.Output.Or(0) != tc.output {
				t.Errorf("%s, pieces of %d: ended %v, unsure %v, %v", name, size, ended, tap.unreadable, usage)
			}
			if name == "Responses, without a count" && len(tap.ending)+len(tap.final)+len(tap.last) > 0 {
				t.Errorf("%s: an event is kept of which only the name is wanted", name)
			}
		}
	}
}

func TestTapWaitsForTheEndOfAllChoices(t *testing.T) {
	chunk := func(choice int, finish string) string {
		return fmt.Sprintf("data: {\"id\":\"c\",\"choices\":[{\"index\":%d,\"delta\":{\"content\":\"x\"},\"finish_reason\":%s}]}\n\n", choice, finish)
	}
	open := chunk(0, "null") + chunk(1, "null") + chunk(0, `"stop"`) + chunk(1, "null")
	for stream, want := range map[string]bool{open: false, open + chunk(1, `"stop"`): true, open + chunk(1, `"length"`) + "data: [DONE]\n\n": true} {
		if ended, _ := tappedBy(openaichat.Codec{}, []byte(stream), 10).end(); ended != want {
			t.Errorf("ended %v: %s", ended, stream)
		}
	}
}

// BenchmarkTap measures one event.
func BenchmarkTap(b *testing.B) {
	for _, codec := range tapped {
		stream := streamOf(b, codec, string(bytes.Repeat([]byte("many words "), 1000)))
		sep := []byte("\n\n")
		if codec.Dialect() == dialectname.Ollama {
			sep = sep[:1]
		}
		events := bytes.SplitAfter(bytes.TrimSuffix(stream, sep), sep)
		b.Run(string(codec.Dialect()), func(b *testing.B) {
			b.ReportAllocs()
			t := newTap(codec)
			for i := 0; b.Loop(); i++ {
				if i == len(events)-4 {
					i, t = 0, newTap(codec)
				}
				if e := events[i]; t.wholeEvents(e) == len(e) {
					t.read(e)
				}
			}
		})
	}
}

// BenchmarkCallGuard measures one event of a text stream and of a stream of call arguments.
func BenchmarkCallGuard(b *testing.B) {
	text := strings.Repeat("many words ", 1000)
	call := &dragoman.ToolCall{ID: "call_1", Name: "write", Arguments: `{"text":"` + text + `"}`}
	for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}} {
		for name, part := range map[string]dragoman.Part{"text": &dragoman.Text{Text: text}, "call": call} {
			events := guardedEvents(b, codec, part)
			b.Run(string(codec.Dialect())+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				g := newCallGuard(codec, &upstream{client: &provider.Client{}})
				for i := 0; b.Loop(); i++ {
					if i == len(events) {
						i, g = 0, newCallGuard(codec, &upstream{client: &provider.Client{}})
					}
					g.Pass(events[i])
				}
			})
		}
	}
}

// guardedEvents returns the events of a stream with one part, in fragments of ten bytes.
func guardedEvents(b *testing.B, codec dialect.Codec, part dragoman.Part) [][]byte {
	b.Helper()
	reason := dragoman.StopEnd
	if part.Kind() == codes.KindToolCall {
		reason = dragoman.StopToolCalls
	}
	resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{part}}}, Stop: dragoman.Stop{Reason: reason}}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
	var out []byte
	encode := func(ev dragoman.Event) {
		var err error
		if out, err = enc.Encode(out, ev); err != nil {
			b.Fatal(err)
		}
	}
	for ev := range stream.EventsOf(resp, dragoman.Report{}) {
		delta, ok := ev.(*dragoman.PartDelta)
		if !ok {
			encode(ev)
			continue
		}
		for rest := delta.Text; rest != ""; {
			piece := *delta
			n := min(10, len(rest))
			piece.Text, rest = rest[:n], rest[n:]
			encode(&piece)
		}
	}
	out, err := enc.Close(out)
	if err != nil {
		b.Fatal(err)
	}
	return bytes.SplitAfter(out, []byte("\n\n"))
}
