package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// The child of the kill test: an agent process that starts or resumes one run, whose tools are
// those of two MCP servers.
const (
	killStore   = "DRAGOMAN_TEST_KILL_STORE"   // the file of the session; it makes a process the child
	killEffects = "DRAGOMAN_TEST_KILL_EFFECTS" // the file to which the servers append
	killSeed    = "DRAGOMAN_TEST_KILL_SEED"    // how the human of this process decides
	killForget  = "DRAGOMAN_TEST_KILL_FORGET"  // do not use a journal
)

// killPlan are the calls of each turn: a modern server, and one with sessions.
var killPlan = [][]string{{"a pay", "b old_pay"}, {"c old_pay", "d pay"}, {"e pay", "f pay"}}

// planModel calls the tools of the plan.
type planModel struct{}

func (planModel) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	turn := 0
	for i := range req.Messages {
		if len(req.Messages[i].ToolCalls()) > 0 {
			turn++
		}
	}
	if turn == len(killPlan) {
		return &dragoman.Response{Output: []dragoman.Message{dragoman.AssistantText("done")}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}, nil
	}
	m := dragoman.Message{Role: dragoman.RoleAssistant}
	for _, c := range killPlan[turn] {
		id, name, _ := strings.Cut(c, " ")
		m.Parts = append(m.Parts, &dragoman.ToolCall{ID: id, Name: name, Arguments: `{"word":"` + id + `"}`})
	}
	return &dragoman.Response{Output: []dragoman.Message{m}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}, nil
}

func (planModel) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return nil
}

// payServer returns a server with a tool that asks a question and then appends to a file, slowly.
func payServer(name string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: name, Description: "Pays.", InputSchema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}}}`)},
		func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			question := &sdk.ElicitParams{Mode: "form", Message: "Really?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}`)}
			var in struct{ Word string }
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			var answer *sdk.ElicitResult
			if name == "old_pay" {
				var err error
				if answer, err = req.Session.Elicit(ctx, question); err != nil {
					return nil, err
				}
			} else if answer, _ = req.Params.InputResponses["q"].(*sdk.ElicitResult); answer == nil {
				return &sdk.CallToolResult{RequestState: "state of " + in.Word, InputRequests: sdk.InputRequestMap{"q": question}}, nil
			}
			if answer.Action != "accept" {
				return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&text{Text: "nothing was paid"}}}, nil
			}
			time.Sleep(rand.N(10 * time.Millisecond)) // the moments before and after the effect
			f, err := os.OpenFile(os.Getenv(killEffects), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			if _, err := f.WriteString(in.Word + "\n"); err != nil {
				return nil, err
			}
			time.Sleep(rand.N(10 * time.Millisecond))
			return &sdk.CallToolResult{Content: []sdk.Content{&text{Text: "paid " + in.Word}}}, nil
		})
	return s
}

// forgetful is a journal that remembers nothing.
type forgetful struct{}

func (forgetful) Begin(context.Context, tool.Intent) (tool.Prior, error) { return tool.Prior{}, nil }

func (forgetful) End(context.Context, tool.Intent, *dragoman.ToolResult) error {
	return nil
}

// decide answers for the human. It may decide differently about the same call in another process.
func decide(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	fmt.Println("asked", req.Binding.CallID)
	h := fnv.New64a()
	fmt.Fprint(h, os.Getenv(killSeed), req.Binding.CallID, req.Wanted != nil)
	switch h.Sum64() / 7 % 8 {
	case 0, 1:
		return tool.Answer{}, nil // later
	case 2:
		return tool.Answer{Verdict: tool.Rejected}, nil
	default:
		a := tool.Answer{Verdict: tool.Approved}
		if req.Wanted != nil {
			a.Value = json.RawMessage(`{"sure":true}`)
		}
		return a, nil
	}
}

func killChild(ctx context.Context) error {
	store, err := sqlite.Open(ctx, os.Getenv(killStore), sqlite.Options{})
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, store, "s")
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Create(ctx, store, session.Info{ID: "s"})
	}
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var list []mcp.Server
	for _, name := range []string{"pay", "old_pay"} {
		one := mcp.Stdio(self).As(name)
		one.Env = map[string]string{serveEnv: name, killEffects: os.Getenv(killEffects)}
		if name == "old_pay" {
			one.Revision = "2025-11-25"
		}
		list = append(list, one)
	}
	servers, err := mcp.Connect(ctx, mcp.Options{Log: slog.New(slog.DiscardHandler)}, list...)
	if err != nil {
		return err
	}
	defer servers.Close()
	runner := &tool.Runner{Approver: policy.ApproverFunc(decide)}
	if os.Getenv(killForget) != "" {
		runner.Journal = forgetful{}
	}
	runner.Observe = func(ev tool.Event) { fmt.Printf("step %T\n", ev) }
	a := agent.Agent{Model: planModel{}, ToolSource: servers.Source, Runner: runner}
	state, err := agent.LoadState(ctx, s)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if state == nil {
		_, err = a.Run(ctx, "go", agent.In(s), agent.ID("run"))
	} else {
		_, err = a.Resume(ctx, nil, agent.In(s))
	}
	switch {
	case errors.Is(err, agent.ErrInterrupted):
		fmt.Println("waits")
		return nil
	case err != nil:
		return err
	}
	fmt.Println("finished")
	return nil
}

func TestKilledRunNeverRepeatsACallOfAnMCPServer(t *testing.T) {
	kills := 30
	if os.Getenv("DRAGOMAN_LONG") != "" {
		kills = 300
	}
	fates := map[string]int{}
	killed, runs := 0, 0
	for killed < kills {
		runs++
		times, results := killRun(t, &killed, kills, false)
		for _, turn := range killPlan {
			for _, c := range turn {
				id, _, _ := strings.Cut(c, " ")
				is := fate(results[id])
				fates[is]++
				if n := times[id]; n > 1 || is == "paid" && n != 1 || is == "not paid" && n != 0 {
					t.Errorf("call %s is %s, and was paid %d times: %q", id, is, n, results[id])
				}
				if is == "lost" {
					t.Errorf("the result of call %s does not say what happened: %q", id, results[id])
				}
			}
		}
	}
	t.Logf("%d runs, %d kills, %v", runs, killed, fates)
	if fates["paid"] == 0 {
		t.Error("nothing was paid: the test does not test")
	}
}

func TestKilledRunWithoutAJournalRepeatsCalls(t *testing.T) { // so the test above can fail
	killed := 0
	for killed < 60 {
		times, _ := killRun(t, &killed, 1<<20, true)
		for _, n := range times {
			if n > 1 {
				return
			}
		}
	}
	t.Errorf("no call was repeated in %d kills", killed)
}

// fate returns what a result says about the effect of its call.
func fate(result string) string {
	switch {
	case strings.Contains(result, "paid") && strings.HasPrefix(result, "ok") && !strings.Contains(result, "nothing was paid"):
		return "paid"
	case strings.Contains(result, "nothing was paid"), strings.Contains(result, "did not run"):
		return "not paid"
	case strings.Contains(result, "unknown whether"), strings.Contains(result, "may have had an effect"), strings.Contains(result, "may or may not have run"):
		return "uncertain"
	default:
		return "lost"
	}
}

// killRun runs a run to its end, in processes that are killed. It returns how often each call
// had its effect, and the results.
func killRun(t *testing.T, killed *int, kills int, forget bool) (times map[string]int, got map[string]string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	effects, at := filepath.Join(dir, "effects"), filepath.Join(dir, "s.db")
	for done, attempt := false, 0; !done; attempt++ {
		if attempt > 200 {
			t.Fatal("the run did not finish")
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), killStore+"="+at, killEffects+"="+effects, fmt.Sprintf("%s=%d", killSeed, rand.Uint64()))
		if forget {
			cmd.Env = append(cmd.Env, killForget+"=1")
		}
		steps := 1 << 20
		if *killed < kills && (!forget || attempt < 4) {
			steps = 1 + rand.IntN(16)
		}
		var dead bool
		if done, dead = outlive(t, cmd, steps); dead {
			*killed++
		}
	}
	times = map[string]int{}
	b, err := os.ReadFile(effects)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		times[strings.TrimSpace(line)]++
	}
	store, err := sqlite.Open(t.Context(), at, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	messages, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				state := "ok "
				if r.Outcome == "error" {
					state = "error "
				}
				got[r.CallID] = state + r.PlainText()
			}
		}
	}
	return times, got
}

// outlive starts a child and kills it some time after a number of steps.
func outlive(t *testing.T, cmd *exec.Cmd, steps int) (finished, dead bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var failed strings.Builder
	cmd.Stderr = &failed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	ended := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "finished":
			finished, ended = true, true
		case line == "waits":
			ended = true
		case strings.HasPrefix(line, "failed"):
			t.Errorf("a child: %s", line)
		}
		if steps--; steps == 0 && !ended {
			timer = time.AfterFunc(rand.N(25*time.Millisecond), func() { _ = cmd.Process.Kill() })
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if timer != nil {
		timer.Stop()
	}
	dead = err != nil && !ended
	if dead && steps > 0 {
		t.Fatalf("a child ended by itself: %v\n%s", err, failed.String())
	}
	return finished, dead
}
