package openairesponses

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// callStream returns a stream of one call whose arguments arrive in n fragments.
func callStream(n int) []byte {
	var b strings.Builder
	b.Write(events(created, added(0, callJSON("fc_1", "call_1", "", "in_progress"))))
	args := `{"text":"`
	b.Write(events(argDelta(0, args)))
	for i := range n {
		fragment := fmt.Sprintf("word%03d ", i%1000)
		args += fragment
		fmt.Fprintf(&b, "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"sequence_number\":%d,\"item_id\":\"fc_1\",\"output_index\":0,\"delta\":%q,\"obfuscation\":\"x9\"}\n\n", i, fragment)
	}
	args += `"}`
	b.Write(events(argDelta(0, `"}`), done(0, callJSON("fc_1", "call_1", args, "completed")), completed))
	return []byte(b.String())
}

func BenchmarkDecodeCallStream(b *testing.B) {
	body := callStream(2000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var c dragoman.Collector
		d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
		emit := func(ev dragoman.Event) error { c.Add(ev); return nil }
		for p := body; len(p) > 0; {
			n := min(4096, len(p))
			if err := d.Feed(p[:n], emit); err != nil {
				b.Fatal(err)
			}
			p = p[n:]
		}
		if err := d.Close(emit); err != nil {
			b.Fatal(err)
		}
		if r, err := c.Response(); err != nil || len(r.ToolCalls()) != 1 {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeRequest(b *testing.B) {
	req := &dragoman.Request{Model: "m"}
	for i := range 100 {
		req.Messages = append(req.Messages, dragoman.UserText(strings.Repeat("a question ", 60)),
			dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: strings.Repeat("an answer ", 60)}, &dragoman.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Arguments: `{"a":1}`}}},
			dragoman.ToolResults(&dragoman.ToolResult{CallID: fmt.Sprint("call_", i), Content: []dragoman.Part{&dragoman.Text{Text: "ok"}}}))
	}
	b.ReportAllocs()
	for b.Loop() {
		enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(enc.Body)))
	}
}
