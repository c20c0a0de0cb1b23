package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverVariable makes this test binary a server that behaves as its value says.
const serverVariable = "STDIO_TEST_SERVER"

func TestMain(m *testing.M) {
	if behavior := os.Getenv(serverVariable); behavior != "" {
		serve(behavior)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// each calls f for every message until the input ends.
func each(f func(m message)) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(os.Stderr, "not a message: %q\n", line)
			os.Exit(9)
		}
		f(m)
	}
}

func respond(m message, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

func echo(m message) {
	respond(m, fmt.Sprintf(`{"method":%q,"params":%s}`, m.Method, orNull(m.Params)))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func serve(behavior string) {
	switch behavior, argument, _ := strings.Cut(behavior, "="); behavior {
	case "sdk":
		s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Name string `json:"name"`
		},
		) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
		})
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "echo":
		each(echo)
	case "noise":
		fmt.Print("\ufeffServer started on stdio\r\n\n{\"level\":\"info\",\"msg\":\"ready\"}\n[1,2]\n\x1b[31mred\x1b[0m\n")
		each(func(m message) {
			fmt.Print("handling a request\n")
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}`+"\r\n", m.ID)
			for i := range 20 {
				fmt.Printf("more %d\n", i)
			}
		})
		fmt.Print(`{"jsonrpc":"2.0","method":"last"}`) // without a line end
	case "crash":
		each(func(message) {
			fmt.Fprint(os.Stderr, "loading\n\x1b[2Jpanic: no database\n")
			os.Exit(3)
		})
	case "crash at once":
		fmt.Fprint(os.Stderr, "usage: server --root DIR\n")
		os.Exit(2)
	case "answer and exit":
		each(func(m message) {
			echo(m)
			os.Exit(0)
		})
	case "environment":
		each(func(m message) {
			env, _ := json.Marshal(os.Environ())
			dir, _ := os.Getwd()
			respond(m, fmt.Sprintf(`{"env":%s,"dir":%q,"args":%q}`, env, dir, strings.Join(os.Args[1:], " ")))
		})
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		each(echo)
		select {}
	case "until signal":
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGTERM)
		each(echo)
		<-caught
		connect(argument, "terminated")
	case "wrapper": // like npx: starts the server and leaves it behind
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), serverVariable+"=grandchild="+argument)
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		_ = child.Wait()
	case "leaver": // exits while its child lives on
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), serverVariable+"=grandchild="+argument)
		if err := child.Start(); err != nil {
			panic(err)
		}
		each(echo)
	case "grandchild":
		signal.Ignore(syscall.SIGTERM)
		c := connect(argument, "alive")
		each(echo)
		_, _ = io.Copy(io.Discard, c) // for ever
	case "large": // answers with as many bytes as asked
		each(func(m message) {
			if m.Method == "wait" {
				return
			}
			var p struct {
				Bytes int    `json:"bytes"`
				Order string `json:"order"`
			}
			_ = json.Unmarshal(m.Params, &p)
			text := strings.Repeat("x", p.Bytes)
			switch p.Order {
			case "id last":
				fmt.Printf(`{"result":{"text":%q,"id":77},"jsonrpc":"2.0","id":%s}`+"\n", text, m.ID)
			default:
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"text":%q,"id":77}}`+"\n", m.ID, text)
			}
		})
	case "deaf": // reads nothing
		select {}
	}
}

// connect sends a line to the test at an address, over a connection that lives as long as the
// process.
func connect(address, text string) net.Conn {
	c, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(c, text+"\n")
	return c
}
