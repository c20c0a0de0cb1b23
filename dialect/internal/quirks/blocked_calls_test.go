package quirks_test

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// ended returns the stop reason for a client that reads the whole stream.
func ended(c dialect.Codec, wire []byte) dragoman.StopReason {
	stop := dragoman.StopError
	d := c.NewStreamDecoder(dialect.DecodeOptions{})
	emit := func(ev dragoman.Event) error {
		if end, ok := ev.(*dragoman.ResponseEnd); ok {
			stop = end.Stop.Reason
		}
		return nil
	}
	_ = d.Feed(wire, emit)
	_ = d.Close(emit)
	return stop
}

// withArguments returns the events of a stream with other arguments of its call.
func withArguments(events []string, args string) []string {
	out := make([]string, len(events))
	for i, ev := range events {
		ev = strings.ReplaceAll(ev, `"arguments":{}`, `"arguments":`+args) // Ollama
		ev = strings.ReplaceAll(ev, `"args":{}`, `"args":`+args)           // Gemini
		out[i] = strings.ReplaceAll(ev, `"{}"`, crosstest.JSON(args))
	}
	return out
}

// Readers of a duplicate key take the first value, the last, or both, without noticing. In a stream,
// such arguments are sent before their end is known, so only the stop reason can keep a client from
// running them. Arguments that the codec wraps in an object would run in a tool that accepts anything.
// Ollama clients ignore the stop reason, so there the arguments are wrapped.
func TestR7_StreamedCallWithDuplicateKeyNeverRuns(t *testing.T) {
	for d, events := range crosstest.OneCallStreams {
		wire := crosstest.OnWire(t, d, withArguments(events, `{"x":1,"x":2}`))
		for _, out := range crosstest.Codecs {
			t.Run(string(d)+" to "+string(out.Dialect()), func(t *testing.T) {
				body, rep := crosstest.ConvertStream(crosstest.CodecOf(d), out, wire)
				wrapped := bytes.Contains(body, []byte("_raw"))
				if out.Dialect() == dialectname.Ollama {
					if !wrapped {
						t.Errorf("a client would run the call:\n%s", body)
					}
				} else if stop := ended(out, body); stop.Runs() {
					t.Errorf("a client would run the call after %s:\n%s", stop, body)
				}
				switch lines := rep.String(); {
				case len(rep.Losses) == 0:
					t.Error("nothing is reported")
				case !wrapped && strings.Contains(lines, "_raw"):
					t.Errorf("the report mentions an object that is not written:\n%s\n%s", lines, body)
				}
			})
		}
	}
}

// The same for arguments in the start of a block.
func TestR7_DuplicateKeyInBlockStartNeverRuns(t *testing.T) {
	for d, start := range map[dragoman.Dialect][2]string{
		dialectname.Anthropic: {`"name":"f","input":{}`, `"name":"f","input":{"x":1,"x":2}`},
		dialectname.Bedrock:   {`"name":"f"`, `"name":"f","input":{"x":1,"x":2}`},
	} {
		var events []string
		for _, ev := range crosstest.OneCallStreams[d] {
			if !strings.Contains(ev, `"{}"`) {
				events = append(events, strings.Replace(ev, start[0], start[1], 1))
			}
		}
		body, _ := crosstest.ConvertStream(crosstest.CodecOf(d), crosstest.CodecOf(d), crosstest.OnWire(t, d, events))
		if stop := ended(crosstest.CodecOf(d), body); stop.Runs() {
			t.Errorf("%s: a client would run the call after %s:\n%s", d, stop, body)
		}
	}
}

// Decision 34: a whole response with wrapped arguments has a stop reason after which nothing runs.
func TestR7_WrappedArgumentsHaveABlockingStopReason(t *testing.T) {
	for _, args := range []string{`{"x":1,"x":2}`, `{} {}`, `{"x":NaN}`, `{`, `[1]`} {
		for _, c := range crosstest.Codecs {
			if c.Dialect() == dialectname.Ollama {
				continue // Ollama clients ignore the stop reason
			}
			resp := &dragoman.Response{ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}
			resp.Output = []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
				&dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: args, Problem: dragoman.CheckArguments(args)},
			}}}
			enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(enc.Body, []byte("_raw")) && back.Stop.Reason.Runs() {
				t.Errorf("%s: %s runs after %s:\n%s", c.Dialect(), args, back.Stop.Reason, enc.Body)
			}
		}
	}
}

// A call that is truncated before its first argument is not a call without arguments, which would run.
func TestQuirkC34_CallTruncatedBeforeArgumentsIsNotCompleted(t *testing.T) {
	for d, last := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat: `"name":"f","arguments":""`, dialectname.OpenAIResponses: `"name":"f","arguments":""`,
		dialectname.Anthropic: `"name":"f","input":{}`, dialectname.Bedrock: `"name":"f"`,
	} {
		var events []string
		for _, ev := range crosstest.OneCallStreams[d] {
			if events = append(events, ev); strings.Contains(ev, last) {
				break
			}
		}
		wire := bytes.TrimSuffix(crosstest.OnWire(t, d, events), []byte("data: [DONE]\n\n"))
		for _, out := range crosstest.Codecs {
			body, _ := crosstest.ConvertStream(crosstest.CodecOf(d), out, wire)
			for _, done := range []string{`"arguments":"{}"`, `"arguments":{}`, `"args":{}`, `"partial_json":"{}"`, `"input":"{}"`} {
				if bytes.Contains(body, []byte(done)) {
					t.Errorf("%s to %s: the call is completed to %s:\n%s", d, out.Dialect(), done, body)
				}
			}
			if stop := ended(out, body); stop.Runs() {
				t.Errorf("%s to %s: the call runs after %s:\n%s", d, out.Dialect(), stop, body)
			}
			// The same holds for the collected stream.
			var col dragoman.Collector
			dec := crosstest.CodecOf(d).NewStreamDecoder(dialect.DecodeOptions{})
			emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
			_ = dec.Feed(wire, emit)
			_ = dec.Close(emit)
			resp, _ := col.Response()
			if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Arguments != "" || calls[0].Problem == nil {
				t.Errorf("%s: %+v", d, calls)
			}
		}
	}
}

// A collected stream that failed is an error on every wire, whatever its content. As a response it
// would have calls to run and a misleading stop reason. Responses has a form for both.
func TestFailedResponseIsWrittenAsError(t *testing.T) {
	events := append(crosstest.OneCallStreams[dialectname.Anthropic][:9:9], `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	var col dragoman.Collector
	d := crosstest.CodecOf(dialectname.Anthropic).NewStreamDecoder(dialect.DecodeOptions{})
	emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
	_ = d.Feed(crosstest.OnWire(t, dialectname.Anthropic, events), emit)
	_ = d.Close(emit)
	resp, _ := col.Response()
	if resp.Error == nil || len(resp.ToolCalls()) != 1 {
		t.Fatalf("%+v", resp)
	}
	for _, c := range crosstest.Codecs {
		enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
		if err != nil || back.Error == nil || back.Error.Message != "Overloaded" || back.Stop.Reason.Runs() {
			t.Errorf("%s: %v, %+v:\n%s", c.Dialect(), err, back, enc.Body)
			continue
		}
		if c.Dialect() == dialectname.OpenAIResponses {
			continue
		}
		if len(back.Output) > 0 || !strings.Contains(enc.Report.String(), "/output") {
			t.Errorf("%s: content next to the error\n%s\n%s", c.Dialect(), enc.Body, enc.Report)
		}
	}
}

// Anything after the end of a stream is ignored and not passed through. It is reported once, however
// much it is; keepalives are not reported.
func TestQuirkC12_DataAfterTheEndIsReportedOnce(t *testing.T) {
	for d, events := range crosstest.OneCallStreams {
		wire := crosstest.OnWire(t, d, events)
		if d == dialectname.Gemini { // Gemini streams have no end marker except an error
			wire = append(wire, "data: {\"error\":{\"code\":503,\"message\":\"no\",\"status\":\"UNAVAILABLE\"}}\n\n"...)
		}
		for _, native := range []bool{true, false} {
			read := func(pieces ...[]byte) (late int) {
				dec := crosstest.CodecOf(d).NewStreamDecoder(dialect.DecodeOptions{NoNative: !native})
				for _, p := range pieces {
					_ = dec.Feed(p, func(dragoman.Event) error { return nil })
				}
				_ = dec.Close(func(dragoman.Event) error { return nil })
				return strings.Count(dec.Report().String(), "after the end of the stream")
			}
			if n := read(slices.Concat(wire, wire)); n != 1 {
				t.Errorf("%s: the doubled stream has %d losses", d, n)
			}
			if n := read(wire, wire, wire); n != 1 {
				t.Errorf("%s: the tripled stream has %d losses", d, n)
			}
			quiet := []byte(": keepalive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\ndata: {\"type\":\"keepalive\"}\n\ndata: [DONE]\n\n")
			switch d {
			case dialectname.Ollama:
				quiet = []byte("\n\n")
			case dialectname.Bedrock:
				quiet = nil
			}
			if n := read(wire, quiet); n != 0 {
				t.Errorf("%s: keepalives have %d losses", d, n)
			}
		}
	}
}

// A server that ends its calls repeatedly, and continues them, must not make us read their arguments
// each time.
func TestQuirkC35_RepeatedCallEndsTakeLinearMemory(t *testing.T) {
	for d, c := range map[dragoman.Dialect]struct{ piece, end string }{
		dialectname.Anthropic: {
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":%s}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`,
		},
		dialectname.Bedrock: {
			`contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":%s}}}`,
			`messageStop {"stopReason":"tool_use"}`,
		},
	} {
		cost := func(times int) uint64 {
			var events []string
			for _, ev := range crosstest.OneCallStreams[d] {
				if !strings.Contains(ev, `"{}"`) {
					events = append(events, ev)
					continue
				}
				events = append(events, strings.Replace(c.piece, "%s", crosstest.JSON(`{"a":"`), 1))
				for range times {
					events = append(events, strings.Replace(c.piece, "%s", crosstest.JSON(strings.Repeat("x", 500)), 1), c.end)
				}
				events = append(events, strings.Replace(c.piece, "%s", crosstest.JSON(`"}`), 1))
			}
			wire := crosstest.OnWire(t, d, events)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			crosstest.ConvertStream(crosstest.CodecOf(d), crosstest.CodecOf(d), wire)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := cost(500), cost(2000); many > 8*few {
			t.Errorf("%s: %d bytes for 500 ends, %d for 2000", d, few, many)
		}
	}
}

// Whether a client runs a call does not depend on how the stream is cut into deltas (quirk B3, for
// quoted arguments).
func TestQuirkB3_ArgumentDeltasDoNotAffectWhetherACallRuns(t *testing.T) {
	const piece = `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":%s}}`
	cut := func(pieces ...string) (events []string) {
		for _, ev := range crosstest.OneCallStreams[dialectname.Anthropic] {
			if !strings.Contains(ev, `"{}"`) {
				events = append(events, ev)
				continue
			}
			for _, p := range pieces {
				events = append(events, strings.Replace(piece, "%s", crosstest.JSON(p), 1))
			}
		}
		return events
	}
	for _, args := range []string{` "{\"a\":1}"`, `"{\"a\":1}" `, ` {"a":1}`, "\n", ` "{\"a\":1,\"a\":2}"`, `{"a":1,"a":2}`, `  [1]`, ` null`} {
		for _, out := range crosstest.Codecs {
			whole, _ := crosstest.ConvertStream(crosstest.CodecOf(dialectname.Anthropic), out, crosstest.OnWire(t, dialectname.Anthropic, cut(args)))
			want := ended(out, whole)
			for i := range len(args) + 1 {
				for _, pieces := range [][]string{{args[:i], args[i:]}, {args[:i/2], args[i/2 : i], args[i:]}} {
					body, _ := crosstest.ConvertStream(crosstest.CodecOf(dialectname.Anthropic), out, crosstest.OnWire(t, dialectname.Anthropic, cut(pieces...)))
					if got := ended(out, body); got != want {
						t.Errorf("%s: %q ends with %s, in one delta with %s\n%s", out.Dialect(), pieces, got, want, body)
					}
				}
			}
		}
	}
}
