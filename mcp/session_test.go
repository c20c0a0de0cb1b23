package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
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
