package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

type text = sdk.TextContent

// png is the smallest image.
var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")

// sdkServer returns a server of the official SDK with tools of all kinds.
func sdkServer(prefix string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk" + prefix, Version: "1"}, &sdk.ServerOptions{Instructions: "Be nice."})
	object := json.RawMessage(`{"type":"object"}`)
	add := func(t *sdk.Tool, f func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		t.Name = prefix + t.Name
		if t.InputSchema == nil {
			t.InputSchema = object
		}
		s.AddTool(t, f)
	}
	add(&sdk.Tool{Name: "echo", Description: "Repeats.", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&text{Text: prefix + "said " + in.Text}}}, nil
		})
	add(&sdk.Tool{Name: "fail", Description: "Fails."}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&text{Text: "no such file"}}, StructuredContent: json.RawMessage(`{"code":2}`)}, nil
	})
	add(&sdk.Tool{Name: "picture", Description: "Draws."}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&text{Text: "a picture"}, &sdk.ImageContent{MIMEType: "image/png", Data: png},
			&sdk.ResourceLink{URI: "file:///never/fetched", Name: "link"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b.txt", MIMEType: "text/plain", Text: "inside"}},
		}}, nil
	})
	add(&sdk.Tool{Name: "structured", Description: "Counts.", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"n":9007199254740993}`), Content: []sdk.Content{&text{Text: `{ "n": 9007199254740993 }`}}}, nil
	})
	add(&sdk.Tool{Name: "slow", Description: "Reports progress."}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprintf("step %d", i+1)})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&text{Text: "done"}}}, nil
	})
	add(&sdk.Tool{Name: "ask", Description: "Asks for a branch."}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["branch"].(*sdk.ElicitResult)
		if !ok {
			return &sdk.CallToolResult{RequestState: "state <&> " + prefix, InputRequests: sdk.InputRequestMap{"branch": &sdk.ElicitParams{
				Mode: "form", Message: "Which branch?",
				RequestedSchema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"password":{"type":"string","default":"none"}},"required":["b"]}`),
			}}}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&text{Text: fmt.Sprintf("%s %v %s", answer.Action, answer.Content["b"], req.Params.RequestState)}}}, nil
	})
	add(&sdk.Tool{Name: "url", Description: "Asks to open a page."}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["login"].(*sdk.ElicitResult)
		if !ok {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"login": &sdk.ElicitParams{Mode: "url", Message: "Log in.", URL: "https://login.example/x?y=1", ElicitationID: "e1"}}}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&text{Text: "page: " + answer.Action}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "file:///a.txt", Name: "a"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///a.txt", MIMEType: "text/plain", Text: "content of a"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "review", Arguments: []*sdk.PromptArgument{{Name: "lang", Required: true}}}, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &text{Text: "Review this " + req.Params.Arguments["lang"] + "."}}}}, nil
	})
	return s
}

// deadEnv names a file that a program creates when it dies. It does not start again then.
const deadEnv = "DRAGOMAN_TEST_MCP_DEAD"

func serveStdio(ctx context.Context, kind string) {
	if kind == "crash" {
		fmt.Println("this is a banner, not a message")
		os.Exit(3)
	}
	if name := os.Getenv(deadEnv); name != "" {
		if _, err := os.Stat(name); err == nil {
			os.Exit(4) // it has died before
		}
	}
	if kind == "noise" {
		serveNoise()
		return
	}
	if kind == "pay" || kind == "old_pay" {
		_ = payServer(kind).Run(ctx, &sdk.StdioTransport{})
		return
	}
	server := sdkServer("stdio_")
	if kind == "mortal" {
		server.AddTool(&sdk.Tool{Name: "die", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			fmt.Fprintln(os.Stderr, "out of memory")
			if name := os.Getenv(deadEnv); name != "" {
				_ = os.WriteFile(name, nil, 0o600)
			}
			os.Exit(7)
			return nil, nil
		})
	}
	if err := server.Run(ctx, &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// serveHTTP serves a server of the SDK: stateless, as modern clients need, or with sessions.
func serveHTTP(t testing.TB, s *sdk.Server, sessions bool) string {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: !sessions, PropagateRequestCancellation: true})
	web := httptest.NewServer(h)
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(web.Close)
	return web.URL
}

// stdioServer returns the configuration of a server that the test binary runs.
func stdioServer(t testing.TB, kind string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.Stdio(self).As(kind)
	s.Env = map[string]string{serveEnv: kind}
	return s
}

func connect(t testing.TB, o mcp.Options, servers ...mcp.Server) *mcp.Servers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := mcp.Connect(ctx, o, servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// run runs one call in a pipeline.
func run(t testing.TB, runner *tool.Runner, tools []tool.Tool, name, args string) (*tool.Batch, string) {
	t.Helper()
	box, err := tool.NewBox(tools...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := runner.Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c1", Name: name, Arguments: args}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Results) == 1 && b.Results[0] != nil {
		return b, b.Results[0].PlainText()
	}
	return b, ""
}

// approver approves calls and answers questions.
func approver(value string, seen *[]*tool.ApprovalRequest) tool.Approver {
	var mu sync.Mutex
	return policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen != nil {
			*seen = append(*seen, req)
		}
		a := tool.Answer{Verdict: tool.Approved}
		if req.Wanted != nil && req.Wanted.Schema != nil {
			a.Value = json.RawMessage(value)
		}
		return a, nil
	})
}

// variants are the ways to reach the server of the SDK.
func variants(t *testing.T, f func(t *testing.T, s mcp.Server, prefix string, modern bool)) {
	t.Run("modern HTTP", func(t *testing.T) { f(t, mcp.HTTP(serveHTTP(t, sdkServer("m_"), false)).As("web"), "m_", true) })
	t.Run("HTTP with sessions", func(t *testing.T) { f(t, mcp.HTTP(serveHTTP(t, sdkServer("s_"), true)).As("web"), "s_", false) })
	t.Run("stdio", func(t *testing.T) { f(t, stdioServer(t, "stdio"), "stdio_", true) })
	t.Run("stdio, 2025-06-18", func(t *testing.T) {
		s := stdioServer(t, "stdio")
		s.Revision = "2025-06-18"
		f(t, s, "stdio_", false)
	})
}

func TestToolsOfSDKServersOverEveryTransport(t *testing.T) {
	variants(t, func(t *testing.T, s mcp.Server, prefix string, modern bool) {
		servers := connect(t, mcp.Options{}, s)
		st := servers.Status()[0]
		if st.State != mcp.StateReady || st.Instructions != "Be nice." || len(st.Tools) != 7 || (st.Revision >= "2026") != modern {
			t.Fatalf("%+v", st)
		}
		runner := &tool.Runner{Approver: approver(`{"b":"main"}`, nil)}
		tools := servers.Tools()
		for _, tc := range []struct{ name, args, want string }{
			{"echo", `{"text":"hi"}`, prefix + "said hi"},
			{"fail", `{}`, "no such file"},
			{"slow", ``, "done"},
			{"structured", `{}`, `9007199254740993`},
		} {
			if _, got := run(t, runner, tools, prefix+tc.name, tc.args); !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q", tc.name, got)
			}
		}
		b, got := run(t, runner, tools, prefix+"fail", `{}`)
		if b.Records[0].OK || strings.Contains(got, `"code"`) {
			t.Errorf("quirk H7: the message of the failure is %q", got)
		}
		if b, _ = run(t, runner, tools, prefix+"echo", `{}`); b.Records[0].Executed || b.Records[0].OK {
			t.Errorf("arguments without a required field were sent: %+v", b.Records[0])
		}
	})
}

func TestQuirkH8_ContentOfEveryKindReachesTheModel(t *testing.T) {
	variants(t, func(t *testing.T, s mcp.Server, prefix string, _ bool) {
		servers := connect(t, mcp.Options{}, s)
		b, _ := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, servers.Tools(), prefix+"picture", `{}`)
		var got []string
		for _, p := range b.Results[0].Content {
			switch p := p.(type) {
			case *dragoman.Text:
				got = append(got, p.Text)
			case *dragoman.Media:
				got = append(got, p.Media+" "+p.MIME+" "+p.Base64[:8])
			}
		}
		all := strings.Join(got, "\n")
		for _, want := range []string{"a picture", "image image/png iVBORw0K", "link <file:///never/fetched>", "Resource file:///b.txt:\ninside"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is missing in %q", want, all)
			}
		}
	})
}

func TestProgressIsReported(t *testing.T) {
	servers := connect(t, mcp.Options{}, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("web"))
	var mu sync.Mutex
	var steps []string
	runner := &tool.Runner{Approver: approver(`{}`, nil), Observe: func(ev tool.Event) {
		if p, ok := ev.(tool.Progress); ok {
			mu.Lock()
			defer mu.Unlock()
			steps = append(steps, p.Parts[0].(*dragoman.Text).Text)
		}
	}}
	run(t, runner, servers.Tools(), "slow", `{}`)
	if !slices.Equal(steps, []string{"step 1", "step 2", "step 3"}) {
		t.Errorf("%q", steps)
	}
}

func TestPitfallK28_FormsGoToTheApproverOfTheRunWithTheirServer(t *testing.T) {
	variants(t, func(t *testing.T, s mcp.Server, prefix string, modern bool) {
		servers := connect(t, mcp.Options{}, s)
		var seen []*tool.ApprovalRequest
		_, got := run(t, &tool.Runner{Approver: approver(`{"b":"main"}`, &seen)}, servers.Tools(), prefix+"ask", `{}`)
		want := "accept main"
		if modern {
			want = "accept main state <&> " + prefix
		}
		if !strings.Contains(got, want) {
			t.Errorf("result %q", got)
		}
		q := seen[len(seen)-1]
		if q.Wanted == nil || q.Wanted.Prompt != "Which branch?" || !strings.Contains(q.Wanted.From, s.Label()) || !strings.Contains(q.Wanted.From, "ask") || q.Binding.CallID != "c1" {
			t.Errorf("asked %+v", q.Wanted)
		}
		if !slices.Equal(q.Wanted.Secrets, []string{"password"}) {
			t.Errorf("secrets %q", q.Wanted.Secrets)
		}
	})
}

func TestFormIsDeclinedIfTheHumanRejectsIt(t *testing.T) {
	variants(t, func(t *testing.T, s mcp.Server, prefix string, _ bool) {
		servers := connect(t, mcp.Options{}, s)
		for _, tc := range []struct {
			answer tool.Answer
			want   string
		}{{tool.Answer{Verdict: tool.Rejected}, "decline"}, {tool.Answer{Verdict: tool.Rejected, NoApprover: true}, "cancel"}} {
			a := policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
				if req.Wanted == nil {
					return tool.Answer{Verdict: tool.Approved}, nil
				}
				return tc.answer, nil
			})
			if _, got := run(t, &tool.Runner{Approver: a}, servers.Tools(), prefix+"ask", `{}`); !strings.Contains(got, tc.want) {
				t.Errorf("%+v: %q", tc.answer, got)
			}
		}
	})
}

func TestAnswerThatDoesNotFitTheFormIsAskedAgain(t *testing.T) {
	servers := connect(t, mcp.Options{}, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("web"))
	var prompts []string
	a := policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		answer := tool.Answer{Verdict: tool.Approved}
		if req.Wanted != nil {
			prompts = append(prompts, req.Wanted.Prompt)
			if answer.Value = json.RawMessage(`{"b":7}`); len(prompts) == 2 {
				answer.Value = json.RawMessage(`{"b":"x"}`)
			}
		}
		return answer, nil
	})
	_, got := run(t, &tool.Runner{Approver: a}, servers.Tools(), "ask", `{}`)
	if !strings.Contains(got, "accept x") || len(prompts) != 2 || !strings.Contains(prompts[1], "did not fit") {
		t.Errorf("%q after %q", got, prompts)
	}
}

func TestURLElicitationShowsTheWholeURLAndIsOnlyConsent(t *testing.T) {
	servers := connect(t, mcp.Options{}, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("web"))
	var seen []*tool.ApprovalRequest
	_, got := run(t, &tool.Runner{Approver: approver(`{}`, &seen)}, servers.Tools(), "url", `{}`)
	q := seen[len(seen)-1].Wanted
	if !strings.Contains(got, "page: accept") || q == nil || q.URL != "https://login.example/x?y=1" || q.Schema != nil {
		t.Errorf("%q, %+v", got, q)
	}
}

func TestPendingFormContinuesInAnotherProcessForModernServers(t *testing.T) {
	url := serveHTTP(t, sdkServer(""), false)
	first := connect(t, mcp.Options{}, mcp.HTTP(url).As("web"))
	b, _ := run(t, &tool.Runner{Approver: approveCalls}, first.Tools(), "ask", `{}`)
	if len(b.Pending) != 1 || len(b.Pending[0].Inner) != 1 {
		t.Fatalf("%+v", b)
	}
	_ = first.Close()
	stored, err := json.Marshal(b.Pending)
	if err != nil {
		t.Fatal(err)
	}
	got := resume(t, connect(t, mcp.Options{}, mcp.HTTP(url).As("web")), stored, `{"b":"dev"}`)
	if !strings.Contains(got, "accept dev state <&>") {
		t.Errorf("%q", got)
	}
}

func TestPendingFormOfAnOlderServerContinuesOnlyInItsProcess(t *testing.T) {
	url := serveHTTP(t, sdkServer(""), true)
	servers := connect(t, mcp.Options{}, mcp.HTTP(url).As("web"))
	b, _ := run(t, &tool.Runner{Approver: approveCalls}, servers.Tools(), "ask", `{}`)
	stored, err := json.Marshal(b.Pending)
	if err != nil {
		t.Fatal(err)
	}
	other := connect(t, mcp.Options{}, mcp.HTTP(url).As("web"))
	if got := resume(t, other, stored, `{"b":"dev"}`); !strings.Contains(got, "connection, which has ended") {
		t.Errorf("another process: %q", got)
	}
	if got := resume(t, servers, stored, `{"b":"dev"}`); !strings.Contains(got, "accept dev") {
		t.Errorf("the same process: %q", got)
	}
	if got := resume(t, servers, stored, `{"b":"dev"}`); !strings.Contains(got, "connection, which has ended") {
		t.Errorf("an answer was used twice: %q", got)
	}
}

// approveCalls approves calls and leaves questions undecided.
var approveCalls = policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if req.Wanted != nil {
		return tool.Answer{}, nil
	}
	return tool.Answer{Verdict: tool.Approved}, nil
})

// resume continues a stored call with an answer to its question.
func resume(t *testing.T, servers *mcp.Servers, stored []byte, value string) string {
	t.Helper()
	var pending []tool.Pending
	if err := json.Unmarshal(stored, &pending); err != nil {
		t.Fatal(err)
	}
	box, err := tool.NewBox(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	runner := &tool.Runner{Approver: approver(value, nil)}
	b, err := runner.Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Resume: pending, Calls: []*dragoman.ToolCall{{ID: "c1", Name: "ask", Arguments: `{}`}}})
	if err != nil {
		t.Fatal(err)
	}
	if b.Results[0] == nil {
		t.Fatalf("still pending: %+v", b.Pending)
	}
	return b.Results[0].PlainText()
}

func TestQuirkH13_UntrustedAnnotationsDoNotLowerChecks(t *testing.T) {
	url := serveHTTP(t, sdkServer(""), false)
	asked := func(s mcp.Server, name, args string) bool {
		var seen []*tool.ApprovalRequest
		run(t, &tool.Runner{Approver: approver(`{}`, &seen)}, connect(t, mcp.Options{}, s).Tools(), name, args)
		return len(seen) > 0
	}
	plain := mcp.HTTP(url).As("web")
	trusted := plain
	trusted.Trusted = true
	never := plain
	never.Approval = map[string]string{"*": "always", "echo": "never"}
	for _, tc := range []struct {
		name  string
		s     mcp.Server
		tool  string
		asked bool
	}{
		{"read-only, not trusted", plain, "echo", true},
		{"read-only, trusted", trusted, "echo", false},
		{"unknown, trusted", trusted, "fail", true},
		{"never", never, "echo", false},
		{"always", never, "slow", true},
	} {
		if got := asked(tc.s, tc.tool, `{"text":"x"}`); got != tc.asked {
			t.Errorf("%s: asked %v", tc.name, got)
		}
	}
	for _, tl := range connect(t, mcp.Options{}, plain).Tools() {
		if a := tl.Spec().Annotations; a.ReadOnly != nil && *a.ReadOnly {
			t.Errorf("%s: a policy would trust the hint of the server", tl.Spec().Name)
		}
	}
}

func TestQuirkH2_DuplicateNamesAreAnErrorThatNamesBothServers(t *testing.T) {
	a, b := mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("alpha"), mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("beta")
	_, err := mcp.Connect(t.Context(), mcp.Options{}, a, b)
	if err == nil || !strings.Contains(err.Error(), "alpha") || !strings.Contains(err.Error(), "beta") || !strings.Contains(err.Error(), "Prefix") {
		t.Fatal(err)
	}
	b.Prefix = true
	servers := connect(t, mcp.Options{}, a, b)
	if _, got := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, servers.Tools(), "mcp_beta__echo", `{"text":"hi"}`); !strings.Contains(got, "said hi") {
		t.Errorf("%q", got)
	}
}

func TestQuirkH11_FailingServersAreReportedAndTheOthersWork(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client leaves
		<-r.Context().Done()
	}))
	t.Cleanup(hang.Close)
	slow := mcp.HTTP(hang.URL).As("slow")
	slow.ConnectTimeout = 200 * time.Millisecond
	servers := connect(t, mcp.Options{}, slow, stdioServer(t, "crash"), mcp.Stdio("/no/such/program").As("missing"), mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("good"))
	st := servers.Status()
	for i, want := range []string{mcp.StateFailed, mcp.StateFailed, mcp.StateFailed, mcp.StateReady} {
		if st[i].State != want || (want == mcp.StateFailed) != (st[i].Err != nil) {
			t.Errorf("%s: %s, %v", st[i].Server, st[i].State, st[i].Err)
		}
	}
	if _, got := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, servers.Tools(), "echo", `{"text":"hi"}`); !strings.Contains(got, "said hi") {
		t.Errorf("%q", got)
	}
}

func TestConfigurationErrorsAreErrors(t *testing.T) {
	bad := mcp.HTTP("https://x.example").As("x")
	bad.Approval = map[string]string{"*": "sometimes"}
	for want, servers := range map[string][]mcp.Server{
		"neither":                   {{Name: "x"}},
		"sometimes":                 {bad},
		"two servers have the name": {mcp.HTTP("https://x.example").As("x"), mcp.HTTP("https://y.example").As("x")},
		"not one of http":           {mcp.HTTP("ftp://x.example").As("x")},
	} {
		if _, err := mcp.Connect(t.Context(), mcp.Options{}, servers...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestCanceledCallIsCanceledAtTheServer(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	servers := connect(t, mcp.Options{}, mcp.HTTP(serveHTTP(t, s, false)).As("web"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	box, err := tool.NewBox(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := (&tool.Runner{Approver: approver(`{}`, nil)}).Start("r").Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c", Name: "hang", Arguments: "{}"}}})
	<-ended
	if b.Records[0].ErrorKind != tool.ErrorCanceled {
		t.Errorf("%+v", b.Records[0])
	}
}
