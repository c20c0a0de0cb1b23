package losses_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// Loss.Path of an encoder points into the stored JSON of the canonical value. An unknown field has
// its native name in the object that held it. A synthesized value has a pointer to the place
// where it would be.

func TestR11_ResponsePointersResolve(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		resp := gen.Options{Tidy: true}.Response().Draw(t, "response")
		enc, _ := c.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Rebuild: rapid.Bool().Draw(t, "rebuild")})
		crosstest.CheckLossPaths(t, resp, enc.Report)
	})
}

func TestR11_RequestPointersResolve(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := gen.Options{Tidy: true}.Request().Draw(t, "request")
		enc, _ := c.EncodeRequest(req, dialect.EncodeOptions{Seed: "s", Target: crosstest.DrawServer(t), Rebuild: rapid.Bool().Draw(t, "rebuild")})
		crosstest.CheckLossPaths(t, req, enc.Report)
	})
}

func TestR11_StreamPointersResolveInCollectedResponse(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		evs := crosstest.WithoutChunks(gen.Options{Tidy: true}.Events().Draw(t, "events"))
		var col dragoman.Collector
		for _, ev := range evs {
			col.Add(ev)
		}
		_, rep, _ := crosstest.Streamed(c, evs, dialect.EncodeOptions{Seed: "s", StreamUsage: true, Rebuild: true})
		resp, _ := col.Response()
		crosstest.CheckLossPaths(t, resp, rep)
	})
}

// A second item with the index of an earlier one is appended, and its losses point to its new
// position.
func TestR11_PointersOfItemWithDuplicateIndexResolve(t *testing.T) {
	d := crosstest.CodecOf(dialectname.OpenAIResponses).NewStreamDecoder(dialect.DecodeOptions{})
	wire := crosstest.OnWire(t, dialectname.OpenAIResponses, []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"function_call","id":"fc2","call_id":"","name":"g","arguments":"","status":"in_progress"}}`,
		`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"type":"function_call","id":"fc2","call_id":"","name":"g","arguments":"{\"a\":1,\"a\":2}","status":"completed"}}`,
		`{"type":"response.completed","sequence_number":4,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[]}}`,
	})
	var col dragoman.Collector
	emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
	if err := errors.Join(d.Feed(wire, emit), d.Close(emit)); err != nil {
		t.Fatal(err)
	}
	resp, err := col.Response()
	if err != nil || len(resp.Output) != 2 {
		t.Fatal(err, len(resp.Output))
	}
	for _, c := range crosstest.Codecs {
		_, rep := crosstest.ConvertStream(crosstest.CodecOf(dialectname.OpenAIResponses), c, wire)
		if len(rep.Losses) == 0 {
			t.Errorf("%s: no loss is reported", c.Dialect())
		}
		for _, l := range rep.Losses {
			if strings.HasPrefix(l.Path, "/output/") && !strings.HasPrefix(l.Path, "/output/0") && !strings.HasPrefix(l.Path, "/output/1") {
				t.Errorf("%s: %s", c.Dialect(), l)
			}
		}
	}
}
