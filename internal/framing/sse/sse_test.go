package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"pgregory.net/rapid"
)

type event struct {
	name, data string
	has        bool
	raw        string
}

// parse feeds the chunks and closes the parser.
func parse(p *sse.Parser, pieces ...string) ([]event, error) {
	var out []event
	emit := func(ev sse.Event) error {
		out = append(out, event{string(ev.Name), string(ev.Data), ev.HasData, string(ev.Raw)})
		return nil
	}
	for _, piece := range pieces {
		if err := p.Feed([]byte(piece), emit); err != nil {
			return out, err
		}
	}
	return out, p.Close(emit)
}

// data returns the names and data of the events that have data.
func data(evs []event) []string {
	var out []string
	for _, ev := range evs {
		if ev.has {
			out = append(out, ev.name+"|"+ev.data)
		}
	}
	return out
}

func TestQuirkC18_FramingFollowsTheSpecification(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"LF", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"mixed line ends", "event: e\rdata: a\r\n\ndata: b\n\r\n", []string{"e|a", "|b"}},
		{"named", "event: message_start\ndata: {}\n\n", []string{"message_start|{}"}},
		{"the last name counts", "event: a\nevent: b\ndata: x\n\n", []string{"b|x"}},
		{"a name is for one event", "event: a\ndata: 1\n\ndata: 2\n\n", []string{"a|1", "|2"}},
		{"data in several lines", "data: {\ndata:  \"a\":1\ndata: }\n\n", []string{"|{\n \"a\":1\n}"}},
		{"no space after the colon", "data:a\n\n", []string{"|a"}},
		{"only one space is removed", "data:  a\n\n", []string{"| a"}},
		{"a colon in the data", "data: a: b\n\n", []string{"|a: b"}},
		{"a field without a colon", "data\n\n", []string{"|"}},
		{"empty data lines", "data:\ndata:\n\n", []string{"|\n"}},
		{"other fields", "id: 1\nretry: 5\ndataX: no\n data: no\ndata: a\nunknown\n\n", []string{"|a"}},
		{"a name without data", "event: ping\n\n", nil},
		{"BOM", "\ufeffdata: a\n\n", []string{"|a"}},
		{"BOM later is text", "data: a\n\n\ufeffdata: b\n\ndata: c\n\n", []string{"|a", "|c"}},
		{"blank lines between", "\n\n\ndata: a\n\n\n\n", []string{"|a"}},
		{"no final blank line", "data: a\n\ndata: b\n", []string{"|a", "|b"}},
		{"no final line end", "data: a\n\nevent: e\ndata: b", []string{"|a", "e|b"}},
		{"ends in CR", "data: a\r", []string{"|a"}},
		{"ends in a name", "data: a\n\nevent: e", []string{"|a"}},
		{"empty", "", nil},
		{"a NUL", "data: \x00\n\n", []string{"|\x00"}},
	} {
		for size := 1; size <= len(c.stream)+1; size++ {
			got, err := parse(new(sse.Parser), chunks(c.stream, size)...)
			if err != nil || !slices.Equal(data(got), c.want) {
				t.Errorf("%s in pieces of %d: %q, %v; want %q", c.name, size, data(got), err, c.want)
			}
		}
	}
}

func chunks(s string, size int) []string {
	var out []string
	for part := range slices.Chunk([]byte(s), size) {
		out = append(out, string(part))
	}
	return out
}

func TestQuirkC15_CommentsStayInRaw(t *testing.T) {
	stream := ": OPENROUTER PROCESSING\n\n:ping\r\n\r\n:\n: x\ndata: a\n\n"
	got, err := parse(new(sse.Parser), stream)
	want := []event{
		{"", "", false, ": OPENROUTER PROCESSING\n\n"},
		{"", "", false, ":ping\r\n\r\n"},
		{"", "a", true, ":\n: x\ndata: a\n\n"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestQuirkC16_SplitEmoji(t *testing.T) {
	stream := "event: 😀\ndata: {\"a\":\"👩‍👧é\"}\n\n"
	for i := range len(stream) {
		for j := i; j <= len(stream); j++ {
			got, err := parse(new(sse.Parser), stream[:i], stream[i:j], stream[j:])
			if err != nil || !slices.Equal(data(got), []string{"😀|{\"a\":\"👩‍👧é\"}"}) {
				t.Fatalf("cut at %d and %d: %q, %v", i, j, data(got), err)
			}
		}
	}
}

func TestQuirkC18_SplitBOM(t *testing.T) {
	for _, pieces := range [][]string{
		{"\xef", "\xbb", "\xbf", "data: a\n\n"}, {"", "\xef\xbb", "", "\xbfdata: a\n\n"}, {"\xef\xbb\xbf", "data: a\n\n"},
	} {
		got, err := parse(new(sse.Parser), pieces...)
		if err != nil || !slices.Equal(data(got), []string{"|a"}) || got[0].raw != "\ufeffdata: a\n\n" {
			t.Errorf("%q: %+v, %v", pieces, got, err)
		}
	}
	// A prefix of a BOM is not a BOM.
	got, err := parse(new(sse.Parser), "\xef", "\xbb\ndata: a\n\n")
	if err != nil || !slices.Equal(data(got), []string{"|a"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parse(new(sse.Parser), "\xef\xbb"); err != nil || len(got) != 0 {
		t.Errorf("a BOM cut short: %+v, %v", got, err)
	}
}

func TestQuirkC18_SplitCRLF(t *testing.T) {
	got, err := parse(new(sse.Parser), "data: a\r", "\n", "\r", "\ndata: b\r", "\n\r\n")
	want := []event{{"", "a", true, "data: a\r\n\r\n"}, {"", "b", true, "data: b\r\n\r\n"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestQuirkC18_LongLine(t *testing.T) {
	const size = 33 << 20
	var p sse.Parser
	n := 0
	emit := func(ev sse.Event) error { n += len(ev.Data); return nil }
	if err := p.Feed([]byte("data: "), emit); err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte{'x'}, size/3)
	for range 3 {
		if err := p.Feed(piece, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Feed([]byte("\n\n"), emit); err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestMaxDoesNotDependOnSplits(t *testing.T) {
	stream := "data: 1\n\ndata: 22\n\ndata: 3\n\ndata: 44444\n\ndata: 5\n\n"
	// The longest event before the fourth has 10 bytes, the fourth has 13.
	for max, want := range map[int][]string{
		9: {"|1"}, 10: {"|1", "|22", "|3"}, 12: {"|1", "|22", "|3"}, 13: {"|1", "|22", "|3", "|44444", "|5"}, 0: {"|1", "|22", "|3", "|44444", "|5"},
	} {
		for size := 1; size <= len(stream); size++ {
			got, err := parse(&sse.Parser{Max: max}, chunks(stream, size)...)
			if !slices.Equal(data(got), want) || errors.Is(err, sse.ErrTooLong) != (len(want) < 5) {
				t.Errorf("Max %d in pieces of %d: %q, %v; want %q", max, size, data(got), err, want)
			}
		}
	}
}

func TestMaxStopsEndlessLine(t *testing.T) {
	p := sse.Parser{Max: 1000}
	fed := 0
	for fed < 1<<20 {
		if err := p.Feed([]byte("data data data "), func(sse.Event) error { return nil }); err != nil {
			if !errors.Is(err, sse.ErrTooLong) || fed > 1000 {
				t.Errorf("after %d bytes: %v", fed, err)
			}
			return
		}
		fed += 15
	}
	t.Error("a megabyte was accepted")
}

func TestFeedReturnsEmitError(t *testing.T) {
	stop := errors.New("stop")
	var p sse.Parser
	n := 0
	err := p.Feed([]byte("data: a\n\ndata: b\n\n"), func(sse.Event) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d events", err, n)
	}
}

// stream generates hostile bytes around real events.
func stream() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"data: {\"a\":1}", "data:", "data", "event: x", "event:", ": ping", ":", "id: 1", "\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n",
		"\ufeff", "\xef", "é", "😀", "\xff", "x", " ", ":\n", "data: a\ndata: b\n\n",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 25), func(ps []string) string { return strings.Join(ps, "") })
}

func TestEventsDoNotDependOnSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := stream().Draw(t, "stream")
		max := rapid.SampledFrom([]int{0, 20}).Draw(t, "max")
		whole, err := parse(&sse.Parser{Max: max}, s)
		var pieces []string
		for rest := s; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		cut, cutErr := parse(&sse.Parser{Max: max}, pieces...)
		if !errors.Is(err, cutErr) || !slices.Equal(whole, cut) {
			t.Fatalf("%q\nwhole: %+v, %v\nin %q: %+v, %v", s, whole, err, pieces, cut, cutErr)
		}
	})
}

func TestRawBytesAreTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := stream().Draw(t, "stream") + rapid.SampledFrom([]string{"\n\n", "\r\n\r\n", "\r\r"}).Draw(t, "end")
		evs, err := parse(new(sse.Parser), s)
		if err != nil {
			t.Fatal(err)
		}
		var raw strings.Builder
		for _, ev := range evs {
			raw.WriteString(ev.raw)
		}
		if raw.String() != s {
			t.Fatalf("raw %q, stream %q", raw.String(), s)
		}
	})
}

func TestParserReadsAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Map(rapid.String(), func(s string) string { return strings.NewReplacer("\r", "", "\n", "").Replace(s) })
		name, text := line.Draw(t, "name"), line.Draw(t, "data")
		evs, err := parse(new(sse.Parser), string(sse.Append(nil, name, []byte(text))))
		if err != nil || len(evs) != 1 || evs[0].name != name || evs[0].data != text || !evs[0].has {
			t.Fatalf("%+v, %v", evs, err)
		}
	})
	if got := string(sse.Append([]byte("x"), "", []byte("{}"))); got != "xdata: {}\n\n" {
		t.Errorf("%q", got)
	}
	if got := string(sse.Append(nil, "e", []byte("{}"))); got != "event: e\ndata: {}\n\n" {
		t.Errorf("%q", got)
	}
}

func feedIn(size int, doc []byte) {
	var p sse.Parser
	emit := func(sse.Event) error { return nil }
	for piece := range slices.Chunk(doc, size) {
		if p.Feed(piece, emit) != nil {
			panic("feed")
		}
	}
	if p.Close(emit) != nil {
		panic("close")
	}
}

// A quadratic parser would be thousands of times slower here: if a line costs a scan of
// everything after it, or a chunk costs a copy of everything before it. The baseline is
// an ordinary stream of the same size.
func TestParserIsLinear(t *testing.T) {
	const size = 1 << 20
	measure := func(piece int, doc []byte) (time.Duration, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		feedIn(piece, doc)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		return took, after.TotalAlloc - before.TotalAlloc
	}
	ordinary, _ := measure(7, bytes.Repeat([]byte("data: x\n\n"), size/9))
	for name, doc := range map[string][]byte{
		"one event of one line":   slices.Concat([]byte("data: "), bytes.Repeat([]byte("x"), 4*size), []byte("\n\n")),
		"one event of many lines": append(bytes.Repeat([]byte("data: x\n"), size/2), '\n'),
		"many events":             bytes.Repeat([]byte("data: x\n\n"), size/9),
		"many events, CR only":    bytes.Repeat([]byte("data: x\r\r"), size/9),
		"many lines, CR only":     append(bytes.Repeat([]byte("data: x\r"), size/8), '\r'),
		"blank CRs":               bytes.Repeat([]byte("\r"), size),
		"CRs, then one LF":        append(bytes.Repeat([]byte("\r"), size), '\n'),
	} {
		for _, piece := range []int{7, 4096, len(doc)} {
			took, n := measure(piece, doc)
			if took > 60*ordinary+time.Second {
				t.Errorf("%s in pieces of %d took %v; an ordinary stream took %v", name, piece, took, ordinary)
			}
			if n > uint64(16*len(doc)) {
				t.Errorf("%s in pieces of %d: %d MB allocated for %d MB", name, piece, n>>20, len(doc)>>20)
			}
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, s := range []string{
		"", "data: a\n\n", "\ufeffevent: x\r\ndata: {}\r\n\r\n", "data: a\r\rdata: b\r", ": c\n\ndata\n\n", "data: 😀\ndata: é\n\n", "\xef\xbb", "\r\n\r\n\n\r", "event: e",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		whole, err := parse(&sse.Parser{Max: 64}, string(stream))
		cut, cutErr := parse(&sse.Parser{Max: 64}, chunks(string(stream), int(size%16)+1)...)
		if !errors.Is(err, cutErr) || !slices.Equal(whole, cut) {
			t.Fatalf("whole: %+v, %v\ncut: %+v, %v", whole, err, cut, cutErr)
		}
		var raw strings.Builder
		for _, ev := range whole {
			raw.WriteString(ev.raw)
			if strings.ContainsAny(ev.data, "\r") || strings.ContainsAny(ev.name, "\r\n") {
				t.Fatalf("line ends in %+v", ev)
			}
		}
		if !strings.HasPrefix(string(stream), raw.String()) {
			t.Fatalf("raw %q is not a prefix of %q", raw.String(), stream)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	var doc []byte
	for i := range 2000 {
		doc = sse.Append(doc, "", fmt.Appendf(nil, `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"word %d "}}]}`, i))
	}
	for _, size := range []int{16, 1400, 1 << 20} {
		b.Run(fmt.Sprintf("pieces=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				feedIn(size, doc)
			}
		})
	}
}
