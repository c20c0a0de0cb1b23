package bedrock_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
)

// Most models on Bedrock answer 400 to a cache point at any position.
func TestQuirkD31_NoCacheBreakpointsDropsCachePoints(t *testing.T) {
	const body = `{"toolConfig":{"tools":[{"cachePoint":{"type":"default"}},{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}},
			{"toolSpec":{"name":"g","inputSchema":{"json":{"type":"object"}}}}]},
		"system":[{"text":"s"},{"cachePoint":{"type":"default"}}],
		"messages":[{"role":"user","content":[{"cachePoint":{"type":"default"}},{"text":"q"},{"cachePoint":{"type":"default","ttl":"1h"}}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"f","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"r"}]}},{"cachePoint":{"type":"other"}}]}]}`
	req := decode(t, body)
	req.Model, req.Cache = "m", &dragoman.CacheHint{}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "f"}}}
	_, enc := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCacheBreakpoints: true}}})
	if bytes.Contains(enc.Body, []byte("cachePoint")) {
		t.Errorf("a cache point is written: %s", enc.Body)
	}
	for _, kept := range []string{`"name":"f"`, `{"text":"s"}`, `{"text":"q"}`, `"toolUseId":"1"`, `{"text":"r"}`} {
		if !bytes.Contains(enc.Body, []byte(kept)) {
			t.Errorf("%s is not written: %s", kept, enc.Body)
		}
	}
	for _, at := range []string{"/tools/0", "/tools/1", "/instructions/0", "/messages/0/parts/0", "/messages/0/parts/1", "/messages/2/parts/1", "/cache"} {
		has(t, enc.Report, dragoman.Dropped, at)
	}
	// Without capabilities the request keeps its bytes.
	if req = decode(t, body); !bytes.Equal(must(codec.EncodeRequest(req, dialect.EncodeOptions{})), []byte(body)) {
		t.Error("an unchanged request is re-encoded")
	}
}

func TestQuirkD31_CachePointMovesAfterResult(t *testing.T) {
	const before = `{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"f","input":{}}}]},{"role":"user","content":[`
	for _, point := range []string{`{"cachePoint":{"type":"default"}}`, `{"cachePoint":{"type":"default","ttl":"1h"}}`} {
		req, rep, err := codec.DecodeRequest([]byte(before+`{"toolResult":{"toolUseId":"1","content":[{"text":"r"},`+point+`]}}]}]}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has(t, rep, dragoman.Moved, "/messages/2/content/0")
		_, enc := encode(t, req, dialect.EncodeOptions{})
		want := `{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"r"}]}},` + point + `]}`
		if got := messagesOf(t, enc.Body)[2]; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		_, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCacheBreakpoints: true}}})
		if bytes.Contains(enc.Body, []byte("cachePoint")) {
			t.Errorf("a cache point is written: %s", enc.Body)
		}
	}
}

func must(enc dialect.Encoded, err error) []byte {
	if err != nil {
		panic(err)
	}
	return enc.Body
}

// Fields that a framework left on blocks collected from a stream are not sent.
// Fields that the API itself sends are kept.
func TestQuirkD32_StreamFieldsOfBlocksAreNotSent(t *testing.T) {
	clean := func(t *testing.T, body []byte) {
		t.Helper()
		for _, s := range []string{`"index"`, `"contentBlockIndex"`, `"x-sig"`, `"stray-id"`, "partial_json"} {
			if bytes.Contains(body, []byte(s)) {
				t.Errorf("%s is sent:\n%s", s, body)
			}
		}
		for _, kept := range []string{`"later":1`, `"toolUseId":"1"`, `{"a":1}`, `"text":"hi"`} {
			if !bytes.Contains(body, []byte(kept)) {
				t.Errorf("%s is not sent:\n%s", kept, body)
			}
		}
	}
	const blocks = `{"text":"hi","index":0},{"toolUse":{"toolUseId":"1","name":"f","input":{"a":1},"index":1,"signature":"x-sig","partial_json":"{","later":1},"contentBlockIndex":1}`
	after := func(resp *dragoman.Response) *dragoman.Request {
		ms := append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...)
		req := requestOf(append(ms, dragoman.ToolResults(result("1", "r")))...)
		req.Tools = []dragoman.ToolSpec{tool("f")}
		return req
	}
	t.Run("request", func(t *testing.T) {
		req, rep, err := codec.DecodeRequest([]byte(`{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[`+blocks+`]},`+
			`{"role":"user","content":[{"toolResult":{"toolUseId":"1","id":"stray-id","content":[{"text":"r"}]},"index":0}]}]}`), dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) != 7 {
			t.Fatalf("%v\n%s", err, rep)
		}
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, req, o)
			clean(t, enc.Body)
		}
	})
	t.Run("response", func(t *testing.T) {
		body := responseBody("tool_use", "["+blocks+"]")
		resp := decodeResponse(t, body)
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, after(resp), o)
			clean(t, enc.Body)
		}
		if same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil || string(same.Body) != body {
			t.Errorf("the client gets another response (%v): %s", err, same.Body)
		}
	})
	t.Run("stream", func(t *testing.T) {
		wire := binary(startLine + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"hi"}}}` + "\n" +
			`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"1","name":"f","index":1,"signature":"x-sig","later":1}}}}` + "\n" +
			`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\":1}"}}}}` + "\n" + endLines("tool_use"))
		evs, err := drain(dialect.DecodeOptions{}, wire)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := codectest.Collect(evs)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, after(resp), o)
			clean(t, enc.Body)
		}
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(lines(t, out), "x-sig") || !strings.Contains(lines(t, out), `"later":1`) {
			t.Errorf("the client gets %s", lines(t, out))
		}
	})
}
