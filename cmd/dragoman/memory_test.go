package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// chatText is a stream of so many bytes of text.
func chatText(w io.Writer, size int) error {
	const words = "the quick brown fox jumps over the lazy dog, and so on, and so on; "
	piece := fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", words)
	for sent := 0; sent < size; sent += len(words) {
		if _, err := io.WriteString(w, piece); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return err
}

// peak runs convert on a stream and returns the most memory it held.
func peak(t *testing.T, to string, size int) int64 {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "convert", "--to", to, "--kind", "stream", "--from", "chat")
	cmd.Args[0] = "dragoman" // the test binary is the program when it is called by its name
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	counted := &counter{}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = counted, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	werr := chatText(in, size)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || werr != nil {
		t.Fatalf("%v, %v\n%s", err, werr, said.String())
	}
	if counted.n < int64(size) {
		t.Fatalf("%d bytes of text became %d", size, counted.n)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// A stream of text passes through: ten times as long, no more memory. Events of
// OpenAI Responses say at their end what they said before, which takes the
// whole text.
func TestConvertHoldsNoMoreOfALongStreamThanOfAShortOne(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak is read in the unit of Linux")
	}
	if raceDetector {
		t.Skip("the race detector takes several times the memory of the program; go test without -race measures it")
	}
	for _, l := range languages() {
		t.Run(string(l.Dialect()), func(t *testing.T) {
			size := 4 << 20
			if os.Getenv("DRAGOMAN_LONG") != "" {
				size = 10 << 20
			}
			short, long := peak(t, string(l.Dialect()), size), peak(t, string(l.Dialect()), 10*size)
			t.Logf("%d MB: %d kB, %d MB: %d kB", size>>20, short, 10*size>>20, long)
			limit := short + short/10
			if os.Getenv("DRAGOMAN_LONG") == "" {
				limit += 4 << 10 // a busy machine collects garbage later
			}
			if l.Dialect() == dragoman.OpenAIResponses {
				limit = short + 12*int64(10*size)>>10
			}
			if long > limit {
				t.Errorf("%d MB take %d kB, ten times as much takes %d kB", size>>20, short, long)
			}
		})
	}
}

func TestTheStreamOfTheMemoryTestIsOne(t *testing.T) {
	var in, out, said bytes.Buffer
	if err := chatText(&in, 100); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"convert", "--to", "anthropic"}, &in, &out, &said); code != exitOK {
		t.Fatalf("%d\n%s", code, said.String())
	}
	if !strings.Contains(out.String(), "message_stop") {
		t.Error(out.String())
	}
}
