package anthropic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func recorded(t *testing.T) []testkit.Exchange { return testkit.Recordings(t, "anthropic_messages") }

// streamOf returns the bytes of a recorded stream. Some recorders store one
// JSON value per line instead of SSE.
func streamOf(x *testkit.Exchange) ([]byte, bool) {
	s := *x.Resp
	switch {
	case strings.HasPrefix(s, "event:"), strings.HasPrefix(s, "data:"), strings.HasPrefix(s, ":"):
		return []byte(s), true
	case strings.HasPrefix(s, `{"type":"message_start"`):
		var b bytes.Buffer
		for line := range strings.Lines(s) {
			b.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
		}
		return b.Bytes(), true
	default:
		return nil, false
	}
}

// expanded expands the shorthands that a rebuilt request spells out. It counts
// them in why.
func expanded(v any, why map[string]int) any {
	req := v.(map[string]any)
	block := func(s string) []any { return []any{map[string]any{"type": "text", "text": s}} }
	if s, ok := req["system"].(string); ok {
		req["system"] = block(s)
		why["system as a string"]++
	}
	if f, ok := req["output_format"]; ok {
		delete(req, "output_format")
		req["output_config"] = map[string]any{"format": f}
		why["output_format"]++
	}
	msgs, _ := req["messages"].([]any)
	var merged []any
	for _, m := range msgs {
		m := m.(map[string]any)
		if s, ok := m["content"].(string); ok {
			m["content"] = block(s)
			why["content as a string"]++
		}
		for _, b := range m["content"].([]any) {
			b := b.(map[string]any)
			if b["type"] == "tool_result" {
				if s, ok := b["content"].(string); ok {
					b["content"] = block(s)
					why["result content as a string"]++
				}
			}
		}
		m["content"] = callsLast(m["content"].([]any), why)
		if n := len(merged); n > 0 {
			if last := merged[n-1].(map[string]any); last["role"] == m["role"] {
				last["content"] = append(last["content"].([]any), m["content"].([]any)...)
				why["messages of one role merged"]++
				continue
			}
		}
		merged = append(merged, m)
	}
	req["messages"] = merged
	return req
}

func callsLast(blocks []any, why map[string]int) []any {
	var calls, rest []any
	for _, b := range blocks {
		if b.(map[string]any)["type"] == "tool_use" {
			calls = append(calls, b)
			continue
		}
		if len(calls) > 0 {
			why["text after a call"]++
		}
		rest = append(rest, b)
	}
	return append(rest, calls...)
}

func TestRecordedRequestsRebuildEqual(t *testing.T) {
	why := map[string]int{}
	n := 0
	for _, x := range recorded(t) {
		if x.Req == nil {
			continue
		}
		n++
		c := codec
		req, _, err := c.DecodeRequest([]byte(*x.Req), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		same, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || string(same.Body) != *x.Req {
			t.Errorf("%s: an unchanged request is not byte-identical (%v)", x.ID(), err)
		}
		built, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: rebuild: %v", x.ID(), err)
			continue
		}
		if diff := cmp.Diff(expanded(codectest.JSON[any](t, []byte(*x.Req)), why), codectest.JSON[any](t, built.Body)); diff != "" {
			t.Errorf("%s (status %d): %s\n%s", x.ID(), x.Status, diff, built.Report)
		}
	}
	t.Logf("%d requests; explained differences: %v", n, why)
}

var ignoreSidecars = cmp.Options{
	cmpopts.IgnoreFields(dragoman.Response{}, "Native"),
	cmpopts.IgnoreFields(dragoman.Message{}, "Native"),
	cmp.Transformer("text", func(r json.RawMessage) string { return string(r) }),
}

func TestRecordedResponsesAndStreams(t *testing.T) {
	whole, streams := 0, 0
	for _, x := range recorded(t) {
		if x.Resp == nil || x.Status != 200 {
			continue
		}
		c := codec
		body, isStream := streamOf(&x)
		if !isStream {
			whole++
			resp, _, err := c.DecodeResponse([]byte(*x.Resp), dialect.DecodeOptions{})
			if err != nil {
				t.Errorf("%s: %v", x.ID(), err)
				continue
			}
			same, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil || string(same.Body) != *x.Resp {
				t.Errorf("%s: an unchanged response is not byte-identical (%v)", x.ID(), err)
			}
			built, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Errorf("%s: rebuild: %v", x.ID(), err)
			}
			again, _, err := c.DecodeResponse(built.Body, dialect.DecodeOptions{})
			if diff := cmp.Diff(resp, again, ignoreSidecars); diff != "" || err != nil {
				t.Errorf("%s: the rebuilt response decodes differently (%v): %s", x.ID(), err, diff)
			}
			continue
		}
		streams++
		evs, err := drain(dialect.DecodeOptions{}, body)
		if strings.Contains(x.Path, "spliced-message-start") {
			if err == nil {
				t.Errorf("%s: two responses in one stream were accepted", x.ID())
			}
			continue // quirk C37
		}
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		var first dragoman.Collector
		e := c.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		for _, ev := range evs {
			first.Add(ev)
			if out, err = e.Encode(out, ev); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := first.Response()
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
		}
		out, _ = e.Close(out)
		if err := checkWire(out); err != nil {
			t.Errorf("%s: the encoded stream is invalid: %v", x.ID(), err)
		}
		evs, err = drain(dialect.DecodeOptions{NoNative: true}, out)
		if err != nil {
			t.Errorf("%s: rebuilt stream: %v\n%s", x.ID(), err, out)
			continue
		}
		var second dragoman.Collector
		for _, ev := range evs {
			second.Add(ev)
		}
		again, _ := second.Response()
		if resp.Output == nil {
			again.Output = nil // an empty response still gets a block (quirk C20)
		}
		if diff := cmp.Diff(resp, again, ignoreSidecars); diff != "" {
			t.Errorf("%s: the rebuilt stream decodes differently: %s", x.ID(), diff)
		}
	}
	t.Logf("%d responses, %d streams", whole, streams)
}
