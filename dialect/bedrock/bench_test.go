package bedrock_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// callStream returns a stream with one call whose arguments arrive in fragments
// of eight bytes.
func callStream(fragments int) []byte {
	var b strings.Builder
	b.WriteString(startLine + callLine(0, "tooluse_1", "f") + inputLine(0, `{"text":"`))
	for range fragments {
		b.WriteString(inputLine(0, "abcdefgh"))
	}
	b.WriteString(inputLine(0, `"}`) + stopLine(0) + endLines("tool_use"))
	return binary(b.String())
}

func BenchmarkStreamDecode(b *testing.B) {
	for _, n := range []int{2000, 1 << 17, 1 << 18} {
		body := callStream(n)
		b.Run(fmt.Sprintf("fragments=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var c dragoman.Collector
				d := codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
				emit := func(ev dragoman.Event) error { c.Add(ev); return nil }
				for rest := body; len(rest) > 0; {
					n := min(4096, len(rest))
					if err := d.Feed(rest[:n], emit); err != nil {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := d.Close(emit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStreamForward(b *testing.B) {
	body := callStream(2000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := codec.NewStreamDecoder(dialect.DecodeOptions{})
		e := codec.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		emit := func(ev dragoman.Event) (err error) {
			out, err = e.Encode(out[:0], ev)
			return err
		}
		if err := d.Feed(body, emit); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeRequest(b *testing.B) {
	req := requestOf()
	for i := range 100 {
		req.Messages = append(req.Messages, dragoman.UserText(strings.Repeat("words and words ", 60)), dragoman.AssistantText(strings.Repeat("an answer ", 60)))
		req.Tools = append(req.Tools, tool(fmt.Sprintf("tool_%d", i)))
	}
	req.Messages = append(req.Messages, dragoman.UserText("go on"))
	b.ReportAllocs()
	for b.Loop() {
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(enc.Body)))
	}
}
