package openaichat_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// oddRequest has unusual spacing and order, and many unknown fields.
const oddRequest = "{ \"messages\" : [ {\"content\":\"h\\u00e9 <b>\",\"role\":\"user\",\"new\":[1.0]},\r\n" +
	`{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\" : 1}","name":"f","x":1},"id":"a","type":"function","y":{}}],"content":null,"audio":{"id":"u"}},
	 {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x","z":0}]},
	 {"role":"narrator","content":[{"type":"hologram","beam":1}]}] ,
	"metadata":{"b":"2","a":"1"}, "stream" : false, "temperature":1.0, "top_p":null, "n":1, "stop":"x",
	"model" : "gpt\u002d5", "tools":[{"function":{"name":"f","parameters":{"b":1,"a":2}},"type":"function"},{"type":"google_search","x":1}],
	"prediction":{"type":"content","content":"y"}, "logit_bias":{"50256":-100}, "max_tokens":5, "user":"u", "tool_choice":"any", "zzz":null }`

const oddResponse = `{ "choices" : [ {"finish_reason":"stop","logprobs":{"content":[]},"message":{"annotations":[],"content":"h\u00e9","refusal":null,"role":"assistant"},"index":0} ],
	"model":"gpt\u002d5","system_fingerprint":"fp","created":1.0,"id":"r","object":"chat.completion","usage":{"total_tokens":3,"prompt_tokens":1,"completion_tokens":2,"cost":0.10},"provider":"p" }`

const oddStream = ": hello {\"model\":\"x\"}\r\n\r\n" + "data:{\"choices\":[{\"delta\":{\"content\":\"h\\u00e9\"},\"index\":0}],\"model\":\"gpt\\u002d5\",\"id\":\"r\",\"zzz\":{\"model\":\"y\"}}\r\n\r\n" +
	"event: odd\ndata: {\"model\":\"gpt-5\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\nid: 7\n\n" +
	"data: {\"id\":\"r\",\"choices\":[],\"usage\":null}\n\n: bye\n\ndata: [DONE]\n\n: after\n\n"

func TestIdentity_UnchangedRequestKeepsItsBytes(t *testing.T) {
	req, _ := decodeRequest(t, oddRequest)
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != oddRequest {
		t.Errorf("%v\n%s", err, enc.Body)
	}
	lossless(t, enc.Report)
}

func TestIdentity_OtherModelChangesOnlyTheModel(t *testing.T) {
	req, _ := decodeRequest(t, oddRequest)
	req.Model = "other/model"
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if want := strings.Replace(oddRequest, `"gpt\u002d5"`, `"other/model"`, 1); err != nil || string(enc.Body) != want {
		t.Errorf("%v\n%s", err, enc.Body)
	}
	resp, _ := decodeResponse(t, oddResponse)
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{Model: "other/model"})
	if want := strings.Replace(oddResponse, `"gpt\u002d5"`, `"other/model"`, 1); err != nil || string(enc.Body) != want {
		t.Errorf("%v\n%s", err, enc.Body)
	}
	d := decodeStream(t, dialect.DecodeOptions{}, oddStream)
	out, _ := encodeStream(t, dialect.EncodeOptions{Model: "other/model"}, d.events)
	for _, c := range chunksOf(t, out) {
		if c != "[DONE]" && string(object(t, []byte(c))["model"]) != `"other/model"` {
			t.Errorf("%s", c)
		}
	}
}

func TestIdentity_UnchangedResponseKeepsItsBytes(t *testing.T) {
	resp, _ := decodeResponse(t, oddResponse)
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != oddResponse {
		t.Errorf("%v\n%s", err, enc.Body)
	}
}

func TestReencodedStreamHasUnknownFields(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, oddStream)
	out, rep := encodeStream(t, dialect.EncodeOptions{}, d.events)
	has(t, out, `"zzz":{"model":"y"}`)
	if len(rep.Losses) != 1 || rep.Losses[0].Path != "/created" { // the stream has no time
		t.Error(rep)
	}
	faithful(t, d.events)
}

func TestIdentity_OtherMessagesKeepTheirBytes(t *testing.T) {
	req, _ := decodeRequest(t, oddRequest)
	before := elements(t, object(t, []byte(oddRequest))["messages"])
	req.Messages = append(req.Messages, dragoman.UserText("more"))
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	after := elements(t, m["messages"])
	if len(after) != len(before)+1 {
		t.Fatalf("%q", after)
	}
	for i := range before {
		if after[i] != before[i] {
			t.Errorf("message %d became %s", i, after[i])
		}
	}
	for i, tool := range elements(t, m["tools"]) {
		if tool != elements(t, object(t, []byte(oddRequest))["tools"])[i] {
			t.Errorf("tool %d became %s", i, tool)
		}
	}
}

func TestUnknown_FieldsSurviveARebuild(t *testing.T) {
	req, _ := decodeRequest(t, oddRequest)
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	// The stop sequence becomes a list; nothing else differs.
	sameJSON(t, string(enc.Body), strings.Replace(oddRequest, `"stop":"x"`, `"stop":["x"]`, 1))
	lossless(t, enc.Report)
	resp, _ := decodeResponse(t, oddResponse)
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, string(enc.Body), oddResponse)
	lossless(t, enc.Report)
}

func TestUnknown_StreamFieldsSurviveOrAreReported(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, sse(
		`{"id":"r","model":"m","provider":"p","system_fingerprint":"fp","service_tier":"flex","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{}","x":1}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation"}]},"logprobs":{"content":[]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]",
	))
	if x := d.resp.Output[0].Extra; x == nil || x.Fields[0].Path != "/annotations" {
		t.Errorf("%+v", x)
	}
	lost(t, d.rep, dragoman.Dropped, "logprobs")
	out, _ := encodeStream(t, dialect.EncodeOptions{}, d.events)
	again := streamed(t, out)
	if again.ServiceTier != "flex" {
		t.Errorf("tier %q", again.ServiceTier)
	}
	a, _ := json.Marshal(d.resp.Extra)
	b, _ := json.Marshal(again.Extra)
	sameJSON(t, string(b), string(a))
	fields := map[string]string{}
	for _, f := range again.ToolCalls()[0].Extra.Fields {
		fields[f.Path] = string(f.Value)
	}
	if len(fields) != 2 || fields["/function/x"] != "1" || fields["/extra_content"] != `{"google":{"thought_signature":"s"}}` {
		t.Errorf("%v", fields)
	}
}

func TestRebuild_ValueSetAfterNullIsWrittenOnce(t *testing.T) {
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","name":null,"content":"","refusal":null,"tool_calls":null,"reasoning":null,"function_call":null}],
		"temperature":null,"top_p":null,"top_k":null,"frequency_penalty":null,"presence_penalty":null,"seed":null,"n":null,"stop":null,"max_tokens":null,"max_completion_tokens":null,
		"response_format":null,"reasoning_effort":null,"verbosity":null,"stream":null,"stream_options":null,"store":null,"metadata":null,"service_tier":null,
		"prompt_cache_key":null,"safety_identifier":null,"user":null,"tools":null,"tool_choice":null,"parallel_tool_calls":null}`)
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	object(t, enc.Body)
	one, num := ptr(int64(1)), ptr(dragoman.Number("0.5"))
	req.Sampling = dragoman.Sampling{Temperature: num, TopP: num, TopK: one, FrequencyPenalty: num, PresencePenalty: num, Seed: one, Candidates: one, Stop: []string{"x"}}
	req.MaxOutputTokens, req.Output, req.Reasoning = one, &dragoman.OutputFormat{Kind: codes.OutputJSON}, &dragoman.ReasoningSettings{Effort: "low"}
	req.Verbosity, req.Stream, req.StreamUsage, req.Store, req.Metadata = "low", true, true, ptr(true), []dragoman.KeyValue{{Key: "a", Value: "b"}}
	req.ServiceTier, req.CacheKey, req.User = "flex", "k", "u"
	req.Tools, req.ToolChoice, req.ParallelToolCalls = []dragoman.ToolSpec{fn("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, ptr(true)
	req.Messages[0].Name = "n"
	req.Messages[0].Parts = []dragoman.Part{&dragoman.Reasoning{Text: "t", Field: "reasoning"}, text("x"), &dragoman.Refusal{Text: "no"}, ptr(call("a", "f", "{}"))}
	req.Messages = append(req.Messages, dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}))
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{}) // fails for a duplicate field
	for key, v := range m {
		if string(v) == "null" {
			t.Errorf("%s is null", key)
		}
	}
}

func TestSpelling_NewerOfTwoTokenLimitsCounts(t *testing.T) {
	for _, body := range []string{`"max_tokens":5,"max_completion_tokens":7`, `"max_completion_tokens":7,"max_tokens":5`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+body+`}`)
		if *req.MaxOutputTokens != 7 {
			t.Errorf("%s: %d", body, *req.MaxOutputTokens)
		}
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
		if string(m["max_tokens"]) != "5" || string(m["max_completion_tokens"]) != "7" {
			t.Errorf("%v", m)
		}
	}
}

// Decoding does not modify the input.
func TestPurity_DecodingDoesNotChangeTheBody(t *testing.T) {
	for _, body := range []string{oddRequest, oddResponse} {
		b := []byte(body)
		req, _, err := codec.DecodeRequest(b, dialect.DecodeOptions{})
		if err == nil {
			if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true}); err != nil && !codectest.Empty(err) { // a response has no messages
				t.Error(err)
			}
		}
		if string(b) != body {
			t.Error("the body was changed")
		}
	}
}
