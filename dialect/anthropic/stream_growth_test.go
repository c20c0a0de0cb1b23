package anthropic_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A server decides how many unknown fields it sends. Their cost must grow with
// their bytes, not with the square of their number.
func TestUnknownFieldsAreLinear(t *testing.T) {
	const many = 60_000
	var deltas, inOne, nulls, large strings.Builder
	for i := range many {
		fmt.Fprintf(&deltas, `{"type":"content_block_delta","index":0,"delta":{"type":"d","k%d":1}}`+"\n", i)
		fmt.Fprintf(&inOne, `,"k%d":"v"`, i)
		fmt.Fprintf(&nulls, `,"n%d":null`, i)
	}
	for i := range 64 {
		fmt.Fprintf(&large, `{"type":"content_block_delta","index":0,"delta":{"type":"d","m%d":"v"}}`+"\n", i)
	}
	start := func(block string) string {
		return startLine + "\n" + `{"type":"content_block_start","index":0,"content_block":` + block + "}\n"
	}
	const stop = `{"type":"content_block_stop","index":0}` + "\n"
	for what, c := range map[string]struct {
		lines   string
		members int // stored in the first part, if it is a text
	}{
		"deltas of a text": {start(`{"type":"text","text":"","a":1}`) + deltas.String() + stop + endLines("end_turn"), many + 1},
		"one delta of a text": {start(`{"type":"text","text":""}`) +
			`{"type":"content_block_delta","index":0,"delta":{"type":"d"` + inOne.String() + "}}\n" + stop + endLines("end_turn"), many},
		"deltas of an unknown block":        {start(`{"type":"poem"`+inOne.String()+`}`) + deltas.String() + stop + endLines("end_turn"), 0},
		"up to the limit, of a large block": {start(`{"type":"poem","x":"`+strings.Repeat("x", 8<<20)+`"}`) + large.String() + stop + endLines("end_turn"), 0},
		"message_delta": {start(`{"type":"text","text":"x"}`) + stop +
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"` + nulls.String() + inOne.String() + nulls.String() + `},"usage":{"output_tokens":1}}` + "\n" +
			strings.Repeat(`{"type":"message_delta","delta":{"stop_details":{}}}`+"\n", 1000) + stopLine, 0},
	} {
		t.Run(what, func(t *testing.T) {
			stream := []byte(sseStream(c.lines))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := codectest.CPUTime()
			evs, err := drain(dialect.DecodeOptions{NoNative: true}, stream)
			took := codectest.CPUTime() - began
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			// Quadratic cost would be gigabytes, or a minute.
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 || took > 10*time.Second {
				t.Errorf("%d bytes allocated in %v for a stream of %d", n, took, len(stream))
			}
			for _, ev := range evs {
				switch ev := ev.(type) {
				case *dragoman.PartStart:
					if p, ok := ev.Part.(*dragoman.Text); ok && len(p.Extra.For(dialectname.Anthropic)) > 1 {
						t.Errorf("the start of the part changed after it was sent")
					}
				case *dragoman.PartEnd:
					if p, ok := ev.Part.(*dragoman.Text); ok && len(p.Extra.For(dialectname.Anthropic)) != c.members {
						t.Errorf("%d fields stored, want %d", len(p.Extra.For(dialectname.Anthropic)), c.members)
					}
				}
			}
			out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
			if err := checkWire([]byte(out)); err != nil {
				t.Error(err)
			}
		})
	}
}
