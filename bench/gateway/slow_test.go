//go:build linux

package gateway

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

const (
	manyStreams = 10_000
	someStreams = 500
	maxResident = 1 << 30
	// memoryLimit is the soft limit of the gateway's runtime, as an operator sets it
	// for a container of maxResident. Without it the collector lets garbage grow to
	// the size of live memory, and the peak depends on when it happens to run.
	memoryLimit = "900MiB"
	// The number of events of a slow stream, and the pause between them.
	slowEvents = 20
	longPause  = 2 * time.Second
	shortPause = 100 * time.Millisecond
	// otherFiles is the number of other open files of a process.
	otherFiles = 200
)

// slowWays lists the measured ways.
var slowWays = []way{anthropicToAnthropic, chatToAnthropic, anthropicToChat}

// slowly serves streams that send an event every few seconds. No stream ends before all expected
// streams have started.
type slowly struct {
	mu         sync.Mutex
	open, peak int
	begun      int
	want       int
	pause      time.Duration
	all        chan struct{}
}

func (s *slowly) init() { s.all = make(chan struct{}) }

// expect sets the number of expected streams, and resets the counts.
func (s *slowly) expect(n string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want, _ = strconv.Atoi(n)
	s.begun, s.peak, s.all, s.pause = 0, 0, make(chan struct{}), shortPause
	if s.want > someStreams {
		s.pause = longPause
	}
}

func (s *slowly) showPeak(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(w, s.peak)
}

func (s *slowly) begin() (all chan struct{}, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.begun++
	s.peak = max(s.peak, s.open)
	if s.begun == s.want {
		close(s.all)
	}
	return s.all, s.pause
}

func (s *slowly) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// serve sends a stream of numbered words.
func (s *slowly) serve(w http.ResponseWriter, r *http.Request, d dragoman.Dialect) {
	all, pause := s.begin()
	defer s.end()
	out := http.NewResponseController(w)
	words := numbered(d)
	for i, event := range words {
		if i == len(words)-1 {
			select {
			case <-all:
			case <-r.Context().Done():
				return
			}
		}
		if _, err := w.Write(event); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-time.After(pause/2 + mathrand.N(pause)):
		case <-r.Context().Done():
			return
		}
	}
}

// numbered returns a response of numbered words, split into as many chunks as are written at once.
// Events without a word are in the chunk of one that has a word.
func numbered(d dragoman.Dialect) [][]byte {
	var begin, end []byte
	var word func(string) []byte
	switch d {
	case dialectname.Anthropic:
		begin = sse.Append(nil, "message_start", []byte(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":8,"output_tokens":1}}}`))
		begin = sse.Append(begin, "content_block_start", []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
		word = func(s string) []byte {
			return sse.Append(nil, "content_block_delta", []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+s+`"}}`))
		}
		end = sse.Append(nil, "content_block_stop", []byte(`{"type":"content_block_stop","index":0}`))
		end = sse.Append(end, "message_delta", []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}`))
		end = sse.Append(end, "message_stop", []byte(`{"type":"message_stop"}`))
	default:
		chunk := func(delta, finish string) []byte {
			return sse.Append(nil, "", []byte(`{"id":"c1","object":"chat.completion.chunk","created":1794700001,"model":"m","choices":[{"index":0,"delta":{`+delta+`},"finish_reason":`+finish+`}]}`))
		}
		begin = chunk(`"role":"assistant","content":""`, "null")
		word = func(s string) []byte { return chunk(`"content":"`+s+`"`, "null") }
		end = append(chunk("", `"stop"`), "data: [DONE]\n\n"...)
	}
	out := [][]byte{append(begin, word(name(0))...)}
	for i := 1; i < slowEvents; i++ {
		out = append(out, word(name(i)))
	}
	return append(out, end)
}

// name returns the word of an event.
func name(i int) string { return fmt.Sprintf("<%d>", i) }

// complete returns an error if a response lacks a word or its end.
func complete(answer []byte, d dragoman.Dialect) error {
	rest := answer
	for i := range slowEvents {
		_, after, found := bytes.Cut(rest, []byte(name(i)))
		if !found {
			return fmt.Errorf("event %d is missing", i)
		}
		rest = after
	}
	if last := map[dragoman.Dialect]string{dialectname.Anthropic: "message_stop", dialectname.OpenAIChat: "[DONE]"}[d]; !bytes.Contains(rest, []byte(last)) {
		return errors.New("the end is missing")
	}
	return nil
}

// raiseFiles raises the limit of open files to the maximum, and returns it.
func raiseFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	more := limit
	more.Cur, more.Max = 65536, max(limit.Max, 65536)
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &more) == nil {
		return more.Cur
	}
	limit.Cur = limit.Max
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // the current limit is read below
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// resident returns the peak resident memory of a process.
func resident(tb testing.TB, pid int) int {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kB, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return kB << 10
}

// certificate creates a certificate for this machine, with its key.
func certificate(tb testing.TB) (file string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	file = filepath.Join(tb.TempDir(), "cert.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// hold runs streams through a gateway, and returns its peak memory and the number of incomplete
// streams.
func hold(t *testing.T, n int, w way, secure bool) (most, lost int) {
	t.Helper()
	var env []string
	var control http.Client
	scheme := "http://"
	if secure {
		file := certificate(t)
		env = []string{certVariable + "=" + file, "SSL_CERT_FILE=" + file}
		scheme = "https://"
		pool := x509.NewCertPool()
		text, _ := os.ReadFile(file)
		pool.AppendCertsFromPEM(text)
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig.RootCAs = pool
		control.Transport = transport
	}
	up := start(t, "upstream", "", env...)
	up.URL = scheme + strings.TrimPrefix(up.URL, "http://")
	gate := start(t, "gateway", up.URL, append(env, "GOMEMLIMIT="+memoryLimit)...)
	ask := func(what string) string {
		resp, err := control.Get(up.URL + what)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	ask(fmt.Sprintf("/want/?streams=%d", n))
	lost = open(t, n, w, gate)
	if peak := ask("/peak/"); peak != strconv.Itoa(n) {
		t.Errorf("%s streams were open at once, want %d", peak, n)
	}
	if lost > 0 {
		t.Errorf("%d of %d streams were incomplete", lost, n)
	}
	return resident(t, gate.PID), lost
}

// open opens streams, reads all of them, and returns the number of incomplete ones.
func open(t *testing.T, n int, w way, gate testkit.Child) (lost int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	var mu sync.Mutex
	door := make(chan struct{}, 100) // limits the requests that start at once
	for range n {
		wg.Go(func() {
			door <- struct{}{}
			answer, err := w.ask(ctx, client, gate.URL, slow, func() { <-door })
			if err == nil {
				err = complete(answer, w.client)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if lost++; lost <= 5 {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return lost
}

// TestSlowStreamsAreHeldWithLittleMemory checks that many slow streams are complete, and that the
// gateway needs little memory.
func TestSlowStreamsAreHeldWithLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	n := someStreams
	if os.Getenv("DRAGOMAN_LONG") != "" {
		n = manyStreams
	}
	files := int(raiseFiles())
	if files < n+otherFiles {
		t.Skipf("%d streams need more than the %d open files that are allowed", n, files)
	}
	// Each stream needs a connection to the client and, with HTTP/1.1, one to the model.
	secure := files < 2*n+otherFiles
	for _, w := range slowWays {
		t.Run(w.String(), func(t *testing.T) {
			most, _ := hold(t, n, w, secure)
			t.Logf("%d streams: %d MiB at most, %.1f KiB for each (models by HTTP/2 and TLS: %v)", n, most>>20, float64(most)/1024/float64(n), secure)
			if most > maxResident {
				t.Errorf("%d MiB for %d streams, want at most %d", most>>20, n, maxResident>>20)
			}
		})
	}
}
