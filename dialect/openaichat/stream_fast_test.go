package openaichat

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// heard is all that a decoder tells of a stream.
type heard struct {
	events []dragoman.Event
	report dragoman.Report
	err    string
	quick  int // chunks that fitted the mould
}

// listen decodes a stream, with moulds or without.
func listen(t *testing.T, stream string, o dialect.DecodeOptions, moulds bool) (h heard) {
	t.Helper()
	d, ok := Codec{}.NewStreamDecoder(o).(*streamDecoder)
	if !ok {
		t.Fatal("no decoder")
	}
	if !moulds {
		d.mould.idle = maxIdle
	}
	emit := func(ev dragoman.Event) error {
		if c, ok := ev.(*dragoman.Chunk); ok { // its memory is used again
			own := *c
			own.Raw = []byte(string(c.Raw))
			ev = &own
		}
		h.events = append(h.events, ev)
		return nil
	}
	// An event at a time, to see which are quick.
	var err error
	for _, event := range strings.SplitAfter(stream, "\n\n") {
		before := d.mould
		if err = d.Feed([]byte(event), emit); err != nil {
			break
		}
		if before.ready && d.mould.ready && d.mould.idle == 0 && strings.Contains(event, "choices") {
			h.quick++
		}
	}
	h.err = fmt.Sprint(err, d.Close(emit))
	h.report = d.Report()
	return h
}

// sameHeard compares a stream that is decoded with moulds and without.
func sameHeard(t *testing.T, stream string) (quick int) {
	t.Helper()
	for _, o := range []dialect.DecodeOptions{{}, {NoNative: true, DeltasOnly: true}, {MaxBytes: 3000}} {
		with, without := listen(t, stream, o, true), listen(t, stream, o, false)
		if with.err != without.err || !reflect.DeepEqual(with.report, without.report) || !reflect.DeepEqual(with.events, without.events) {
			t.Fatalf("%.2000s\n%+v: with moulds %s, %d events, %+v\nwithout %s, %d events, %+v", stream, o,
				with.err, len(with.events), with.report, without.err, len(without.events), without.report)
		}
		quick = max(quick, with.quick)
	}
	return quick
}

// say makes a stream of chunks.
func say(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

// delta is a chunk with a delta.
func delta(body string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"f","choices":[{"index":0,"delta":` + body +
		`,"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc"}`
}

const (
	called = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`
	ended  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
)

// arguments is a delta of arguments, as quoted.
func arguments(quoted string) string {
	return delta(`{"tool_calls":[{"index":0,"function":{"arguments":` + quoted + `}}]}`)
}

// streams are those that the mould fits, and those that it nearly fits.
func streams() []string {
	head := []string{delta(`{"role":"assistant","content":null}`), delta(called), arguments(`"{\"a\":"`), arguments(`"1"`)}
	end := []string{ended, "[DONE]"}
	with := func(more ...string) string {
		return say(append(append(append([]string{}, head...), more...), end...)...)
	}
	one := arguments(`"2"`)
	all := []string{
		string(benchdata.ToolStream(dialectname.OpenAIChat)),
		with(one, arguments(`"}"`)),
		with(arguments(`"\\\"\u00e9\ud83d\ude00é"`), arguments(`"\ud800"`), arguments("\"\xff\""), one),
		with(arguments(`""`), one), with(arguments(`null`), one), with(arguments(`{"a":1}`), one), with(arguments(`"x`), one), with(arguments(`"\x"`), one),
		with(strings.Replace(one, `"abc"`, `""`, 1), one), with(strings.Replace(one, `"abc"`, `"longer\n"`, 1), one), with(strings.Replace(one, `"abc"`, `7`, 1), one),
		with(strings.Replace(one, `"abc"`, `"x","usage":{"prompt_tokens":3}`, 1), one), with(strings.Replace(one, `"abc"`, `"x\y"`, 1), one),
		with(strings.Replace(one, `"c1"`, `"c2"`, 1), one), with(strings.Replace(one, `"model":"m"`, `"model":"n"`, 1), one, one),
		with(strings.Replace(one, `"index":0,"function"`, `"index":1,"function"`, 1), one), with(strings.Replace(one, `"index":0,"delta"`, `"index":1,"delta"`, 1), one),
		with(strings.Replace(one, `"usage":null`, `"usage":{"prompt_tokens":3,"completion_tokens":1}`, 1), one, one),
		with(strings.Replace(one, `"finish_reason":null`, `"finish_reason":"stop"`, 1), one), with(strings.Replace(one, `"arguments"`, `"Arguments"`, 1), one),
		with(one+" ", " "+one), with(one+"1", one), with(strings.Replace(one, `{"id"`, `{"odd":[1],"id"`, 1), one, one), with(strings.Replace(one, `{"id"`, `{"ID":"x","id"`, 1), one),
		with(`{"error":{"message":"broken"}}`, one), with(strings.Replace(one, `"object":"chat.completion.chunk"`, `"object":"error"`, 1), one),
		with(strings.Replace(one, `"function":{`, `"id":null,"type":"function","function":{"name":null,`, 1), strings.Replace(one, `"function":{`, `"id":null,"type":"function","function":{"name":null,`, 1)),
		with(strings.Replace(one, `"function":{`, `"type":"custom","function":{`, 1), one), with(strings.Replace(one, `"function":{`, `"function":{"name":"f",`, 1), one),
		with(delta(`{"content":"text"}`), delta(`{"content":" more"}`), delta(`{"content":"\"reasoning"}`), one, one),
		with(delta(`{"content":"text","tool_calls":[{"index":0,"function":{"arguments":"x"}}]}`), delta(`{"content":"text","tool_calls":[{"index":0,"function":{"arguments":"y"}}]}`)),
		with(delta(`{"reasoning":"why"}`), delta(`{"reasoning":"why","content":"x"}`), delta(`{"content":"a","reasoning":null}`), delta(`{"content":"b","reasoning":null}`), delta(`{"content":"c","reasoning":null}`)),
		with(delta(`{"role":"assistant","content":"a"}`), delta(`{"role":"assistant","content":"b"}`)),
		say(append([]string{one, one, one}, end...)...), // no call was named
		say(arguments(`"x"`)) + "event: error\n" + say(arguments(`"y"`)),
	}
	many := delta(`{"content":"x"}`)
	for i := range 12 { // more members than are looked for
		many = strings.Replace(many, `{"id"`, fmt.Sprintf(`{"m%d":%d,"id"`, i, i), 1)
	}
	return append(all, with(many, many, many))
}

func TestChunksReadByAMouldSayWhatTheySay(t *testing.T) {
	all := streams()
	for _, s := range all {
		sameHeard(t, s)
	}
	if n := sameHeard(t, all[0]); n < benchdata.StreamChunks*9/10 {
		t.Errorf("%d of %d chunks fitted the mould", n, benchdata.StreamChunks)
	}
	text := say(delta(`{"content":"a"}`), delta(`{"content":"b"}`), delta(`{"content":"c"}`), delta(`{"content":"d"}`), "[DONE]")
	if n := sameHeard(t, text); n != 2 {
		t.Errorf("%d chunks of text fitted the mould, want 2: the first brings a member, the second the mould", n)
	}
}

func TestAServerWhoseChunksAllDifferIsNotLearnedForEver(t *testing.T) {
	d, ok := Codec{}.NewStreamDecoder(dialect.DecodeOptions{}).(*streamDecoder)
	if !ok {
		t.Fatal("no decoder")
	}
	for i := range 100 {
		chunk := strings.Replace(delta(`{"content":"a"}`), `"created":1`, fmt.Sprintf(`"created":%d`, i+1), 1)
		if err := d.Feed([]byte(say(chunk)), func(dragoman.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if d.mould.ready || d.mould.idle != maxIdle {
		t.Errorf("a mould is made all the same, %d in vain", d.mould.idle)
	}
}

func FuzzChunksReadByAMouldSayWhatTheySay(f *testing.F) {
	for _, s := range streams()[1:] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { sameHeard(t, s) })
}
