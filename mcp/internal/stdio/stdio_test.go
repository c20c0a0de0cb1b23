package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/oracle/mcpcheck"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/mcp/internal/stdio"
)

// recorder is a handler that passes messages to channels.
type recorder struct{ notifications, requests chan rpc.Incoming }

func newRecorder() *recorder {
	return &recorder{make(chan rpc.Incoming, 100), make(chan rpc.Incoming, 100)}
}

func (r *recorder) Notification(in rpc.Incoming) { r.notifications <- in }
func (r *recorder) Request(in rpc.Incoming)      { r.requests <- in }

// start starts this binary as a server.
func start(t *testing.T, behavior string, change ...func(*stdio.Dialer)) (*stdio.Conn, *recorder) {
	t.Helper()
	d := &stdio.Dialer{Command: os.Args[0], Env: map[string]string{serverVariable: behavior}}
	for _, f := range change {
		f(d)
	}
	h := newRecorder()
	c, err := d.Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*stdio.Conn), h
}

func call(t *testing.T, c rpc.Conn, method, params string) (string, error) {
	t.Helper()
	r := &rpc.Request{Method: method}
	if params != "" {
		r.Params = json.RawMessage(params)
	}
	result, err := c.Call(t.Context(), r)
	return string(result), err
}

func TestSDKServerAnswers(t *testing.T) {
	c, _ := start(t, "sdk")
	result, err := call(t, c, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}`)
	if err != nil || !strings.Contains(result, `"protocolVersion":"2025-11-25"`) {
		t.Fatal(result, err)
	}
	c.SetRevision(rpc.Revision20251125)
	if err := c.Notify(t.Context(), "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprintf("n%d", i)
			result, err := call(t, c, "tools/call", `{"name":"greet","arguments":{"name":"`+name+`"}}`)
			if err != nil || !strings.Contains(result, `"hello `+name+`"`) {
				t.Error(name, result, err)
			}
		})
	}
	all.Wait()
	var e *rpc.Error
	if _, err := call(t, c, "tools/call", `{"name":"none"}`); !errors.As(err, &e) || e.Code != rpc.CodeInvalidParams {
		t.Errorf("an unknown tool: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.Err(), rpc.ErrClosed) {
		t.Errorf("reason of the end: %v", c.Err())
	}
	delivered := true
	if _, err := c.Call(t.Context(), &rpc.Request{Method: "ping", NotDelivered: func() { delivered = false }}); !errors.Is(err, rpc.ErrClosed) || delivered {
		t.Errorf("a call after the end: %v, delivered %v", err, delivered)
	}
}

func TestModernSDKServerAnswers(t *testing.T) {
	c, _ := start(t, "sdk")
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}}`
	if result, err := call(t, c, "server/discover", `{`+meta+`}`); err != nil || !strings.Contains(result, `"supportedVersions"`) {
		t.Fatal(result, err)
	}
	c.SetRevision(rpc.Revision20260728)
	if result, err := call(t, c, "tools/call", `{"name":"greet","arguments":{"name":"you"},`+meta+`}`); err != nil || !strings.Contains(result, `"hello you"`) {
		t.Error(result, err)
	}
}

func TestPitfallK5_NoiseOnStdoutIsSkipped(t *testing.T) {
	var logged bytes.Buffer
	c, h := start(t, "noise", func(d *stdio.Dialer) { d.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	for range 3 {
		if result, err := call(t, c, "tools/list", ""); err != nil || result != `{"ok":true}` {
			t.Fatal(result, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if in := <-h.notifications; in.Method != "last" {
		t.Errorf("the last line is %+v", in)
	}
	n, first := c.Noise()
	if n != 4+3*21 {
		t.Errorf("%d lines of noise", n)
	}
	want := []string{"Server started on stdio", `{"level":"info","msg":"ready"}`, "[1,2]", `\x1b[31mred\x1b[0m`, "handling a request", "more 0"}
	if len(first) != 10 || !slices.Equal(first[:6], want) {
		t.Errorf("kept %q", first)
	}
	if lines := strings.Count(logged.String(), "not a message"); lines != 10 {
		t.Errorf("%d lines are logged:\n%s", lines, &logged)
	}
}

func TestCrashIsReportedWithStatusAndStderr(t *testing.T) {
	c, _ := start(t, "crash")
	_, err := call(t, c, "tools/list", "")
	var exit *stdio.ExitError
	if !errors.As(err, &exit) || !errors.Is(err, rpc.ErrLost) {
		t.Fatal(err)
	}
	if exit.State != "exit status 3" || !strings.Contains(err.Error(), `\x1b[2Jpanic: no database`) {
		t.Errorf("state %q: %v", exit.State, err)
	}
	if got := c.Stderr(); !strings.HasPrefix(got, "loading\n") {
		t.Errorf("standard error is %q", got)
	}
	<-c.Done()
	if !errors.Is(c.Err(), rpc.ErrLost) {
		t.Error(c.Err())
	}
}

func TestCrashAtStartNamesTheUsage(t *testing.T) {
	c, _ := start(t, "crash at once")
	<-c.Done()
	if err := c.Err(); !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "usage: server --root DIR") {
		t.Error(err)
	}
	delivered := true
	if _, err := c.Call(t.Context(), &rpc.Request{Method: "x", NotDelivered: func() { delivered = false }}); err == nil || delivered {
		t.Errorf("a call after the crash: %v, delivered: %v", err, delivered)
	}
}

func TestAResponseBeforeTheExitCounts(t *testing.T) {
	c, _ := start(t, "answer and exit")
	if result, err := call(t, c, "a", `{"x":1}`); err != nil || result != `{"method":"a","params":{"x":1}}` {
		t.Error(result, err)
	}
	<-c.Done()
	if err := c.Err(); !errors.Is(err, rpc.ErrLost) || !strings.Contains(err.Error(), "exit status 0") {
		t.Error(err)
	}
}

func TestProgramsGetAMinimalEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "s3cret")
	t.Setenv("LANG", "C.UTF-8")
	dir := t.TempDir()
	c, _ := start(t, "environment", func(d *stdio.Dialer) {
		d.Env["MINE"], d.Env["LANG"] = "1", "de_DE"
		d.Dir, d.Args = dir, []string{"one", "two words"}
	})
	result, err := call(t, c, "environment", "")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Env       []string
		Dir, Args string
	}
	if err := json.Unmarshal([]byte(result), &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(result, "s3cret") || !slices.Contains(got.Env, "MINE=1") || !slices.Contains(got.Env, "LANG=de_DE") || slices.Contains(got.Env, "LANG=C.UTF-8") {
		t.Errorf("environment %q", got.Env)
	}
	if !slices.Contains(got.Env, "PATH="+os.Getenv("PATH")) {
		t.Error("PATH is missing")
	}
	if !strings.HasSuffix(got.Dir, dir) || got.Args != "one two words" {
		t.Errorf("started in %s with %s", got.Dir, got.Args)
	}
}

func TestStartErrorsSayWhatToDo(t *testing.T) {
	for want, d := range map[string]stdio.Dialer{
		"no command":                     {},
		"not installed or not in PATH":   {Command: "no-such-program-anywhere"},
		"no such file or directory":      {Command: "./missing", Dir: t.TempDir()},
		"a name has no = and no zero by": {Command: os.Args[0], Env: map[string]string{"A=B": "1"}},
	} {
		if _, err := d.Dial(t.Context(), newRecorder()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&stdio.Dialer{Command: os.Args[0]}).Dial(ctx, newRecorder()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// watch listens for a process that connects; its connection ends with the process.
func watch(t *testing.T) (address string, accept func() (text string, ended <-chan struct{})) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() (string, <-chan struct{}) {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		text, _ := r.ReadString('\n')
		ended := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, r)
			_ = c.Close()
			close(ended)
		}()
		return strings.TrimSpace(text), ended
	}
}

func TestPitfallK6_GrandchildrenEndWithTheConnection(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test uses signals")
	}
	for _, behavior := range []string{"wrapper", "leaver"} {
		t.Run(behavior, func(t *testing.T) {
			address, accept := watch(t)
			c, _ := start(t, behavior+"="+address, func(d *stdio.Dialer) { d.Grace = 50 * time.Millisecond })
			text, ended := accept()
			if result, err := call(t, c, "a", ""); err != nil || text != "alive" {
				t.Fatal(text, result, err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			<-ended
		})
	}
}

func TestPitfallK6_AStubbornServerIsKilled(t *testing.T) {
	c, _ := start(t, "stubborn", func(d *stdio.Dialer) { d.Grace = 50 * time.Millisecond })
	if _, err := call(t, c, "a", ""); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("closing took %v", took)
	}
}

func TestServersGetASignalBeforeTheyAreKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test uses signals")
	}
	address, accept := watch(t)
	c, _ := start(t, "until signal="+address, func(d *stdio.Dialer) { d.Grace = 100 * time.Millisecond })
	if _, err := call(t, c, "a", ""); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		_ = c.Close()
		close(closed)
	}()
	if text, _ := accept(); text != "terminated" {
		t.Errorf("the server reports %q", text)
	}
	<-closed
}

func TestAMessageAboveTheLimitFailsOnlyItsCall(t *testing.T) {
	c, _ := start(t, "large", func(d *stdio.Dialer) { d.MaxMessage = 100_000 })
	// Another call waits, so that only the id decides which one fails.
	waiting := make(chan error, 1)
	go func() {
		_, err := call(t, c, "wait", "")
		waiting <- err
	}()
	for _, order := range []string{"id first", "id last"} {
		if result, err := call(t, c, "a", `{"bytes":99000,"order":"`+order+`"}`); err != nil || len(result) < 99_000 {
			t.Errorf("%s below the limit: %d bytes, %v", order, len(result), err)
		}
		_, err := call(t, c, "a", `{"bytes":300000,"order":"`+order+`"}`)
		if !errors.Is(err, rpc.ErrTooLarge) || !strings.Contains(err.Error(), "100000 bytes") {
			t.Errorf("%s above the limit: %v", order, err)
		}
	}
	if result, err := call(t, c, "a", `{"bytes":1}`); err != nil || result != `{"text":"x","id":77}` {
		t.Errorf("afterwards: %s, %v", result, err)
	}
	_ = c.Close()
	if err := <-waiting; !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("the other call: %v", err)
	}
}

func TestADeafServerHangsNoCaller(t *testing.T) {
	c, _ := start(t, "deaf", func(d *stdio.Dialer) { d.Grace = 50 * time.Millisecond })
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	results := make(chan error)
	big := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 3 {
		go func() {
			_, err := c.Call(ctx, &rpc.Request{Method: "a", Params: big})
			results <- err
		}()
	}
	cancel(cause)
	for range 3 {
		if err := <-results; !errors.Is(err, cause) {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// pipes connects to a server that the test plays itself.
func pipes(t *testing.T) (c *stdio.Conn, h *recorder, fromClient *bufio.Reader, toClient io.WriteCloser) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	h = newRecorder()
	d := &stdio.Pipes{
		Open:  func(context.Context) (io.ReadCloser, io.WriteCloser, error) { return inR, outW, nil },
		Grace: 20 * time.Millisecond,
	}
	conn, err := d.Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = outR.Close()
		_ = conn.Close()
	})
	return conn.(*stdio.Conn), h, bufio.NewReader(outR), inW
}

func TestServerMessagesReachTheHandlerInOrder(t *testing.T) {
	c, h, from, to := pipes(t)
	fmt.Fprint(to, `{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}`+"\n"+
		`[{"jsonrpc":"2.0","method":"notifications/message","params":{"n":2}},{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"m"}}]`+"\n")
	for _, want := range []string{`{"n":1}`, `{"n":2}`} {
		if in := <-h.notifications; string(in.Params) != want || in.ID != "" {
			t.Errorf("%+v, want %s", in, want)
		}
	}
	in := <-h.requests
	if in.ID != `"s1"` || in.Method != "elicitation/create" {
		t.Errorf("%+v", in)
	}
	check := mcpcheck.New(t, rpc.Revision20251125)
	for want, send := range map[string]func() error{
		`{"jsonrpc":"2.0","id":"s1","result":{"action":"accept"}}`: func() error {
			return c.Respond(t.Context(), in.ID, json.RawMessage(`{"action":"accept"}`), nil)
		},
		`{"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"no"}}`: func() error {
			return c.Respond(t.Context(), in.ID, nil, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "no"})
		},
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`: func() error {
			return c.Notify(t.Context(), "notifications/initialized", nil)
		},
	} {
		sent := make(chan error, 1)
		go func() { sent <- send() }()
		line, _ := from.ReadString('\n')
		if strings.TrimSpace(line) != want {
			t.Errorf("wrote %s, want %s", line, want)
		}
		if err := check.Message([]byte(line)); err != nil {
			t.Error(err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

func TestPitfallK39_ACanceledCallIsAnnouncedAndItsResponseIgnored(t *testing.T) {
	c, _, from, to := pipes(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, &rpc.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"slow"}`)})
		failed <- err
	}()
	request, _ := from.ReadString('\n')
	cause := errors.New("the user left")
	cancel(cause)
	if err := <-failed; !errors.Is(err, cause) {
		t.Error(err)
	}
	canceled, _ := from.ReadString('\n')
	check := mcpcheck.New(t, rpc.Revision20251125)
	for _, line := range []string{request, canceled} {
		if err := check.Message([]byte(line)); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(canceled, `"notifications/cancelled","params":{"requestId":1,`) {
		t.Errorf("wrote %s", canceled)
	}
	answered := make(chan string, 1)
	go func() {
		result, err := call(t, c, "b", "")
		if err != nil {
			t.Error(err)
		}
		answered <- result
	}()
	_, _ = from.ReadString('\n')
	fmt.Fprint(to, `{"jsonrpc":"2.0","id":1,"result":{"late":1}}`+"\n"+`{"jsonrpc":"2.0","id":1,"result":{"twice":1}}`+"\n"+
		`{"jsonrpc":"2.0","id":"2","result":{"text":1}}`+"\n"+`{"jsonrpc":"2.0","id":2,"result":{"right":1}}`+"\n")
	if result := <-answered; result != `{"right":1}` {
		t.Errorf("the result is %s", result)
	}
}

func TestInitializeIsNeverCanceled(t *testing.T) {
	c, _, from, _ := pipes(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, &rpc.Request{Method: rpc.MethodInitialize, Params: json.RawMessage(`{}`)})
		failed <- err
	}()
	_, _ = from.ReadString('\n')
	cancel()
	<-failed
	go func() { _ = c.Notify(t.Context(), "next", nil) }()
	if line, _ := from.ReadString('\n'); !strings.Contains(line, `"next"`) {
		t.Errorf("wrote %s", line)
	}
}

func TestModernServersSendNoRequestsAndMayEndAListen(t *testing.T) {
	c, h, from, to := pipes(t)
	c.SetRevision(rpc.Revision20260728)
	if err := c.Respond(t.Context(), "1", nil, nil); err == nil {
		t.Error("a response is written")
	}
	listen := &rpc.Request{Method: rpc.MethodListen, Params: json.RawMessage(`{"notifications":{}}`)}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), listen)
		ended <- err
	}()
	_, _ = from.ReadString('\n')
	fmt.Fprint(to, `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
	if in := <-h.notifications; in.During != listen {
		t.Errorf("the notification belongs to %v", in.During)
	}
	if in := <-h.notifications; in.During != nil {
		t.Errorf("the other notification belongs to %v", in.During)
	}
	if err := <-ended; !errors.Is(err, rpc.ErrEnded) {
		t.Error(err)
	}
	if len(h.requests) > 0 {
		t.Errorf("the request %+v is handled", <-h.requests)
	}
}

func TestAClosedOutputEndsTheConnection(t *testing.T) {
	c, _, from, to := pipes(t)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), &rpc.Request{Method: "a"})
		failed <- err
	}()
	_, _ = from.ReadString('\n')
	_ = to.Close()
	if err := <-failed; !errors.Is(err, rpc.ErrLost) {
		t.Error(err)
	}
	<-c.Done()
}

func TestAHalfWrittenRequestIsNotDelivered(t *testing.T) {
	inR, inW := io.Pipe()
	defer inW.Close()
	d := &stdio.Pipes{
		Open: func(context.Context) (io.ReadCloser, io.WriteCloser, error) {
			return inR, brokenWriter{10}, nil
		},
		Grace: time.Millisecond,
	}
	c, err := d.Dial(t.Context(), newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	delivered := true
	_, err = c.Call(t.Context(), &rpc.Request{Method: "a", NotDelivered: func() { delivered = false }})
	if !errors.Is(err, rpc.ErrLost) || delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
	_ = inW.Close()
}

type brokenWriter struct{ n int }

func (w brokenWriter) Write([]byte) (int, error) { return w.n, io.ErrShortWrite }
func (w brokenWriter) Close() error              { return nil }

func TestSDKServerOverPipes(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "embedded", Version: "1"}, nil)
	d := &stdio.Pipes{Open: func(context.Context) (io.ReadCloser, io.WriteCloser, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { _ = s.Run(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}) }()
		return inR, outW, nil
	}}
	for range 2 {
		c, err := d.Dial(t.Context(), newRecorder())
		if err != nil {
			t.Fatal(err)
		}
		if result, err := call(t, c, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}`); err != nil || !strings.Contains(result, "embedded") {
			t.Error(result, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
