package properties_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// outcome formats all results of an encoder, for comparison.
func outcome(body []byte, rep dragoman.Report, err error) string {
	return fmt.Sprintf("%s\n%s\n%v", body, rep.String(), err)
}

// fed holds the results of a decoder for a stream. The events are in stored form,
// because the bytes of a chunk are valid only until the next Feed.
type fed struct {
	events      []string
	err, closed error
	rep         string
}

func feedAll(t *rapid.T, c dialect.Codec, o dialect.DecodeOptions, pieces ...[]byte) fed {
	var f fed
	dec := c.NewStreamDecoder(o)
	emit := func(ev dragoman.Event) error {
		line, err := dragoman.MarshalEvent(ev)
		if err != nil {
			t.Fatalf("event %T: %v", ev, err)
		}
		f.events = append(f.events, string(line))
		return nil
	}
	for _, p := range pieces {
		p = bytes.Clone(p) // the caller may overwrite fed bytes
		if f.err = dec.Feed(p, emit); f.err != nil {
			break
		}
		clear(p)
	}
	f.closed = dec.Close(emit)
	rep := dec.Report()
	f.rep = rep.String()
	return f
}

// cloneEvent copies an event whose bytes the decoder owns.
func cloneEvent(ev dragoman.Event) dragoman.Event {
	if c, ok := ev.(*dragoman.Chunk); ok {
		return &dragoman.Chunk{Dialect: c.Dialect, Raw: bytes.Clone(c.Raw), Loss: c.Loss}
	}
	return ev
}

// read decodes a whole stream that must be valid.
func read(t *rapid.T, c dialect.Codec, body []byte, o dialect.DecodeOptions) []dragoman.Event {
	var evs []dragoman.Event
	dec := c.NewStreamDecoder(o)
	emit := func(ev dragoman.Event) error {
		evs = append(evs, cloneEvent(ev))
		return nil
	}
	if err := dec.Feed(body, emit); err != nil {
		t.Fatalf("%s cannot decode its own stream: %v\n%s", c.Dialect(), err, body)
	}
	if err := dec.Close(emit); err != nil && !errors.Is(err, dragoman.ErrIncompleteStream) {
		t.Fatalf("%s cannot decode its own stream: %v\n%s", c.Dialect(), err, body)
	}
	return evs
}

// repeats is the number of times that a value is encoded. Go iterates a map of two
// keys in the same order 20 times in a row about once in half a million runs.
const repeats = 20

func TestProperty_RequestEncodingIsDeterministic(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := gen.Options{}.Request().Draw(t, "request")
		o := dialect.EncodeOptions{Target: crosstest.DrawServer(t), Rebuild: rapid.Bool().Draw(t, "rebuild")}
		before := req.Fingerprint()
		first := ""
		for i := range repeats {
			enc, err := c.EncodeRequest(req, o) // composes a registry each time
			got := outcome(enc.Body, enc.Report, err)
			if i == 0 {
				first = got
			} else if got != first {
				t.Fatalf("first\n%s\nlater\n%s", first, got)
			}
		}
		if req.Fingerprint() != before {
			t.Fatal("encoding changed the request")
		}
	})
}

func TestProperty_ResponseEncodingIsDeterministic(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		resp := gen.Options{}.Response().Draw(t, "response")
		o := dialect.EncodeOptions{Seed: rapid.SampledFrom([]string{"", "s"}).Draw(t, "seed"), Rebuild: rapid.Bool().Draw(t, "rebuild")}
		before := resp.Fingerprint()
		first := ""
		for i := range repeats {
			enc, err := c.EncodeResponse(resp, o)
			got := outcome(enc.Body, enc.Report, err)
			if i == 0 {
				first = got
			} else if got != first {
				t.Fatalf("first\n%s\nlater\n%s", first, got)
			}
		}
		if resp.Fingerprint() != before {
			t.Fatal("encoding changed the response")
		}
	})
}

func TestProperty_StreamEncodingIsDeterministic(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		evs := gen.Options{}.Events().Draw(t, "events")
		o := dialect.EncodeOptions{Seed: rapid.SampledFrom([]string{"", "s"}).Draw(t, "seed"), StreamUsage: true}
		first := ""
		for i := range repeats {
			got := outcome(crosstest.Streamed(c, evs, o))
			if i == 0 {
				first = got
			} else if got != first {
				t.Fatalf("first\n%s\nlater\n%s", first, got)
			}
		}
	})
}

// writable draws generator options whose native data is valid JSON, or encode options
// that ignore native data. Otherwise the generator's native data may be invalid,
// which is not the encoder's fault.
func writable(t *rapid.T) (gen.Options, dialect.EncodeOptions) {
	o := dialect.EncodeOptions{Target: crosstest.DrawServer(t), Rebuild: rapid.Bool().Draw(t, "rebuild"), StreamUsage: true, Seed: "s"}
	return gen.Options{Tidy: !o.Rebuild}, o
}

// validJSON fails unless body is one JSON value of valid UTF-8 without duplicate
// fields.
func validJSON(t *rapid.T, what string, body []byte) {
	if !jsontext.Value(body).IsValid() {
		t.Fatalf("%s is not valid JSON: %q", what, body)
	}
}

func TestProperty_RequestBodyIsValidJSONWithoutDuplicateKeys(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g, o := writable(t)
		req := g.Request().Draw(t, "request")
		enc, err := c.EncodeRequest(req, o)
		if err != nil {
			return // a choice of a tool that cannot be sent; see package specs
		}
		validJSON(t, "the request", gen.WithoutRepeatedKeys(req, enc.Body))
		if bytes.ContainsAny(enc.Body, "\x00") {
			t.Fatalf("a control character: %q", enc.Body)
		}
		if !o.Rebuild {
			return // replayed random native data may not be a valid request
		}
		if _, _, err := c.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry}); err != nil && !hasRandomNative(req) {
			t.Fatalf("%v\n%s", err, enc.Body)
		}
	})
}

// hasRandomNative reports whether a request has random native JSON that the wire's own
// decoder may refuse.
func hasRandomNative(req *dragoman.Request) bool {
	if req.ToolChoice != nil && (req.ToolChoice.Mode == codes.ChoiceOpaque || slices.ContainsFunc(req.ToolChoice.Tools, func(r dragoman.ToolRef) bool { return r.Native != nil })) {
		return true
	}
	for i := range req.Tools {
		if req.Tools[i].Source != nil {
			return true
		}
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok && r.Envelope != nil {
				return true
			}
		}
	}
	return false
}

func TestProperty_ResponseBodyIsValidJSONWithoutDuplicateKeys(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g, o := writable(t)
		enc, err := c.EncodeResponse(g.Response().Draw(t, "response"), o)
		if err != nil {
			t.Fatal(err)
		}
		validJSON(t, "the response", enc.Body)
		if !o.Rebuild {
			return
		}
		if _, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, enc.Body)
		}
	})
}

// validStream fails if the stream has a line that violates the framing, or data that
// is not JSON.
func validStream(t *rapid.T, c dialect.Codec, body []byte) {
	if c.Dialect() == dialectname.Ollama {
		validLines(t, body)
		return
	}
	if c.Dialect() == dialectname.Bedrock {
		validFrames(t, body)
		return
	}
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\n\n")) {
		t.Fatalf("the last event is not terminated: %q", body)
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case ok && string(data) == "[DONE]", len(line) == 0, bytes.HasPrefix(line, []byte("event: ")):
		case ok:
			validJSON(t, "an event's data", data)
		default:
			t.Fatalf("not a field: %q\n%q", line, body)
		}
	}
}

// validLines is like validStream, for lines of JSON.
func validLines(t *rapid.T, body []byte) {
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\n")) {
		t.Fatalf("the last line is not terminated: %q", body)
	}
	for line := range bytes.Lines(body) {
		validJSON(t, "a line", bytes.TrimSuffix(line, []byte("\n")))
	}
}

func TestProperty_StreamLinesAreValidAndDecode(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g, o := writable(t)
		evs := g.Events().Draw(t, "events")
		if rapid.Bool().Draw(t, "without chunks") {
			evs = crosstest.WithoutChunks(evs)
		}
		body, _, err := crosstest.Streamed(c, evs, o)
		if err != nil {
			t.Fatal(err)
		}
		validStream(t, c, body)
		if len(crosstest.WithoutChunks(evs)) == len(evs) || o.Rebuild {
			read(t, c, body, dialect.DecodeOptions{}) // a random chunk may be refused
		}
	})
}

// Native chunks of a real decoder carry the stream. After one is removed, the encoder continues from
// the events in the middle of the stream.
func TestProperty_StreamWithNativeChunksIsValid(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		body, _, err := crosstest.Streamed(c, crosstest.WithoutChunks(gen.Options{Tidy: true}.Events().Draw(t, "events")), dialect.EncodeOptions{StreamUsage: true, Rebuild: true, Seed: "s"})
		if err != nil {
			t.Fatal(err)
		}
		evs := read(t, c, body, dialect.DecodeOptions{})
		for _, out := range crosstest.Codecs {
			again, _, err := crosstest.Streamed(out, evs, dialect.EncodeOptions{StreamUsage: true})
			if err != nil {
				t.Fatal(err)
			}
			validStream(t, out, again)
			read(t, out, again, dialect.DecodeOptions{})
		}
	})
}

// drawSplits splits bytes at random positions.
func drawSplits(t *rapid.T, body []byte) [][]byte {
	if rapid.IntRange(0, 9).Draw(t, "byte by byte") == 0 {
		var out [][]byte
		for i := range body {
			out = append(out, body[i:i+1])
		}
		return out
	}
	cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 12).Draw(t, "cuts")
	slices.Sort(cuts)
	var out [][]byte
	at := 0
	for _, c := range cuts {
		out = append(out, body[at:c])
		at = c
	}
	return append(out, body[at:])
}

func sameFed(t *rapid.T, body []byte, whole, cut fed) {
	for i := range max(len(whole.events), len(cut.events)) {
		if i >= len(whole.events) || i >= len(cut.events) || whole.events[i] != cut.events[i] {
			t.Fatalf("event %d differs\nwhole %q\ncut   %q\nof %q", i, whole.events[min(i, len(whole.events)):], cut.events[min(i, len(cut.events)):], body)
		}
	}
	if fmt.Sprint(whole.err) != fmt.Sprint(cut.err) || fmt.Sprint(whole.closed) != fmt.Sprint(cut.closed) || whole.rep != cut.rep {
		t.Fatalf("whole %v, %v, %s\ncut   %v, %v, %s\nof %q", whole.err, whole.closed, whole.rep, cut.err, cut.closed, cut.rep, body)
	}
}

func TestProperty_SplitStreamGivesTheSameEvents(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g, o := writable(t)
		body, _, err := crosstest.Streamed(c, g.Events().Draw(t, "events"), o)
		if err != nil {
			t.Fatal(err)
		}
		d := dialect.DecodeOptions{Seed: "s", NoNative: rapid.Bool().Draw(t, "no native")}
		sameFed(t, body, feedAll(t, c, d, body), feedAll(t, c, d, drawSplits(t, body)...))
	})
}

func TestProperty_SplitStreamWithGarbageGivesTheSameError(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g, o := writable(t)
		body, _, err := crosstest.Streamed(c, g.Events().Draw(t, "events"), o)
		if err != nil {
			t.Fatal(err)
		}
		garbage := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 1, 12),
			rapid.SampledFrom([][]byte{
				[]byte("\r"), []byte("\n\n"), []byte("\r\n\r\n"), []byte("data: {\n\n"), []byte("data: null\n\n"), []byte("data: [DONE]\n\n"),
				[]byte("event: error\ndata: {}\n\n"), []byte(": \xff\n"), []byte("\ufeff"), []byte(`"`), []byte("\x00"), []byte("data: []\n\n"),
			}),
		).Draw(t, "garbage")
		body = slices.Insert(bytes.Clone(body), rapid.IntRange(0, len(body)).Draw(t, "at"), garbage...)
		if rapid.IntRange(0, 3).Draw(t, "cut short") == 0 {
			body = body[:rapid.IntRange(0, len(body)).Draw(t, "length")]
		}
		d := dialect.DecodeOptions{Seed: "s", NoNative: rapid.Bool().Draw(t, "no native")}
		sameFed(t, body, feedAll(t, c, d, body), feedAll(t, c, d, drawSplits(t, body)...))
	})
}

func TestDuplicateMetadataKeyIsWrittenOnceAndReported(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Metadata: []dragoman.KeyValue{{Key: "k", Value: "1"}, {Key: "k", Value: "2"}}}
	for _, c := range crosstest.Codecs {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || !jsontext.Value(enc.Body).IsValid() || bytes.Contains(enc.Body, []byte(`"1"`)) || len(enc.Report.Losses) == 0 {
			t.Errorf("%s: %v\n%s\n%s", c.Dialect(), err, enc.Body, enc.Report.String())
		}
	}
}
