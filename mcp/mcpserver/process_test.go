package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

const (
	childMode = "DRAGOMAN_MCP_CHILD" // "stdio" or "http"
	childDir  = "DRAGOMAN_MCP_DIR"
	childKeep = "DRAGOMAN_MCP_JOURNAL"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := child(mode, os.Getenv(childDir), os.Getenv(childKeep) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a server in a process of its own. Its tool has an effect on the disk.
func child(mode, dir string, journal bool) error {
	ctx := context.Background()
	pay := tool.New("pay", "Pays.", func(_ context.Context, in transfer) (string, error) {
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		if _, err := fmt.Fprintln(f, in.To); err != nil {
			return "", err
		}
		if err := f.Sync(); err != nil {
			return "", err
		}
		time.Sleep(2 * time.Millisecond) // the tool takes its time, so that it is killed here too
		return "paid", nil
	}, tool.NeedsApproval(), tool.Set(plain))
	o := mcpserver.Options{Name: "child", Tools: []tool.Tool{pay}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if journal {
		store, err := sqlite.Open(ctx, filepath.Join(dir, "journal.db"), sqlite.Options{})
		if err != nil {
			return err
		}
		j, err := session.OpenOrCreate(ctx, store, "journal")
		if err != nil {
			return err
		}
		o.Runner, o.StateKey = &tool.Runner{Journal: j}, bytes.Repeat([]byte("k"), 32)
	}
	s, err := mcpserver.New(o)
	if err != nil {
		return err
	}
	if mode == "stdio" {
		return s.ServeStdio(ctx)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, s.Handler()) //nolint:gosec // a test
}

// process is a running child.
type process struct {
	t    *testing.T
	mode string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	url  string
	errs bytes.Buffer
}

func start(t *testing.T, mode, dir string, journal bool) *process {
	t.Helper()
	p := &process{t: t, mode: mode, cmd: exec.CommandContext(context.Background(), os.Args[0])} //nolint:gosec // this binary
	p.cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	if journal {
		p.cmd.Env = append(p.cmd.Env, childKeep+"=1")
	}
	p.cmd.Stderr = &p.errs
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if mode == "http" {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the child: %v %s", err, p.errs.String())
		}
		p.url = "http://" + strings.TrimSpace(line)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

var errKilled = errors.New("the server is gone")

// call sends one request and returns its result or the code of its error.
func (p *process) call(params object) (result json.RawMessage, code int, err error) {
	meta := (&client{revision: modern, caps: forms}).meta()
	params["name"], params["_meta"] = "pay", meta
	body := encoded(p.t, object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	var raw []byte
	if p.mode == "stdio" {
		if _, err := p.in.Write(append(body, '\n')); err != nil {
			return nil, 0, errKilled
		}
		if raw, err = p.out.ReadBytes('\n'); err != nil {
			return nil, 0, errKilled
		}
	} else {
		c := &client{t: p.t, url: p.url, revision: modern}
		r := c.post(context.Background(), body)
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "pay")
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			return nil, 0, errKilled
		}
		defer func() { _ = res.Body.Close() }()
		whole, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, 0, errKilled
		}
		if _, data, ok := bytes.Cut(whole, []byte("data: ")); ok {
			whole = bytes.TrimSpace(data)
		}
		if raw = whole; len(raw) == 0 {
			return nil, 0, errKilled
		}
	}
	return at[json.RawMessage](raw, "result"), at[int](raw, "error", "code"), nil
}

// effects counts how often each payment was made.
func effects(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// The server is killed at random points around an approved effect, and the client repeats its
// request. With a journal no effect happens twice. The control without one repeats effects,
// which shows that the kills hit.
func TestAnApprovedEffectHappensOnceAlthoughTheServerIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	for _, mode := range []string{"stdio", "http"} {
		for _, journal := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, journal %v", mode, journal), func(t *testing.T) {
				dir := t.TempDir()
				rnd := rand.New(rand.NewPCG(7, 9))
				lost, answered, hit := 0, 0, 0
				p := start(t, mode, dir, journal)
				defer func() { p.kill() }()
				const payments = 16
				window := 9000 // µs; the journal takes its time, too
				if journal {
					window = 20_000
				}
				for n := range payments {
					args := object{"to": fmt.Sprintf("order-%d", n), "amount": 1}
					var accept object
					for attempt := 0; ; attempt++ {
						if accept == nil { // ask, and let the user approve
							res, _, err := p.call(object{"arguments": args})
							if err != nil {
								t.Fatalf("%v: %s", err, p.errs.String())
							}
							accept = object{"arguments": args, "inputResponses": yes("approval"), "requestState": at[string](res, "requestState")}
						}
						if attempt == 0 {
							victim := p
							timer := time.AfterFunc(time.Duration(rnd.IntN(window))*time.Microsecond, func() { _ = victim.cmd.Process.Kill() })
							defer timer.Stop()
						}
						res, code, err := p.call(accept)
						if err != nil {
							lost++
							p.kill()
							if effects(t, dir)[args["to"].(string)] > 0 {
								hit++
							}
							p = start(t, mode, dir, journal)
							continue
						}
						if code != 0 { // a restart without a journal voids the approval: the client begins anew
							if journal {
								t.Fatalf("the approval is void: %d", code)
							}
							accept = nil
							continue
						}
						if len(res) == 0 {
							t.Fatal("a response without a result")
						}
						answered++
						break
					}
					p.kill()
					p = start(t, mode, dir, journal)
				}
				repeated := 0
				for _, n := range effects(t, dir) {
					if n > 1 {
						repeated++
					}
				}
				t.Logf("%d payments, %d responses lost, %d of them after the effect, %d effects repeated", payments, lost, hit, repeated)
				switch {
				case answered != payments || hit == 0:
					t.Errorf("%d answered, %d lost after the effect: the kills missed", answered, hit)
				case journal && repeated > 0:
					t.Errorf("%d effects happened twice", repeated)
				case !journal && repeated == 0:
					t.Error("the control repeats nothing: the test shows nothing")
				}
			})
		}
	}
}

func TestAServerOverStdioWritesOnlyMessagesAndEndsWithItsInput(t *testing.T) {
	p := start(t, "stdio", t.TempDir(), false)
	for _, line := range []string{
		"not json", "[]", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, "", `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
	} {
		if _, err := io.WriteString(p.in, line+"\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	codes := map[string]int{}
	version := ""
	for len(codes) < 7 {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v after %v: %s", err, codes, p.errs.String())
		}
		var m struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
			t.Fatalf("standard output has %q", line)
		}
		key := string(m.ID)
		if key == "null" {
			key = fmt.Sprintf("null %d", len(codes))
		}
		codes[key] = at[int](line, "error", "code")
		if v := at[string](line, "result", "protocolVersion"); v != "" {
			version = v
			official.check(t, legacy, "InitializeResult", at[json.RawMessage](line, "result"))
		}
	}
	if codes["null 0"] != -32700 || codes["3"] != -32600 || codes["4"] != 0 || codes["5"] != 0 || version != legacy {
		t.Errorf("codes %v, version %q", codes, version)
	}
	_ = p.in.Close()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v: %s", err, p.errs.String())
		}
	case <-time.After(20 * time.Second):
		p.kill()
		t.Fatal("it still runs although its input ended")
	}
}

func TestAModernClientUsesStdio(t *testing.T) {
	p := start(t, "stdio", t.TempDir(), false)
	defer p.kill()
	args := object{"to": "ann", "amount": 1}
	res, _, err := p.call(object{"arguments": args})
	if err != nil {
		t.Fatal(err)
	}
	official.check(t, modern, "InputRequiredResult", res)
	res, code, err := p.call(object{"arguments": args, "inputResponses": yes("approval"), "requestState": at[string](res, "requestState")})
	if err != nil || code != 0 || !strings.Contains(string(res), "paid") {
		t.Errorf("%s %d %v", res, code, err)
	}
	official.check(t, modern, "CallToolResult", res)
}
