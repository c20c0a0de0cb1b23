package stdio

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreLimited(t *testing.T) {
	const limit = 200_000
	for _, n := range []int{0, 1, 4095, 65535, 65536, 65537, 131071, limit - 1, limit, limit + 1, limit + 3, 3 * limit} {
		for _, end := range []string{"\n", "\r\n", ""} {
			text := strings.Repeat("x", n)
			r := newLineReader(io.MultiReader(strings.NewReader("\ufefffirst\n"), iotest.HalfReader(strings.NewReader(text+end))), limit)
			if line, long, err := r.next(); string(line) != "first" || long != nil || err != nil {
				t.Fatalf("%q, %v, %v", line, long, err)
			}
			line, long, err := r.next()
			if end == "" && !errors.Is(err, io.EOF) || end != "" && err != nil {
				t.Errorf("%d bytes and %q: %v", n, end, err)
			}
			switch {
			case long == nil && string(line) != text:
				t.Errorf("%d bytes and %q became %d bytes", n, end, len(line))
			case long == nil && n > limit+2, long != nil && n <= limit:
				t.Errorf("%d bytes and %q: too long: %v", n, end, long != nil)
			case long != nil && (len(line) > 0 || len(long.head) != keptHead || len(long.tail) > keptTail || !strings.HasSuffix(text+end, string(long.tail))):
				t.Errorf("%d bytes and %q: %d bytes, head %d, tail %d", n, end, len(line), len(long.head), len(long.tail))
			}
		}
	}
}

func TestIDsOfLongLines(t *testing.T) {
	for _, test := range []struct{ head, tail, want string }{
		{`{"jsonrpc":"2.0","id":5,"result":{"te`, `"id":7}}`, "5"},
		{`{"result":{"te`, `xt":"\"id\":3"},"jsonrpc":"2.0","id":5}` + "\n", "5"},
		{`{"result":{"te`, `xt":""},"id":"a","jsonrpc":"2.0"}`, `"a"`},
		{`{"jsonrpc":"2.0","result":{"te`, `xt":1,"id":7}}`, ""},
		{`{"jsonrpc":"2.0","method":"x","params":{"te`, `xt"}}`, ""},
		{`{"jsonrpc":"2.0","id":{`, `"id":5}`, ""},
		{`Server log: `, `"id":5}`, ""},
		{``, ``, ""},
	} {
		if got := (&longLine{[]byte(test.head), []byte(test.tail)}).id(); string(got) != test.want {
			t.Errorf("%s … %s has the id %q, want %q", test.head, test.tail, got, test.want)
		}
	}
}

func TestRingKeepsTheEnd(t *testing.T) {
	var r ring
	var all bytes.Buffer
	for i, n := range []int{10, 60_000, 5_000, 1, 65_535, 65_536, 200_000, 7} {
		part := bytes.Repeat([]byte{byte('a' + i)}, n)
		all.Write(part)
		if got, err := r.Write(part); got != n || err != nil {
			t.Fatal(got, err)
		}
		want := all.Bytes()[max(0, all.Len()-maxStderr):]
		if r.String() != string(want) {
			t.Errorf("after %d writes the ring has %d bytes", i+1, len(r.String()))
		}
	}
}
