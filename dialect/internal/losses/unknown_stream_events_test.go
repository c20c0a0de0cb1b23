package losses_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// unknownEvents are events that a server may add to its streams: two of an unknown type, and one
// without content.
var unknownEvents = map[dragoman.Dialect][]string{
	dialectname.OpenAIResponses: {`{"type":"response.vendor_note","note":1}`, `{"type":"response.vendor_note","note":2}`, `{"type":"keepalive"}`},
	dialectname.Anthropic:       {`{"type":"vendor_note","note":1}`, `{"type":"vendor_note","note":2}`, `{"type":"ping"}`},
	dialectname.Bedrock:         {`vendor_note {"note":1}`, `vendor_note {"note":2}`},
}

// An event of an unknown type survives only as native bytes. Converting the stream to another
// dialect reports it once per type; passing the bytes through loses nothing.
func TestUnknownEventsAreReportedOncePerType(t *testing.T) {
	for from, strange := range unknownEvents {
		events := slices.Insert(slices.Clone(crosstest.OneCallStreams[from]), 1, strange...)
		wire := crosstest.OnWire(t, from, events)
		for _, to := range crosstest.Codecs {
			for _, o := range []dialect.DecodeOptions{{}, {NoNative: true}} {
				var w bytes.Buffer
				dec, enc := crosstest.CodecOf(from).NewStreamDecoder(o), to.NewStreamEncoder(dialect.EncodeOptions{})
				if err := dialect.Translate(&w, enc, dec, bytes.NewReader(wire)); err != nil {
					t.Fatal(err)
				}
				var lines []dragoman.Loss
				for _, l := range append(dec.Report().Losses, enc.Report().Losses...) {
					if strings.Contains(l.Detail, "vendor_note") || strings.Contains(l.Detail, "ping") || strings.Contains(l.Detail, "keepalive") {
						lines = append(lines, l)
					}
				}
				passed := to.Dialect() == from && !o.NoNative
				if passed && (len(lines) > 0 || bytes.Count(w.Bytes(), []byte(`"note":`)) != bytes.Count(wire, []byte(`"note":`))) {
					t.Errorf("%s to itself: %v\n%s", from, lines, w.Bytes())
				}
				if !passed && (len(lines) != 1 || lines[0].Severity != dragoman.Warn || lines[0].Kind != dragoman.Dropped) {
					t.Errorf("%s to %s, %+v: %v", from, to.Dialect(), o, lines)
				}
			}
		}
	}
}

// extraFields adds unknown fields of the whole response at the start and at the
// end of a stream.
var extraFields = map[dragoman.Dialect][][2]string{
	dialectname.OpenAIChat:      {{`"created":1`, `"created":1,"vendor_a":"x"`}, {`"finish_reason":"tool_calls"`, `"finish_reason":"tool_calls","native_finish_reason":"vendor_b"`}},
	dialectname.OpenAIResponses: {{`"status":"completed","output"`, `"status":"completed","vendor_a":"x","native_vendor_b":"y","output"`}},
	dialectname.Anthropic:       {{`"role":"assistant"`, `"role":"assistant","vendor_a":"x"`}, {`"stop_reason":"tool_use"`, `"stop_reason":"tool_use","vendor_b":"y"`}, {`{"output_tokens":3}`, `{"output_tokens":3,"vendor_c":5}`}},
	dialectname.Gemini:          {{`"modelVersion"`, `"vendor_a":"x","modelVersion"`}, {`"finishReason":"STOP"`, `"finishReason":"STOP","vendor_b":"y"`}},
	"cohere.chat":               {{`"role":"assistant"`, `"role":"assistant","vendor_a":"x"`}, {`"finish_reason"`, `"vendor_b":"y","finish_reason"`}},
	dialectname.Ollama:          {{`"model":"m"`, `"model":"m","vendor_a":"x"`}, {`"done_reason":"stop"`, `"done_reason":"stop","vendor_b":"y"`}},
	dialectname.Bedrock:         {{`{"role"`, `{"vendor_a":"x","role"`}, {`"stopReason"`, `"vendor_b":"y","stopReason"`}},
}

// Unknown fields of a streamed response are reported as lost, like those of a whole response.
func TestUnknownFieldsOfStreamsAreReported(t *testing.T) {
	for from, puts := range extraFields {
		for _, put := range puts {
			events := slices.Clone(crosstest.OneCallStreams[from])
			for i := range events {
				events[i] = strings.Replace(events[i], put[0], put[1], 1)
			}
			wire := crosstest.OnWire(t, from, events)
			word := put[1][strings.Index(put[1], "vendor_"):][:len("vendor_a")]
			if strings.Contains(put[1], "native_finish") {
				word = "native_finish_reason"
			}
			for _, to := range crosstest.Codecs {
				if to.Dialect() == from {
					continue
				}
				var w bytes.Buffer
				dec, enc := crosstest.CodecOf(from).NewStreamDecoder(dialect.DecodeOptions{}), to.NewStreamEncoder(dialect.EncodeOptions{StreamUsage: true})
				if err := dialect.Translate(&w, enc, dec, bytes.NewReader(wire)); err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, l := range append(dec.Report().Losses, enc.Report().Losses...) {
					if strings.Contains(l.Path+l.Detail, word) {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%s to %s: %d losses for %s: %v", from, to.Dialect(), n, word, append(dec.Report().Losses, enc.Report().Losses...))
				}
			}
		}
	}
}
