package dragoman_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// longRequest is a conversation of 40 turns with calls and results, as an
// agent stores and fingerprints it.
func longRequest() dragoman.Request {
	req := richValue().Request
	for i := range 40 {
		call := &dragoman.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "read_file", Arguments: `{"path":"src/main.go","line":17}`}
		req.Messages = append(req.Messages,
			dragoman.UserText("Please look at the file and say what it does. "+strings.Repeat("More words. ", 10)),
			dragoman.Message{
				Role: dragoman.RoleAssistant, Origin: &dragoman.Origin{Dialect: dialectname.Anthropic, Model: "claude-opus-5-5"},
				Parts: []dragoman.Part{&dragoman.Reasoning{Text: strings.Repeat("I think. ", 20), Signature: strings.Repeat("c2ln", 50)}, &dragoman.Text{Text: "I look."}, call},
			},
			dragoman.ToolResults(call.ResultText(strings.Repeat("package main\n\t\"quoted\"\n", 40))),
		)
	}
	return req
}

func benchmarkStore(b *testing.B, v json.Marshaler) {
	b.ReportAllocs()
	for b.Loop() {
		data, err := v.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
	}
}

func benchmarkLoad[T any, P interface {
	*T
	json.Unmarshaler
}](b *testing.B, v json.Marshaler) {
	data, err := v.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var got T
		if err := P(&got).UnmarshalJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStore(b *testing.B) {
	v := richValue()
	b.Run("request", func(b *testing.B) { benchmarkStore(b, longRequest()) })
	b.Run("message", func(b *testing.B) { benchmarkStore(b, v.Message) })
	b.Run("short message", func(b *testing.B) { benchmarkStore(b, dragoman.UserText("hi")) })
	b.Run("response", func(b *testing.B) { benchmarkStore(b, v.Response) })
	b.Run("tool", func(b *testing.B) { benchmarkStore(b, v.Tool) })
	b.Run("usage", func(b *testing.B) { benchmarkStore(b, v.Usage) })
	b.Run("delta", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := dragoman.MarshalEvent(v.Events[3]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	v := richValue()
	b.Run("request", func(b *testing.B) { benchmarkLoad[dragoman.Request](b, longRequest()) })
	b.Run("message", func(b *testing.B) { benchmarkLoad[dragoman.Message](b, v.Message) })
	b.Run("short message", func(b *testing.B) { benchmarkLoad[dragoman.Message](b, dragoman.UserText("hi")) })
	b.Run("response", func(b *testing.B) { benchmarkLoad[dragoman.Response](b, v.Response) })
	b.Run("tool", func(b *testing.B) { benchmarkLoad[dragoman.ToolSpec](b, v.Tool) })
	b.Run("usage", func(b *testing.B) { benchmarkLoad[dragoman.Usage](b, v.Usage) })
	b.Run("delta", func(b *testing.B) { benchmarkLoad[dragoman.PartDelta](b, v.Events[3].(json.Marshaler)) })
}

func BenchmarkFingerprint(b *testing.B) {
	v, long := richValue(), longRequest()
	for name, print := range map[string]func() dragoman.Fingerprint{
		"request": long.Fingerprint, "message": v.Message.Fingerprint, "response": v.Response.Fingerprint, "tool": v.Tool.Fingerprint,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = print()
			}
		})
	}
}
