package sessiontest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Crash kills processes that write to a store, at random points, and checks that every
// acknowledged write is there and that no write is partial (requirement S1). start makes the
// command of a process that opens the store and calls [Write] with its standard output; open
// opens the store in this process.
//
// The simplest command is the test's own program, with an environment variable that makes
// another test call Write.
func Crash(t *testing.T, kills int, start func() *exec.Cmd, open func(t *testing.T) session.Store) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(kills)))
	c := &killedProcess{saved: map[string]bool{}, begun: map[string]bool{}, ended: map[string]bool{}}
	for range kills {
		c.runAndKill(t, start(), rnd.IntN(40), time.Duration(rnd.IntN(3000))*time.Microsecond)
		c.check(t, open(t))
	}
	if len(c.saved) == 0 || len(c.begun) == 0 || len(c.ended) == 0 {
		t.Errorf("too little was acknowledged: %d, %d, %d", len(c.saved), len(c.begun), len(c.ended))
	}
}

const crashID = "crash"

// killedProcess holds the writes that were acknowledged so far.
type killedProcess struct{ saved, begun, ended map[string]bool }

// runAndKill starts a process, reads its acknowledgments, and kills it some time after a number of
// lines.
func (c *killedProcess) runAndKill(t *testing.T, cmd *exec.Cmd, lines int, then time.Duration) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil { // the last line may be incomplete
			break
		}
		c.acknowledged(t, strings.TrimSpace(line))
		if n == lines {
			kill.Reset(then)
		}
	}
	kill.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Success() || strings.Contains(said.String(), "FAIL") {
		t.Fatalf("the process was not killed: %v\n%s", err, said.String())
	}
}

func (c *killedProcess) acknowledged(t *testing.T, line string) {
	t.Helper()
	word, what, _ := strings.Cut(line, " ")
	switch word {
	case "saved":
		c.saved[what] = true
	case "begun":
		c.begun[what] = true
	case "ended":
		c.ended[what] = true
	default:
		t.Fatalf("a process wrote %q", line)
	}
}

// crashBatch is the number of messages in a save of [Write].
const crashBatch = 3

func (c *killedProcess) check(t *testing.T, store session.Store) {
	t.Helper()
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := session.Open(t.Context(), store, crashID)
	if errors.Is(err, session.ErrNotFound) && len(c.saved)+len(c.begun)+len(c.ended) == 0 {
		return // killed before the first write
	}
	if err != nil {
		t.Fatal(err)
	}
	messages, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for i := range messages {
		there[messages[i].Text()]++
	}
	for text, n := range there {
		if n != crashBatch {
			t.Errorf("%d messages of a save of %d: %s", n, crashBatch, text)
		}
	}
	for text := range c.saved {
		if there[text] == 0 {
			t.Errorf("an acknowledged save is missing: %s", text)
		}
	}
	for call := range c.begun {
		prior, err := s.Begin(t.Context(), crashIntent(call))
		if err != nil {
			t.Fatal(err)
		}
		if prior.Attempts != 1 {
			t.Errorf("an acknowledged intent is missing: %s", call)
		}
		if c.ended[call] && (prior.Result == nil || prior.Result.Text() != call) {
			t.Errorf("an acknowledged result is missing: %s", call)
		}
	}
}

func crashIntent(call string) tool.Intent {
	return tool.Intent{CallRef: tool.CallRef{Run: "crash", Turn: 1, CallID: call}, Arguments: sha256.Sum256([]byte(call))}
}

// Write writes to a session from several goroutines, and writes a line to acks for every
// acknowledged write, until ctx ends or something fails. The processes that [Crash] kills
// call it. If a server completes a write of a killed process late, Write opens the session
// again.
func Write(ctx context.Context, store session.Store, acks io.Writer) error {
	for {
		if err := write(ctx, store, acks); !errors.Is(err, session.ErrConflict) {
			return err
		}
	}
}

func write(ctx context.Context, store session.Store, acks io.Writer) error {
	s, err := session.Open(ctx, store, crashID)
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Create(ctx, store, session.Info{ID: crashID})
	}
	if err != nil {
		return err
	}
	from := s.Head() // no other process numbers from here
	var mu sync.Mutex
	ack := func(word, what string) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintln(acks, word, what)
		return err
	}
	const writers = 4
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			for n := 0; ; n++ {
				if err := writeOnce(ctx, s, fmt.Sprint(from, ".", w, ".", n), ack); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func writeOnce(ctx context.Context, s *session.Session, name string, ack func(word, what string) error) error {
	m := dragoman.UserText(name)
	if err := s.Save(ctx, []dragoman.Message{m, m, m}[:crashBatch], []byte(`{}`)); err != nil {
		return err
	}
	if err := ack("saved", name); err != nil {
		return err
	}
	if _, err := s.Begin(ctx, crashIntent(name)); err != nil {
		return err
	}
	if err := ack("begun", name); err != nil {
		return err
	}
	result := &dragoman.ToolResult{CallID: name, Content: []dragoman.Part{&dragoman.Text{Text: name}}}
	if err := s.End(ctx, crashIntent(name), result); err != nil {
		return err
	}
	return ack("ended", name)
}
