package losses_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

// Unknown fields of a streamed message are stored in history like those of a whole response, and
// are sent back to their origin.
func TestDecision92_UnknownFieldsOfStreamedMessagesAreCollected(t *testing.T) {
	for _, tc := range []struct {
		codec         dialect.Codec
		whole, stream string
	}{
		{
			openaichat.Codec{},
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","phase":"final","provider_metadata":{"a":{"n":2}}},"finish_reason":"stop"}]}`,
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel","phase":"analysis"}}]}` + "\n\n" +
				`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"lo","phase":"final","provider_metadata":{"a":{"n":1}},"nothing":null}}]}` + "\n\n" +
				`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"provider_metadata":{"a":{"n":2}}},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		},
		{
			ollama.Codec{},
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hello","phase":"final","meta":[1,2]},"done":true,"done_reason":"stop"}`,
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hel","phase":"analysis"},"done":false}` + "\n" +
				`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"lo","phase":"final","meta":[1,2]},"done":false}` + "\n" +
				`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n",
		},
	} {
		t.Run(string(tc.codec.Dialect()), func(t *testing.T) {
			whole, _, err := tc.codec.DecodeResponse([]byte(tc.whole), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d := tc.codec.NewStreamDecoder(dialect.DecodeOptions{})
			streamed, err := dragoman.Collect(dialect.Events(d, strings.NewReader(tc.stream)))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := streamed.Output[0].Extra, whole.Output[0].Extra; want == nil || !reflect.DeepEqual(got, want) {
				t.Errorf("streamed %+v, whole %+v", got, want)
			}
			rep := d.Report()
			if n := strings.Count(rep.String(), "changed; its last value"); n != strings.Count(tc.stream, "analysis")+strings.Count(tc.stream, `{"n":1}`) || len(rep.Losses) != n {
				t.Errorf("%d: %s", n, rep)
			}
			// The next request to the same origin has the fields and is the same for both.
			next := func(resp *dragoman.Response) string {
				req := &dragoman.Request{Model: "m", Messages: append([]dragoman.Message{dragoman.UserText("hi")}, resp.Output...)}
				req.Messages = append(req.Messages, dragoman.UserText("more"))
				enc, err := tc.codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
				if err != nil {
					t.Fatal(err)
				}
				return string(enc.Body)
			}
			if got, want := next(streamed), next(whole); got != want || !strings.Contains(got, `"phase":"final"`) {
				t.Errorf("streamed\n%s\nwhole\n%s", got, want)
			}
			// Clients of another dialect do not get the fields; the loss is reported.
			var out bytes.Buffer
			to := anthropic.Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
			err = dialect.Translate(&out, to, tc.codec.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(tc.stream))
			if rep := to.Report(); err != nil || strings.Count(rep.String(), "/output/0/phase") != 1 {
				t.Errorf("%v, %s", err, rep)
			}
		})
	}
}

func TestDecision92_UnknownFieldsOfAStreamAreBounded(t *testing.T) {
	var stream strings.Builder
	for i := range 100 {
		fmt.Fprintf(&stream, `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a","x%d":%d}}]}`+"\n\n", i, i)
	}
	fmt.Fprintf(&stream, `data: {"id":"c","choices":[{"index":0,"delta":{"x0":%q}}]}`+"\n\n", strings.Repeat("y", 100_000))
	stream.WriteString(`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	d := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	resp, err := dragoman.Collect(dialect.Events(d, strings.NewReader(stream.String())))
	if err != nil {
		t.Fatal(err)
	}
	fields := resp.Output[0].Extra.Fields
	if len(fields) != 64 || string(fields[0].Value) != "0" {
		t.Errorf("%d fields, the first is %.40s", len(fields), fields[0].Value)
	}
	rep := d.Report()
	if rep := rep.String(); !strings.Contains(rep, "field x64 ") || !strings.Contains(rep, "field x0 ") {
		t.Errorf("%.300s", rep)
	}
}

// Servers send these fields in deltas but not in messages. Groq and Mistral refuse
// unknown fields in messages.
func TestDecision92_FieldsOfChunksAreNotCollected(t *testing.T) {
	for _, field := range []string{`"channel":"analysis"`, `"index":0`, `"token_id":128009`, `"audio":{"expires_at":1}`} {
		d := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
		resp, err := dragoman.Collect(dialect.Events(d, strings.NewReader(
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a",`+field+`},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")))
		if err != nil {
			t.Fatal(err)
		}
		if rep := d.Report(); resp.Output[0].Extra != nil || len(rep.Losses) != 1 {
			t.Errorf("%s: %+v, %s", field, resp.Output[0].Extra, rep)
		}
	}
}

// Groq sends the tools that it ran two times: without and with their output.
func TestDecision92_ElementsWithAnIndexAreReplaced(t *testing.T) {
	d := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	resp, err := dragoman.Collect(dialect.Events(d, strings.NewReader(
		`data: {"id":"c","choices":[{"index":0,"delta":{"executed_tools":[{"index":0,"type":"python"}]}}]}`+"\n\n"+
			`data: {"id":"c","choices":[{"index":0,"delta":{"executed_tools":[{"index":0,"type":"python","output":"1"}]}}]}`+"\n\n"+
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")))
	if err != nil {
		t.Fatal(err)
	}
	if x := resp.Output[0].Extra; x == nil || string(x.Fields[0].Value) != `[{"index":0,"type":"python","output":"1"}]` {
		t.Errorf("%+v", x)
	}
}

// A message without parts has no PartEnd that could carry its fields.
func TestDecision92_UnknownFieldsWithoutContentAreReported(t *testing.T) {
	for _, tc := range []struct {
		codec  dialect.Codec
		stream string
	}{
		{openaichat.Codec{}, `data: {"id":"c","choices":[{"index":0,"delta":{"y":1},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
		{ollama.Codec{}, `{"model":"m","message":{"role":"assistant","content":"","y":1},"done":true,"done_reason":"stop"}` + "\n"},
	} {
		d := tc.codec.NewStreamDecoder(dialect.DecodeOptions{})
		if _, err := dragoman.Collect(dialect.Events(d, strings.NewReader(tc.stream))); err != nil {
			t.Fatal(err)
		}
		if rep := d.Report(); !strings.Contains(rep.String(), "y") || len(rep.Losses) != 1 {
			t.Errorf("%s: %s", tc.codec.Dialect(), rep)
		}
	}
}
