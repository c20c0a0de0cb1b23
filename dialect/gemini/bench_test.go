package gemini_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// textStream returns a stream with a text in fragments of eight bytes;
// pieceStream one with a string argument in such fragments.
func textStream(fragments int) []byte {
	chunks := make([]string, 0, fragments+1)
	for range fragments {
		chunks = append(chunks, chunk("", `{"text":"abcdefgh"}`))
	}
	return []byte(sseStream(append(chunks, chunk("STOP", `{"text":""}`))...))
}

func pieceStream(fragments int) []byte {
	chunks := []string{chunk("", `{"functionCall":{"name":"f","willContinue":true}}`)}
	for range fragments {
		chunks = append(chunks, chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.text","stringValue":"abcdefgh","willContinue":true}],"willContinue":true}}`))
	}
	return []byte(sseStream(append(chunks, chunk("STOP", `{"functionCall":{}}`))...))
}

func BenchmarkStreamDecode(b *testing.B) {
	for name, body := range map[string][]byte{"text": textStream(2000), "pieces": pieceStream(2000), "array": asArray(textStream(2000))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				decodeAll(b, body)
			}
		})
	}
}

func decodeAll(tb testing.TB, body []byte) *dragoman.Response {
	tb.Helper()
	var c dragoman.Collector
	d := codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
	emit := func(ev dragoman.Event) error { c.Add(ev); return nil }
	for rest := body; len(rest) > 0; {
		n := min(4096, len(rest))
		if err := d.Feed(rest[:n], emit); err != nil {
			tb.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := d.Close(emit); err != nil {
		tb.Fatal(err)
	}
	resp, err := c.Response()
	if err != nil {
		tb.Fatal(err)
	}
	return resp
}

func BenchmarkEncodeRequest(b *testing.B) {
	req := requestOf()
	for i := range 100 {
		req.Messages = append(req.Messages, dragoman.UserText(strings.Repeat("words and words ", 60)), dragoman.AssistantText(strings.Repeat("an answer ", 60)))
		req.Tools = append(req.Tools, tool(fmt.Sprintf("tool_%d", i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(enc.Body)))
	}
}

// Doubling the stream about doubles the allocated bytes (quirk C35).
func TestQuirkC35_StreamMemoryIsLinear(t *testing.T) {
	for name, stream := range map[string]func(int) []byte{"text": textStream, "pieces": pieceStream, "array": func(n int) []byte { return asArray(textStream(n)) }} {
		bytesFor := func(n int) float64 {
			body := stream(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			decodeAll(t, body)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		if a, b := bytesFor(4000), bytesFor(8000); b > 2.3*a {
			t.Errorf("%s: twice the stream allocates %.2f times the bytes", name, b/a)
		}
	}
}
