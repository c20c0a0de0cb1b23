package mcp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
)

func TestQuirkH5_ExpiredSessionIsReplacedOnceForAllCalls(t *testing.T) {
	s := sdkServer("")
	var connected atomic.Int32
	servers := connect(t, mcp.Options{Observe: func(e mcp.Event) {
		if e.Kind == "connected" {
			connected.Add(1)
		}
	}}, mcp.HTTP(serveHTTP(t, s, true)).As("web"))
	tools := servers.Tools()
	for session := range s.Sessions() {
		_ = session.Close()
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			box, err := tool.NewBox(tools...)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := (&tool.Runner{Approver: approver(`{}`, nil)}).Start(fmt.Sprint(i)).Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c", Name: "echo", Arguments: `{"text":"again"}`}}})
			if err != nil || !strings.Contains(b.Results[0].PlainText(), "said again") {
				t.Errorf("%v, %q", err, b.Results[0].PlainText())
			}
		})
	}
	wg.Wait()
	n := 0
	for range s.Sessions() {
		n++
	}
	if n != 1 {
		t.Errorf("%d sessions for one lost session", n)
	}
}

// serveNoise is a server with a handshake that answers twice, late, under unknown ids, and with
// lines that are no messages.
func serveNoise() {
	fmt.Println("Server started on stdio")
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	var before string
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"noise","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"noisy","description":"Echoes.","inputSchema":{"type":"object"}}]}`,
			"tools/call": fmt.Sprintf(`{"content":[{"type":"text","text":"args %s"}]}`, strings.ReplaceAll(string(m.Params.Arguments), `"`, "'")),
		}[m.Method]
		if result == "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
			continue
		}
		fmt.Println("DEBUG: handling", m.Method)
		fmt.Println(`{"jsonrpc":"2.0","id":987654,"result":{"content":[{"type":"text","text":"of an unknown id"}]}}`)
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1","progress":1}}`)
		if before != "" {
			fmt.Println(before) // the answer of the request before, once more
		}
		before = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		fmt.Println(before)
		fmt.Println(before)
	}
}

func TestPitfallK39_DuplicateAndLateAnswersReachNoOtherCall(t *testing.T) {
	servers := connect(t, mcp.Options{}, stdioServer(t, "noise"))
	tools := servers.Tools()
	for i := range 5 {
		if _, got := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, tools, "noisy", fmt.Sprintf(`{"n":%d}`, i)); !strings.Contains(got, fmt.Sprintf("'n':%d", i)) {
			t.Errorf("call %d got %q", i, got)
		}
	}
}

func TestPitfallK14_CallOfAProgramThatDiesIsNotRepeatedAndTheProgramIsStartedAgain(t *testing.T) {
	servers := connect(t, mcp.Options{}, stdioServer(t, "mortal"))
	tools := servers.Tools()
	runner := &tool.Runner{Approver: approver(`{}`, nil)}
	for range 2 {
		b, got := run(t, runner, tools, "die", "{}")
		if b.Records[0].OK || !strings.Contains(got, "may or may not have run") || !strings.Contains(causes(b.Records[0].Cause), "out of memory") {
			t.Errorf("%q, causes %s", got, causes(b.Records[0].Cause))
		}
		if _, got := run(t, runner, tools, "stdio_echo", `{"text":"alive"}`); !strings.Contains(got, "said alive") {
			t.Errorf("after the restart: %q", got)
		}
	}
}

// causes returns the texts of an error and of the errors that it wraps.
func causes(err error) (text string) {
	for ; err != nil; err = errors.Unwrap(err) {
		text += err.Error() + "\n"
	}
	return text
}

func TestQuirkH6_ToolsOfADeadServerAreGone(t *testing.T) {
	dead := stdioServer(t, "mortal")
	dead.Env[deadEnv] = filepath.Join(t.TempDir(), "dead")
	failed := make(chan struct{}, 10)
	servers := connect(t, mcp.Options{Observe: func(e mcp.Event) {
		if e.Kind == "failed" {
			failed <- struct{}{}
		}
	}}, dead, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("good"))
	tools := servers.Tools()
	if len(tools) != 15 {
		t.Fatalf("%d tools", len(tools))
	}
	runner := &tool.Runner{Approver: approver(`{}`, nil)}
	run(t, runner, tools, "die", "{}")
	<-failed
	after, err := servers.Source(t.Context())
	if st := servers.Status()[0]; err != nil || len(after) != 7 || st.State != mcp.StateFailed || st.Err == nil {
		t.Errorf("%d tools, %+v, %v", len(after), st, err)
	}
	if b, got := run(t, runner, tools, "stdio_echo", `{"text":"x"}`); b.Records[0].OK || !strings.Contains(got, "not available") {
		t.Errorf("a tool object of a dead server: %q", got)
	}
}

func TestQuirkH10_ArgumentsAreAlwaysAnObject(t *testing.T) {
	var sent atomic.Pointer[string]
	s := rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, params map[string]json.RawMessage) string {
		if method == "tools/call" {
			sent.Store(new(string(params["arguments"])))
			return rawDone
		}
		return map[string]string{"server/discover": rawDiscover, "tools/list": rawTools(rawTool("t", ""), `{"name":"text","inputSchema":{"type":"string"}}`)}[method]
	})
	servers := connect(t, mcp.Options{}, s)
	runner := &tool.Runner{Approver: approver(`{}`, nil)}
	for args, want := range map[string]string{``: `{}`, `null`: `{}`, `""`: `{}`, `{}`: `{}`, `{"a":1}`: `{"a":1}`, `[1]`: ``, `7`: ``} {
		sent.Store(nil)
		b, got := run(t, runner, servers.Tools(), "t", args)
		if want == "" && (sent.Load() != nil || b.Records[0].OK) || want != "" && (sent.Load() == nil || *sent.Load() != want) {
			t.Errorf("pitfall K36: %q was sent as %v: %q", args, sent.Load(), got)
		}
	}
}

func TestPitfallK20_ListsOfOtherServersSurviveAFailure(t *testing.T) {
	s := rawServer(t, func(w http.ResponseWriter, _ *http.Request, method string, _ map[string]json.RawMessage) string {
		if method == "server/discover" {
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{}},"ttlMs":0,"cacheScope":"private"}`
		}
		w.WriteHeader(http.StatusInternalServerError)
		return ""
	})
	servers := connect(t, mcp.Options{}, s, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("good"))
	list, err := servers.Resources(t.Context())
	if err == nil || !strings.Contains(err.Error(), "hostile") || len(list) != 1 || list[0].Server != "good" {
		t.Errorf("%+v, %v", list, err)
	}
}
