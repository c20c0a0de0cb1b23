package openaichat

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/benchdata"
)

// Quirk C5: a server that repeats the name with every fragment, and sends no
// ids, must not make us read the arguments again for each of them.
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
		t.Errorf("%d calls, want write_file and then, after its complete arguments, read_file", len(got))
	}
	// Every look at the whole would allocate a copy of it: gigabytes in all.
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
		var whole, piecewise objectEnd
		if got := whole.reached([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		got := false
		for i := 1; i <= len(text); i++ {
			got = piecewise.reached([]byte(text[:i]))
		}
		if got != want {
			t.Errorf("%q in pieces: %v, want %v", text, got, want)
		}
	}
}
