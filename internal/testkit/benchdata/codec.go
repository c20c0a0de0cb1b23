package benchdata

import (
	"bytes"
	"io"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Collect decodes and collects a stream as a client does that reads from a connection.
func Collect(codec dialect.Codec, body io.Reader, o dialect.DecodeOptions) (*dragoman.Response, error) {
	dec := codec.NewStreamDecoder(o)
	var c dragoman.Collector
	add := func(ev dragoman.Event) error {
		c.Add(ev)
		return nil
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := dec.Feed(buf[:n], add); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if err := dec.Close(add); err != nil {
		return nil, err
	}
	return c.Response()
}

// Codec runs the benchmarks of a dialect's hot paths.
func Codec(b *testing.B, codec dialect.Codec) {
	body := ToolStream(codec.Dialect())
	stream := func(o dialect.DecodeOptions) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := Collect(codec, bytes.NewReader(body), o); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("stream", stream(dialect.DecodeOptions{NoNative: true}))
	b.Run("stream/native", stream(dialect.DecodeOptions{}))
	b.Run("stream/forward", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if err := Forward(codec, body); err != nil {
				b.Fatal(err)
			}
		}
	})

	req := Request()
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("request/encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc.Body)))
		for b.Loop() {
			if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("request/decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc.Body)))
		for b.Loop() {
			if _, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	decoded, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("request/replay", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc.Body)))
		for b.Loop() {
			if _, err := codec.EncodeRequest(decoded, dialect.EncodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Forward decodes a stream and encodes it in the same dialect, as a gateway does that
// inspects the stream.
func Forward(codec dialect.Codec, body []byte) error {
	dec, enc := codec.NewStreamDecoder(dialect.DecodeOptions{}), codec.NewStreamEncoder(dialect.EncodeOptions{})
	var out []byte
	pass := func(ev dragoman.Event) (err error) {
		out, err = enc.Encode(out, ev)
		return err
	}
	for len(body) > 0 {
		n := min(len(body), 16<<10)
		out = out[:0]
		if err := dec.Feed(body[:n], pass); err != nil {
			return err
		}
		body = body[n:]
	}
	if err := dec.Close(pass); err != nil {
		return err
	}
	_, err := enc.Close(out)
	return err
}
