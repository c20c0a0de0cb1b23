//go:build unix && !race

package provider_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
	"github.com/dragoman-go/dragoman/provider"
)

// streamServer is the variable that turns the test binary into the server of the overhead
// measurement: the CPU time of the server must not count for the client.
const streamServer = "DRAGOMAN_TEST_STREAM_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(streamServer) != "" {
		serveStream()
		return
	}
	os.Exit(m.Run())
}

// serveStream answers every request with a stream of tool calls, each event
// flushed, until its standard input ends.
func serveStream() {
	events := bytes.SplitAfter(benchdata.ToolStream(dialectname.OpenAIChat), []byte("\n\n"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(l.Addr())
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // for a test, without timeouts
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range events {
			_, _ = w.Write(ev)
			w.(http.Flusher).Flush()
		}
	}))
	fmt.Fprintln(os.Stderr, err)
}

// cpu returns the CPU time of this process, of all threads.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// minimalChunk has the fields of a chunk that every program needs.
type minimalChunk struct {
	Choices []struct {
		Delta struct {
			ToolCalls []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
}

// otherWays are ways to make the same call; the first is this package.
func otherWays(tb testing.TB, url string) map[string]func() {
	tb.Helper()
	client := &provider.Client{BaseURL: url, Model: "model-1"}
	body := []byte(`{"model":"model-1","stream":true,"messages":[{"role":"user","content":"Do I need a coat in Oslo?"}]}`)
	post := func() io.ReadCloser {
		resp, err := http.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			tb.Fatal(err)
		}
		return resp.Body
	}
	split := func(each func(data []byte)) {
		b := post()
		defer func() { _ = b.Close() }()
		lines := bufio.NewScanner(b)
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
				each(data)
			}
		}
	}
	decode := func(unmarshal func([]byte, any) error) func() {
		return func() {
			total := 0
			split(func(data []byte) {
				if string(data) == "[DONE]" {
					return
				}
				var c minimalChunk
				if err := unmarshal(data, &c); err != nil {
					tb.Fatal(err)
				}
				for _, choice := range c.Choices {
					for _, call := range choice.Delta.ToolCalls {
						total += len(call.Function.Arguments)
					}
				}
			})
			if total == 0 {
				tb.Fatal("nothing was decoded")
			}
		}
	}
	return map[string]func(){
		"ours": func() {
			resp, err := dragoman.Collect(client.Stream(context.Background(), newRequest()))
			if err != nil || len(resp.ToolCalls()) == 0 {
				tb.Fatal(resp, err)
			}
		},
		"encoding/json": decode(json.Unmarshal),
		"json v2":       decode(func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }),
		"discard": func() {
			b := post()
			defer func() { _ = b.Close() }()
			if _, err := io.Copy(io.Discard, b); err != nil {
				tb.Fatal(err)
			}
		},
	}
}

// overhead returns the client's CPU time of each way: the best of some rounds.
func overhead(tb testing.TB, ways map[string]func(), rounds, exchanges int) map[string]time.Duration {
	tb.Helper()
	best := map[string]time.Duration{}
	for range rounds {
		for name, exchange := range ways {
			exchange() // the connection is there
			runtime.GC()
			before := cpu(tb)
			for range exchanges {
				exchange()
			}
			if d := (cpu(tb) - before) / time.Duration(exchanges); best[name] == 0 || d < best[name] {
				best[name] = d
			}
		}
	}
	return best
}

// BenchmarkOverhead measures a streamed call with two thousand events: ratios of CPU time of the
// client, with the server in another process.
func BenchmarkOverhead(b *testing.B) {
	for b.Loop() {
		best := overhead(b, otherWays(b, testkit.ChildServer(b, streamServer)), 5, 10)
		for name, d := range best {
			if name != "ours" {
				b.ReportMetric(float64(best["ours"])/float64(d), "x/"+strings.ReplaceAll(name, " ", "-"))
			}
		}
	}
}

func TestOverheadOfAStreamedCall(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	best := overhead(t, otherWays(t, testkit.ChildServer(t, streamServer)), 5, 8)
	ratio := func(name string) float64 { return float64(best["ours"]) / float64(best[name]) }
	t.Logf("CPU of the client for one streamed tool-call exchange of %d events: %v; that is %.2f times net/http with encoding/json, %.2f times with json v2, %.2f times reading and discarding",
		benchdata.StreamChunks, best["ours"], ratio("encoding/json"), ratio("json v2"), ratio("discard"))
	if r := ratio("encoding/json"); r > 1.5 {
		t.Errorf("it costs %.2f times net/http with one decode of each chunk, of at most 1.5", r)
	}
}

// sink is a response writer that discards the response of a proxy.
type sink struct{ header http.Header }

func (s sink) Header() http.Header       { return s.header }
func (sink) Write(p []byte) (int, error) { return len(p), nil }
func (sink) WriteHeader(int)             {}
func (sink) Flush()                      {}

// passWays are ways to pass a stream through; each flushes every chunk.
func passWays(tb testing.TB, at string) map[string]func() {
	tb.Helper()
	upstream, err := url.Parse(at)
	if err != nil {
		tb.Fatal(err)
	}
	body := []byte(`{"model":"model-1","stream":true,"messages":[{"role":"user","content":"Do I need a coat in Oslo?"}]}`)
	relay := func(w sink, from io.ReadCloser) {
		defer func() { _ = from.Close() }()
		buf, total := make([]byte, 32<<10), 0
		for {
			n, err := from.Read(buf)
			_, _ = w.Write(buf[:n])
			w.Flush()
			total += n
			if err != nil {
				break
			}
		}
		if total < 2000 {
			tb.Fatalf("%d bytes came", total)
		}
	}
	client := &provider.Client{BaseURL: at, Model: "model-1", Auth: provider.Bearer(provider.FixedKey("a-key-of-some-length"))}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }}
	return map[string]func(){
		"pass": func() {
			got, err := client.Pass(context.Background(), modelcall.PassRequest{Body: body, Stream: true, Header: http.Header{"Openai-Beta": {"a"}}})
			if err != nil || got.Status != http.StatusOK {
				tb.Fatal(got, err)
			}
			relay(sink{http.Header{}}, got.Body)
		},
		"plain": func() {
			resp, err := http.Post(at+"/chat/completions", "application/json", bytes.NewReader(body)) //nolint:bodyclose // relay does
			if err != nil {
				tb.Fatal(err)
			}
			relay(sink{http.Header{}}, resp.Body)
		},
		"ReverseProxy": func() {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/chat/completions", bytes.NewReader(body))
			if err != nil {
				tb.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			proxy.ServeHTTP(sink{http.Header{}}, r)
		},
	}
}

// BenchmarkPass measures passing through a stream of two thousand events: ratios of CPU time to
// other ways, with the server in another process and without a client.
func BenchmarkPass(b *testing.B) {
	for b.Loop() {
		best := overhead(b, passWays(b, testkit.ChildServer(b, streamServer)), 7, 20)
		for name, d := range best {
			b.ReportMetric(float64(best["pass"])/float64(d), "x/"+name)
		}
	}
}

func TestPassOverheadIsCloseToAReverseProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	ways := passWays(t, testkit.ChildServer(t, streamServer))
	// The number of events per chunk varies, the more the busier the machine is.
	for tries := 5; ; tries-- {
		best := overhead(t, ways, 7, 10)
		r := float64(best["pass"]) / float64(best["ReverseProxy"])
		t.Logf("CPU of passing on one stream of %d events: %v; that is %.2f times httputil.ReverseProxy, %.2f times net/http alone",
			benchdata.StreamChunks, best["pass"], r, float64(best["pass"])/float64(best["plain"]))
		if r <= 1.10 {
			return
		}
		if tries == 0 {
			t.Fatalf("it costs %.2f times a reverse proxy, of at most 1.10", r)
		}
	}
}
