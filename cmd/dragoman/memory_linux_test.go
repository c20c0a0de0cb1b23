package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// chatText writes a Chat stream with size bytes of text.
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

// peak runs convert on a stream with size bytes of text or arguments, and returns its peak
// memory in kB, the unit of Linux.
func peak(t *testing.T, from, to string, size int, write func(w io.Writer) error) int64 {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "convert", "--to", to, "--kind", "stream", "--from", from)
	cmd.Args[0] = "dragoman" // the test binary acts as the program under this name
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	counted := &counter{}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = counted, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	werr := write(in)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || werr != nil {
		t.Fatalf("%v, %v\n%s", err, werr, stderr.String())
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

// Text of a stream is not buffered: a stream ten times as long needs no more memory. OpenAI
// Responses streams repeat the whole text at the end, so they need memory for it.
func TestConvertDoesNotBufferText(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs several times the memory: run without -race")
	}
	for _, l := range allDialects() {
		t.Run(string(l.Dialect()), func(t *testing.T) {
			size := 4 << 20
			if os.Getenv("DRAGOMAN_LONG") != "" {
				size = 10 << 20
			}
			of := func(size int) int64 {
				return peak(t, "chat", string(l.Dialect()), size, func(w io.Writer) error { return chatText(w, size) })
			}
			short, long := of(size), of(10*size)
			t.Logf("%d MB: %d kB, %d MB: %d kB", size>>20, short, 10*size>>20, long)
			limit := short + short/10
			if os.Getenv("DRAGOMAN_LONG") == "" {
				limit += 4 << 10 // on a busy machine the garbage collector runs later
			}
			if l.Dialect() == dialectname.OpenAIResponses {
				limit = short + 12*int64(10*size)>>10
			}
			for range 4 { // garbage collection has random timing
				if long <= limit {
					break
				}
				long = min(long, of(10*size))
			}
			if long > limit {
				t.Errorf("%d MB take %d kB, ten times as much takes %d kB", size>>20, short, long)
			}
		})
	}
}

func TestMemoryTestStreamIsValid(t *testing.T) {
	var in, out, stderr bytes.Buffer
	if err := chatText(&in, 100); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"convert", "--to", "anthropic"}, &in, &out, &stderr); code != exitOK {
		t.Fatalf("%d\n%s", code, stderr.String())
	}
	if !strings.Contains(out.String(), "message_stop") {
		t.Error(out.String())
	}
}

// callStream writes the events of calls with arguments of a given size. The functions begin,
// grow and end return the events of one call.
type callStream struct {
	before, after    string
	begin, grow, end func(i int, text string) string
}

func (s callStream) write(w io.Writer, calls, size int) error {
	b := bufio.NewWriter(w)
	piece := strings.Repeat("x", 1000)
	b.WriteString(s.before)
	for i := range calls {
		b.WriteString(s.begin(i, `{\"a\":\"`))
		for n := 0; n < size; n += len(piece) {
			b.WriteString(s.grow(i, piece))
		}
		b.WriteString(s.end(i, `\"}`))
	}
	b.WriteString(s.after)
	return b.Flush()
}

// callStreams returns a callStream for each dialect.
func callStreams() map[string]callStream {
	block := func(kind string, i int, field string) string {
		return fmt.Sprintf("event: content_block_%[1]s\ndata: {\"type\":\"content_block_%[1]s\",\"index\":%[2]d%[3]s}\n\n", kind, i, field)
	}
	fragment := func(i int, text string) string {
		return block("delta", i, `,"delta":{"type":"input_json_delta","partial_json":"`+text+`"}`)
	}
	chunk := func(i int, members, text string) string {
		return fmt.Sprintf("data: {\"id\":\"c\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%d,%s\"arguments\":\"%s\"}}]},\"finish_reason\":null}]}\n\n", i, members, text)
	}
	more := func(i int, text string) string { return chunk(i, `"function":{`, text) }
	return map[string]callStream{
		"anthropic": {
			before: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"c\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
			begin: func(i int, text string) string {
				return block("start", i, fmt.Sprintf(`,"content_block":{"type":"tool_use","id":"toolu_%d","name":"f","input":{}}`, i)) + fragment(i, text)
			},
			grow:  fragment,
			end:   func(i int, text string) string { return fragment(i, text) + block("stop", i, "") },
			after: "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		},
		"chat": {
			begin: func(i int, text string) string {
				return chunk(i, fmt.Sprintf(`"id":"call_%d","type":"function","function":{"name":"f",`, i), text)
			},
			grow:  more,
			end:   more,
			after: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
		},
	}
}

// Arguments of calls are buffered until it is known that the calls may run (decision 41).
// The number of copies is the one in docs/command.md, and not more.
func TestConvertBuffersArgumentsAsDocumented(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs several times the memory: run without -race")
	}
	held := map[dragoman.Dialect]int64{
		dialectname.OpenAIChat: 4, dialectname.Gemini: 4, dialectname.Anthropic: 8, dialectname.Bedrock: 8, dialectname.Ollama: 10, dialectname.OpenAIResponses: 18, "cohere.chat": 8,
	}
	size, slack := 50_000, int64(8<<10) // a small heap is collected late
	if os.Getenv("DRAGOMAN_LONG") != "" {
		size, slack = 200_000, 4<<10
	}
	for from, s := range callStreams() {
		for _, l := range allDialects() {
			t.Run(from+" to "+string(l.Dialect()), func(t *testing.T) {
				of := func(calls int) int64 {
					return peak(t, from, string(l.Dialect()), calls*size, func(w io.Writer) error { return s.write(w, calls, size) })
				}
				few, many := of(10), of(100)
				more := int64(90*size) >> 10
				limit := few + held[l.Dialect()]*more + slack
				for range 4 { // garbage collection has random timing
					if many <= limit {
						break
					}
					many = min(many, of(100))
				}
				t.Logf("10 calls: %d kB, 100 calls: %d kB, which is %.1f for each byte", few, many, float64(many-few)/float64(more))
				if many > limit {
					t.Errorf("10 calls take %d kB, 100 calls %d kB, more than %d", few, many, limit)
				}
			})
		}
	}
}
