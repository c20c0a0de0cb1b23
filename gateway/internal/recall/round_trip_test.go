package recall_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/targets"
)

// upstream is a provider whose responses have opaque state.
type upstream struct {
	codec dialect.Codec
	// calls is a response with text and two calls of find; done ends the loop.
	calls, done string
	// state must be sent back, once each, after calls, and stateOfDone after done.
	state, stateOfDone []string
}

// Signatures are base64.
const (
	sigA = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQQ=="
	sigB = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQg=="
	sigC = "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQw=="
)

var upstreams = []upstream{
	{
		codec: anthropic.Codec{},
		calls: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
			{"type":"thinking","thinking":"first this","signature":"` + sigA + `"},
			{"type":"redacted_thinking","data":"` + sigB + `"},
			{"type":"text","text":"Let me look.\n"},
			{"type":"text","text":"\nIn two places:"},
			{"type":"tool_use","id":"toolu_1","name":"find","input":{"where":"a","n":1.0}},
			{"type":"tool_use","id":"toolu_2","name":"find","input":{"where":"b"}}],
			"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
		done: `{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[
			{"type":"thinking","thinking":"then that","signature":"` + sigC + `"},
			{"type":"text","text":"It is in a."}],
			"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
		state:       []string{sigA, sigB, "first this"},
		stateOfDone: []string{sigC, "then that"},
	},
	{
		codec: gemini.Codec{},
		calls: `{"responseId":"r1","modelVersion":"m","candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[
			{"text":"first this","thought":true},
			{"text":"Let me look.","thoughtSignature":"` + sigA + `"},
			{"functionCall":{"name":"find","args":{"where":"a","n":1.0}},"thoughtSignature":"` + sigB + `"},
			{"functionCall":{"name":"find","args":{"where":"b"}}}]}}],
			"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`,
		done: `{"responseId":"r2","modelVersion":"m","candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[
			{"text":"It is in a."},{"text":"","thoughtSignature":"` + sigC + `"}]}}],
			"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`,
		state:       []string{sigA, sigB},
		stateOfDone: []string{sigC},
	},
	{
		codec: openairesponses.Codec{},
		calls: `{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"first this"}],"encrypted_content":"` + sigA + `"},
			{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me look.","annotations":[],"logprobs":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"call_1","name":"find","arguments":"{\"where\":\"a\",\"n\":1.0}","status":"completed"},
			{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"` + sigB + `"},
			{"type":"message","id":"msg_3","status":"completed","role":"assistant","content":[{"type":"output_text","text":"And there.","annotations":[],"logprobs":[]}]},
			{"type":"function_call","id":"fc_2","call_id":"call_2","name":"find","arguments":"{\"where\":\"b\"}","status":"completed"}],
			"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
		done: `{"id":"resp_2","object":"response","created_at":1,"model":"m","status":"completed","output":[
			{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"` + sigC + `"},
			{"type":"message","id":"msg_2","status":"completed","role":"assistant","content":[{"type":"output_text","text":"It is in a.","annotations":[],"logprobs":[]}]}],
			"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
		state:       []string{sigA, sigB, `"rs_1"`, `"rs_2"`, "commentary"}, // other ids mean nothing to a server that keeps nothing (quirk D28)
		stateOfDone: []string{sigC, `"rs_3"`},
	},
	{
		codec: openaichat.Codec{},
		calls: `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
			"content":"Let me look.","reasoning":"first this","reasoning_details":[{"type":"reasoning.encrypted","data":"` + sigA + `","format":"anthropic-claude-v1","index":0}],
			"tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"where\":\"a\",\"n\":1.0}"},"extra_content":{"google":{"thought_signature":"` + sigB + `"}}},
			{"id":"call_2","type":"function","function":{"name":"find","arguments":"{\"where\":\"b\"}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		done: `{"id":"chatcmpl-2","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",
			"content":"It is in a.","reasoning":"then that","reasoning_details":[{"type":"reasoning.encrypted","data":"` + sigC + `"}]}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		state:       []string{sigA, sigB, "first this"},
		stateOfDone: []string{sigC, "then that"},
	},
	{
		codec: bedrock.Codec{},
		calls: `{"output":{"message":{"role":"assistant","content":[
			{"reasoningContent":{"reasoningText":{"text":"first this","signature":"` + sigA + `"}}},
			{"reasoningContent":{"redactedContent":"` + sigB + `"}},
			{"text":"Let me look."},
			{"toolUse":{"toolUseId":"tooluse_1","name":"find","input":{"where":"a","n":1.0}}},
			{"toolUse":{"toolUseId":"tooluse_2","name":"find","input":{"where":"b"}}}]}},
			"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
		done: `{"output":{"message":{"role":"assistant","content":[
			{"reasoningContent":{"reasoningText":{"text":"then that","signature":"` + sigC + `"}}},{"text":"It is in a."}]}},
			"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
		state:       []string{sigA, sigB, "first this"},
		stateOfDone: []string{sigC, "then that"},
	},
	{
		codec: ollama.Codec{},
		calls: `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Let me look.","thinking":"first this","tool_calls":[
			{"function":{"name":"find","arguments":{"where":"a","n":1.0}}},{"function":{"name":"find","arguments":{"where":"b"}}}]},"done":true,"done_reason":"stop"}`,
		done:        `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"It is in a.","thinking":"then that"},"done":true,"done_reason":"stop"}`,
		state:       []string{"first this"},
		stateOfDone: []string{"then that"},
	},
}

// clients are the dialects that a gateway serves.
var clients = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}}

var find = dragoman.ToolSpec{Name: "find", Parameters: []byte(`{"type":"object","properties":{"where":{"type":"string"},"n":{"type":"number"}}}`)}

// conversation is a conversation of a client through a gateway.
type conversation struct {
	t      *testing.T
	r      *recall.Recall
	scope  recall.Scope
	client dialect.Codec
	up     upstream
	target targets.Target

	// clientMessages is the conversation as the client stores it, fullMessages as a client that
	// drops nothing would.
	clientMessages, fullMessages []dragoman.Message
	turn                         int
	report                       dragoman.Report
}

func newConversation(t *testing.T, r *recall.Recall, up upstream, client dialect.Codec) *conversation {
	target := targets.Target{Dialect: up.codec.Dialect(), Provider: "p", Scope: "s", Model: "m"}
	return &conversation{t: t, r: r, scope: recall.Scope{Key: "k", Route: "m"}, client: client, up: up, target: target}
}

// newRecall returns a Recall that stores in memory.
func newRecall(t testing.TB) (*recall.Recall, *testkit.Clock) {
	t.Helper()
	clock := testkit.NewClock()
	r, err := recall.New(recall.Options{Notes: &storekit.Notes{Now: clock.Now}, TTL: time.Hour, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return r, clock
}

// decodedRequest returns the client's request as the gateway decodes it.
func (k *conversation) decodedRequest() *dragoman.Request {
	k.t.Helper()
	req := &dragoman.Request{Model: "m", Messages: k.clientMessages, Tools: []dragoman.ToolSpec{find}, Instructions: []dragoman.Part{&dragoman.Text{Text: fmt.Sprint("turn ", k.turn)}}}
	enc, err := k.client.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		k.t.Fatal(err)
	}
	got, _, err := k.client.DecodeRequest(enc.Body, dialect.DecodeOptions{Seed: fmt.Sprint("request ", k.turn)})
	if err != nil {
		k.t.Fatal(err)
	}
	got.Model = "m"
	return got
}

// encodedRequest returns a request as it is sent to the provider.
func (k *conversation) encodedRequest(req *dragoman.Request) dialect.Encoded {
	k.t.Helper()
	out, _, err := history.Normalize(req, history.Options{Target: k.target, Limits: k.up.codec.Limits()})
	if err != nil {
		k.t.Fatal(err)
	}
	enc, err := k.up.codec.EncodeRequest(out, dialect.EncodeOptions{Target: k.target, Rebuild: true})
	if err != nil {
		k.t.Fatal(err)
	}
	return enc
}

// roundTrip sends the conversation and adds the provider's response. It returns what the provider
// got, and what it would get from a client that drops nothing.
func (k *conversation) roundTrip(answer string) (got, want string) {
	k.t.Helper()
	k.turn++
	req := k.decodedRequest()
	rep, err := k.r.RestoreState(k.t.Context(), k.scope, req)
	if err != nil {
		k.t.Fatal(err)
	}
	k.report = rep
	enc := k.encodedRequest(req)
	ideal := *req
	ideal.Messages, ideal.Native = k.fullMessages, nil
	if req.Messages[0].Role == dragoman.RoleSystem { // some dialects have instructions there
		ideal.Messages = append([]dragoman.Message{req.Messages[0]}, k.fullMessages...)
	}
	want = string(k.encodedRequest(&ideal).Body)

	resp, _, err := k.up.codec.DecodeResponse([]byte(answer), dialect.DecodeOptions{Registry: enc.Registry, Origin: k.target.Origin(), Seed: fmt.Sprint("response ", k.turn)})
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.r.StoreState(k.t.Context(), k.scope, req, resp); err != nil {
		k.t.Fatal(err)
	}
	k.fullMessages = append(k.fullMessages, resp.Output...)
	k.clientMessages = append(k.clientMessages, k.clientCopy(resp))
	return string(enc.Body), want
}

// clientCopy returns the part of a response that a client in its own dialect stores: text and
// calls.
func (k *conversation) clientCopy(resp *dragoman.Response) dragoman.Message {
	k.t.Helper()
	enc, err := k.client.EncodeResponse(resp, dialect.EncodeOptions{Model: "m", Seed: "s"})
	if err != nil {
		k.t.Fatal(err)
	}
	got, _, err := k.client.DecodeResponse(enc.Body, dialect.DecodeOptions{Seed: "client"})
	if err != nil {
		k.t.Fatal(err)
	}
	m := dragoman.Message{Role: dragoman.RoleAssistant}
	if text := got.Text(); text != "" {
		m.Parts = append(m.Parts, &dragoman.Text{Text: text})
	}
	// Many clients of these dialects have no ids and synthesize their own.
	bare := k.client.Dialect() == dialectname.Gemini || k.client.Dialect() == dialectname.Ollama
	if bare {
		m.Origin = &dragoman.Origin{Dialect: k.client.Dialect()}
	}
	for _, c := range got.ToolCalls() {
		m.Parts = append(m.Parts, &dragoman.ToolCall{ID: c.ID, Synthetic: bare, Name: c.Name, Arguments: c.Arguments})
	}
	return m
}

// addUser says something.
func (k *conversation) addUser(text string) {
	k.clientMessages = append(k.clientMessages, dragoman.UserText(text))
	k.fullMessages = append(k.fullMessages, dragoman.UserText(text))
}

// addResults adds results for the calls of the last response.
func (k *conversation) addResults(texts ...string) {
	answer := func(calls []*dragoman.ToolCall) dragoman.Message {
		var out []*dragoman.ToolResult
		for i, c := range calls {
			out = append(out, c.ResultText(texts[i]))
		}
		return dragoman.ToolResults(out...)
	}
	var minted []*dragoman.ToolCall
	for i := range k.fullMessages {
		minted = append(minted, k.fullMessages[i].ToolCalls()...)
	}
	k.fullMessages = append(k.fullMessages, answer(minted[len(minted)-2:]))
	k.clientMessages = append(k.clientMessages, answer(k.clientMessages[len(k.clientMessages)-1].ToolCalls()))
}

func TestQuirkB17_DroppedStateReachesTheProvider(t *testing.T) {
	for _, up := range upstreams {
		for _, client := range clients {
			t.Run(string(up.codec.Dialect())+" through "+string(client.Dialect()), func(t *testing.T) {
				r, _ := newRecall(t)
				k := newConversation(t, r, up, client)
				k.addUser("where is it?")
				k.roundTrip(up.calls)
				k.addResults("here", "not here")
				got, want := k.roundTrip(up.done)
				k.check(got, want, up.state)
				k.addUser("thanks, and the other?")
				got, want = k.roundTrip(up.done)
				k.check(got, want, append(append([]string{}, up.state...), up.stateOfDone...))
			})
		}
	}
}

// check compares what the provider got with what it would have got, and finds each piece of state
// once.
func (k *conversation) check(got, want string, state []string) {
	k.t.Helper()
	if len(k.report.Losses) > 0 {
		k.t.Errorf("lost: %v", k.report)
	}
	for _, s := range state {
		if n := strings.Count(got, s); n != strings.Count(want, s) || n == 0 {
			k.t.Errorf("%q stands %d times in the request, want %d", s, n, strings.Count(want, s))
		}
	}
	if got != want {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		k.t.Errorf("got  …%.400s\nwant …%.400s", got[max(0, i-100):], want[max(0, i-100):])
	}
}
