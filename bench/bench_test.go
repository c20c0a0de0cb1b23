package bench

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
	"github.com/dragoman-go/dragoman/interop"
)

var lean = dialect.DecodeOptions{NoNative: true}

// BenchmarkStream decodes and accumulates a stream of 2,000 argument deltas.
func BenchmarkStream(b *testing.B) {
	for _, c := range contests {
		body := benchdata.ToolStream(c.codec.Dialect())
		b.Run(c.name+"/ours", streamOurs(c, body, lean))
		b.Run(c.name+"/ours with chunks", streamOurs(c, body, dialect.DecodeOptions{}))
		b.Run(c.name+"/peer", streamPeer(c, body))
	}
}

func streamOurs(c contest, body []byte, o dialect.DecodeOptions) func(*testing.B) {
	return loop(func() error { _, err := ours(c.codec, body, o); return err })
}

func streamPeer(c contest, body []byte) func(*testing.B) {
	return loop(func() error { _, err := c.collect(body); return err })
}

// loop returns a benchmark of an operation. It also reports the CPU time of its own thread.
func loop(op func() error) func(*testing.B) {
	return func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		b.ReportAllocs()
		start := threadTime()
		for b.Loop() {
			if err := op(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(threadTime()-start)/float64(b.N), cpuMetric)
	}
}

const cpuMetric = "cpu-ns/op"

// BenchmarkRequest encodes, decodes and replays a request of 200 kB.
func BenchmarkRequest(b *testing.B) {
	for _, c := range contests {
		r := newRequestBench(b, c.codec)
		b.Run(c.name+"/json.Compact", r.compact)
		b.Run(c.name+"/encode", r.encode)
		b.Run(c.name+"/encode, tools lowered", r.lowered)
		b.Run(c.name+"/encode, tools lowered before", r.cached)
		b.Run(c.name+"/decode", r.decode)
		b.Run(c.name+"/replay", r.replay)
	}
}

// requestBench holds one request in all measured forms.
type requestBench struct {
	body                                                         []byte
	compact, encode, decode, replay, compactLow, lowered, cached func(*testing.B)
	// losses counts the losses that lowering reported.
	losses int
	// asIs reports whether the target accepts the plain tools unchanged.
	asIs bool
}

func newRequestBench(tb testing.TB, codec dialect.Codec) requestBench {
	tb.Helper()
	req := benchdata.Request()
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	decoded, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	again, err := codec.EncodeRequest(decoded, dialect.EncodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(again.Body, enc.Body) {
		tb.Fatal("the decoded request is not replayed byte for byte")
	}
	foreign := benchdata.LoweredRequest()
	low, err := codec.EncodeRequest(foreign, dialect.EncodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	var buf bytes.Buffer
	var cache interop.SchemaCache
	again, err = codec.EncodeRequest(foreign, dialect.EncodeOptions{Schemas: &cache})
	for range 2 { // once to fill the cache, once from it
		if err != nil || !bytes.Equal(again.Body, low.Body) || !slices.Equal(again.Report.Losses, low.Report.Losses) {
			tb.Fatal("the cache changes the encoded request", err)
		}
		again, err = codec.EncodeRequest(foreign, dialect.EncodeOptions{Schemas: &cache})
	}
	return requestBench{
		losses:     len(low.Report.Losses) - len(enc.Report.Losses),
		asIs:       !slices.ContainsFunc(enc.Report.Losses, func(l dragoman.Loss) bool { return strings.HasPrefix(l.Path, "/tools/") }),
		lowered:    loop(func() error { _, err := codec.EncodeRequest(foreign, dialect.EncodeOptions{}); return err }),
		body:       enc.Body,
		compact:    loop(func() error { return compact(&buf, enc.Body) }),
		compactLow: loop(func() error { return compact(&buf, low.Body) }),
		encode:     loop(func() error { _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); return err }),
		cached: loop(func() error {
			_, err := codec.EncodeRequest(foreign, dialect.EncodeOptions{Schemas: &cache})
			return err
		}),
		decode: loop(func() error { _, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{}); return err }),
		replay: loop(func() error { _, err := codec.EncodeRequest(decoded, dialect.EncodeOptions{}); return err }),
	}
}

// TestPeersDecodeTheSameResponse checks that both sides do the same work with the same result.
func TestPeersDecodeTheSameResponse(t *testing.T) {
	for _, c := range contests {
		t.Run(c.name, func(t *testing.T) {
			body := benchdata.ToolStream(c.codec.Dialect())
			theirs, err := c.collect(body)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []dialect.DecodeOptions{lean, {}} {
				got, err := ours(c.codec, body, o)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.calls) == 0 || !got.equal(theirs) {
					t.Errorf("%d calls, the peer has %d, or the calls differ", len(got.calls), len(theirs.calls))
				}
			}
		})
	}
}
