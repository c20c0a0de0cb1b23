package crosstest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Profile returns the schema profile with a name, or fails the test.
func Profile(t testing.TB, name string) schema.Profile {
	t.Helper()
	p, ok := all.Profile(name)
	if !ok {
		t.Fatal("no profile ", name)
	}
	return p
}

// Codecs holds the codecs of all dialects, in the order of the matrix.
var Codecs = dialects.All()

// Collect decodes a stream into a response.
func Collect(t *testing.T, c dialect.Codec, body []byte, reg *interop.Registry) *dragoman.Response {
	t.Helper()
	dec := c.NewStreamDecoder(dialect.DecodeOptions{Registry: reg})
	var col dragoman.Collector
	emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
	if err := dec.Feed(body, emit); err != nil {
		t.Fatalf("decode our own stream: %v\n%s", err, body)
	}
	if err := dec.Close(emit); err != nil {
		t.Fatalf("decode our own stream: %v\n%s", err, body)
	}
	resp, err := col.Response()
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Message returns a message.
func Message(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

// CodecOf returns the codec of a dialect.
func CodecOf(d dragoman.Dialect) dialect.Codec {
	return Codecs[slices.IndexFunc(Codecs, func(c dialect.Codec) bool { return c.Dialect() == d })]
}

// ForEveryDialect checks a property for each dialect separately.
func ForEveryDialect(t *testing.T, property func(t *rapid.T, c dialect.Codec)) {
	t.Helper()
	for _, c := range Codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { property(t, c) })
		})
	}
}

// servers are targets whose capabilities exercise the other branches of the encoders.
var servers = []targets.Target{
	{},
	{Provider: "anthropic", Model: "m-1", Caps: targets.Capabilities{MidSystem: true, CacheBreakpoints: true}},
	{Provider: "compatible", Caps: targets.Capabilities{
		NoStrict: true, NoCustomTools: true, NoNamespaces: true, NoDeferred: true, NoAllowedTools: true, NoDeveloperRole: true, NoImages: true,
		NoParallelFlag: true, ReasoningField: "reasoning", ReasoningFieldAlways: true, ToolResultName: true, LegacyMaxTokens: true,
	}},
}

// DrawServer draws a target with the capabilities of some server.
func DrawServer(t *rapid.T) targets.Target {
	return servers[rapid.IntRange(0, len(servers)-1).Draw(t, "server")]
}

// Streamed writes events as a stream.
func Streamed(c dialect.Codec, evs []dragoman.Event, o dialect.EncodeOptions) (body []byte, rep dragoman.Report, err error) {
	enc := c.NewStreamEncoder(o)
	for _, ev := range evs {
		if body, err = enc.Encode(body, ev); err != nil {
			return body, enc.Report(), err
		}
	}
	body, err = enc.Close(body)
	return body, enc.Report(), err
}

// WithoutChunks returns the events without native chunks.
func WithoutChunks(evs []dragoman.Event) []dragoman.Event {
	return slices.DeleteFunc(slices.Clone(evs), func(ev dragoman.Event) bool { return ev.Type() == "chunk" })
}
