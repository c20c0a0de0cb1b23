package main

import (
	"bytes"
	"strings"
	"testing"
)

// A stream that stays in its dialect keeps its bytes unless --model changes it.
func TestConvertKeepsBytesOfUnchangedStream(t *testing.T) {
	stream := ": hi\r\n\r\n" + `data: {"id":"r" , "object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"h\u0069"},"token_id":7,"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	var out, stderr bytes.Buffer
	if code := run([]string{"convert", "--to", "chat", "--kind", "stream", "--from", "chat"}, strings.NewReader(stream), &out, &stderr); code != exitOK || out.String() != stream {
		t.Errorf("%d, %s\n%s", code, stderr.String(), out.String())
	}
	out.Reset()
	if code := run([]string{"convert", "--to", "chat", "--kind", "stream", "--from", "chat", "--model", "other"}, strings.NewReader(stream), &out, &stderr); code != exitOK ||
		!strings.Contains(out.String(), `"token_id":7`) || strings.Contains(out.String(), `"model":"m"`) {
		t.Errorf("%d, %s\n%s", code, stderr.String(), out.String())
	}
}
