package openaichat

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// Quirk C5: a server repeats the name with every fragment and sends no ids. The decoder must not
// scan the arguments again for each fragment.
func TestQuirkC5_RepeatedNamesCostLinearTime(t *testing.T) {
	args := benchdata.Arguments(256 << 10)
	var b strings.Builder
	for at := 0; at < len(args); at += 8 {
		fmt.Fprintf(&b, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"write_file","arguments":%q}}]}}]}`+"\n\n", args[at:min(at+8, len(args))])
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
	body := b.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := benchdata.Collect(Codec{}, strings.NewReader(body), dialect.DecodeOptions{NoNative: true})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range resp.Output[0].Parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			got = append(got, c.Name+c.Arguments)
		}
	}
	if len(got) != 2 || got[0] != "write_file"+args || got[1] != "read_file{}" {
		t.Errorf("%d calls, want write_file with complete arguments, then read_file", len(got))
	}
	// Each scan of all arguments would copy them: gigabytes in total.
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d bytes allocated for %d of arguments", n, len(args))
	}
}

func TestObjectEnd(t *testing.T) {
	pad := strings.Repeat(" ", 64)
	for text, want := range map[string]bool{
		"": false, "null": true, `{}`: true, `{"a":`: false,
		pad + `{"a":"}"}`:          true,
		pad + `{"a":"\"}"}` + "\n": true,
		pad + `{"a":"}`:            false,
		pad + `{"a":[1,{}]}`:       true,
		pad + `{"a":1}}`:           false,
		pad + `{"a":1,"a":2}`:      false,
		pad + `{]`:                 false,
		pad + `[1]`:                false,
	} {
		var whole, incremental objectEnd
		if got := whole.reached([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		got := false
		for i := 1; i <= len(text); i++ {
			got = incremental.reached([]byte(text[:i]))
		}
		if got != want {
			t.Errorf("%q incrementally: %v, want %v", text, got, want)
		}
	}
}

// feedMany feeds chunks until the decoder refuses one.
func feedMany(n int, o dialect.DecodeOptions, chunk func(i int) string) (dialect.StreamDecoder, error) {
	d := Codec{}.NewStreamDecoder(o)
	for i := range n {
		if err := d.Feed([]byte("data: "+chunk(i)+"\n\n"), func(dragoman.Event) error { return nil }); err != nil {
			return d, err
		}
	}
	return d, nil
}

// inDelta returns a chunk with one choice and the given delta.
func inDelta(choice int, delta string) string {
	return fmt.Sprintf(`{"choices":[{"index":%d,"delta":%s}]}`, choice, delta)
}

func TestStreamGrowthCountsAgainstTheBound(t *testing.T) {
	const limit, size = 64 << 10, 1 << 10
	long := strings.Repeat("x", size)
	for what, chunk := range map[string]func(i int) string{
		"values of unknown fields": func(i int) string { return fmt.Sprintf(`{"m%d":%q,"choices":[]}`, i, long) },
		"names of unknown fields":  func(i int) string { return fmt.Sprintf(`{"%s%d":1,"choices":[]}`, long, i) },
		"field after many others": func(i int) string {
			if i < 64 {
				return fmt.Sprintf(`{"m%d":1,"choices":[]}`, i)
			}
			return fmt.Sprintf(`{"m":%q,"choices":[]}`, long)
		},
		"call ids": func(i int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"%s%d","function":{"name":"f","arguments":"{}"}}]}`, i, long, i))
		},
		"late call ids": func(i int) string {
			id := ""
			if i%2 == 1 {
				id = fmt.Sprint(long, i)
			}
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"function":{"arguments":"1"}}]}`, i/2, id))
		},
		"call names in fragments": func(i int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"%s%d"}}]}`, long, i))
		},
		"replaced call names": func(i int) string {
			if i%2 == 0 {
				return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{}"}}]}`, i/2, i/2))
			}
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"name":%q}}]}`, i/2, long))
		},
		"names of call fields": func(i int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","%s%d":1,"function":{"name":"f","arguments":" "}}]}`, long, i))
		},
		"function fields": func(i int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","m%d":%q}}]}`, i, long))
		},
		"arguments before a name": func(int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":%q}}]}`, long))
		},
		"arguments of a function_call": func(int) string {
			return inDelta(0, fmt.Sprintf(`{"function_call":{"name":"f","arguments":%q}}`, long))
		},
		"reasoning details": func(i int) string {
			return inDelta(0, fmt.Sprintf(`{"reasoning_details":[{"type":"t","index":%d,"m":%q}]}`, i, long))
		},
		"finish reasons": func(i int) string {
			return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{},"finish_reason":%q}]}`, i%maxChoices, long)
		},
		"native finish reasons": func(i int) string {
			return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{},"native_finish_reason":%q}]}`, i%maxChoices, long)
		},
		"parts": func(i int) string {
			if i%2 == 0 {
				return inDelta(0, `{"content":"a"}`)
			}
			return inDelta(0, `{"reasoning":"b"}`)
		},
	} {
		if _, err := feedMany(600, dialect.DecodeOptions{MaxBytes: limit}, chunk); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRepeatedValuesCountOnce(t *testing.T) {
	const limit = 16 << 10
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"field":         func(int) string { return fmt.Sprintf(`{"m":%q,"choices":[]}`, long) },
		"changed field": func(i int) string { return fmt.Sprintf(`{"m":"%s%d","choices":[]}`, long, i%10) },
		"id and field of a call": func(int) string {
			return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"m":%q,"function":{"arguments":"1"}}]}`, long, long))
		},
		"finish reason": func(int) string {
			return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q,"native_finish_reason":%q}]}`, long, long)
		},
	} {
		if _, err := feedMany(600, dialect.DecodeOptions{MaxBytes: limit}, chunk); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The report has one loss for each kind of field that is not collected, and its size is bounded.
func TestStreamReportIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"fields of choices": func(i int) string { return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"m%d%s":1}]}`, i, long) },
		"fields of deltas":  func(i int) string { return inDelta(0, fmt.Sprintf(`{"m%d%s":1}`, i, long)) },
		"types of content":  func(i int) string { return inDelta(0, fmt.Sprintf(`{"content":[{"type":"m%d%s"}]}`, i, long)) },
		"invalid content":   func(i int) string { return inDelta(0, fmt.Sprintf(`{"content":%d}`, i)) },
		"logprobs":          func(int) string { return `{"choices":[{"index":0,"delta":{},"logprobs":{}}]}` },
	} {
		d, err := feedMany(600, dialect.DecodeOptions{}, chunk)
		if err != nil {
			t.Fatal(err)
		}
		losses := d.Report().Losses
		size := len(fmt.Sprint(losses))
		if len(losses) == 0 || len(losses) > 65 || size > 65*200 {
			t.Errorf("%s: %d lines of %d bytes", what, len(losses), size)
		}
		if last := losses[len(losses)-1].Detail; len(losses) > 1 && !strings.HasPrefix(last, "and more") {
			t.Errorf("%s: the report ends with %q", what, last)
		}
	}
}

func TestQuirkC5_FragmentedNameCostsLinearTime(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 1 << 15
	_, err := feedMany(n, dialect.DecodeOptions{NoNative: true}, func(i int) string {
		return inDelta(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"%c"}}]}`, 'a'+i%7))
	})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// A copy of the whole name for every fragment would allocate half a gigabyte.
	if got := after.TotalAlloc - before.TotalAlloc; got > 128<<20 {
		t.Errorf("%d bytes allocated for %d fragments", got, n)
	}
}
