package ollama_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// longStream returns two thousand lines: thinking, text, and some calls.
func longStream() []byte {
	return []byte(strings.Repeat(line(`{"role":"assistant","content":"","thinking":" because"}`), 500) + strings.Repeat(line(`{"role":"assistant","content":" therefore"}`), 1490) +
		strings.Repeat(line(`{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"get_weather","arguments":{"city":"Oslo","days":3}}}]}`), 10) + last(`,"done_reason":"stop","eval_count":2000`))
}

func BenchmarkStream(b *testing.B) {
	body := longStream()
	for name, o := range map[string]dialect.DecodeOptions{"canonical": {NoNative: true}, "native": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := benchdata.Collect(codec, bytes.NewReader(body), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("forward", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if err := benchdata.Forward(codec, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	req := benchdata.Request()
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc.Body)))
		for b.Loop() {
			if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc.Body)))
		for b.Loop() {
			if _, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
