package schema

import (
	"fmt"
	"strings"
	"testing"
)

// typical is a schema of about 1 kB, in n variants, that every profile without strict accepts.
func typical(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		var b strings.Builder
		fmt.Fprintf(&b, `{"type":"object","properties":{"id%d":{"type":"string","description":"The identifier of the document to look for, as listed before."}`, i)
		for j := range 6 {
			fmt.Fprintf(&b, `,"field_%d":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string","description":"A name"},"size":{"type":"integer","minimum":1}},"required":["name"]}}`, j)
		}
		fmt.Fprintf(&b, `,"mode":{"type":"string","enum":["fast","slow"],"default":"fast"}},"required":["id%d"]}`, i)
		out[i] = []byte(b.String())
	}
	return out
}

// BenchmarkLowerUnchanged lowers 100 schemas of 1 kB that need no change.
func BenchmarkLowerUnchanged(b *testing.B) {
	schemas := typical(100)
	size := 0
	for _, s := range schemas {
		size += len(s)
	}
	p := OpenAITool()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range schemas {
			if _, r, err := lowered(s, p); err != nil || len(r.Losses) > 0 {
				b.Fatal(r, err)
			}
		}
	}
}

// BenchmarkLowerRewrite lowers one schema of 1 kB to OpenAI strict.
func BenchmarkLowerRewrite(b *testing.B) {
	s := typical(1)[0]
	p := OpenAIStrict()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := lowered(s, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	v, err := Compile(typical(1)[0])
	if err != nil {
		b.Fatal(err)
	}
	args := []byte(`{"id0":"x","field_0":[{"name":"a","size":1},{"name":"b","size":2}],"field_3":[{"name":"c"}],"mode":"slow"}`)
	b.SetBytes(int64(len(args)))
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}

// A schema that needs no change costs only a few allocations; the race detector adds some.
func TestUnchangedSchemasRarelyAllocate(t *testing.T) {
	s := typical(1)[0]
	p := OpenAITool()
	if n := testing.AllocsPerRun(100, func() { _, _, _ = lowered(s, p) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkLowerDescribed lowers 100 schemas of 1 kB of which a default moves into the
// description.
func BenchmarkLowerDescribed(b *testing.B) {
	schemas := typical(100)
	p := GeminiJSONSchema()
	b.SetBytes(int64(100 * len(schemas[0])))
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range schemas {
			if _, r, err := lowered(s, p); err != nil || len(r.Losses) != 1 {
				b.Fatal(r, err)
			}
		}
	}
}

// A schema without references that changes in one place needs about the memory of its tree: no
// pass records which nodes it visited.
func TestLoweringWithoutReferencesUsesLittleMemory(t *testing.T) {
	s := typical(1)[0]
	p := GeminiJSONSchema()
	if n := testing.AllocsPerRun(100, func() { _, _, _ = lowered(s, p) }); n > 260 { // the race detector drops some pooled objects
		t.Errorf("%v allocations", n)
	}
}
