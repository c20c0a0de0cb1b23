package bedrock_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/go-json-experiment/json/jsontext"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, everything, `{"model":"m","modelId":7,"messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"content":[{"toolUse":{"name":"f","input":{"a":1,"a":2}}},{"cachePoint":{}},{"text":1}],"role":"assistant"},{"role":"user","content":[{"toolResult":{"content":"x"}},{"toolResult":7}]}]}`,
		`{"system":[{"cachePoint":{"type":"default"}},{"text":""}],"toolConfig":{"tools":[{"cachePoint":{"type":"default"}},{"toolSpec":{}},{}],"toolChoice":{"any":{"x":1},"auto":{}}}}`,
		`{"inferenceConfig":{"maxTokens":1e99,"stopSequences":[null,""]},"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{"}}}},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":-1}},"requestMetadata":{"a":1},"serviceTier":{"type":"x"}}`,
		`{"messages":[{"role":"system","content":[]},{"role":"","content":null},{"role":"martian","content":[5,"x",{"unheardOf":1}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { codectest.AnyRequest(t, codec, body) })
}

func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{}`, responseBody("end_turn", `[{"text":"x"}]`), responseBody("tool_use", `[{"toolUse":{"toolUseId":5,"name":null,"input":"{\"a\":1}"}},{"toolUse":{"input":[]}}]`),
		responseBody("max_tokens", `"text"`), responseBody("", `null`), responseBody("refusal", `[{"reasoningContent":{"redactedContent":"x"}},{"reasoningContent":{}},null,7]`),
		`{"output":{"message":{"content":[{"0":0,"ToolUse":{}}]}}}`, `{"__type":"X","message":"m"}`, `{"output":{"message":{}},"usAge":{"":1e700}}`, `{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"a"},{"text":"b"}]}},{"image":{"format":"png","source":{"bytes":""}}}]}},"usage":{"inputTokens":-5,"outputTokens":1e30,"totalTokens":"7","cacheReadInputTokens":9223372036854775807}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		// Every decodable response can be written as a valid stream.
		if resp, _ := codectest.AnyResponse(t, codec, body); resp != nil {
			codectest.Written(t, codec, codectest.EventsOf(resp), checkWire)
		}
	})
}

// FuzzStreamDecoder accepts a stream as bytes, or as the lines of its events.
func FuzzStreamDecoder(f *testing.F) {
	f.Add(richStream, uint16(7))
	for _, seed := range []string{
		twoParts, startLine + endLines("telepathy"), startLine + inputLine(0, "{") + textLine(0, "x") + endLines(""),
		startLine + callLine(0, "a", "f") + callLine(0, "a", "f") + textLine(0, "wrong kind") + stopLine(9) + `{"messageStop":{"stopReason":"max_tokens","x":1}}`,
		`{"throttlingException":{"message":"m"}}`, startLine + `{"contentBlockStart":{"contentBlockIndex":-1,"start":{"image":{}}}}` + "\n" + `{"contentBlockDelta":{"delta":{"toolResult":[]}}}` + "\n" + endLines("end_turn"),
	} {
		f.Add([]byte(seed), uint16(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		if len(stream) > 0 && stream[0] == '{' {
			stream = binary(string(stream))
		}
		evs, _ := codectest.AnyStream(t, codec, stream, cut)
		if !nameless(evs) {
			codectest.Written(t, codec, codectest.Bare(evs), checkWire)
		}
	})
}

// nameless reports whether evs contain a call without a name, or with an
// unreadable one. The checker refuses those.
func nameless(evs []dragoman.Event) bool {
	return slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
		end, ok := ev.(*dragoman.PartEnd)
		if !ok {
			return false
		}
		c, ok := end.Part.(*dragoman.ToolCall)
		return ok && (c.Name == "" || c.Problem != nil)
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"__type":"a#ThrottlingException:x","message":"busy"}`, `{"message":"x"} trailing`, `{"code":7,"Message":"x"}`,
		`{"Output":{"Output":{"__type":"x"}}}`, `{"message":`, "<html>\xff", `{"message":null,"__type":null}`,
	} {
		f.Add(429, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) { codectest.AnyError(t, codec, status, body, "toolUse") })
}

// FuzzStreamEncoder encodes stored events, one per line.
func FuzzStreamEncoder(f *testing.F) {
	evs, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(codectest.EventLines(f, evs)))
	f.Add([]byte(`{"type":"part_start","part":{"type":"opaque","dialect":"bedrock.converse","kind":"toolUse","json":{"base64":"eyJ0b29sVXNlIjp7ImlucHV0Ijp7ImEifX19"}}}` + "\n" + `{"type":"response_end","stop":{"reason":"stop"}}`))
	f.Add([]byte(`{"type":"part_start","part":{"type":"tool_call","name":"f"}}` + "\n" + `{"type":"part_delta","text":"{"}` + "\n" + `{"type":"response_end","stop":{"reason":"stop"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := codec.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		for line := range bytes.Lines(text) {
			ev, err := dragoman.UnmarshalEvent(line)
			if err != nil {
				continue
			}
			if _, native := ev.(*dragoman.Chunk); native {
				continue // an invented chunk may contain anything
			}
			if out, err = e.Encode(out, ev); err != nil {
				return
			}
		}
		out, err := e.Close(out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(lines(t, out)) {
			if !jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Fatalf("%s", line)
			}
		}
	})
}
