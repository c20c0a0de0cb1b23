package bedrock_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"pgregory.net/rapid"
)

// drawing configures the generator for this wire.
func drawing() codectest.Draw {
	return codectest.Draw{Own: ownOrigin, Foreign: foreignOrigin, Native: []*dragoman.Opaque{
		{Dialect: dialectname.Bedrock, Type: "toolUse", JSON: json.RawMessage(`{"toolUse":{"toolUseId":"s","name":"nova_grounding","type":"server_tool_use","input":{"q":1}}}`)},
		{Dialect: dialectname.Bedrock, Type: "toolResult", JSON: json.RawMessage(`{"toolResult":{"toolUseId":"s","type":"x","content":[{"text":"found"}]}}`)},
		{Dialect: dialectname.Bedrock, Type: "guardContent", JSON: json.RawMessage(`{"guardContent":{}}`)},
	}}
}

func drawRequest(t *rapid.T) *dragoman.Request {
	around := requestOf()
	if rapid.Bool().Draw(t, "thinking") {
		around.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Effort: "high"}
	}
	return drawing().Request(t, *around)
}

func TestEncodingIsDeterministic(t *testing.T) {
	codectest.Deterministic(t, codec, dialect.EncodeOptions{}, drawRequest)
}

// Prompt caches depend on it: a message that was sent once is sent again byte
// for byte.
func TestAppendingKeepsEarlierMessages(t *testing.T) {
	codectest.CheckGrowth(t, codec, dialect.EncodeOptions{}, drawRequest, codectest.Growth{
		List: "messages", Settled: codectest.OutsideTurns,
		Last: func(last dragoman.Role, was, is string) bool {
			return last == dragoman.RoleAssistant || codectest.Appended(was, is)
		},
	})
}

func TestRoundTripKeepsMeaning(t *testing.T) {
	codectest.KeepsMeaning(t, codec, drawRequest, codectest.Texts, func(t *rapid.T, _, back *dragoman.Request, enc dialect.Encoded) {
		again, err := codec.EncodeRequest(back, dialect.EncodeOptions{})
		if err != nil || string(again.Body) != string(enc.Body) {
			t.Fatalf("decoding and re-encoding changed the bytes (%v)\n%s\n%s", err, enc.Body, again.Body)
		}
		checkConversation(t, enc.Body)
	})
}

// checkConversation checks a request against the rules of the API, written from
// the wire reference: user first, alternating roles, each call answered in the
// next message, results first, no blank text, objects for arguments, declared
// tools, valid names and ids.
func checkConversation(t *rapid.T, body []byte) {
	var v struct {
		Messages []struct {
			Role    string
			Content []map[string]any
		}
		ToolConfig struct {
			Tools []struct{ ToolSpec struct{ Name string } }
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("content must always be a list of blocks: %v", err)
	}
	legalName := regexp.MustCompile("^[a-zA-Z][a-zA-Z0-9_-]{0,63}$")
	legalID := regexp.MustCompile("^[a-zA-Z0-9_.:-]{1,64}$") // an id made by the API itself may contain dots
	var open []string
	for i, m := range v.Messages {
		if i == 0 && m.Role != "user" || i > 0 && m.Role == v.Messages[i-1].Role || len(m.Content) == 0 {
			t.Fatalf("message %d: role %s\n%s", i, m.Role, body)
		}
		var results, calls []string
		other := false
		for _, b := range m.Content {
			if len(b) != 1 {
				t.Fatalf("message %d: a block with %d fields", i, len(b))
			}
			for kind, value := range b {
				switch kind {
				case "toolResult":
					if other {
						t.Fatalf("message %d: a result after another kind of block", i)
					}
					res := value.(map[string]any)
					results = append(results, res["toolUseId"].(string))
					if len(res["content"].([]any)) == 0 {
						t.Fatalf("message %d: a result without content", i)
					}
				case "toolUse":
					use := value.(map[string]any)
					calls = append(calls, use["toolUseId"].(string))
					if _, ok := use["input"].(map[string]any); !ok || !legalName.MatchString(use["name"].(string)) || !legalID.MatchString(use["toolUseId"].(string)) {
						t.Fatalf("message %d: %v", i, use)
					}
					if len(v.ToolConfig.Tools) == 0 {
						t.Fatalf("message %d: calls without tools", i)
					}
				case "text":
					if strings.TrimSpace(value.(string)) == "" {
						t.Fatalf("message %d: blank text", i)
					}
					other = true
					if len(calls) > 0 {
						t.Fatalf("message %d: text after a call", i)
					}
				default:
					other = true
				}
			}
		}
		if m.Role == "user" && fmt.Sprint(results) != fmt.Sprint(open) {
			t.Fatalf("message %d answers %v, called were %v", i, results, open)
		}
		open = calls
	}
	for _, tool := range v.ToolConfig.Tools {
		if !legalName.MatchString(tool.ToolSpec.Name) {
			t.Fatalf("tool %q", tool.ToolSpec.Name)
		}
	}
}

func TestQuirkC33_AnyEventsGiveValidStream(t *testing.T) {
	codectest.WritesAnyEvents(t, codec, drawing(), checkWire)
}

// richStream has blocks of every kind; tests cut it anywhere.
var richStream = binary(startLine + `
	{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"日本 🙂"}}}}
	{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}}
	{"contentBlockStop":{"contentBlockIndex":0,"p":"abc"}}
	{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"AAEC"}}}}
	{"contentBlockStop":{"contentBlockIndex":1}}
	{"unheardOf":{"x":1}}
	{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"é\n"}}}
	{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"citation":{"title":"c"}}}}
	{"contentBlockStop":{"contentBlockIndex":2}}
	{"contentBlockStart":{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use"}}}}
	{"contentBlockDelta":{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"q\":\"🙂\"}"}}}}
	{"contentBlockStop":{"contentBlockIndex":3}}
	{"contentBlockStart":{"contentBlockIndex":4,"start":{"toolResult":{"toolUseId":"s1","type":"nova_grounding_result"}}}}
	{"contentBlockDelta":{"contentBlockIndex":4,"delta":{"toolResult":[{"text":"found"}]}}}
	{"contentBlockStop":{"contentBlockIndex":4}}
	{"contentBlockStart":{"contentBlockIndex":5,"start":{"image":{"format":"png"}}}}
	{"contentBlockDelta":{"contentBlockIndex":5,"delta":{"image":{"source":{"bytes":"AAEC"}}}}}
	{"contentBlockStop":{"contentBlockIndex":5}}
	{"contentBlockStart":{"contentBlockIndex":6,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"f"}}}}
	{"contentBlockDelta":{"contentBlockIndex":6,"delta":{"toolUse":{"input":"{\"a\":"}}}}
	{"contentBlockDelta":{"contentBlockIndex":6,"delta":{"toolUse":{"input":"\"日\"}"}}}}
	{"contentBlockStop":{"contentBlockIndex":6}}
	` + endLines("tool_use"))

func TestQuirkC16_StreamChunkingDoesNotMatter(t *testing.T) {
	codectest.ReChunked(t, codec, richStream)
}
