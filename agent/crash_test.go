package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// The child of the crash test: a process that runs or resumes one run in a store,
// tells every step on standard output, and may be killed at any of them.
const (
	crashStore   = "DRAGOMAN_TEST_CRASH_STORE"   // where the session is
	crashSession = "DRAGOMAN_TEST_CRASH_SESSION" // its id
	crashEffects = "DRAGOMAN_TEST_CRASH_EFFECTS" // the file of effects
)

// TestMain runs the child where the process is one.
func TestMain(m *testing.M) {
	if os.Getenv(crashStore) != "" {
		err := crashChild(context.Background())
		switch {
		case errors.Is(err, session.ErrConflict):
			// What a killed process had sent to a server may be committed after the
			// next one has looked: that one has lost, did nothing, and is started again.
			fmt.Println("lost")
			os.Exit(0)
		case err != nil:
			fmt.Println("failed", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	main(m)
}

// crashTurns is how many turns the model of the child calls tools.
const crashTurns = 4

// counting is a model that knows nothing but the conversation: it calls three tools
// in each of its turns, and then answers.
type counting struct{}

func (counting) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	turn := 0
	for i := range req.Messages {
		if len(req.Messages[i].ToolCalls()) > 0 {
			turn++
		}
	}
	if turn == crashTurns {
		return says("done"), nil
	}
	return calls(
		fmt.Sprintf(`a%d once {"word":"a%d"}`, turn, turn), fmt.Sprintf(`b%d once {"word":"b%d"}`, turn, turn),
		fmt.Sprintf(`c%d again {"word":"c%d"}`, turn, turn),
	), nil
}

func (m counting) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return streamed(ctx, req, m.Generate)
}

// effects are tools that leave a line in a file for each time they run.
func effects(file string) []tool.Tool {
	write := func(_ context.Context, w word) (string, error) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		fmt.Println("effect", w.Word)
		if _, err := f.WriteString(w.Word + "\n"); err != nil {
			return "", err
		}
		fmt.Println("effected", w.Word)
		return "did " + w.Word, nil
	}
	return []tool.Tool{tool.New("once", "Has an effect.", write), tool.New("again", "May be repeated.", write, tool.Idempotent())}
}

func crashAgent() agent.Agent {
	return agent.Agent{Model: counting{}, Tools: effects(os.Getenv(crashEffects))}
}

func openCrashStore(ctx context.Context, at string) (session.Store, error) {
	kind, where, _ := strings.Cut(at, ":")
	if kind == "sqlite" {
		return sqlite.Open(ctx, where, sqlite.Options{})
	}
	return openPostgres(ctx, where)
}

// crashChild is what the child does: it begins the run, or goes on with it, and
// tells of everything that is acknowledged.
func crashChild(ctx context.Context) error {
	store, err := openCrashStore(ctx, os.Getenv(crashStore))
	if err != nil {
		return err
	}
	id := os.Getenv(crashSession)
	s, err := session.Open(ctx, store, id)
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Create(ctx, store, session.Info{ID: id})
	}
	if err != nil {
		return err
	}
	a := crashAgent()
	_, state, err := s.Load(ctx)
	if err != nil {
		return err
	}
	stream := a.Stream(ctx, "go", agent.In(s), agent.ID("run-"+id))
	if state != nil {
		stream = a.ResumeStream(ctx, nil, agent.In(s))
	}
	fmt.Println("ready")
	for ev, err := range stream {
		if err != nil {
			return err
		}
		switch ev := ev.(type) {
		case *agent.MessageAdded:
			fmt.Println("stored message", named(&ev.Message))
		case *agent.Answered:
			fmt.Println("stored result", ev.Result.CallID)
		}
	}
	fmt.Println("finished")
	return store.Close()
}

// named is a message by its first call or its words: the child's model says nothing
// twice, unless what it said was lost.
func named(m *dragoman.Message) string {
	if c := m.ToolCalls(); len(c) > 0 {
		return c[0].ID
	}
	return m.Text()
}

// Crashes at random moments lose nothing that was acknowledged and repeat nothing
// that must not be: L14, S1, quirk I8.
func TestL14_AKilledRunIsResumedWithoutRepeatingAnEffect(t *testing.T) {
	kills := 30
	if os.Getenv("DRAGOMAN_LONG") != "" {
		kills = 300
	}
	t.Run("sqlite", func(t *testing.T) { crashes(t, "sqlite:"+filepath.Join(t.TempDir(), "s.db"), kills) })
	t.Run("postgres", func(t *testing.T) {
		url := os.Getenv("DRAGOMAN_POSTGRES")
		if url == "" {
			t.Skip("DRAGOMAN_POSTGRES names no server")
		}
		crashes(t, "postgres:"+url, kills)
	})
}

func crashes(t *testing.T, at string, kills int) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	killed, runs := 0, 0
	for killed < kills {
		runs++
		id := fmt.Sprintf("crash-%d-%d", os.Getpid(), runs)
		file := filepath.Join(dir, id)
		acked := map[string]bool{}
		for attempt := 0; ; attempt++ {
			if attempt > 200 {
				t.Fatal("the run does not come to its end")
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), crashStore+"="+at, crashSession+"="+id, crashEffects+"="+file)
			// A few steps for each life; the last may live to its end.
			after := rand.IntN(14)
			if killed >= kills {
				after = 1 << 20
			}
			if done, dead := live(t, cmd, after, acked); dead {
				killed++
			} else if done {
				break
			}
		}
		judge(t, at, id, file, acked)
	}
	t.Logf("%d runs, %d kills", runs, killed)
}

// live starts a child and kills it after so many steps. What it told as stored is
// acknowledged.
func live(t *testing.T, cmd *exec.Cmd, after int, acked map[string]bool) (done, dead bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	steps := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() { // also behind the kill: what it told before counts
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "failed"):
			t.Errorf("a child: %s", line)
		case strings.HasPrefix(line, "stored message "):
			if acked[line] {
				t.Errorf("%q was acknowledged, lost and said again", line)
			}
			acked[line] = true
		case strings.HasPrefix(line, "stored result "):
			acked[strings.TrimPrefix(line, "stored result ")] = true
		case line == "finished":
			done = true
		}
		if steps++; steps == after && !done {
			_ = cmd.Process.Kill()
			dead = true
		}
	}
	_ = cmd.Wait()
	return done, dead && !done
}

// judge holds a run against what happened.
func judge(t *testing.T, at, id, file string, acked map[string]bool) {
	t.Helper()
	store, err := openCrashStore(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := session.Open(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	ms, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(b)) {
		times[strings.TrimSpace(line)]++
	}
	asked, results := map[string]*dragoman.ToolCall{}, map[string]*dragoman.ToolResult{}
	for i := range ms {
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if asked[p.ID] != nil {
					t.Errorf("%s: call %s is there twice", id, p.ID)
				}
				asked[p.ID] = p
			case *dragoman.ToolResult:
				if results[p.CallID] != nil {
					t.Errorf("%s: call %s is answered twice", id, p.CallID)
				}
				results[p.CallID] = p
			}
		}
	}
	if len(asked) != 3*crashTurns || len(results) != len(asked) || ms[len(ms)-1].Text() != "done" {
		t.Errorf("%s: %d calls, %d results\n%s", id, len(asked), len(results), script(ms))
	}
	said := map[string]bool{}
	for i := range ms {
		said["stored message "+named(&ms[i])] = true
	}
	for call := range acked {
		if !said[call] && results[call] == nil {
			t.Errorf("%s: %s was acknowledged, and is gone", id, call)
		}
	}
	for call, c := range asked {
		res := results[call]
		ok := res != nil && res.Outcome != dragoman.OutcomeError
		switch {
		case res == nil:
		case c.Name == "once" && times[call] > 1:
			t.Errorf("%s: %s had its effect %d times", id, call, times[call])
		case ok && times[call] == 0:
			t.Errorf("%s: %s is told to have worked, and had no effect", id, call)
		case !ok && c.Name == "again":
			t.Errorf("%s: %s may be repeated, and was not: %s", id, call, res.Text())
		case !ok && !strings.Contains(res.Text(), "not known whether"):
			t.Errorf("%s: %s is not told to be uncertain: %s", id, call, res.Text())
		}
	}
}
