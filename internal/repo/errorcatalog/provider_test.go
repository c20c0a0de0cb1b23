package errorcatalog

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
)

func choosingAModel() section {
	return section{
		title: "Choosing a model",
		intro: "These errors come before a request is sent. The same texts come from `provider.Open`, and from the gateway for a\nroute that cannot be used.",
		entries: []entry{
			{
				title: "Model without a provider", command: `dragoman run --model gpt-5 "Hello"`,
				means: "A model is named by its provider and its name, or by an alias of the config file.", fix: "Put the provider in front, as in the suggestion.",
			},
			{
				title: "Unknown provider", command: `dragoman run --model opanai/gpt-5 "Hello"`,
				means: "The part before the slash is neither a built-in provider nor one of the config file.", fix: "Use a listed name, or [configure](providers.md) the server as a provider.",
			},
			{
				title: "Provider without a model", command: `dragoman run --model openai "Hello"`,
				means: "The name of the model is missing.", fix: "Add it after a slash.",
			},
			{
				title: "Unknown simulated model", command: `dragoman run --model sim/plannr "Hello"`,
				means: "The simulator has three models.", fix: "Use one of them.",
			},
			{
				title: "API key is missing", command: `dragoman run --no-session --model anthropic/claude-opus-5-5 "Hello"`,
				means: "The environment has no key for this provider, so no request was sent.", fix: "Set the variable. A config file names another one with `api_key_env`.",
			},
			{
				title: "API key with a line break", command: `dragoman run --no-session --model openai/gpt-5 "Hello"`,
				env:   []string{"OPENAI_API_KEY=sk-123\nsk-456"},
				means: "The key contains characters that no HTTP header can carry, usually a line break from a file.", fix: "Set the variable to the key alone.",
			},
			{
				title: "Base URL without a scheme", command: `dragoman run --no-session --model openai/gpt-5 "Hello"`,
				env:   []string{"OPENAI_API_KEY=sk-123", "OPENAI_BASE_URL=localhost:8080/v1"},
				means: "The base URL, from `OPENAI_BASE_URL` here, is not a URL.", fix: "Write `http://` or `https://` in front.",
			},
			{
				title: "Model of the last session cannot be opened", command: `dragoman run --continue "And now?"`,
				before: `dragoman run --model openai/gpt-5 "Hello"; true`, env: []string{"DRAGOMAN_CONFIG="},
				means: "The session continues with the model that it used last, whose key is missing here.", fix: "Set the key, or choose a model with `--model`.",
			},
		},
	}
}

func upstream() section {
	return section{
		title: "From the model's server",
		intro: "A number in front is the HTTP status of the server, followed by its own message. `provider.Retryable` tells whether the\nsame request may succeed later; the client has retried those twice already.",
		entries: []entry{
			{
				title: "Invalid API key", from: "OpenAI, with a wrong key",
				run:   answers(401, `{"error":{"message":"Incorrect API key provided: sk-123. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`),
				means: "The server rejects the key.", fix: "Check that the variable has the key of this provider, and that the key was not revoked.",
			},
			{
				title: "Server that wants a key", from: "a server of type `compatible` that needs a key, without `api_key_env`", run: keylessServer,
				means: "The provider works without a key, so none was sent, but this server wants one.", fix: "Name the variable that contains the key, as the message says.",
			},
			{
				title: "Unknown model at the provider", from: "OpenAI, with a model that the account does not have",
				run:   answers(404, `{"error":{"message":"The model 'gpt-6' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`),
				means: "The server does not know the model.", fix: "Check the name at the provider. A list of models continues with the next one.",
			},
			{
				title: "Wrong base URL", from: "a base URL whose server has no chat API", run: answersText(404, "text/plain", "404 page not found\n"),
				means: "The server responds, but serves nothing at this path.", fix: "Check the base URL: for OpenAI servers it usually ends in `/v1`.",
			},
			{
				title: "HTML page instead of JSON", from: "a login page or a proxy at the base URL", run: answersText(200, "text/html", "<!DOCTYPE html>\n<html><body><h1>Please sign in</h1></body></html>\n"),
				means: "The base URL is the address of a website, not of an API.", fix: "Correct the base URL, or let the proxy pass the requests.",
			},
			{
				title: "Redirect", from: "a server that redirects to another host", run: redirected,
				means: "Redirects are not followed, because they would send the key to another server.", fix: "Set the base URL to the address that the message names.",
			},
			{
				title: "Connection refused", from: "a base URL where no server listens", run: refusedConnection,
				means: "No program listens at this address.", fix: "Start the server, or correct the base URL.",
			},
			{
				title: "HTTPS to an HTTP server", from: "`https://` in the base URL of a server without TLS", run: httpsToHTTP,
				means: "The server does not speak TLS at this port.", fix: "Write `http://` in the base URL.",
			},
			{
				title: "Refused parameter", from: "a parameter that the model does not accept, on a server that Dragoman does not know",
				run:   answers(400, `{"error":{"message":"Invalid value: 'temperature' must be between 0 and 2.","type":"invalid_request_error","param":"temperature","code":"invalid_value"}}`),
				means: "The server refuses a setting of the request.", fix: "Change the setting. If the model never accepts it, declare that with `capabilities` or a [model file](providers.md#models), and it is dropped and reported.",
			},
			{
				title: "Rate limit", from: "a server that is asked too often, after two retries",
				run:   answers(429, `{"error":{"message":"Rate limit reached for gpt-5 on requests per min. Please try again in 20s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`),
				means: "The account sent more than the provider allows.", fix: "Wait, raise `retries`, or name a second model: `openai/gpt-5, anthropic/claude-opus-5-5`.",
			},
			{
				title: "Context too long", from: "a conversation that is longer than the model's context",
				run:   answers(400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`),
				means: "The conversation does not fit. The error has the class `context_length`.", fix: "Shorten it, with `Agent.Compact` or the extension `dragoman.compact`, or use a model with a larger context.",
			},
			{
				title: "Provider overloaded", from: "a server that fails, after two retries",
				run:   answers(503, `{"error":{"message":"The server is overloaded or not ready yet.","type":"server_error","param":null,"code":null}}`),
				means: "The provider cannot answer at the moment.", fix: "Try again later, or name a second model.",
			},
			{
				title: "Timeout before the response", from: "a server that sends nothing, with `timeouts: {first_byte: 50ms}`", run: silentServer,
				means: "The server accepted the request and sent no response in time.", fix: "Raise `timeouts.first_byte`; models that think long need minutes.",
			},
			{
				title: "Timeout within a stream", from: "a stream that stops, with `timeouts: {idle: 50ms}`", run: stallingStream,
				means: "The stream was silent for too long.", fix: "Raise `timeouts.idle`, or look at the server.",
			},
			{
				title: "Truncated stream", from: "a stream whose connection ends too early", run: truncatedStream,
				means: "The response is incomplete, and its tool calls do not run.", fix: "Send the request again.",
			},
			{
				title: "Truncated JSON", from: "a response that ends within its JSON", run: answersText(200, "application/json", `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assis`),
				means: "The body of the response is not valid JSON.", fix: "If it happens again, a proxy in between may cut bodies off.",
			},
			{
				title: "Response of another API", from: "a response without `choices`", run: answersText(200, "application/json", `{"id":"msg_1","type":"message","role":"assistant"}`),
				means: "The server's API is not the one that the provider's `type` names.", fix: "Set the `type` of the provider to the API of the server.",
			},
			{
				title: "No model of a list responded", from: "a list of two models, both overloaded", run: failedList,
				means: "Each model of the list failed, for the reason after its name.", fix: "Look at the reasons; the list was tried in order.",
			},
			{
				title: "Request is too large", from: "a request of more than `max_request_bytes`", run: largeRequest,
				means: "The request is larger than the limit that you set, and was not sent.", fix: "Send less, or raise the limit.",
			},
			{
				title: "Loss that strict forbids", from: "a setting that the API does not have, with `strict: warn`", run: strictLoss,
				means: "The request cannot be converted without a loss, and you asked for none of this severity.", fix: "Remove the setting, choose another model, or relax `strict`.",
			},
			{
				title: "Calls without a result", from: "a conversation that ends with a tool call", run: unsettled,
				means: "The API wants a result for each call.", fix: "Add the results, or set `Client.Abandon` to give the calls up.",
			},
		},
	}
}

func question() *dragoman.Request {
	return &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("Hello")}}
}

// generate returns the error of a request to a server of type openai-chat.
func generate(t *testing.T, handler http.HandlerFunc, settings string, req *dragoman.Request) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return ask(t, server.URL+"/v1", "type: openai-chat, api_key_env: SOME_KEY, "+settings, req)
}

// ask returns the error of a request to the provider work.
func ask(t *testing.T, base, settings string, req *dragoman.Request) string {
	t.Helper()
	m := open(t, fmt.Sprintf("version: 1\nproviders:\n  work: {base_url: %q, retries: 0, %s}\n", base, strings.TrimSuffix(settings, ", ")), "work/gpt-5")
	var err error
	if req.Stream {
		for _, e := range m.Stream(t.Context(), req) {
			err = e
		}
	} else {
		_, err = m.Generate(t.Context(), req)
	}
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func open(t *testing.T, config, spec string) dragoman.Model {
	t.Helper()
	c, err := provider.Parse("dragoman.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	c.Getenv = func(name string) string { return map[string]string{"SOME_KEY": "sk-of-the-team-123"}[name] }
	m, err := c.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func answers(status int, body string) func(*testing.T) string {
	return answersText(status, "application/json", body)
}

func answersText(status int, contentType, body string) func(*testing.T) string {
	return func(t *testing.T) string { return generate(t, respond(status, contentType, body), "", question()) }
}

func keylessServer(t *testing.T) string {
	server := httptest.NewServer(respond(401, "application/json", `{"error":{"message":"Unauthorized","type":"invalid_request_error"}}`))
	t.Cleanup(server.Close)
	return ask(t, server.URL+"/v1", "type: compatible", question())
}

func redirected(t *testing.T) string {
	return generate(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://llm.example.com/v1/chat/completions", http.StatusMovedPermanently)
	}, "", question())
}

func refusedConnection(t *testing.T) string {
	server := httptest.NewServer(nil)
	server.Close()
	return ask(t, server.URL+"/v1", "type: openai-chat, api_key_env: SOME_KEY", question())
}

func httpsToHTTP(t *testing.T) string {
	server := httptest.NewServer(respond(200, "text/plain", ""))
	t.Cleanup(server.Close)
	return ask(t, strings.Replace(server.URL, "http:", "https:", 1)+"/v1", "type: openai-chat, api_key_env: SOME_KEY", question())
}

// silent waits until the client has gone.
func silent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
	}
}

func silentServer(t *testing.T) string {
	return generate(t, silent, "timeouts: {first_byte: 50ms}", question())
}

const (
	firstChunk = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{"index":0,"delta":{"role":"assistant","content":"Good"},"finish_reason":null}]}` + "\n\n"
)

func streamed() *dragoman.Request {
	req := question()
	req.Stream = true
	return req
}

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, firstChunk)
	_ = http.NewResponseController(w).Flush()
}

func stallingStream(t *testing.T) string {
	return generate(t, func(w http.ResponseWriter, r *http.Request) {
		begin(w)
		silent(w, r)
	}, "timeouts: {idle: 50ms}", streamed())
}

func truncatedStream(t *testing.T) string {
	return generate(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begin(w)
	}, "", streamed())
}

func failedList(t *testing.T) string {
	server := httptest.NewServer(respond(503, "application/json", `{"error":{"message":"Overloaded.","type":"server_error"}}`))
	t.Cleanup(server.Close)
	m := open(t, fmt.Sprintf("version: 1\nproviders:\n  work: {base_url: %[1]q, retries: 0, type: compatible}\n  home: {base_url: %[1]q, retries: 0, type: compatible}\n", server.URL+"/v1"), "work/large, home/small")
	_, err := m.Generate(t.Context(), question())
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func largeRequest(t *testing.T) string {
	return ask(t, "http://127.0.0.1:1/v1", "type: openai-chat, api_key_env: SOME_KEY, max_request_bytes: 1000", &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText(strings.Repeat("Hello ", 1000))}})
}

func strictLoss(t *testing.T) string {
	req := question()
	req.Sampling.TopK = new(int64(40))
	return ask(t, "http://127.0.0.1:1/v1", "type: openai-chat, api_key_env: SOME_KEY, strict: warn", req)
}

func unsettled(t *testing.T) string {
	req := question()
	req.Messages = append(req.Messages, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}})
	return ask(t, "http://127.0.0.1:1/v1", "type: openai-chat, api_key_env: SOME_KEY", req)
}
