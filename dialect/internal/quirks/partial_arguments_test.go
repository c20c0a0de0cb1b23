package quirks_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// partialStream returns a Gemini stream of calls with n partial arguments each.
func partialStream(calls, n int, piece func(i int) string) []byte {
	var b bytes.Buffer
	write := func(part, finish string) {
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"parts\":[%s]}%s}],\"responseId\":\"r\"}\n\n", part, finish)
	}
	for c := range calls {
		write(fmt.Sprintf(`{"functionCall":{"name":"f%d","willContinue":true}}`, c), "")
		for i := range n {
			write(`{"functionCall":{"willContinue":true,"partialArgs":[`+piece(i)+`]}}`, "")
		}
		write(`{"functionCall":{}}`, "")
	}
	write(`{"text":""}`, `,"finishReason":"STOP"`)
	return b.Bytes()
}

// partialStreams returns streams with partial arguments of one string, of many fields, of deep
// paths, and of lists whose elements but the last are skipped.
func partialStreams(size int) map[string][]byte {
	return map[string][]byte{
		"one string": partialStream(1, 1000*size, func(int) string { return `{"jsonPath":"$.a","stringValue":"abcdefgh","willContinue":true}` }),
		"members":    partialStream(size, 1000, func(i int) string { return fmt.Sprintf(`{"jsonPath":"$.l[%d].m%d","numberValue":1}`, i%300, i) }),
		"deep paths": partialStream(size, 300, func(i int) string {
			return fmt.Sprintf(`{"jsonPath":"$.m%d%s","numberValue":1}`, i, strings.Repeat(".a", 62))
		}),
		"long lists": partialStream(10*size, 1, func(int) string { return `{"jsonPath":"$.a[4000]","numberValue":1}` }),
		"long strings": partialStream(size, 3, func(i int) string {
			return fmt.Sprintf(`{"jsonPath":"$.m%d","stringValue":%q}`, i, strings.Repeat("x", 64<<10))
		}),
	}
}

// translated returns the length of the Responses stream for a Gemini stream.
func translated(tb testing.TB, body []byte) int {
	tb.Helper()
	var n counter
	from := gemini.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	if err := dialect.Translate(&n, openairesponses.Codec{}.NewStreamEncoder(dialect.EncodeOptions{}), from, bytes.NewReader(body)); err != nil {
		tb.Fatal(err)
	}
	return int(n)
}

// counter is a writer that counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return io.Discard.Write(p)
}

// Partial arguments allocate in proportion to input and output, whatever their paths.
func TestQuirkC35_PartialArgumentsTakeLinearMemory(t *testing.T) {
	for what, body := range partialStreams(4) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out := translated(t, body)
		runtime.ReadMemStats(&after)
		took := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body)+out)
		if took > 9 {
			t.Errorf("%s: %d bytes in, %d out, %.1f allocated for each", what, len(body), out, took)
		}
	}
}

func BenchmarkPartialArguments(b *testing.B) {
	for what, body := range partialStreams(10) {
		b.Run(what, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				translated(b, body)
			}
		})
	}
}
