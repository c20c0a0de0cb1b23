package errorcatalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
)

func gatewayRequests() section {
	return section{
		title: "As a client of the gateway",
		intro: "The first line is the HTTP status for clients of OpenAI, the second the message. Each dialect has its own form around the\nsame message, as the first entry shows; some statuses differ (in Gemini, for example, 500 where OpenAI has 502). Every response has the\nheader `X-Request-Id`, and the log of the gateway has a line with that id and the cause.",
		entries: []entry{
			{
				title: "Unknown model", from: "a model that no route serves, as each dialect shows it", run: everyDialect,
				means: "No route of the gateway matches the model, or the key may not see it.", fix: "Use a listed name, or add a route. Your key limits which names the list has.",
			},
			{
				title: "Missing key", from: "a request without a key", run: requested(``, "/v1/chat/completions", hello, ""),
				means: "The gateway has keys, and the request has none.", fix: "Set the key in the client, where the provider's key was.",
			},
			{
				title: "Unknown key", from: "a request with a key that the gateway does not have", run: requested(``, "/v1/chat/completions", hello, "sk-proj-of-the-provider"),
				means: "The key is not one of the gateway's: a provider's key is not accepted here.", fix: "Ask the operator for a key.",
			},
			{
				title: "Model that the key may not use", from: "a model that exists, but not for this key", run: requested(``, "/v1/chat/completions", strings.Replace(hello, "fast", "best", 1), teamKey),
				means: "`models` of the key does not list this model.", fix: "Use an allowed model, or extend the list.",
			},
			{
				title: "Requests per minute", from: "the second request of a key with `requests_per_minute: 1`", run: requestedTwice("requests_per_minute: 1"),
				means: "The key has used up its requests for this minute. The header `Retry-After` says when to try again.", fix: "Wait, as official SDKs do by themselves, or raise the limit.",
			},
			{
				title: "Budget is spent", from: "a request after `budget: {tokens: 1, per: day}` is used", run: requestedTwice("budget: {tokens: 1, per: day, reserve: 1}"),
				means: "The key has used its tokens for the period.", fix: "Wait for the next period, or raise the budget.",
			},
			{
				title: "Field that chooses another model", from: "a request with `models`, a second way to choose a model, for a key that may not use all models", run: requested(``, "/v1/chat/completions", strings.Replace(hello, `"messages"`, `"models":["best"],"messages"`, 1), teamKey),
				means: "Some servers take models from more fields than `model`; a limited key may not use them.", fix: "Remove the field, or list it under `fields` of the key.",
			},
			{
				title: "Body is not JSON", from: "a body with a syntax error", run: requested(``, "/v1/chat/completions", `{"model":"fast","messages":[`, teamKey),
				means: "The body ends or breaks at this byte.", fix: "Look at what the client really sends; often a shell changed the quotes.",
			},
			{
				title: "Model field is missing", from: "a body without `model`", run: requested(``, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}]}`, teamKey),
				means: "The gateway needs the model to choose a route.", fix: "Set the model in the client.",
			},
			{
				title: "Wrong path", from: "an OpenAI client whose base URL lacks `/v1`", run: requested(``, "/chat/completions", hello, teamKey),
				means: "The gateway serves nothing at this path.", fix: "Correct the base URL of the client, as the message says.",
			},
			{
				title: "Wrong method", from: "`GET /v1/chat/completions`", run: requestedBy(http.MethodGet, "/v1/chat/completions"),
				means: "The path exists, but not for this method.", fix: "Send a POST request.",
			},
			{
				title: "Body is too large", from: "a body of more than `limits.body_bytes`", run: requested("limits: {body_bytes: 1000}", "/v1/chat/completions", strings.Replace(hello, "Hello", strings.Repeat("Hello ", 1000), 1), teamKey),
				means: "The body is larger than the gateway accepts.", fix: "Send less, or raise the limit.",
			},
			{
				title: "Unknown previous response", from: "`previous_response_id` with an id that was not stored for this key", run: requested(``, "/v1/responses", `{"model":"fast","input":"Hello","previous_response_id":"resp_123"}`, teamKey),
				means: "The gateway has no such response: it expired (`state.ttl`), was lost with the memory of another process, or belongs to another key.", fix: "Send the whole conversation, or store the state in a database.",
			},
			{
				title: "Denied by the gateway's policy", from: "a model that a policy rule denies", run: denied,
				means: "A rule of a policy of the gateway, the key or the route denies the model.", fix: "Use another model, or change the rule. `dragoman tools why --subject model_call` explains it.",
			},
			{
				title: "Upstream rejects the gateway's key", from: "an upstream that answers 401", run: behind(respond(401, "application/json", `{"error":{"message":"Incorrect API key provided: sk-123.","type":"invalid_request_error"}}`), ""),
				means: "The key that the gateway has for the provider is wrong. It is not the client's key.", fix: "As the operator, correct the variable of the provider.",
			},
			{
				title: "Gateway lacks a key", from: "a route to a provider whose variable is not set", run: behind(nil, ", api_key_env: UNSET_VARIABLE"),
				means: "The gateway cannot call the model at all. Its log names the variable.", fix: "As the operator, set it; `dragoman serve --check` lists all that are missing.",
			},
			{
				title: "Upstream is down", from: "an upstream where nothing listens", run: upstreamDown,
				means: "The gateway could not connect to the model's server.", fix: "As the operator, look at the log for the address and the reason. With a second model in the route, the gateway would have called that one.",
			},
			{
				title: "Upstream timed out", from: "an upstream that sends nothing, with `timeouts: {first_byte: 50ms}`", run: behind(silent, ", timeouts: {first_byte: 50ms}"),
				means: "The model's server did not respond in time.", fix: "Try again, raise the timeout, or add a second model to the route.",
			},
			{
				title: "Upstream sends an HTML page", from: "an upstream with a wrong base URL", run: behind(respond(200, "text/html", "<!DOCTYPE html>\n<html><body><h1>Please sign in</h1></body></html>\n"), ""),
				means: "The base URL of the provider is the address of a website.", fix: "As the operator, correct `base_url`.",
			},
			{
				title: "Upstream stream breaks off", from: "a stream that ends too early, for a client of Anthropic", run: brokenStream,
				means: "The stream ended before the response was complete. The status was already 200, so the error is its last event.", fix: "Send the request again, and run no tool call of this response.",
			},
			{
				title: "Host name that is not local", from: "a gateway without keys, reached as `http://my-laptop.example:8088`", run: foreignHost,
				means: "Without keys, the gateway refuses other host names, so that web pages cannot use it.", fix: "Add the name with `--host`, or configure keys.",
			},
		},
	}
}

const (
	teamKey = "a-key-of-the-search-team"
	hello   = `{"model":"fast","messages":[{"role":"user","content":"Hello"}]}`
)

// serve starts a gateway with routes for the simulator and one key.
func serve(t *testing.T, config string) string {
	t.Helper()
	c, err := gateway.Parse("dragoman.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(c, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server.URL
}

// withKey returns a config with one key, whose variable it sets by its hash.
func withKey(gatewayFields, keyFields string) string {
	return "version: 1\ngateway:\n  routes: {fast: {to: sim/echo}, best: {to: sim/planner}}\n  keys: {search: {key_sha256: " + hashOf(teamKey) + ", models: [fast], " + keyFields + "}}\n  " + gatewayFields + "\n"
}

// post sends a request and returns its status and body.
func post(t *testing.T, method, url, body, key string, host ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if len(host) > 0 {
		req.Host = host[0]
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw
}

// failure returns a status with its text and the message of an OpenAI error.
func failure(t *testing.T, status int, body []byte) string {
	t.Helper()
	var v struct{ Error json.RawMessage }
	var object struct{ Message string }
	if err := json.Unmarshal(body, &v); err != nil || status < 400 {
		t.Fatalf("%d %s", status, body)
	}
	if json.Unmarshal(v.Error, &object) != nil { // the form of Ollama, for paths of no dialect
		if err := json.Unmarshal(v.Error, &object.Message); err != nil {
			t.Fatalf("%d %s", status, body)
		}
	}
	return fmt.Sprintf("HTTP %d %s\n%s", status, http.StatusText(status), object.Message)
}

func requested(fields, path, body, key string) func(*testing.T) string {
	return func(t *testing.T) string {
		status, raw := post(t, http.MethodPost, serve(t, withKey(fields, ""))+path, body, key)
		return failure(t, status, raw)
	}
}

func requestedBy(method, path string) func(*testing.T) string {
	return func(t *testing.T) string {
		status, raw := post(t, method, serve(t, withKey("", ""))+path, "", teamKey)
		return failure(t, status, raw)
	}
}

func requestedTwice(keyFields string) func(*testing.T) string {
	return func(t *testing.T) string {
		url := serve(t, withKey("", keyFields)) + "/v1/chat/completions"
		if status, body := post(t, http.MethodPost, url, hello, teamKey); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		status, raw := post(t, http.MethodPost, url, hello, teamKey)
		return until.ReplaceAllString(failure(t, status, raw), "in 59s")
	}
}

func everyDialect(t *testing.T) string {
	url := serve(t, "version: 1\ngateway:\n  routes: {fast: {to: sim/echo}, best: {to: sim/planner}}\n")
	var b strings.Builder
	for _, d := range []struct{ name, path, body string }{
		{"OpenAI Chat", "/v1/chat/completions", `{"model":"fsat","messages":[{"role":"user","content":"Hello"}]}`},
		{"OpenAI Responses", "/v1/responses", `{"model":"fsat","input":"Hello"}`},
		{"Anthropic", "/v1/messages", `{"model":"fsat","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}`},
		{"Gemini", "/v1beta/models/fsat:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
		{"Ollama", "/api/chat", `{"model":"fsat","messages":[{"role":"user","content":"Hello"}]}`},
	} {
		status, body := post(t, http.MethodPost, url+d.path, d.body, "")
		fmt.Fprintf(&b, "%s: HTTP %d %s\n%s\n", d.name, status, http.StatusText(status), requestID.ReplaceAll(bytes.TrimSpace(body), []byte("req_123")))
	}
	return b.String()
}

func denied(t *testing.T) string {
	status, body := post(t, http.MethodPost, serve(t, withKey("policy: "+file(t, "policy.yaml", "version: 1\nrules:\n  - {id: no-simulator, effect: deny, subjects: [model_call], reason: Use a real model., when: {model: \"sim/*\"}}\n"), ""))+"/v1/chat/completions", hello, teamKey)
	return failure(t, status, body)
}

// behind returns the error of a gateway in front of an upstream of type compatible.
func behind(upstream http.HandlerFunc, settings string) func(*testing.T) string {
	return func(t *testing.T) string {
		server := httptest.NewServer(upstream)
		t.Cleanup(server.Close)
		return through(t, server.URL, settings, "/v1/chat/completions", hello)
	}
}

func through(t *testing.T, base, settings, path, body string) string {
	t.Helper()
	status, raw := post(t, http.MethodPost, serve(t, fmt.Sprintf("version: 1\nproviders:\n  work: {type: compatible, base_url: %q, retries: 0%s}\ngateway:\n  routes: {fast: {to: work/large}}\n", base+"/v1", settings))+path, body, "")
	if strings.HasPrefix(string(raw), "event:") {
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		return fmt.Sprintf("HTTP %d %s\n…\n%s", status, http.StatusText(status), strings.Join(lines[len(lines)-2:], "\n"))
	}
	return failure(t, status, raw)
}

func upstreamDown(t *testing.T) string {
	server := httptest.NewServer(nil)
	server.Close()
	return through(t, server.URL, "", "/v1/chat/completions", hello)
}

func brokenStream(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begin(w)
	}))
	t.Cleanup(server.Close)
	return through(t, server.URL, "", "/v1/messages", `{"model":"fast","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`)
}

func foreignHost(t *testing.T) string {
	c, err := gateway.Parse("dragoman.yaml", []byte("version: 1\ngateway:\n  routes: {fast: {to: sim/echo}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(c, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l, time.Second) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	status, raw := post(t, http.MethodPost, "http://"+l.Addr().String()+"/v1/chat/completions", hello, "", "my-laptop.example:8088")
	return failure(t, status, raw)
}

func configFile() section {
	return section{
		title: "In a config file",
		intro: "`dragoman serve --check` reports everything that is wrong with a file, each with its line and column. `dragoman run` and\n`provider.Load` report the same.",
		entries: []entry{
			check("Config file not found", nil, "The file does not exist.", "Check `--config` or `DRAGOMAN_CONFIG`."),
			check("Unknown field", yaml("version: 1\naliasses: {fast: sim/echo}\n"), "There is no such field at this place; usually it is misspelled or indented too far.", "Use a listed name."),
			check("Duplicate field", yaml("version: 1\ngateway:\n  listen: 127.0.0.1:8088\n  listen: 127.0.0.1:8089\n"), "The field occurs twice, so the file is ambiguous.", "Remove one of them."),
			check("YAML with a tab", yaml("version: 1\ngateway:\n\tlisten: 127.0.0.1:8088\n"), "YAML does not allow tabs for indentation.", "Use spaces."),
			check("Missing version", yaml("gateway: {listen: \"127.0.0.1:8088\"}\n"), "A config file says which version of the format it has.", "Write `version: 1` in the first line."),
			check("Newer version", yaml("version: 2\n"), "The file was written for a newer release.", "Use that release, or the format of version 1."),
			check("Key in the file", yaml("version: 1\nproviders:\n  openai: {api_key: sk-123}\n"), "Secrets do not belong in the file, so the field does not exist.", "Put the key into a variable, and name the variable."),
			check("Environment variable is not set", yaml("version: 1\ngateway:\n  keys: {search: {key_env: SEARCH_KEY}}\n  routes: {fast: {to: sim/echo}}\n"), "The file names a variable that the environment does not have.", "Export it before the gateway starts."),
			check("Gateway key is too short", yaml("version: 1\ngateway:\n  keys: {search: {key_env: SEARCH_KEY}}\n  routes: {fast: {to: sim/echo}}\n"), "Plaintext keys shorter than 16 characters are refused; hashed keys cannot be checked.", "Generate a key with the command in the message.", "SEARCH_KEY=secret"),
			check("Provider without a type", yaml("version: 1\nproviders:\n  work: {base_url: \"https://llm.example.com/v1\"}\n"), "The name is not that of a built-in provider, so its API is unknown.", "Add `type`."),
			check("Route to an unknown provider", yaml("version: 1\ngateway:\n  routes: {fast: {to: opanai/gpt-5}}\n"), "The target of the route names a provider that does not exist.", "Correct the name, or add the provider."),
			check("Alias that refers to itself", yaml("version: 1\naliases: {fast: quick, quick: fast}\n"), "The aliases form a circle and reach no model.", "Let one of them name a model."),
			check("Wrong type of value", yaml("version: 1\ngateway:\n  limits: {streams: many}\n"), "The field takes another type of value.", "Write the value in the form that the message names."),
		},
	}
}

func yaml(text string) map[string]string { return map[string]string{"dragoman.yaml": text} }

// check is an entry for a config file, which it shows.
func check(title string, files map[string]string, means, fix string, env ...string) entry {
	return entry{title: title, command: "dragoman serve --config dragoman.yaml --check", files: files, env: env, means: means, fix: fix}
}
