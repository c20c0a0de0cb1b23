package eventstream_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"pgregory.net/rapid"
)

func frame(t testing.TB, payload string, headers ...eventstream.Header) []byte {
	t.Helper()
	out, err := eventstream.Append(nil, headers, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func header(name string, v eventstream.Value) eventstream.Header {
	return eventstream.Header{Name: name, Value: v}
}

// parse feeds chunks and returns the frames as text.
func parse(p *eventstream.Parser, pieces ...[]byte) ([]string, error) {
	var out []string
	for _, b := range pieces {
		b = bytes.Clone(b)
		err := p.Feed(b, func(f eventstream.Frame) error {
			s := fmt.Sprintf("@%d+%d", f.Offset, f.PayloadOffset()-f.Offset)
			for name, v := range f.All() {
				s += fmt.Sprintf(" %s=%d:%x", name, v.Kind, v.Data)
			}
			out = append(out, fmt.Sprintf("%s %q %x", s, f.Payload, f.Raw))
			return nil
		})
		clear(b) // the caller may overwrite what it fed
		if err != nil {
			return out, err
		}
	}
	return out, p.Close()
}

// The bytes of two frames from the description of the format: a message without
// headers, and one with a header and a payload.
func TestAppendMatchesTheSpecification(t *testing.T) {
	for want, f := range map[string][]byte{
		"0000001000000000" + "05c248eb" + "7d98c8ff": frame(t, ""),
		"0000003d00000020" + "07fd8396" + "0c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e" +
			hex.EncodeToString([]byte("{'foo':'bar'}")) + "8d9c08b1": frame(t, "{'foo':'bar'}", header("content-type", eventstream.Text("application/json"))),
	} {
		if got := hex.EncodeToString(f); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func everyKind() []eventstream.Header {
	return []eventstream.Header{
		header("true", eventstream.Value{Kind: eventstream.True}),
		header("false", eventstream.Value{Kind: eventstream.False}),
		header("int8", eventstream.Value{Kind: eventstream.Int8, Data: []byte{0xff}}),
		header("int16", eventstream.Value{Kind: eventstream.Int16, Data: []byte{0x80, 0}}),
		header("int32", eventstream.Value{Kind: eventstream.Int32, Data: []byte{0, 0, 1, 0}}),
		header("int64", eventstream.Value{Kind: eventstream.Int64, Data: []byte{0, 0, 0, 0, 0, 0, 0, 7}}),
		header("bytes", eventstream.Value{Kind: eventstream.Bytes, Data: []byte{0, 1, 2}}),
		header("string", eventstream.Text("日本")),
		header("time", eventstream.Value{Kind: eventstream.Timestamp, Data: []byte{0, 0, 1, 0, 0, 0, 0, 0}}),
		header("uuid", eventstream.Value{Kind: eventstream.UUID, Data: bytes.Repeat([]byte{9}, 16)}),
	}
}

func TestHeadersOfEveryTypeRoundTrip(t *testing.T) {
	var got eventstream.Frame
	var p eventstream.Parser
	if err := p.Feed(frame(t, "x", everyKind()...), func(f eventstream.Frame) error { got = f; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, h := range everyKind() {
		v, ok := got.Get(h.Name)
		if !ok || v.Kind != h.Value.Kind || !bytes.Equal(v.Data, h.Value.Data) {
			t.Errorf("%s: %v %v", h.Name, v, ok)
		}
	}
	for name, want := range map[string]int64{"int8": -1, "int16": -32768, "int32": 256, "int64": 7, "time": 1 << 40} {
		v, _ := got.Get(name)
		if n, ok := v.Int(); !ok || n != want {
			t.Errorf("%s: %d %v", name, n, ok)
		}
	}
	for _, name := range []string{"true", "string", "uuid"} {
		v, _ := got.Get(name)
		if _, ok := v.Int(); ok {
			t.Errorf("%s is taken for a number", name)
		}
	}
	if string(got.Text("string")) != "日本" || got.Text("bytes") != nil || got.Text("absent") != nil {
		t.Errorf("texts: %q %q", got.Text("string"), got.Text("bytes"))
	}
}

// threeFrames returns a stream to split at any position.
func threeFrames(t testing.TB) []byte {
	out := frame(t, `{"a":1}`, header(":event-type", eventstream.Text("x")))
	out = append(out, frame(t, "", everyKind()...)...)
	return append(out, frame(t, strings.Repeat("long ", 100))...)
}

func TestQuirkC33_EverySplitGivesTheSameFrames(t *testing.T) {
	all := threeFrames(t)
	want, err := parse(&eventstream.Parser{}, all)
	if err != nil || len(want) != 3 {
		t.Fatal(want, err)
	}
	for cut := range all {
		got, err := parse(&eventstream.Parser{}, all[:cut], all[cut:])
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("cut at %d: %v\n%v", cut, err, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var pieces [][]byte
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := parse(&eventstream.Parser{}, pieces...)
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%v\n%v", err, got)
		}
	})
}

// Raw is valid until the parser is fed again, not only until the next frame in the same
// chunk.
func TestRawIsValidUntilTheNextFeed(t *testing.T) {
	all := threeFrames(t)
	var p eventstream.Parser
	var raws [][]byte
	keep := func(f eventstream.Frame) error { raws = append(raws, f.Raw); return nil }
	if err := p.Feed(all[:5], keep); err != nil {
		t.Fatal(err)
	}
	if err := p.Feed(append(all[5:len(all):len(all)], all[:20]...), keep); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(raws, nil); !bytes.Equal(got, all) {
		t.Errorf("%x\n%x", got, all)
	}
}

// prelude returns the beginning of a frame with any lengths and a valid checksum.
func prelude(size, headers uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, size)
	b = binary.BigEndian.AppendUint32(b, headers)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// withHeaders returns a frame around any header block, with valid checksums.
func withHeaders(block []byte) []byte {
	b := append(prelude(uint32(16+len(block)), uint32(len(block))), block...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func TestQuirkC33_DamagedFrameIsAnError(t *testing.T) {
	good := frame(t, "first")
	flipped := func(at int) []byte {
		f := frame(t, "second", header("h", eventstream.Text("v")))
		f[(at+len(f))%len(f)] ^= 1
		return f
	}
	for name, tc := range map[string]struct {
		second []byte
		want   error
	}{
		"a length that changed":           {flipped(3), eventstream.ErrChecksum},
		"a header length that changed":    {flipped(7), eventstream.ErrChecksum},
		"a prelude checksum that changed": {flipped(8), eventstream.ErrChecksum},
		"a header that changed":           {flipped(13), eventstream.ErrChecksum},
		"a payload that changed":          {flipped(-6), eventstream.ErrChecksum},
		"a checksum that changed":         {flipped(-1), eventstream.ErrChecksum},
		"a frame of no bytes":             {prelude(0, 0), eventstream.ErrLength},
		"a frame below the minimum":       {prelude(15, 0), eventstream.ErrLength},
		"headers beyond the frame":        {prelude(32, 17), eventstream.ErrLength},
		"headers of four gigabytes":       {prelude(32, 1<<32-1), eventstream.ErrLength},
		"a frame of four gigabytes":       {prelude(1<<32-1, 0), eventstream.ErrTooLong},
		"a header without a name":         {withHeaders([]byte{0, 7, 0, 0}), eventstream.ErrHeader},
		"a header of unknown type":        {withHeaders([]byte{1, 'a', 10}), eventstream.ErrHeader},
		"a truncated name":                {withHeaders([]byte{9, 'a'}), eventstream.ErrHeader},
		"a truncated value":               {withHeaders([]byte{1, 'a', 7, 0, 9, 'x'}), eventstream.ErrHeader},
		"a truncated length":              {withHeaders([]byte{1, 'a', 7, 0}), eventstream.ErrHeader},
		"a truncated number":              {withHeaders([]byte{1, 'a', 4, 0, 0}), eventstream.ErrHeader},
		"a duplicate header":              {withHeaders([]byte{1, 'a', 0, 1, 'a', 1}), eventstream.ErrHeader},
		"a truncated frame":               {frame(t, "second")[:17], eventstream.ErrTruncated},
		"a truncated prelude":             {frame(t, "second")[:3], eventstream.ErrTruncated},
		"an HTML page":                    {[]byte("<html><body>"), eventstream.ErrChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			stream := append(bytes.Clone(good), tc.second...)
			for _, size := range []int{1, 7, len(stream)} {
				var pieces [][]byte
				for rest := stream; len(rest) > 0; {
					n := min(size, len(rest))
					pieces, rest = append(pieces, rest[:n]), rest[n:]
				}
				var p eventstream.Parser
				got, err := parse(&p, pieces...)
				var at *eventstream.Error
				if !errors.Is(err, tc.want) || !errors.As(err, &at) || at.Offset != int64(len(good)) || len(got) != 1 {
					t.Fatalf("pieces of %d: %v, %d frames", size, err, len(got))
				}
				if again := p.Feed([]byte("more"), nil); !errors.Is(again, tc.want) || !errors.Is(p.Close(), tc.want) {
					t.Errorf("the error is not sticky: %v", again)
				}
			}
		})
	}
}

func TestManyHeadersAreLinear(t *testing.T) {
	var block []byte
	for i := range 200_000 {
		block = append(block, 4, byte(i), byte(i>>8), byte(i>>16), 'x', 0)
	}
	none := func(eventstream.Frame) error { return nil }
	if err := new(eventstream.Parser).Feed(withHeaders(block), none); err != nil {
		t.Error(err)
	}
	duplicates := append(block, block[len(block)-6:]...)
	if err := new(eventstream.Parser).Feed(withHeaders(duplicates), none); !errors.Is(err, eventstream.ErrHeader) {
		t.Error(err)
	}
}

func TestParserMax(t *testing.T) {
	f := frame(t, strings.Repeat("x", 100))
	if _, err := parse(&eventstream.Parser{Max: len(f)}, f); err != nil {
		t.Error(err)
	}
	if _, err := parse(&eventstream.Parser{Max: len(f) - 1}, f); !errors.Is(err, eventstream.ErrTooLong) {
		t.Error(err)
	}
	var p eventstream.Parser
	if err := p.Feed(prelude(33<<20, 0), nil); err != nil {
		t.Errorf("32 MiB must be accepted: %v", err)
	}
}

// A claimed length must not determine how much memory is allocated.
func TestClaimedLengthTakesNoMemory(t *testing.T) {
	head := prelude(60<<20, 0)
	allocs := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var p eventstream.Parser
			if err := p.Feed(head, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := allocs.AllocedBytesPerOp(); n > 4096 {
		t.Errorf("%d bytes for twelve bytes of input", n)
	}
}

func TestFeedReturnsEmitError(t *testing.T) {
	stop := errors.New("stop")
	var p eventstream.Parser
	n := 0
	err := p.Feed(threeFrames(t), func(eventstream.Frame) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Error(err, n)
	}
}

func TestAppendRefusesInvalidHeaders(t *testing.T) {
	for name, h := range map[string]eventstream.Header{
		"no name":        {Value: eventstream.Text("x")},
		"a long name":    {Name: strings.Repeat("n", 256)},
		"a long value":   {Name: "n", Value: eventstream.Text(strings.Repeat("v", 1<<16))},
		"unknown type":   {Name: "n", Value: eventstream.Value{Kind: 10}},
		"a short number": {Name: "n", Value: eventstream.Value{Kind: eventstream.Int32, Data: []byte{1}}},
	} {
		out, err := eventstream.Append([]byte("before"), []eventstream.Header{h}, nil)
		if !errors.Is(err, eventstream.ErrHeader) || string(out) != "before" {
			t.Errorf("%s: %v %q", name, err, out)
		}
	}
	duplicates := []eventstream.Header{header("n", eventstream.Text("1")), header("n", eventstream.Text("2"))}
	if _, err := eventstream.Append(nil, duplicates, nil); !errors.Is(err, eventstream.ErrHeader) {
		t.Error(err)
	}
}

func FuzzParser(f *testing.F) {
	f.Add(threeFrames(f), uint8(3))
	f.Add(frame(f, "")[:11], uint8(1))
	f.Add(withHeaders([]byte{1, 'a', 7, 0, 9, 'x'}), uint8(5))
	f.Add(prelude(1<<32-1, 12), uint8(0))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		want, wantErr := parse(&eventstream.Parser{Max: 1 << 20}, stream)
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := parse(&eventstream.Parser{Max: 1 << 20}, pieces...)
		if fmt.Sprint(got, err) != fmt.Sprint(want, wantErr) {
			t.Fatalf("pieces of %d: %v\nwhole: %v", int(size)+1, err, wantErr)
		}
		// Writing the frames again gives the same bytes.
		var p eventstream.Parser
		_ = p.Feed(stream, func(fr eventstream.Frame) error {
			var hs []eventstream.Header
			for name, v := range fr.All() {
				hs = append(hs, eventstream.Header{Name: name, Value: v})
			}
			again, err := eventstream.Append(nil, hs, fr.Payload)
			if err != nil || !bytes.Equal(again, fr.Raw) {
				t.Fatalf("%v\n%x\n%x", err, again, fr.Raw)
			}
			return nil
		})
	})
}

func BenchmarkParser(b *testing.B) {
	var stream []byte
	for range 1000 {
		stream = append(stream, frame(b, `{"contentBlockIndex":0,"delta":{"text":" and so on"},"p":"abcdefgh"}`,
			header(":event-type", eventstream.Text("contentBlockDelta")),
			header(":content-type", eventstream.Text("application/json")),
			header(":message-type", eventstream.Text("event")))...)
	}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		var p eventstream.Parser
		if err := p.Feed(stream, func(eventstream.Frame) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
