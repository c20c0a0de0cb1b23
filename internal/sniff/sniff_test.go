package sniff_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/recordings"
	"github.com/dragoman-go/dragoman/internal/sniff"
)

func TestWhatItIsIsToldByMembersThatOnlyOneDialectHas(t *testing.T) {
	for _, tc := range []struct {
		doc     string
		dialect dragoman.Dialect
		kind    sniff.Kind
		or      int
	}{
		{`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, dragoman.OpenAIChat, sniff.Request, 2},
		{`{"model":"m","messages":[{"role":"system","content":"hi"}]}`, dragoman.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"keep_alive":1}`, dragoman.Ollama, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"system":"s"}`, dragoman.Anthropic, sniff.Request, 0},
		{`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, dragoman.Bedrock, sniff.Request, 0},
		{`{"model":"m","input":"hi"}`, dragoman.OpenAIResponses, sniff.Request, 0},
		{`{"contents":[]}`, dragoman.Gemini, sniff.Request, 0},
		{`{"choices":[]}`, dragoman.OpenAIChat, sniff.Response, 0},
		{`{"output":{"message":{}},"stopReason":"end_turn"}`, dragoman.Bedrock, sniff.Response, 0},
		{`{"message":{},"done":true}`, dragoman.Ollama, sniff.Response, 0},
		{"\xef\xbb\xbf: hello\n\ndata: {\"type\":\"message_start\"}\n\n", dragoman.Anthropic, sniff.Stream, 0},
		{"{\"message\":{},\"done\":false}\n{\"message\":{},\"done\":true}\n", dragoman.Ollama, sniff.Stream, 0},
		{`[{"candidates":[]}`, dragoman.Gemini, sniff.Stream, 0},
		{`[{"name":"f","input_schema":{}}]`, dragoman.Anthropic, sniff.Tools, 0},
		{`{"toolSpec":{"name":"f"}}`, dragoman.Bedrock, sniff.Tools, 0},
		{`{"name":"f","inputSchema":{}}`, sniff.MCP, sniff.Tools, 0},
		{`{"type":"function","name":"f"}`, dragoman.OpenAIResponses, sniff.Tools, 0},
		{`[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"b"}]`, dragoman.OpenAIChat, sniff.Messages, 0},
		{`[{"role":"user","parts":[]}]`, dragoman.Gemini, sniff.Messages, 0},
		{`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, dragoman.OpenAIResponses, sniff.Messages, 0},
	} {
		g, ok := sniff.Of([]byte(tc.doc), "", "")
		if !ok || g.Dialect != tc.dialect || g.Kind != tc.kind || len(g.Or) != tc.or {
			t.Errorf("%s\nis taken for %+v", tc.doc, g)
		}
		if g.Because == "" {
			t.Errorf("%s: no reason", tc.doc)
		}
	}
}

func TestWhatNobodyCouldTellIsNotGuessed(t *testing.T) {
	for _, doc := range []string{"", " ", "{", "[]", "[1]", "{}", "hello", `{"answer":42}`, "\x00\x00\x00\x10", "[[", `"text"`} {
		if g, ok := sniff.Of([]byte(doc), "", ""); ok {
			t.Errorf("%q is taken for %+v", doc, g)
		}
	}
}

func TestWhatIsSaidIsNotGuessed(t *testing.T) {
	g, ok := sniff.Of([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`), "", dragoman.Ollama)
	if !ok || g.Dialect != dragoman.Ollama || g.Kind != sniff.Request || len(g.Or) > 0 {
		t.Errorf("%+v", g)
	}
	if g, ok := sniff.Of([]byte(`{"x":1}`), sniff.Response, dragoman.Gemini); !ok || g.Dialect != dragoman.Gemini || g.Kind != sniff.Response {
		t.Errorf("%+v", g)
	}
}

// What real clients and servers sent is told apart. Plain requests that fit
// several dialects count as right when the true one is among them.
func TestRecordedTrafficIsRecognised(t *testing.T) {
	for file, d := range map[string]dragoman.Dialect{
		"openai_chat": dragoman.OpenAIChat, "openai_responses": dragoman.OpenAIResponses, "anthropic_messages": dragoman.Anthropic,
		"gemini_generateContent": dragoman.Gemini, "ollama_chat": dragoman.Ollama, "bedrock_converse": dragoman.Bedrock,
	} {
		t.Run(file, func(t *testing.T) {
			right, wrong, unsure := 0, 0, 0
			check := func(x *recordings.Exchange, body []byte, kinds ...sniff.Kind) {
				g, ok := sniff.Of(body, "", "")
				kind := false
				for _, k := range kinds {
					kind = kind || g.Kind == k
				}
				switch {
				case ok && kind && g.Dialect == d:
					right++
				case ok && kind && strings.Contains(fmt.Sprint(g.Or), string(d)):
					unsure++
				default:
					wrong++
					t.Logf("%s: %+v\n%.300q", x.ID(), g, body)
				}
			}
			xs := recordings.Load(t, file)
			for i := range xs {
				x := &xs[i]
				if body, ok := x.Request(); ok {
					check(x, body, sniff.Request)
				}
				body, err := x.Response()
				if err != nil {
					t.Fatal(err)
				}
				if d == dragoman.Bedrock && len(body) > 0 && body[0] != '{' && body[0] != 0 {
					continue // in the recorder's own framing, not the server's
				}
				if len(body) > 0 && x.Status < 400 {
					check(x, body, sniff.Response, sniff.Stream)
				}
			}
			t.Logf("%d right, %d right among others, %d wrong", right, unsure, wrong)
			if wrong*50 > right+unsure { // more than one in fifty
				t.Errorf("%d of %d are taken for something else", wrong, right+unsure+wrong)
			}
		})
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{"data: {}\n\n", `{"messages":[{"role":"user"}]}`, `[{"name":"f"}]`, "{}\n{}", "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2H\xeb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, ok := sniff.Of(data, "", "")
		if ok && (g.Dialect == "" || g.Kind == "" || g.Because == "") {
			t.Errorf("half a guess: %+v", g)
		}
		if sniff.IsStream(data) && ok && g.Kind != sniff.Stream {
			t.Errorf("a stream is taken for %+v", g)
		}
	})
}
