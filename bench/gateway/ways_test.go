//go:build linux

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// way is a pair of dialects: the client's and the model's.
type way struct{ client, model dragoman.Dialect }

var (
	anthropicToAnthropic = way{dialectname.Anthropic, dialectname.Anthropic}
	responsesToResponses = way{dialectname.OpenAIResponses, dialectname.OpenAIResponses}
	chatToChat           = way{dialectname.OpenAIChat, dialectname.OpenAIChat}
	chatToAnthropic      = way{dialectname.OpenAIChat, dialectname.Anthropic}
	anthropicToChat      = way{dialectname.Anthropic, dialectname.OpenAIChat}
)

var names = map[dragoman.Dialect]string{dialectname.Anthropic: "Anthropic", dialectname.OpenAIChat: "Chat", dialectname.OpenAIResponses: "Responses"}

func (w way) String() string { return names[w.client] + " to " + names[w.model] }

// translated reports whether the response must be translated.
func (w way) translated() bool { return w.client != w.model }

func codecOf(d dragoman.Dialect) dialect.Codec {
	switch d {
	case dialectname.Anthropic:
		return anthropic.Codec{}
	case dialectname.OpenAIResponses:
		return openairesponses.Codec{}
	default:
		return openaichat.Codec{}
	}
}

func path(d dragoman.Dialect) string {
	for path, dialect := range dialectOf {
		if dialect == d {
			return path
		}
	}
	return ""
}

// request returns the request of all contenders.
func request(d dragoman.Dialect, model string) []byte {
	const tool = `"name":"write_file","description":"Writes a file.",`
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`
	const system, user = "You write programs. You answer with calls.", "Write a parser of server-sent events in Go, and its tests."
	switch d {
	case dialectname.Anthropic:
		return []byte(`{"model":"` + model + `","max_tokens":4096,"stream":true,"system":"` + system + `","messages":[{"role":"user","content":"` + user +
			`"}],"tools":[{` + tool + `"input_schema":` + schema + `}]}`)
	case dialectname.OpenAIResponses:
		return []byte(`{"model":"` + model + `","stream":true,"store":false,"instructions":"` + system + `","input":"` + user + `","tools":[{"type":"function",` + tool +
			`"parameters":` + schema + `,"strict":false}]}`)
	default:
		return []byte(`{"model":"` + model + `","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":4096,"messages":[{"role":"system","content":"` + system +
			`"},{"role":"user","content":"` + user + `"}],"tools":[{"type":"function","function":{` + tool + `"parameters":` + schema + `}}]}`)
	}
}

// modelName returns the model name in a request to a gateway.
func (w way) modelName(pace string) string {
	return map[dragoman.Dialect]string{dialectname.Anthropic: "anthropic-", dialectname.OpenAIChat: "chat-", dialectname.OpenAIResponses: "responses-"}[w.model] + pace + "/some-model"
}

// ask sends a request to the gateway, calls began when the response starts, and returns all of it.
func (w way) ask(ctx context.Context, client *http.Client, at, pace string, began func()) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+path(w.client), bytes.NewReader(request(w.client, w.modelName(pace))))
	if err != nil {
		began()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+clientKey)
	return send(client, req, began)
}

func send(client *http.Client, req *http.Request, began func()) ([]byte, error) {
	req.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(req.URL.Path, "/messages") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	resp, err := client.Do(req)
	began()
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return body, err
}

// contender is a server to measure.
type contender struct {
	name string
	pid  int
	ask  func(context.Context, *http.Client) ([]byte, error)
	// client is the dialect in which the response is checked.
	client dragoman.Dialect
}

func gatewayContender(at string, pid int, w way, pace string) contender {
	return contender{"ours", pid, func(ctx context.Context, c *http.Client) ([]byte, error) { return w.ask(ctx, c, at, pace, func() {}) }, w.client}
}

// proxyContender passes the model's response through: its dialect is the client's.
func proxyContender(at string, pid int, w way, pace string) contender {
	return contender{"ReverseProxy", pid, func(ctx context.Context, c *http.Client) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/"+pace+path(w.model), bytes.NewReader(request(w.model, "some-model")))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+modelKey)
		return send(c, req, func() {})
	}, w.model}
}

// cpu returns the CPU time of all threads of a process.
func cpu(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		tb.Fatal("no threads", err)
	}
	var sum int64
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += ns
	}
	return time.Duration(sum)
}

const workers = 8 // concurrent clients

// work sends n requests to a contender, and returns the CPU time per request.
func work(tb testing.TB, c contender, client *http.Client, n int) time.Duration {
	tb.Helper()
	before := cpu(tb, c.pid)
	jobs := make(chan struct{}, n)
	for range n {
		jobs <- struct{}{}
	}
	close(jobs)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range jobs {
				if _, err := c.ask(tb.Context(), client); err != nil {
					tb.Error(c.name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return (cpu(tb, c.pid) - before) / time.Duration(n)
}

// check checks the response of a contender: the call with all of its arguments.
func check(tb testing.TB, c contender, client *http.Client) {
	tb.Helper()
	body, err := c.ask(tb.Context(), client)
	if err != nil {
		tb.Fatal(c.name, err)
	}
	got := calls(tb, c.client, body)
	if want := calls(tb, dialectname.Anthropic, stream(dialectname.Anthropic)); got != want {
		tb.Fatalf("%s: the call has %d bytes of arguments, want %d", c.name, len(got), len(want))
	}
}

// calls returns the calls of a streamed response.
func calls(tb testing.TB, d dragoman.Dialect, body []byte) string {
	tb.Helper()
	return callsOf(collect(tb, d, body))
}

// collect decodes a stream.
func collect(tb testing.TB, d dragoman.Dialect, body []byte) *dragoman.Response {
	tb.Helper()
	resp, err := dragoman.Collect(dialect.Events(codecOf(d).NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(body)))
	if err != nil {
		tb.Fatal(err)
	}
	return resp
}

func callsOf(resp *dragoman.Response) string {
	var out strings.Builder
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if call, ok := p.(*dragoman.ToolCall); ok {
				out.WriteString(call.Name + " " + call.Arguments)
			}
		}
	}
	return out.String()
}

// pool returns a client with a small pool of persistent connections.
func pool() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}
}
