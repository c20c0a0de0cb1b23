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

// output is the complete output of a decoder.
type output struct {
	events []dragoman.Event
	report dragoman.Report
	err    string
	fast   int // chunks that matched the template
}

// decode decodes a stream, with or without templates.
func decode(t *testing.T, stream string, o dialect.DecodeOptions, templates bool) (h output) {
	t.Helper()
	d, ok := Codec{}.NewStreamDecoder(o).(*streamDecoder)
	if !ok {
		t.Fatal("no decoder")
	}
	if !templates {
		d.template.idle = maxIdle
	}
	emit := func(ev dragoman.Event) error {
		if c, ok := ev.(*dragoman.Chunk); ok { // its memory is reused
			own := *c
			own.Raw = []byte(string(c.Raw))
			ev = &own
		}
		h.events = append(h.events, ev)
		return nil
	}
	// One event at a time, to see which match the template.
	var err error
	for _, event := range strings.SplitAfter(stream, "\n\n") {
		before := d.template
		if err = d.Feed([]byte(event), emit); err != nil {
			break
		}
		if before.ready && d.template.ready && d.template.idle == 0 && strings.Contains(event, "choices") {
			h.fast++
		}
	}
	h.err = fmt.Sprint(err, d.Close(emit))
	h.report = d.Report()
	return h
}

// sameOutput compares the output of decoding a stream with and without templates.
func sameOutput(t *testing.T, stream string) (fast int) {
	t.Helper()
	for _, o := range []dialect.DecodeOptions{{}, {NoNative: true, DeltasOnly: true}, {MaxBytes: 3000}} {
		with, without := decode(t, stream, o, true), decode(t, stream, o, false)
		if with.err != without.err || !reflect.DeepEqual(with.report, without.report) || !reflect.DeepEqual(with.events, without.events) {
			t.Fatalf("%.2000s\n%+v: with templates %s, %d events, %+v\nwithout %s, %d events, %+v", stream, o,
				with.err, len(with.events), with.report, without.err, len(without.events), without.report)
		}
		fast = max(fast, with.fast)
	}
	return fast
}

func frame(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

// delta returns a chunk with the given delta.
func delta(body string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"f","choices":[{"index":0,"delta":` + body +
		`,"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc"}`
}

const (
	called = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`
	ended  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
)

// arguments returns a chunk with a fragment of arguments, given as a JSON string.
func arguments(quoted string) string {
	return delta(`{"tool_calls":[{"index":0,"function":{"arguments":` + quoted + `}}]}`)
}

// streams returns streams that match the template, and streams that nearly match it.
func streams() []string {
	head := []string{delta(`{"role":"assistant","content":null}`), delta(called), arguments(`"{\"a\":"`), arguments(`"1"`)}
	end := []string{ended, "[DONE]"}
	with := func(more ...string) string {
		return frame(append(append(append([]string{}, head...), more...), end...)...)
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
		frame(append([]string{one, one, one}, end...)...), // no call was named
		frame(arguments(`"x"`)) + "event: error\n" + frame(arguments(`"y"`)),
	}
	many := delta(`{"content":"x"}`)
	for i := range 12 { // more unknown fields than the decoder compares
		many = strings.Replace(many, `{"id"`, fmt.Sprintf(`{"m%d":%d,"id"`, i, i), 1)
	}
	return append(all, with(many, many, many))
}

func TestFastPathGivesTheSameOutput(t *testing.T) {
	all := streams()
	for _, s := range all {
		sameOutput(t, s)
	}
	if n := sameOutput(t, all[0]); n < benchdata.StreamChunks*9/10 {
		t.Errorf("%d of %d chunks matched the template", n, benchdata.StreamChunks)
	}
	text := frame(delta(`{"content":"a"}`), delta(`{"content":"b"}`), delta(`{"content":"c"}`), delta(`{"content":"d"}`), "[DONE]")
	if n := sameOutput(t, text); n != 2 {
		t.Errorf("%d chunks of text matched the template, want 2: the first has a new field, the second makes the template", n)
	}
}

func TestTemplatesStopIfAllChunksDiffer(t *testing.T) {
	d, ok := Codec{}.NewStreamDecoder(dialect.DecodeOptions{}).(*streamDecoder)
	if !ok {
		t.Fatal("no decoder")
	}
	for i := range 100 {
		chunk := strings.Replace(delta(`{"content":"a"}`), `"created":1`, fmt.Sprintf(`"created":%d`, i+1), 1)
		if err := d.Feed([]byte(frame(chunk)), func(dragoman.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if d.template.ready || d.template.idle != maxIdle {
		t.Errorf("templates are still made after %d unused ones", d.template.idle)
	}
}

func FuzzFastPathGivesTheSameOutput(f *testing.F) {
	for _, s := range streams()[1:] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { sameOutput(t, s) })
}
