package openaichat_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Some servers send arguments before the name of their call. They are sent to the client once.
func TestQuirkC5_ArgumentsBeforeNameAreSentOnce(t *testing.T) {
	chunk := func(call string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[` + call + `]},"finish_reason":null}]}` + "\n\n"
	}
	const end = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for _, named := range []string{
		`{"index":0,"id":"call_1","id":"call_1","type":"function","function":{"name":"f","name":"f","arguments":"1}"}}`,
		`{"index":0,"id":"call_1","type":"function","function":{"name":"f","name":"f","arguments":"1}"}}`,
		`{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"1}"}}`,
	} {
		for _, fragments := range [][]string{{`{\"a\":`}, {`{\"a`, `\":`}} {
			wire := ""
			for _, p := range fragments {
				wire += chunk(`{"index":0,"function":{"arguments":"` + p + `"}}`)
			}
			wire += chunk(named) + end
			var out bytes.Buffer
			enc := codec.NewStreamEncoder(dialect.EncodeOptions{})
			if err := dialect.Translate(&out, enc, codec.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(wire)); err != nil {
				t.Fatal(err)
			}
			var col dragoman.Collector
			d := codec.NewStreamDecoder(dialect.DecodeOptions{})
			emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
			if err := d.Feed(out.Bytes(), emit); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(emit); err != nil {
				t.Fatal(err)
			}
			resp, err := col.Response()
			if err != nil {
				t.Fatal(err)
			}
			calls := resp.ToolCalls()
			if len(calls) != 1 || calls[0].ID != "call_1" || calls[0].Name != "f" || calls[0].Arguments != `{"a":1}` {
				t.Errorf("%s after %q: %+v\n%s", named, fragments, calls, out.String())
			}
		}
	}
}
