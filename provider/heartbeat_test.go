package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	describe "github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

// heartbeats lists, by dialect, what servers send while a model is silent, and the beginning
// of a stream with content.
var heartbeats = []struct {
	codec   dialect.Codec
	beats   []string
	content string
}{
	{
		openaichat.Codec{},
		[]string{
			": ping\n\n", ":\n\n", "\n", "\r\n", "event: ping\n\n", ": " + strings.Repeat("long ", 2000) + "\n\n", "data:\n\n",
			"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[]}\n\n",
			"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":null}],\"usage\":null}\n\n",
			"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[]},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
		},
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n",
	},
	{
		anthropic.Codec{},
		[]string{": ping\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}}\n\n"},
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
	},
	{
		openairesponses.Codec{},
		[]string{": ping\n\n", "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":3}\n\n", "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"r\"}}\n\n"},
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
			"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}}\n\n" +
			"event: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"hi\"}\n\n",
	},
	{
		gemini.Codec{},
		[]string{": ping\n\n", "data: {\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n", "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"index\":0}]}\n\n"},
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"hi\"}]},\"index\":0}]}\n\n",
	},
	{
		ollama.Codec{},
		[]string{"\n", "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n"},
		"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"done\":false}\n",
	},
}

// heartbeatTransport is a server that sends some bytes, and then heartbeats forever.
type heartbeatTransport struct {
	begin string
	beat  string
	every time.Duration
	asked int
}

func (b *heartbeatTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	b.asked++
	body, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, b.begin)
		for err == nil {
			select {
			case <-r.Context().Done():
				_ = w.CloseWithError(r.Context().Err())
				return
			case <-time.After(b.every):
				_, err = io.WriteString(w, b.beat)
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
}

// consume reads a response in each of the possible ways.
var consume = map[string]func(c *provider.Client) error{
	"stream": func(c *provider.Client) error {
		_, err := dragoman.Collect(c.Stream(context.Background(), newRequest()))
		return err
	},
	"pass": func(c *provider.Client) error {
		got, err := c.Pass(context.Background(), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
		if err != nil {
			return err
		}
		defer func() { _ = got.Body.Close() }()
		_, err = io.Copy(io.Discard, got.Body)
		return err
	},
}

func TestX13_HeartbeatsDoNotResetTimeouts(t *testing.T) {
	for _, d := range heartbeats {
		for name, take := range consume {
			for _, beat := range d.beats {
				for begin, want := range map[string]provider.TimeoutError{
					"":        {Phase: "first byte", After: 10 * time.Minute},
					beat:      {Phase: "first byte", After: 10 * time.Minute},
					d.content: {Phase: "idle", After: 5 * time.Minute},
				} {
					synctest.Test(t, func(t *testing.T) {
						server := &heartbeatTransport{begin: begin, beat: beat, every: 9 * time.Second}
						c := &provider.Client{Codec: d.codec, BaseURL: "http://model.test", Model: "m", HTTP: &http.Client{Transport: server}, Retry: provider.Retry{Max: -1}}
						began := time.Now()
						err := take(c)
						var timeout *provider.TimeoutError
						if !errors.As(err, &timeout) || *timeout != want {
							t.Errorf("%s, %s, %q: %v", d.codec.Dialect(), name, beat, err)
						}
						if took := time.Since(began); took < want.After || took > want.After+want.After/32 {
							t.Errorf("%s, %s, %q: after %v", d.codec.Dialect(), name, beat, took)
						}
						synctest.Wait()
					})
				}
			}
		}
	}
}

func TestX13_ContentBetweenHeartbeatsKeepsTheResponseAlive(t *testing.T) {
	for _, d := range heartbeats {
		synctest.Test(t, func(t *testing.T) {
			more := d.content[strings.LastIndex(strings.TrimSuffix(strings.TrimSuffix(d.content, "\n"), "\n"), "\n\n")+1:]
			server := &heartbeatTransport{begin: d.content, beat: d.beats[0] + more, every: 4 * time.Minute}
			c := &provider.Client{Codec: d.codec, BaseURL: "http://model.test", Model: "m", HTTP: &http.Client{Transport: server}, Retry: provider.Retry{Max: -1}}
			began := time.Now()
			err := consume["pass"](c)
			var timeout *provider.TimeoutError
			if !errors.As(err, &timeout) || timeout.Phase != "total" || time.Since(began) != time.Hour {
				t.Errorf("%s: %v after %v", d.codec.Dialect(), err, time.Since(began))
			}
			synctest.Wait()
		})
	}
}

func TestX13_WhitespaceBeforeJSONIsAHeartbeat(t *testing.T) {
	for _, blank := range []string{" ", "\n", "\r\n\t", ": OPENROUTER PROCESSING\n\n"} {
		for _, d := range heartbeats {
			for name, take := range map[string]func(c *provider.Client) error{
				"generate": func(c *provider.Client) error { _, err := c.Generate(context.Background(), newRequest()); return err },
				"pass": func(c *provider.Client) error {
					got, err := c.Pass(context.Background(), modelcall.PassRequest{Body: []byte("{}")})
					if err == nil {
						_, err = io.Copy(io.Discard, got.Body)
						_ = got.Body.Close()
					}
					return err
				},
			} {
				for begin, phase := range map[string]string{"": "first byte", "{": "idle"} {
					if begin != "" && blank[0] == ':' {
						continue // no JSON
					}
					synctest.Test(t, func(t *testing.T) {
						server := &heartbeatTransport{begin: begin, beat: blank, every: 10 * time.Second}
						c := &provider.Client{Codec: d.codec, BaseURL: "http://model.test", Model: "m", HTTP: &http.Client{Transport: server}, Retry: provider.Retry{Max: -1}}
						err := take(c)
						var timeout *provider.TimeoutError
						if !errors.As(err, &timeout) || timeout.Phase != phase {
							t.Errorf("%s, %s, %q: %v", d.codec.Dialect(), name, blank, err)
						}
						synctest.Wait()
					})
				}
			}
		}
	}
}

func TestX13_OnlyHeartbeatsAreRetriedThenFailOver(t *testing.T) {
	for _, stream := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dead := &heartbeatTransport{beat: "\n", every: time.Second}
			if stream {
				dead.beat = ": ping\n\n"
			}
			chain := &provider.Chain{Links: []provider.Link{
				{Name: "dead", Model: &provider.Client{BaseURL: "http://model.test", Model: "m", HTTP: &http.Client{Transport: dead}}},
				{Name: "alive", Model: respondInOrder(textResponse("hi"))},
			}}
			var err error
			if stream {
				_, err = dragoman.Collect(chain.Stream(context.Background(), newRequest()))
			} else {
				_, err = chain.Generate(context.Background(), newRequest())
			}
			if err != nil || dead.asked != 3 {
				t.Errorf("%v, %d upstream requests", err, dead.asked)
			}
			synctest.Wait()
		})
	}
}

func TestX13_ATotalTimeoutIsOnByDefault(t *testing.T) {
	for total, want := range map[time.Duration]time.Duration{0: time.Hour, -1: 0, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			server := &heartbeatTransport{begin: heartbeats[0].content, beat: heartbeats[0].content, every: time.Second}
			c := &provider.Client{BaseURL: "http://model.test", Model: "m", HTTP: &http.Client{Transport: server}, Timeouts: provider.Timeouts{Total: total}}
			began, n := time.Now(), 0
			var failed error
			for _, err := range c.Stream(context.Background(), newRequest()) {
				if n++; n > 20_000 {
					break
				}
				failed = err
			}
			var timeout *provider.TimeoutError
			switch ended := errors.As(failed, &timeout); {
			case want == 0 && ended, want != 0 && (!ended || timeout.Phase != "total" || time.Since(began) != want):
				t.Errorf("total %v: %v after %v", total, failed, time.Since(began))
			}
			synctest.Wait()
		})
	}
}

// An event with content that is mistaken for a heartbeat could end a healthy response.
func TestEventsWithContentAreNotHeartbeats(t *testing.T) {
	for _, tc := range []struct {
		codec dialect.Codec
		data  []string
	}{
		{openaichat.Codec{}, []string{
			`{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"hi"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"refusal":"no"}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":1}}`,
			`{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"hi"}}]}`,
			`{"error":{"message":"x"}}`, `[DONE]`, `{"choices":`,
		}},
		{openairesponses.Codec{}, []string{
			`{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`,
			`{"type":"response.function_call_arguments.delta","delta":"{"}`,
			`{"type":"response.reasoning_summary_text.delta","delta":"hm"}`,
			`{"type":"response.web_search_call.searching","item_id":"ws_1"}`,
			`{"type":"response.output_item.done","item":{"type":"message"}}`,
			`{"type":"response.completed","response":{"id":"r"}}`, `{"type":"error","message":"x"}`, `{"type":"novel.event"}`, `{"type"`,
		}},
		{anthropic.Codec{}, []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`, `{"type":"error","error":{}}`, `{"type":"novel"}`, `{"type`,
		}},
		{gemini.Codec{}, []string{
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"x"}}]}}]}`,
			`{"candidates":[{"finishReason":"STOP"}]}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"error":{"code":500}}`, `{"candidates":`,
		}},
		{ollama.Codec{}, []string{
			`{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}`,
			`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}`,
			`{"message":{"role":"assistant","content":""},"done":true}`, `{"error":"x"}`, `{"message":`,
		}},
	} {
		for _, data := range tc.data {
			if !describe.Of(tc.codec).Stream.HasContent([]byte(data)) {
				t.Errorf("%T: no content in %s", tc.codec, data)
			}
		}
	}
}
