package openaichat_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parallel is a stream with every kind of fragment.
var parallel = stream(`"tool_calls"`,
	`{"role":"assistant","content":""}`, `{"reasoning_content":"one, "}`, `{"reasoning_content":"two"}`, `{"content":"one "}`, `{"content":"[DONE]"}`,
	`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\": "}}]}`,
	`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{\"y\":"}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"\"one\"}"}},{"index":1,"function":{"arguments":"\"one\"}"}}]}`,
	`{"tool_calls":[{"index":2,"id":"c","type":"custom","custom":{"name":"sql","input":""}}]}`,
	`{"tool_calls":[{"index":2,"custom":{"input":"SELECT one"}}]}`,
	`{"tool_calls":[{"index":3,"id":"d","type":"function","function":{"name":"h","arguments":"{}"}}]}`,
)

// faithful checks that events are encoded as a stream with one end and the same content.
func faithful(t *testing.T, evs []dragoman.Event) {
	t.Helper()
	out, _ := encodeStream(t, dialect.EncodeOptions{}, evs)
	var want dragoman.Collector
	for _, ev := range evs {
		want.Add(ev)
	}
	a, _ := want.Response()
	d := decodeStream(t, dialect.DecodeOptions{}, out)
	if d.feed != nil || !strings.HasSuffix(out, "data: [DONE]\n\n") || strings.Count(out, "data: [DONE]\n") != 1 {
		t.Fatalf("%v\n%s", d.feed, out)
	}
	for _, c := range chunksOf(t, out) {
		if c != "[DONE]" {
			object(t, []byte(c))
		}
	}
	same := cmp.Options{cmpopts.IgnoreFields(dragoman.Response{}, "Native", "Usage", "Created"), cmpopts.IgnoreFields(dragoman.Message{}, "Native"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(a, d.resp, same); diff != "" {
		t.Fatalf("%s\n%s", diff, out)
	}
}
