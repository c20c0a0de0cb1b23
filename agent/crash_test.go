package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// TestMain runs the child if this process is one.
func TestMain(m *testing.M) {
	if os.Getenv(crashStore) != "" {
		err := crashChild(context.Background())
		switch {
		case errors.Is(err, session.ErrConflict):
			// A server may commit a write of a killed process after the next process has
			// read the session: that process gets a conflict, does nothing, and is
			// started again.
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

// Crashes at random points lose no acknowledged write and repeat no effect that must not
// repeat: L14, S1, quirk I8.
func TestL14_KilledRunIsResumedWithoutRepeatingEffects(t *testing.T) {
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
	fates := map[string]int{}
	for killed < kills {
		runs++
		c := &crashRun{id: fmt.Sprintf("crash-%d-%d", os.Getpid(), runs), seed: rand.Uint64(), acked: map[string]bool{}}
		c.file = filepath.Join(dir, c.id)
		for attempt := 0; ; attempt++ {
			if attempt > 200 {
				t.Fatal("the run did not finish")
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), crashStore+"="+at, crashSession+"="+c.id, crashEffects+"="+c.file,
				fmt.Sprintf("%s=%d", crashSeed, c.seed), fmt.Sprintf("%s=%d", crashHuman, rand.Uint64()))
			// Each process lives for a few steps; the last one may finish.
			after := rand.IntN(20)
			if killed >= kills {
				after = 1 << 20
			}
			if done, dead := survive(t, cmd, after, c.acked); dead {
				killed++
			} else if done {
				break
			}
		}
		for what, n := range c.judge(t, at) {
			fates[what] += n
		}
	}
	t.Logf("%d runs, %d kills, %v", runs, killed, fates)
}

// survive starts a child and kills it after a number of steps. The steps that it reported as
// stored are acknowledged.
func survive(t *testing.T, cmd *exec.Cmd, after int, acked map[string]bool) (done, dead bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	steps, ended := 0, false
	lines := bufio.NewScanner(out)
	for lines.Scan() { // also after the kill: earlier reports count
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "failed"):
			t.Errorf("a child: %s", line)
		case strings.HasPrefix(line, "stored message ") && acked[line]:
			t.Errorf("%q was acknowledged, lost and repeated", line)
		case strings.HasPrefix(line, "stored "):
			acked[line] = true
		case line == "finished":
			done = true
		}
		ended = ended || done || line == "waits" || line == "lost"
		if steps++; steps == after && !ended {
			_ = cmd.Process.Kill()
			dead = true
		}
	}
	_ = cmd.Wait()
	return done, dead && !ended
}

// crashRun is a run that was killed several times and has finished.
type crashRun struct {
	id, file string
	seed     uint64
	acked    map[string]bool

	messages []dragoman.Message
	asked    map[string]*dragoman.ToolCall
	results  map[string]*dragoman.ToolResult
	times    map[string]int // how often each effect happened
}

// judge checks a run against its effects and returns the fates of its calls.
func (c *crashRun) judge(t *testing.T, at string) (fates map[string]int) {
	t.Helper()
	c.read(t, at)
	planned := 0
	for _, turn := range crashPlan(c.seed) {
		planned += len(turn)
	}
	if len(c.asked) != planned || len(c.results) != planned || c.messages[len(c.messages)-1].Text() != "done" {
		t.Errorf("%s: %d calls, %d results of %d\n%s", c.id, len(c.asked), len(c.results), planned, script(c.messages))
	}
	c.judgeAcknowledged(t)
	c.judgeTickets(t)
	fates = map[string]int{}
	for id, call := range c.asked {
		if res := c.results[id]; res != nil {
			is := outcomeOf(res)
			c.judgeCall(t, call.Name, id, is)
			fates[call.Name+" "+is]++
			if call.Name == "clerk" {
				c.judgeClerk(t, id, is, res.Text(), fates)
			}
		}
	}
	return fates
}

// read loads the stored run.
func (c *crashRun) read(t *testing.T, at string) {
	t.Helper()
	store, err := openCrashStore(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := must[*session.Session](t)(session.Open(t.Context(), store, c.id))
	if c.messages, _, err = s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.readDecisions(t, s)
	c.times = map[string]int{}
	b, err := os.ReadFile(c.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		c.times[strings.TrimSpace(line)]++
	}
	c.asked, c.results = map[string]*dragoman.ToolCall{}, map[string]*dragoman.ToolResult{}
	for i := range c.messages {
		for _, p := range c.messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if c.asked[p.ID] != nil {
					t.Errorf("%s: call %s is there twice", c.id, p.ID)
				}
				c.asked[p.ID] = p
			case *dragoman.ToolResult:
				if c.results[p.CallID] != nil {
					t.Errorf("%s: call %s is answered twice", c.id, p.CallID)
				}
				c.results[p.CallID] = p
			}
		}
	}
}

// readDecisions finds calls that were begun without an earlier decision of the human.
func (c *crashRun) readDecisions(t *testing.T, s *session.Session) {
	t.Helper()
	approved := map[string]bool{}
	for e, err := range s.Entries(t.Context(), session.Query{Kinds: []string{"decision", "intent"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "decision" {
			r := must[tool.Ruling](t)(e.Decision())
			approved[e.Key] = approved[e.Key] || r.Answer.Verdict == tool.Approved
			approved[r.Binding.Run] = approved[r.Binding.Run] || r.Sticky && r.Answer.Verdict == tool.Approved
			continue
		}
		var in struct{ Run, Call, Tool string }
		if err := json.Unmarshal(e.Body, &in); err != nil {
			t.Fatal(err)
		}
		if in.Tool == "pay" && !approved[e.Key] && !approved[in.Run] {
			t.Errorf("%s: %s was begun, but the log has no approval", c.id, in.Call)
		}
	}
}

// judgeAcknowledged checks that everything that was reported as stored exists.
func (c *crashRun) judgeAcknowledged(t *testing.T) {
	t.Helper()
	said := map[string]bool{}
	for i := range c.messages {
		said["stored message "+named(&c.messages[i])] = true
	}
	for id := range c.results {
		said["stored result "+id] = true
		said["stored pending run-"+c.id+" "+id] = true // it was pending, and was decided
	}
	for line := range c.acked {
		inner := strings.HasPrefix(line, "stored pending ") && !strings.HasPrefix(line, "stored pending run-"+c.id+" ")
		if !said[line] && !inner {
			t.Errorf("%s: %q was acknowledged, and is gone", c.id, line)
		}
	}
}

// judgeTickets checks the reported outcomes of background work against its tickets.
func (c *crashRun) judgeTickets(t *testing.T) {
	t.Helper()
	tickets := must[[]tool.StoredTicket](t)((&fileTickets{name: c.file + ".tickets"}).read())
	for _, s := range tickets {
		told, want := 0, 0
		for i := range c.messages {
			if strings.HasPrefix(named(&c.messages[i]), "The background work "+s.Ticket.ID) {
				told++
			}
		}
		if s.Delivered {
			want = 1
		}
		if told != want {
			t.Errorf("%s: the outcome of %s is told %d times, and the ticket says %+v", c.id, s.Ticket.CallID, told, s)
		}
	}
}

// judgeCall checks the reported fate of a call against its effects; at identifies the call.
func (c *crashRun) judgeCall(t *testing.T, name, at, is string) {
	t.Helper()
	ran := c.times[at] + c.times[at+"!"] // with edited arguments
	switch {
	case name == "clerk" || strings.HasPrefix(name, "transfer"):
		if is != succeeded && (is != uncertain || name != "clerk") {
			t.Errorf("%s: %s %s: %s", c.id, name, at, is)
		}
		return
	case name != "again" && ran > 1:
		t.Errorf("%s: %s %s had its effect %d times", c.id, name, at, ran)
	}
	switch {
	case is == succeeded && ran == 0:
		t.Errorf("%s: %s %s is told to have worked, and had no effect", c.id, name, at)
	case is == rejected && (ran > 0 || name != "pay"):
		t.Errorf("%s: %s %s is told to be rejected, and had its effect %d times", c.id, name, at, ran)
	case is == uncertain && name == "again":
		t.Errorf("%s: %s may be repeated, and was not", c.id, at)
	case is != succeeded && is != rejected && is != uncertain:
		t.Errorf("%s: %s %s is not told to be uncertain: %s", c.id, name, at, is)
	}
}

// judgeClerk checks the calls that the nested agent reported against their effects. If the
// agent was killed, all its calls are uncertain, but none happened twice.
func (c *crashRun) judgeClerk(t *testing.T, task, is, told string, fates map[string]int) {
	t.Helper()
	for _, turn := range clerkPlan(task) {
		for _, call := range turn {
			id, rest, _ := strings.Cut(call, " ")
			name, _, _ := strings.Cut(rest, " ")
			became := uncertain
			for _, f := range [...]string{succeeded, rejected, uncertain} {
				if strings.Contains(told, fmt.Sprintf("[%s %s]", id, f)) {
					became = f
					fates["clerk's "+name+" "+f]++
				}
			}
			if is == succeeded && !strings.Contains(told, fmt.Sprintf("[%s %s]", id, became)) {
				t.Errorf("%s: the clerk of %s tells %s", c.id, task, told)
			}
			if is == succeeded || name != "again" {
				c.judgeCall(t, name, task+"/"+id, became)
			}
		}
	}
}
