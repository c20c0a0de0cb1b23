package cohere_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

var codec = cohere.Codec{}

// decodeStream decodes a complete stream.
func decodeStream(o dialect.DecodeOptions, body string) (evs []dragoman.Event, rep dragoman.Report, err error) {
	return codectest.DecodeStream(codec, o, []byte(body))
}

// collect decodes a stream into a response.
func collect(t testing.TB, o dialect.DecodeOptions, body string) *dragoman.Response {
	t.Helper()
	evs, _, err := decodeStream(o, body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	var c dragoman.Collector
	for _, ev := range evs {
		c.Add(ev)
	}
	resp, err := c.Response()
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(codectest.JSON[any](t, []byte(want)), codectest.JSON[any](t, []byte(got))); diff != "" {
		t.Errorf("%s\ngot %s", diff, got)
	}
}

// checkStream checks the order of events against the API reference.
func checkStream(stream []byte) error {
	var seen []string
	content, calls, citations := map[any]bool{}, map[any]bool{}, map[any]bool{}
	open := func(of map[any]bool, index any, next int) error {
		if slices.ContainsFunc([]map[any]bool{content, calls}, func(m map[any]bool) bool {
			for _, isOpen := range m {
				if isOpen {
					return true
				}
			}
			return false
		}) {
			return fmt.Errorf("a block starts inside another")
		}
		if index != float64(next) || len(of) != next {
			return fmt.Errorf("index %v, want %d", index, next)
		}
		of[index] = true
		return nil
	}
	for _, ev := range sse.Events(stream) {
		if string(ev.Data) == "[DONE]" {
			seen = append(seen, "[DONE]")
			continue
		}
		var v map[string]any
		if err := json.Unmarshal(ev.Data, &v); err != nil {
			return fmt.Errorf("%s: %w", ev.Data, err)
		}
		typ, index := v["type"], v["index"]
		if typ != string(ev.Name) {
			return fmt.Errorf("event %q has type %v", ev.Name, typ)
		}
		seen = append(seen, string(ev.Name))
		var err error
		switch typ {
		case "content-start":
			err = open(content, index, len(content))
		case "tool-call-start":
			err = open(calls, index, len(calls))
		case "content-delta", "tool-call-delta", "content-end", "tool-call-end":
			of := content
			if strings.HasPrefix(typ.(string), "tool") {
				of = calls
			}
			if !of[index] {
				err = fmt.Errorf("%s of %v, which is not open", typ, index)
			}
			if strings.HasSuffix(typ.(string), "-end") {
				of[index] = false
			}
		case "citation-start":
			citations[index] = true
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, stream)
		}
	}
	if n := len(seen); n < 3 || seen[0] != "message-start" || seen[n-2] != "message-end" || seen[n-1] != "[DONE]" {
		return fmt.Errorf("events %v", seen)
	}
	return nil
}
