package sniff_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

// guessCase is a document and the expected guess. or is the number of other dialects
// that fit.
type guessCase struct {
	doc     string
	dialect dragoman.Dialect
	kind    sniff.Kind
	or      int
}

func (tc guessCase) check(t *testing.T) {
	t.Helper()
	g, err := sniff.Of([]byte(tc.doc), "", "")
	if err != nil || g.Dialect != tc.dialect || g.Kind != tc.kind || len(g.Or) != tc.or {
		t.Errorf("%s\nis guessed as %+v, %v", tc.doc, g, err)
	}
	if err == nil && g.Because == "" {
		t.Errorf("%s: no reason", tc.doc)
	}
}

func TestStoredJSON(t *testing.T) {
	for _, tc := range []guessCase{
		{`{"v":1,"messages":[{"role":"user","parts":[{"type":"text","text":"hi"}]}]}`, sniff.Canonical, sniff.Request, 0},
		{`{"v":99,"model":"m","messages":[]}`, sniff.Canonical, sniff.Request, 0},
		{`{"v":1,"output":[{"role":"assistant","parts":[]}]}`, sniff.Canonical, sniff.Response, 0},
		{`{"v":1,"stop":{"reason":"end"}}`, sniff.Canonical, sniff.Response, 0},
		{`{"v":1,"role":"user","parts":[{"type":"text","text":"hi"}]}`, sniff.Canonical, sniff.Messages, 0},
		{`[{"v":1,"role":"user","parts":[]}]`, sniff.Canonical, sniff.Messages, 0},
		{`{"v":1,"name":"f","parameters":"{}"}`, sniff.Canonical, sniff.Tools, 0},
		{`{"v":1,"messages":[{"role":"user","content":"hi"}]}`, dialectname.OpenAIChat, sniff.Request, 2},
		{`{"v":"1","contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, dialectname.Gemini, sniff.Request, 0},
		{`{"role":"user","parts":[{"text":"hi"}]}`, dialectname.Gemini, sniff.Messages, 0},
	} {
		tc.check(t)
	}
	if g, err := sniff.Of([]byte(`{"v":1,"messages":[{"role":"user","parts":[]}]}`), "", dialectname.OpenAIChat); err == nil && g.Dialect != dialectname.OpenAIChat {
		t.Errorf("a document specified as Chat is guessed as %v", g)
	}
}

func TestFieldsOfOneDialect(t *testing.T) {
	for _, tc := range []guessCase{
		{`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, dialectname.OpenAIChat, sniff.Request, 2},
		{`{"model":"m","messages":[{"role":"system","content":"hi"}]}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"m","messages":[{"role":"developer","content":"hi"}]}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"keep_alive":1}`, dialectname.Ollama, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"system":"s"}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"stop":["x"],"temperature":1}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, dialectname.Bedrock, sniff.Request, 0},
		{`{"messages":[{"role":"user","content":[{"text":"hi"}]}],"system":[{"text":"s"}]}`, dialectname.Bedrock, sniff.Request, 0},
		{`{"model":"m","input":"hi"}`, dialectname.OpenAIResponses, sniff.Request, 0},
		{`{"model":"m","input":"hi","text":{"format":{"type":"text"}}}`, dialectname.OpenAIResponses, sniff.Request, 0},
		{`{"model":"m","prompt":{"id":"p"},"instructions":"i"}`, dialectname.OpenAIResponses, sniff.Request, 0},
		{`{"contents":[]}`, dialectname.Gemini, sniff.Request, 0},
		{`{"choices":[]}`, dialectname.OpenAIChat, sniff.Response, 0},
		{`{"output":{"message":{}},"stopReason":"end_turn"}`, dialectname.Bedrock, sniff.Response, 0},
		{`{"message":{},"done":true}`, dialectname.Ollama, sniff.Response, 0},
		{"\xef\xbb\xbf: hello\n\ndata: {\"type\":\"message_start\"}\n\n", dialectname.Anthropic, sniff.Stream, 0},
		{"{\"message\":{},\"done\":false}\n{\"message\":{},\"done\":true}\n", dialectname.Ollama, sniff.Stream, 0},
		{`[{"candidates":[]}`, dialectname.Gemini, sniff.Stream, 0},
		{`[{"name":"f","input_schema":{}}]`, dialectname.Anthropic, sniff.Tools, 0},
		{`{"toolSpec":{"name":"f"}}`, dialectname.Bedrock, sniff.Tools, 0},
		{`{"name":"f","inputSchema":{}}`, sniff.MCP, sniff.Tools, 0},
		{`{"tools":[{"name":"f","inputSchema":{}}]}`, sniff.MCP, sniff.Tools, 0},
		{`{"type":"function","name":"f"}`, dialectname.OpenAIResponses, sniff.Tools, 0},
		{`[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"b"}]`, dialectname.OpenAIChat, sniff.Messages, 0},
		{`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}]`, dialectname.Anthropic, sniff.Messages, 0},
		{`[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}]`, dialectname.Ollama, sniff.Messages, 0},
		{`{"role":"user","content":[{"toolResult":{}}]}`, dialectname.Bedrock, sniff.Messages, 0},
		{`[{"role":"user","parts":[]}]`, dialectname.Gemini, sniff.Messages, 0},
		{`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, dialectname.OpenAIResponses, sniff.Messages, 0},
		{`{"type":"function_call_output","call_id":"c","output":"x"}`, dialectname.OpenAIResponses, sniff.Messages, 0},
		{`{"type":"local_shell_call_output","id":"c","output":"x"}`, dialectname.OpenAIResponses, sniff.Messages, 0},
		{`{"__type":"ThrottlingException","message":"slow down"}`, dialectname.Bedrock, sniff.Response, 0},
		{`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"f","inputSchema":{"type":"object"}}]}}`, sniff.MCP, sniff.Tools, 0},
		{`[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c","output":""}]`, dialectname.OpenAIResponses, sniff.Messages, 0},
		{`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, dialectname.Anthropic, sniff.Response, 0},
		{`{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`, dialectname.Gemini, sniff.Response, 0},
		{`{"error":{"message":"x","type":"invalid_request_error"}}`, dialectname.OpenAIChat, sniff.Response, 1},
		{`{"error":"model not found"}`, dialectname.Ollama, sniff.Response, 0},
		{`{"model":"command-a-03-2025","messages":[{"role":"user","content":"hi"}],"seed":1}`, "cohere.chat", sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"tool_choice":"REQUIRED","p":0.5,"frequency_penalty":0.1}`, "cohere.chat", sniff.Request, 0},
		{`{"id":"x","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"hi"}]}}`, "cohere.chat", sniff.Response, 0},
		{"event: message-start\ndata: {\"id\":\"x\",\"type\":\"message-start\"}\n\n", "cohere.chat", sniff.Stream, 0},
		{`[{"role":"user","content":"a"},{"role":"assistant","tool_plan":"p","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}]`, "cohere.chat", sniff.Messages, 0},
	} {
		tc.check(t)
	}
}

// People quote one API to another, and describe tools in its words. Quotes are inside
// texts, which are ignored.
func TestWordsInsideTextsAreIgnored(t *testing.T) {
	const quote = `say \"tool_calls\", \"tool_name\", \"image_url\", \"input_schema\", \"function\", \"tool_use\", \"inputSchema\", \"developer\"`
	for _, tc := range []guessCase{
		{`{"model":"m","system":"s","messages":[{"role":"user","content":"` + quote + `"}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","max_tokens":1,"tools":[{"name":"f","description":"` + quote + `","input_schema":{}}],"messages":[{"role":"user","content":"` + quote + `"}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"` + quote + `"}]}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","stop":"x","messages":[{"role":"user","content":"` + quote + `"}]}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","think":true,"messages":[{"role":"user","content":"` + quote + `"}]}`, dialectname.Ollama, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"` + quote + `"}]}`, dialectname.OpenAIChat, sniff.Request, 2},
		{`[{"role":"user","content":"` + quote + `"}]`, dialectname.OpenAIChat, sniff.Messages, 2},
		{`{"messages":[{"role":"user","content":[{"text":"` + quote + `"}]}]}`, dialectname.Bedrock, sniff.Request, 0},
		// The same words as property names and in arguments.
		{`{"model":"m","max_tokens":1,"tools":[{"name":"f","input_schema":{"type":"object","properties":{"function":{},"tool_calls":{}}}}],"messages":[{"role":"user","content":"x"}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{"tool_calls":[{"function":{"arguments":{}}}],"tool_name":"x"}}]}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"input_schema":{}}}}}],"messages":[{"role":"user","content":"x"}],"n":1}`, dialectname.OpenAIChat, sniff.Request, 0},
	} {
		tc.check(t)
	}
}

// Documents that were once guessed wrong.
func TestShapeOutweighsSettings(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for _, tc := range []guessCase{
		{`{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5},` + messages + `}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","max_tokens":9,"thinking":{"type":"adaptive"},` + messages + `}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","thinking":{"type":"disabled"},` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"m","max_output_tokens":9,` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 2},
		{`{"model":"m","max_output_tokens":9,"system":"s",` + messages + `}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","instructions":"i","n":1,` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","stop_sequences":["x"],"tools":[{"type":"function","function":{"name":"f"}}],` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"m","max_tokens":9,"stop_sequences":["x"],"tools":[{"type":"function","function":{"name":"f"}}],` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","stop":["x"],"tools":[{"name":"f","input_schema":{}}],` + messages + `}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","tool_choice":{"type":"any"},"max_tokens":1,` + messages + `}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","tool_choice":"auto",` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"claude-x","max_tokens":9,` + messages + `}`, dialectname.Anthropic, sniff.Request, 1},
		{`{"model":"anthropic/claude-x","max_tokens":9,` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"llama3.2:3b","stream":false,` + messages + `}`, dialectname.Ollama, sniff.Request, 2},
		{`{"model":"m","max_tokens":9,` + messages + `}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}]}`, dialectname.Anthropic, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"image","image":"a cat"}]}]}`, dialectname.OpenAIChat, sniff.Request, 1},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, dialectname.OpenAIChat, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"user","content":"see","images":["aGk="]}]}`, dialectname.Ollama, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"tool","tool_name":"f","tool_call_id":"x","content":"r"}]}`, dialectname.Ollama, sniff.Request, 0},
		{`{"system_instruction":{"parts":[]},"contents":[{"parts":[{"text":"messages"}]}]}`, dialectname.Gemini, sniff.Request, 0},
		{`{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]}]}`, dialectname.OpenAIChat, sniff.Request, 1},
	} {
		tc.check(t)
	}
}

// Requests and responses of other APIs of the same vendors are named, never guessed to
// be a chat.
func TestRequestsOfOtherAPIsAreNamed(t *testing.T) {
	for _, tc := range []struct{ doc, what string }{
		{`{"model":"m","input":"hi","encoding_format":"float"}`, "embeddings"},
		{`{"model":"m","input":["hi","ho"],"dimensions":8}`, "embeddings"},
		{`{"model":"m","input":["hi","ho"]}`, "embeddings"},
		{`{"model":"m","input":[[1,2],[3]]}`, "embeddings"},
		{`{"model":"text-embedding-3-small","input":"hi"}`, "embeddings"},
		{`{"content":{"parts":[{"text":"hi"}]},"taskType":"RETRIEVAL_QUERY"}`, "embeddings"},
		{`{"model":"m","prompt":"Once upon"}`, "completion"},
		{`{"model":"m","prompt":["Once","Twice"],"max_tokens":5,"logprobs":2}`, "completion"},
		{`{"model":"m","prompt":"Once","system":"s","options":{}}`, "completion"},
		{`{"model":"m","prompt":"\n\nHuman: hi","max_tokens_to_sample":5}`, "completion"},
		{`{"model":"m","query":"q","documents":["a"]}`, "ranking"},
		{`{"results":[{"index":0,"relevanceScore":0.5}]}`, "ranking"},
		{`{"object":"list","data":[{"object":"embedding","embedding":[0.1]}]}`, "embeddings"},
		{`{"object":"text_completion","choices":[{"text":"x","index":0}]}`, "completion"},
		{"{\"response\":\"a\",\"done\":false}\n{\"response\":\"\",\"done\":true}\n", "completion"},
		{"data: {\"object\":\"text_completion\",\"choices\":[{\"text\":\"x\"}]}\n\n", "completion"},
	} {
		g, err := sniff.Of([]byte(tc.doc), "", "")
		var not *sniff.NotChatError
		if !errors.As(err, &not) || !strings.Contains(err.Error(), tc.what) {
			t.Errorf("%s\nis guessed as %+v, %v", tc.doc, g, err)
		}
	}
	// A specified kind and dialect take precedence.
	if g, err := sniff.Of([]byte(`{"model":"m","input":"hi","dimensions":8}`), "", dialectname.OpenAIResponses); err != nil || g.Kind != sniff.Request {
		t.Errorf("%+v, %v", g, err)
	}
	var not *sniff.NotChatError
	if g, err := sniff.Of([]byte(`{"model":"m","prompt":"Once"}`), "", dialectname.OpenAIChat); !errors.As(err, &not) {
		t.Errorf("%+v, %v", g, err)
	}
}

// A document with a property of one dialect in one position, and of another dialect in
// another position, is not guessed: the error names both.
func TestContradictionIsNotGuessed(t *testing.T) {
	for _, tc := range []struct {
		doc  string
		fits []dragoman.Dialect
	}{
		{`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`, []dragoman.Dialect{dialectname.Anthropic, dialectname.OpenAIChat}},
		{`{"model":"m","tools":[{"name":"f","input_schema":{}},{"type":"function","function":{"name":"g"}}],"messages":[]}`, []dragoman.Dialect{dialectname.Anthropic, dialectname.OpenAIChat, dialectname.Ollama}},
		{`{"model":"m","system":"s","n":1,"messages":[{"role":"user","content":"hi"}]}`, []dragoman.Dialect{dialectname.Anthropic, dialectname.OpenAIChat}},
		{`{"contents":[],"messages":[]}`, []dragoman.Dialect{dialectname.Gemini, dialectname.OpenAIChat, dialectname.Anthropic, dialectname.Ollama, dialectname.Bedrock, "cohere.chat"}},
	} {
		g, err := sniff.Of([]byte(tc.doc), "", "")
		var ambiguous *sniff.AmbiguousError
		if !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.Fits, tc.fits) {
			t.Errorf("%s\nis guessed as %+v, %v", tc.doc, g, err)
			continue
		}
		for _, d := range tc.fits {
			if !strings.Contains(err.Error(), string(d)) {
				t.Errorf("the error does not name %s: %v", d, err)
			}
			if g, err := sniff.Of([]byte(tc.doc), "", d); err != nil || g.Dialect != d || g.Kind != sniff.Request || len(g.Or) > 0 {
				t.Errorf("%s\nspecified as %s is guessed as %+v, %v", tc.doc, d, g, err)
			}
		}
	}
}

func TestUnknownDocumentIsNotGuessed(t *testing.T) {
	for _, doc := range []string{"", " ", "{", "[]", "[1]", "{}", "hello", `{"answer":42}`, "\x00\x00\x00\x10", "[[", `"text"`} {
		if g, err := sniff.Of([]byte(doc), "", ""); !errors.Is(err, sniff.ErrUnknown) {
			t.Errorf("%q is guessed as %+v, %v", doc, g, err)
		}
	}
}

func TestSpecifiedDialectIsNotGuessed(t *testing.T) {
	g, err := sniff.Of([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`), "", dialectname.Ollama)
	if err != nil || g.Dialect != dialectname.Ollama || g.Kind != sniff.Request || len(g.Or) > 0 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := sniff.Of([]byte(`{"x":1}`), sniff.Response, dialectname.Gemini); err != nil || g.Dialect != dialectname.Gemini || g.Kind != sniff.Response {
		t.Errorf("%+v, %v", g, err)
	}
}

// Traffic of real clients and servers is recognized without a mistake. Plain requests
// fit several dialects: they are counted separately, and are right if the true dialect
// is among them.
func TestRecordedTrafficIsRecognized(t *testing.T) {
	for file, d := range map[string]dragoman.Dialect{
		"openai_chat": dialectname.OpenAIChat, "openai_responses": dialectname.OpenAIResponses, "anthropic_messages": dialectname.Anthropic,
		"gemini_generateContent": dialectname.Gemini, "ollama_chat": dialectname.Ollama, "bedrock_converse": dialectname.Bedrock,
	} {
		t.Run(file, func(t *testing.T) {
			counts := map[string]int{}
			check := func(x *testkit.Exchange, body []byte, kinds ...sniff.Kind) {
				g, err := sniff.Of(body, "", "")
				kind := slices.Contains(kinds, g.Kind)
				var not *sniff.NotChatError
				switch {
				case err == nil && kind && g.Dialect == d && len(g.Or) == 0:
					counts["right"]++
				case err == nil && kind && g.Dialect == d:
					counts["right, others fit"]++
				case err == nil && kind && slices.Contains(g.Or, d):
					counts["right among others"]++
				case otherAPI[x.ID()] && errors.As(err, &not):
					counts["of another API, and named"]++
				default:
					counts["wrong"]++
					t.Errorf("%s: %+v, %v\n%.500q", x.ID(), g, err, body)
				}
			}
			xs := testkit.Recordings(t, file)
			for i := range xs {
				x := &xs[i]
				if body, ok := x.Request(); ok {
					check(x, body, sniff.Request)
				}
				body, err := x.Response()
				if err != nil {
					t.Fatal(err)
				}
				if d == dialectname.Bedrock && len(body) > 0 && body[0] != '{' && body[0] != 0 {
					counts["in the recorder's own framing, not the server's"]++
					continue
				}
				if len(body) > 0 && x.Status < 400 {
					check(x, body, sniff.Response, sniff.Stream)
				}
			}
			for _, k := range slices.Sorted(maps.Keys(counts)) {
				t.Logf("%5d %s", counts[k], k)
			}
		})
	}
}

// otherAPI lists recordings that do not belong to the API of their directory.
var otherAPI = map[string]bool{
	"vercel/ai:packages/amazon-bedrock/src/reranking/__fixtures__/amazon-bedrock-reranking.1.json#0": true,
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{"data: {}\n\n", `{"messages":[{"role":"user"}]}`, `[{"name":"f"}]`, "{}\n{}", "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2H\xeb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := sniff.Of(data, "", "")
		ok := err == nil
		if ok && (g.Dialect == "" || g.Kind == "" || g.Because == "") {
			t.Errorf("half a guess: %+v", g)
		}
		if sniff.IsStream(data) && ok && g.Kind != sniff.Stream {
			t.Errorf("a stream is guessed as %+v", g)
		}
	})
}

func TestEveryGuessHasAReason(t *testing.T) {
	for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic, dialectname.Gemini, dialectname.Ollama, dialectname.Bedrock} {
		for _, doc := range []string{
			`{"contents":[{"parts":[{"text":"hi"}]}]}`, `{"model":"m","input":"hi"}`, `{"messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{}}`, `{"role":"user","parts":[{"text":"hi"}]}`,
			`[{"type":"function_call_output","call_id":"c","output":"x"}]`,
		} {
			g, err := sniff.Of([]byte(doc), "", d)
			if err != nil || g.Dialect != d || g.Because == "" {
				t.Errorf("%s, said of %s: %+v, %v", d, doc, g, err)
			}
		}
	}
}
