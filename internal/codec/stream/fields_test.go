package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

func TestFields_MergeValues(t *testing.T) {
	for _, tc := range []struct {
		name, values, want string
		lost               int
	}{
		{"one value", `"a"`, `"a"`, 0},
		{"repeated value", `{"a":1} {"a":1}`, `{"a":1}`, 0},
		{"changed value", `"a" "b"`, `"b"`, 1},
		{"list in pieces", `[1] [] [2,3] ["x"]`, `[1,2,3,"x"]`, 0},
		{"list that grows", `[1] [1,2] [1,2,3]`, `[1,2,3]`, 0},
		{"elements with an index", `[{"index":0,"a":1}] [{"index":1}] [{"index":0,"a":2}]`, `[{"index":0,"a":2},{"index":1}]`, 1},
		{"repeated element with an index", `[{"index":0}] [{"index":1}] [{"index":1}]`, `[{"index":0},{"index":1}]`, 0},
		{"list after another kind", `"a" [1] [2]`, `[1,2]`, 1},
		{"another kind after a list", `[1] [2] 3`, `3`, 1},
		{"empty list first", `[] [1]`, `[1]`, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lost := 0
			f := stream.Fields{Replaced: func(string) { lost++ }}
			for _, v := range strings.Fields(tc.values) {
				if !f.Add([]byte("x"), []byte(v), nil) {
					t.Errorf("%s is refused", v)
				}
			}
			fields := f.Extra(dialectname.OpenAIChat).Fields
			if len(fields) != 1 || fields[0].Path != "/x" || string(fields[0].Value) != tc.want || lost != tc.lost {
				t.Errorf("%s, %d lost", fields, lost)
			}
		})
	}
}

func TestFields_ReplaceAValueWhenFull(t *testing.T) {
	if x := new(stream.Fields).Extra(dialectname.OpenAIChat); x != nil {
		t.Errorf("no fields: %+v", x)
	}
	var f stream.Fields
	for i := range stream.MaxFields {
		f.Add(fmt.Append(nil, "x", i), []byte("1"), nil)
	}
	if f.Add([]byte("more"), []byte("1"), nil) || !f.Add([]byte("x7"), []byte("2"), nil) {
		t.Error("a field is added, or not replaced")
	}
	if fields := f.Extra(dialectname.OpenAIChat).Fields; len(fields) != stream.MaxFields || string(fields[7].Value) != "2" {
		t.Errorf("%d fields, %s", len(fields), fields[7].Value)
	}
}

// Hostile streams: thousands of names, and lists at the bound that change in each chunk.
func TestFields_TimeAndMemoryAreBounded(t *testing.T) {
	text := `"` + strings.Repeat("y", 60_000) + `"`
	long := `[` + strings.Repeat(`1,`, 20_000) + `1]`
	for name, value := range map[string]func(i int) (string, string){
		"many names":        func(i int) (string, string) { return fmt.Sprint("x", i), `[1]` },
		"list in pieces":    func(int) (string, string) { return "x", `[1]` },
		"changing element":  func(i int) (string, string) { return "x", fmt.Sprintf(`[{"index":%d,"v":%d}]`, i%500, i) },
		"long list to join": func(i int) (string, string) { return "x", map[bool]string{true: long, false: `[2]`}[i == 0] },
		"long and short": func(i int) (string, string) {
			return "x", map[bool]string{true: text, false: `[2]`}[i%1000 == 0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f stream.Fields
			bound := stream.Bound{Max: 4 * stream.MaxFieldBytes}
			start := time.Now()
			for i := range 200_000 {
				key, v := value(i)
				f.Add([]byte(key), []byte(v), &bound)
			}
			n := 0
			for _, field := range f.Extra(dialectname.OpenAIChat).Fields {
				n += len(field.Value)
			}
			if n > stream.MaxFieldBytes || bound.Err() != nil {
				t.Errorf("%d bytes, %v", n, bound.Err())
			}
			// Each call reads its own value: about a second if the machine is busy. Reading
			// the stored list in each call would take minutes.
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}
