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

// piecesStream is a Gemini stream of calls whose arguments come in n pieces each.
func piecesStream(calls, n int, piece func(i int) string) []byte {
	var b bytes.Buffer
	say := func(part, finish string) {
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"parts\":[%s]}%s}],\"responseId\":\"r\"}\n\n", part, finish)
	}
	for c := range calls {
		say(fmt.Sprintf(`{"functionCall":{"name":"f%d","willContinue":true}}`, c), "")
		for i := range n {
			say(`{"functionCall":{"willContinue":true,"partialArgs":[`+piece(i)+`]}}`, "")
		}
		say(`{"functionCall":{}}`, "")
	}
	say(`{"text":""}`, `,"finishReason":"STOP"`)
	return b.Bytes()
}

// piecesStreams are pieces of one string, of many members, of deep paths, and of
// lists of which all but the last is passed over.
func piecesStreams(size int) map[string][]byte {
	return map[string][]byte{
		"one string": piecesStream(1, 1000*size, func(int) string { return `{"jsonPath":"$.a","stringValue":"abcdefgh","willContinue":true}` }),
		"members":    piecesStream(size, 1000, func(i int) string { return fmt.Sprintf(`{"jsonPath":"$.l[%d].m%d","numberValue":1}`, i%300, i) }),
		"deep paths": piecesStream(size, 300, func(i int) string {
			return fmt.Sprintf(`{"jsonPath":"$.m%d%s","numberValue":1}`, i, strings.Repeat(".a", 62))
		}),
		"long lists": piecesStream(10*size, 1, func(int) string { return `{"jsonPath":"$.a[4000]","numberValue":1}` }),
		"long strings": piecesStream(size, 3, func(i int) string {
			return fmt.Sprintf(`{"jsonPath":"$.m%d","stringValue":%q}`, i, strings.Repeat("x", 64<<10))
		}),
	}
}

// translated is how long the Responses stream of a Gemini one is.
func translated(tb testing.TB, body []byte) int {
	tb.Helper()
	var n counter
	from := gemini.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	if err := dialect.Translate(&n, openairesponses.Codec{}.NewStreamEncoder(dialect.EncodeOptions{}), from, bytes.NewReader(body)); err != nil {
		tb.Fatal(err)
	}
	return int(n)
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return io.Discard.Write(p)
}

// Arguments in pieces allocate in proportion to what comes in and goes out,
// whatever their paths.
func TestQuirkC35_ArgumentsInPiecesTakeSpaceInProportion(t *testing.T) {
	for what, body := range piecesStreams(4) {
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

func BenchmarkArgumentsInPieces(b *testing.B) {
	for what, body := range piecesStreams(10) {
		b.Run(what, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				translated(b, body)
			}
		})
	}
}
