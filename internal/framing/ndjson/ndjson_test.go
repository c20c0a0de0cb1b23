package ndjson_test

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"pgregory.net/rapid"
)

// parse feeds the chunks and closes the parser. It returns the data of each line,
// including blank ones, and all raw bytes.
func parse(p *ndjson.Parser, pieces ...string) (data []string, raw string, err error) {
	take := func(l ndjson.Line) error {
		data = append(data, string(l.Data))
		raw += string(l.Raw)
		return nil
	}
	for _, piece := range pieces {
		b := []byte(piece)
		if err := p.Feed(b, take); err != nil {
			return data, raw, err
		}
		for i := range b {
			b[i] = 'x' // the caller may overwrite what it fed
		}
	}
	return data, raw, p.Close(take)
}

func TestQuirkC18_LinesAtEverySplit(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"LF", "{}\n[]\n", []string{"{}", "[]"}},
		{"CRLF", "{}\r\n[]\r\n", []string{"{}", "[]"}},
		{"a CR within a value is white space", "{\"a\":\r1}\n", []string{"{\"a\":\r1}"}},
		{"no last end", "{}\n[]", []string{"{}", "[]"}},
		{"blank lines", "\n\n{}\n \t\r\n[]\n\n", []string{"", "", "{}", "", "[]", ""}},
		{"white space around a value", "  {} \t\r\n", []string{"{}"}},
		{"a BOM", "\ufeff{}\n\ufeff[]\n", []string{"{}", "\ufeff[]"}},
		{"split UTF-8", "\"é👩‍👩‍👧\"\n\"日本\"", []string{"\"é👩‍👩‍👧\"", "\"日本\""}}, // quirk C16
		{"a line separator of Unicode is text", "\"\u2028\u0085\"\n", []string{"\"\u2028\u0085\""}},
		{"a NUL", "\"\x00\"\n", []string{"\"\x00\""}},
		{"empty", "", nil},
		{"a CR at the end", "{}\r", []string{"{}"}},
	} {
		for size := 1; size <= len(c.stream)+1; size++ {
			var pieces []string
			for part := range slices.Chunk([]byte(c.stream), size) {
				pieces = append(pieces, string(part))
			}
			got, raw, err := parse(new(ndjson.Parser), pieces...)
			if err != nil || !slices.Equal(got, c.want) || raw != c.stream {
				t.Errorf("%s in pieces of %d: %q, %v; want %q; raw %q", c.name, size, got, err, c.want, raw)
			}
		}
	}
}

func TestProperty_SplitsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringOf(rapid.SampledFrom([]rune("{}\"a\n\r \ufeffé"))).Draw(t, "stream")
		limit := rapid.IntRange(0, 12).Draw(t, "limit")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 6).Draw(t, "cuts")
		slices.Sort(cuts)
		var pieces []string
		at := 0
		for _, c := range cuts {
			pieces, at = append(pieces, body[at:c]), c
		}
		want, _, err1 := parse(&ndjson.Parser{Max: limit}, body)
		got, _, err2 := parse(&ndjson.Parser{Max: limit}, append(pieces, body[at:])...)
		if !slices.Equal(want, got) || !errors.Is(err2, err1) {
			t.Fatalf("whole %q, %v\ncut   %q, %v", want, err1, got, err2)
		}
	})
}

func TestDefaultMaxLine(t *testing.T) {
	if ndjson.DefaultMaxLine < 32<<20 {
		t.Error("images in real responses are longer")
	}
	long := `"` + strings.Repeat("a", 33<<20) + `"`
	if got, _, err := parse(new(ndjson.Parser), long, "\n{}"); err != nil || len(got) != 2 || got[0] != long {
		t.Errorf("%d lines, %v", len(got), err)
	}
	for n, fits := range map[int]bool{9: true, 10: false} {
		p := ndjson.Parser{Max: 10}
		got, _, err := parse(&p, "1\n"+strings.Repeat("2", n)+"\n3\n")
		if fits != (err == nil) || !fits && (!errors.Is(err, ndjson.ErrTooLong) || len(got) != 1) {
			t.Errorf("a line of %d bytes: %q, %v", n, got, err)
		}
	}
	if _, _, err := parse(&ndjson.Parser{Max: 10}, "12345678901"); !errors.Is(err, ndjson.ErrTooLong) {
		t.Errorf("a line without an end: %v", err)
	}
}

func TestQuirkC35_LongLineTakesLinearMemory(t *testing.T) {
	took := func(n int) uint64 {
		piece := []byte("12345678")
		none := func(ndjson.Line) error { return nil }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var p ndjson.Parser
		for range n {
			if err := p.Feed(piece, none); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if a, b := took(1<<16), took(1<<18); float64(b) > 4.5*float64(a) {
		t.Errorf("%d bytes, and %d for four times as much", a, b)
	}
}

func TestFeedReturnsEmitError(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	var p ndjson.Parser
	if err := p.Feed([]byte("1\n2\n3\n"), func(ndjson.Line) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d lines", err, n)
	}
}

func TestAppendWritesOneLine(t *testing.T) {
	got := ndjson.Append([]byte("1\n"), []byte("{\"a\":\n[1,\r\n2]}"))
	if string(got) != "1\n{\"a\": [1,  2]}\n" {
		t.Errorf("%q", got)
	}
	if lines := bytes.Count(got, []byte("\n")); lines != 2 {
		t.Errorf("%d lines", lines)
	}
}

func FuzzParser(f *testing.F) {
	for _, s := range []string{
		"", "{}\n", "{}", "\ufeff{\"a\":1}\r\n[]\r\n", "\n\r\n \t\n", "{\"a\":\r1}\n2\r", "\"é👩‍👩‍👧\"\n\xff\xfe\n", "\xef\xbb", "\xef\xbb\xbf", "123456789012345678901234567890123456789012345678901234567890123\n{}",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		var pieces []string
		for part := range slices.Chunk(stream, int(size%16)+1) {
			pieces = append(pieces, string(part))
		}
		whole, raw, err := parse(&ndjson.Parser{Max: 64}, string(stream))
		cut, cutRaw, cutErr := parse(&ndjson.Parser{Max: 64}, pieces...)
		if !errors.Is(err, cutErr) || !slices.Equal(whole, cut) || raw != cutRaw {
			t.Fatalf("whole: %q, %v\ncut: %q, %v", whole, err, cut, cutErr)
		}
		if !strings.HasPrefix(string(stream), raw) || err == nil && raw != string(stream) {
			t.Fatalf("raw %q of %q", raw, stream)
		}
		var again []byte
		for _, data := range whole {
			if strings.Contains(data, "\n") || strings.Trim(data, " \t\r\n") != data {
				t.Fatalf("line ends or white space around %q", data)
			}
			again = ndjson.Append(again, []byte(data))
		}
		// Writing and parsing again gives the same values, except for a CR within a
		// value.
		back, _, err := parse(new(ndjson.Parser), string(again))
		for i := range whole {
			whole[i] = strings.ReplaceAll(whole[i], "\r", " ")
		}
		if len(whole) > 0 { // a byte order mark at the start of a stream is not text
			whole[0] = strings.Trim(strings.TrimPrefix(whole[0], "\ufeff"), " \t")
		}
		if err != nil || !slices.Equal(back, whole) {
			t.Fatalf("%q written and read again: %q, %v", whole, back, err)
		}
	})
}
