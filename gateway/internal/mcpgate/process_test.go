package mcpgate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

const (
	childEnv = "DRAGOMAN_GATE_CHILD" // the URL of the MCP server
	childDir = "DRAGOMAN_GATE_DIR"   // the folder of the database; empty means none
)

// child is a gateway in a process of its own.
func child(upstream string) error {
	ctx := context.Background()
	o := gateway.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if dir := os.Getenv(childDir); dir != "" {
		store, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"), sqlite.Options{})
		if err != nil {
			return err
		}
		j, err := session.OpenOrCreate(ctx, store, "journal")
		if err != nil {
			return err
		}
		o.Notes, o.Journal = store.Notes(), j
	}
	g, err := gateway.New(open(mcp.HTTP(upstream).As("fake")), o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, g) //nolint:gosec // a test
}

type process struct {
	cmd  *exec.Cmd
	url  string
	errs bytes.Buffer
}

func startGateway(t *testing.T, upstream, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), os.Args[0])} //nolint:gosec // this binary
	p.cmd.Env = append(os.Environ(), childEnv+"="+upstream, childDir+"="+dir)
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway: %v %s", err, p.errs.String())
	}
	p.url = "http://" + strings.TrimSpace(line) + "/mcp"
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// call calls the tool pay. lost reports that no response came.
func (p *process) call(t *testing.T, params object) (result json.RawMessage, code int, lost bool) {
	t.Helper()
	c := &client{t: t, url: p.url, revision: r2607, caps: all}
	params["name"] = "mcp_fake__pay"
	req := c.request(t.Context(), "tools/call", params)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, 0, true
	}
	defer func() { _ = res.Body.Close() }()
	whole, err := io.ReadAll(res.Body)
	if err != nil || len(whole) == 0 {
		return nil, 0, true
	}
	for line := range strings.Lines(string(whole)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"id"`) {
			whole = []byte(data)
		}
	}
	result, code = field[json.RawMessage](whole, "result"), field[int](whole, "error", "code")
	return result, code, result == nil && code == 0
}

// The gateway is killed around an approved call, and the client repeats its request. With a
// database no effect happens twice. The control without one repeats effects, which shows that the
// kills hit.
func TestAnApprovedEffectHappensOnceAlthoughTheGatewayIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	var mu sync.Mutex
	effects := map[string]int{}
	f := newFake(r2511)
	f.tools = []string{`{"name":"pay","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}`}
	f.paid = func(to string) {
		mu.Lock()
		effects[to]++
		mu.Unlock()
		time.Sleep(3 * time.Millisecond) // the tool takes its time, so that the gateway is killed here too
	}
	web := httptest.NewServer(f)
	defer web.Close()
	defer web.CloseClientConnections()
	count := func(to string) int {
		mu.Lock()
		defer mu.Unlock()
		return effects[to]
	}
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("database %v", kept), func(t *testing.T) {
			dir := ""
			if kept {
				dir = t.TempDir()
			}
			rnd := rand.New(rand.NewPCG(7, 9))
			p := startGateway(t, web.URL, dir)
			defer func() { p.kill() }()
			answered, hit, repeated := 0, 0, 0
			const payments = 12
			for n := range payments {
				to := fmt.Sprintf("%v-%d", kept, n)
				args := object{"to": to}
				var accept object
				for attempt := 0; ; attempt++ {
					if attempt > 20 {
						t.Fatal("no answer", p.errs.String())
					}
					if accept == nil {
						res, code, _ := p.call(t, object{"arguments": args})
						state := field[string](res, "requestState")
						if state == "" {
							t.Fatalf("no question: %s %d %s", res, code, p.errs.String())
						}
						accept = object{"arguments": args, "inputResponses": object{"approval": object{"action": "accept", "content": object{"approve": true}}}, "requestState": state}
					}
					if attempt == 0 {
						victim, before := p, count(to)
						go func() { // shortly after the effect, or at random
							pause := time.Duration(rnd.IntN(12_000)) * time.Microsecond
							limit := time.Now().Add(pause)
							for time.Now().Before(limit) && count(to) == before {
								time.Sleep(100 * time.Microsecond)
							}
							time.Sleep(time.Duration(n%4) * time.Millisecond)
							_ = victim.cmd.Process.Kill()
						}()
					}
					res, code, lost := p.call(t, accept)
					if lost {
						if count(to) > 0 {
							hit++
						}
						p.kill()
						p = startGateway(t, web.URL, dir)
						continue
					}
					if code != 0 { // without a database a restart voids the approval: the client begins anew
						if kept {
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
				p = startGateway(t, web.URL, dir)
				if count(to) > 1 {
					repeated++
				}
			}
			t.Logf("%d payments, %d answered, %d responses lost after the effect, %d effects repeated", payments, answered, hit, repeated)
			switch {
			case answered != payments || hit == 0:
				t.Errorf("%d answered, %d lost after the effect: the kills missed", answered, hit)
			case kept && repeated > 0:
				t.Errorf("%d effects happened twice", repeated)
			case !kept && repeated == 0:
				t.Error("the control repeats nothing: the test shows nothing")
			}
		})
	}
}
