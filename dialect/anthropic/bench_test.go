package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// callStream returns a stream with one call whose arguments arrive in fragments
// of eight bytes.
func callStream(fragments int) []byte {
	var b strings.Builder
	b.WriteString(startLine + "\n" + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}` + "\n")
	delta := func(s string) {
		fmt.Fprintf(&b, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`+"\n", s)
	}
	delta(`{"text":"`)
	for range fragments {
		delta("abcdefgh")
	}
	delta(`"}`)
	b.WriteString(`{"type":"content_block_stop","index":0}` + "\n" + endLines("tool_use"))
	return []byte(sseStream(b.String()))
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

func BenchmarkCodec(b *testing.B) { benchdata.Codec(b, codec) }

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
