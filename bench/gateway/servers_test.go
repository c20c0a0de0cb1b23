//go:build linux

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	_ "net/http/pprof" // where a variable asks for it
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	ours "github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// The variables that turn a test binary into one of the servers. Separate processes keep their CPU
// times apart.
const (
	roleVariable     = "DRAGOMAN_TEST_ROLE"
	upstreamVariable = "DRAGOMAN_TEST_UPSTREAM" // the URL of the model server
	certVariable     = "DRAGOMAN_TEST_CERT"     // certificate of the model server; without it, the server uses plain HTTP/1.1
	keyVariable      = "DRAGOMAN_TEST_KEY"
	profileVariable  = "DRAGOMAN_TEST_PROFILE" // an address for net/http/pprof
)

// modelKey is the key of the model server, clientKey the key of the gateway.
const (
	modelKey  = "sk-a-key-of-the-upstream"
	clientKey = "sk-a-key-of-the-client-0123456789"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := serve(role); err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

// serve runs a server until its standard input ends.
func serve(role string) error {
	raiseFiles()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if at := os.Getenv(profileVariable); at != "" && role != "upstream" {
		go func() { _ = http.ListenAndServe(at, nil) }()
	}
	fmt.Println(l.Addr())
	switch role {
	case "upstream":
		server := &http.Server{Handler: newModels()}
		if cert := os.Getenv(certVariable); cert != "" {
			return server.ServeTLS(l, cert, cert)
		}
		return server.Serve(l)
	case "proxy":
		return http.Serve(l, newProxy())
	default:
		return serveGateway(l)
	}
}

// newProxy returns a minimal streaming proxy. Without full duplex, the server closes the body of a
// request when the response begins, while the transport may still wait for its end; streams would
// break occasionally. It has as many persistent connections as ours.
func newProxy() http.Handler {
	to, err := url.Parse(os.Getenv(upstreamVariable))
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1.1 supports it
		proxy.ServeHTTP(w, r)
	})
}

// serveGateway runs "dragoman serve" with a key, a provider of each dialect for each pace, and its
// log.
func serveGateway(l net.Listener) error {
	var file strings.Builder
	file.WriteString("version: 1\nproviders:\n")
	for _, pace := range []string{burst, paced, slow} {
		base := os.Getenv(upstreamVariable) + "/" + pace
		fmt.Fprintf(&file, "  chat-%s: {type: compatible, base_url: %q, api_key_env: %s, extensions: {openai.compatible: false}}\n", pace, base+"/v1", keyVariable)
		fmt.Fprintf(&file, "  responses-%s: {type: openai, base_url: %q, api_key_env: %s}\n", pace, base+"/v1", keyVariable)
		fmt.Fprintf(&file, "  anthropic-%s: {type: anthropic, base_url: %q, api_key_env: %s}\n", pace, base, keyVariable)
	}
	fmt.Fprintf(&file, "gateway:\n  keys:\n    bench: {key_env: %s_CLIENT, parallel: 100000}\n", keyVariable)
	config, err := ours.Parse("bench.yaml", []byte(file.String()))
	if err != nil {
		return err
	}
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	g, err := ours.New(config, ours.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		return err
	}
	return g.Serve(context.Background(), l, time.Second)
}

func start(tb testing.TB, role, upstream string, more ...string) testkit.Child {
	tb.Helper()
	return testkit.StartChild(tb, append(more, roleVariable+"="+role, upstreamVariable+"="+upstream, keyVariable+"="+modelKey, keyVariable+"_CLIENT="+clientKey)...)
}

// The pace of the events in a model's stream: as fast as possible, one per millisecond, or one
// every few seconds.
const (
	burst = "burst"
	paced = "paced"
	slow  = "slow"
)

// dialectOf returns the dialect of a path.
var dialectOf = map[string]dragoman.Dialect{
	"/v1/chat/completions": dialectname.OpenAIChat,
	"/v1/responses":        dialectname.OpenAIResponses,
	"/v1/messages":         dialectname.Anthropic,
}

const events = 500 // approximate number in a stream

// models is a model server that sends everyone the same response.
type models struct {
	streams map[dragoman.Dialect][][]byte
	slowly
}

func newModels() http.Handler {
	m := &models{streams: map[dragoman.Dialect][][]byte{}}
	m.slowly.init()
	for _, d := range dialectOf {
		m.streams[d] = split(stream(d))
	}
	return m
}

// stream returns the response of a model.
func stream(d dragoman.Dialect) []byte {
	return benchdata.Stream(d, []string{benchdata.Arguments(events * benchdata.StreamFragment)}, benchdata.StreamFragment)
}

// split splits a stream into its events.
func split(stream []byte) [][]byte {
	all := bytes.SplitAfter(stream, []byte("\n\n"))
	return all[:len(all)-1]
}

// ServeHTTP streams a response and writes each event separately.
func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	pace, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	d, known := dialectOf["/"+path]
	switch {
	case pace == "peak":
		m.showPeak(w)
		return
	case pace == "want":
		m.expect(r.URL.Query().Get("streams"))
		return
	case !known:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if pace == slow {
		m.serve(w, r, d)
		return
	}
	out := http.NewResponseController(w)
	for _, event := range m.streams[d] {
		if _, err := w.Write(event); err != nil || out.Flush() != nil {
			return
		}
		if pace == paced {
			time.Sleep(time.Millisecond)
		}
	}
}
