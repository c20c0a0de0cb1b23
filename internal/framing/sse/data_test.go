package sse

import (
	"slices"
	"strings"
	"testing"
)

// Data of one line is a view of the buffer. Its content must not depend on that, or on
// how the bytes were split.
func TestDataLinesAtEverySplit(t *testing.T) {
	const body = ": hi\n\ndata: one\n\nevent: e\ndata:a\ndata\ndata:  b\r\n\r\ndata:\n\ndata:\ndata:\n\nid: 7\n\ndata: last"
	want := []string{"-:", ":one", "e:a\n\n b", ":", ":\n", "-:", ":last"}
	for size := 1; size <= len(body); size++ {
		var p Parser
		var got []string
		var raw strings.Builder
		take := func(ev Event) error {
			mark := ""
			if !ev.HasData {
				mark = "-"
			}
			got = append(got, mark+string(ev.Name)+":"+string(ev.Data))
			raw.Write(ev.Raw)
			return nil
		}
		for rest := body; rest != ""; {
			n := min(size, len(rest))
			if err := p.Feed([]byte(rest[:n]), take); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := p.Close(take); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || raw.String() != body {
			t.Errorf("in pieces of %d: %q, want %q; raw %q", size, got, want, raw.String())
		}
	}
}

func TestLineData(t *testing.T) {
	for line, want := range map[string]string{
		"data: {}": " {}", "data:x": "x", "\ufeffdata:x": "x", `{"a":1}`: `{"a":1}`, "": "",
	} {
		if data, ok := LineData([]byte(line)); !ok || string(data) != want {
			t.Errorf("%q: %q, %v", line, data, ok)
		}
	}
	for _, line := range []string{": ping", ":", "event: ping", "id: 1", "retry: 5"} {
		if data, ok := LineData([]byte(line)); ok {
			t.Errorf("%q has data %q", line, data)
		}
	}
}
