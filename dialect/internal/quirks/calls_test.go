package quirks_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkB3_DoubleEncodedArgumentsAreUnwrappedOnce(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"\"{\\\"a\\\":1}\""}}]},"finish_reason":"tool_calls"}]}`,
		dialectname.OpenAIResponses: `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"\"{\\\"a\\\":1}\"","status":"completed"}]}`,
		dialectname.Anthropic:       `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"f","input":"{\"a\":1}"}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
		dialectname.Bedrock:         `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":"{\"a\":1}"}}]}},"stopReason":"tool_use"}`,
		"cohere.chat":               `{"id":"r","message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"\"{\\\"a\\\":1}\""}}]},"finish_reason":"TOOL_CALL"}`,
		dialectname.Ollama:          `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]},"done":true}`,
	} {
		resp, _, err := crosstest.CodecOf(d).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", d, err)
			continue
		}
		if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Problem != nil || calls[0].Arguments != `{"a":1}` {
			t.Errorf("%s: %+v", d, calls[0])
		}
	}
}

// An item id belongs to its server; an output refers to the call id.
func TestQuirkB28_OutputsUseCallIDsAndForeignItemIDsAreDropped(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIResponses)
	mine := dragoman.Origin{Provider: "openai", Scope: "account-1"}
	resp, _, err := c.DecodeResponse([]byte(`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"t","annotations":[]}]},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}]}`), dialect.DecodeOptions{Origin: mine})
	if err != nil {
		t.Fatal(err)
	}
	stored := true
	req := &dragoman.Request{Model: "m", Store: &stored, Messages: append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...)}
	req.Messages = append(req.Messages, dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{
		&dragoman.ToolResult{CallID: "call_1", ItemID: "fco_1", Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "done"}}},
	}})
	for to, want := range map[targets.Target]bool{
		{Provider: "openai", Scope: "account-1"}: true,
		{Provider: "openai", Scope: "account-2"}: false,
		{Provider: "azure", Scope: "account-1"}:  false,
		{}:                                       false,
	} {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Target: to})
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Input []struct {
				Type   string
				ID     string
				CallID string `json:"call_id"`
			}
		}
		if err := json.Unmarshal(enc.Body, &body); err != nil {
			t.Fatal(err)
		}
		call, output := body.Input[len(body.Input)-2], body.Input[len(body.Input)-1]
		if call.Type != "function_call" || call.CallID != "call_1" || output.Type != "function_call_output" || output.CallID != "call_1" {
			t.Errorf("%+v: %s", to, enc.Body)
		}
		if kept := call.ID == "fc_1"; kept != want || !want && call.ID != "" {
			t.Errorf("%+v: the call is sent with the item id %q", to, call.ID)
		}
	}
}

func TestQuirkB29_ResponsesOnlyItemsKeepAllFields(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIResponses)
	item := `{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","arguments":{"query":"x"},"status":"completed"}`
	req, _, err := c.DecodeRequest([]byte(`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]},`+item+`]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if err != nil || !bytes.Contains(enc.Body, []byte(item)) {
		t.Errorf("%v\n%s", err, enc.Body)
	}
}

func TestQuirkB29_NamespacedToolAliasRoundTrips(t *testing.T) {
	tool := dragoman.ToolSpec{Kind: codes.ToolFunction, Namespace: "crm", Name: "find", Parameters: []byte(`{"type":"object"}`)}
	for _, c := range crosstest.Codecs {
		asked, err := c.EncodeRequest(&dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: []dragoman.ToolSpec{tool}}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		call := &dragoman.ToolCall{ID: "call_1", Name: "crm__find", Arguments: "{}"}
		if c.Dialect() == dialectname.OpenAIResponses {
			call.Namespace, call.Name = "crm", "find"
		} else if !bytes.Contains(asked.Body, []byte(`"crm__find"`)) {
			t.Errorf("%s: %s", c.Dialect(), asked.Body)
		}
		response, err := c.EncodeResponse(&dragoman.Response{
			Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.DecodeResponse(response.Body, dialect.DecodeOptions{Registry: asked.Registry})
		if err != nil || got.ToolCalls()[0].Namespace != "crm" || got.ToolCalls()[0].Name != "find" {
			t.Errorf("%s: %v %+v", c.Dialect(), err, got.ToolCalls())
		}
	}
}

// Arguments in tiny deltas are joined in linear time and memory: eight times as much input must not
// cost sixty-four times as much.
func TestQuirkC35_SmallArgumentDeltasTakeLinearTimeAndMemory(t *testing.T) {
	for _, c := range crosstest.Codecs {
		cost := func(pieces int) (took time.Duration, bytes uint64) {
			text := strings.Repeat("x", 8*pieces)
			evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}}, &dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c", Name: "f"}}}
			args := `{"a":"` + text + `"}`
			for rest := args; rest != ""; {
				n := min(8, len(rest))
				evs = append(evs, &dragoman.PartDelta{Kind: codes.KindToolCall, Text: rest[:n]})
				rest = rest[n:]
			}
			evs = append(evs, &dragoman.PartEnd{Part: &dragoman.ToolCall{ID: "c", Name: "f", Arguments: args}}, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}})
			wire, _, err := crosstest.Streamed(c, evs, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			took = time.Hour
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				resp := crosstest.Collect(t, c, wire, nil)
				took = min(took, time.Since(start))
				runtime.ReadMemStats(&after)
				if bytes = after.TotalAlloc - before.TotalAlloc; resp.ToolCalls()[0].Arguments != args {
					t.Fatalf("%s: the arguments changed", c.Dialect())
				}
			}
			return took, bytes
		}
		short, few := cost(4000)
		long, many := cost(32000)
		if many > 12*few {
			t.Errorf("%s: %d bytes for 4000 deltas, %d for 32000", c.Dialect(), few, many)
		}
		// A busy machine may slow one run; only nonlinear code is slow every time.
		tooLong := func() bool { return long > 24*short+100*time.Millisecond }
		for try := 0; tooLong() && try < 5; try++ {
			short, _ = cost(4000)
			long, _ = cost(32000)
		}
		if tooLong() {
			t.Errorf("%s: %v for 4000 deltas, %v for 32000", c.Dialect(), short, long)
		}
	}
}

// The stop sequence may have truncated the call, and an API that returns whole responses closes a
// truncated call.
func TestQuirkI4_StopSequenceBlocksCalls(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat: `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"stop_sequence"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		dialectname.Anthropic:  `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":1}}],"stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":1,"output_tokens":1}}`,
		dialectname.Bedrock:    `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{"a":1}}}]}},"stopReason":"stop_sequence","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`,
	} {
		c := crosstest.CodecOf(d)
		whole, _, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		for how, resp := range map[string]*dragoman.Response{"whole": whole, "streamed": crosstest.Collect(t, c, crosstest.StreamOf(t, d, []byte(body)), nil)} {
			if calls := resp.ToolCalls(); resp.Stop.Reason != dragoman.StopSequence || len(calls) != 1 || calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemStopped {
				t.Errorf("%s, %s: %s, %+v", d, how, resp.Stop.Reason, calls[0])
			}
			// A client that does not know the stop reason must not run the call either.
			enc, err := crosstest.CodecOf(dialectname.OpenAIChat).EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
			if word := string(enc.Body); err != nil || !strings.Contains(word, `"finish_reason":"content_filter"`) && !strings.Contains(word, `"finish_reason":"stop_sequence"`) {
				t.Errorf("%s, %s: %v %s", d, how, err, word)
			}
		}
	}
}
