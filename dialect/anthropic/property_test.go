package anthropic_test

import (
	"encoding/json"
	"fmt"
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
		{Dialect: dialectname.Anthropic, Type: "server_tool_use", JSON: json.RawMessage("{\"type\":\"server_tool_use\",\n\"id\":\"s\",\"name\":\"web_search\",\"input\":{\"q\":1}}")},
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
// next message, results first, no blank text.
func checkConversation(t *rapid.T, body []byte) {
	var v struct {
		Messages []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("content must always be a list of blocks: %v", err)
	}
	var open []string
	for i, m := range v.Messages {
		if i == 0 && m.Role != "user" || i > 0 && m.Role == v.Messages[i-1].Role || len(m.Content) == 0 {
			t.Fatalf("message %d: role %s\n%s", i, m.Role, body)
		}
		var results, calls []string
		other := false
		for _, b := range m.Content {
			switch b["type"] {
			case "tool_result":
				if other {
					t.Fatalf("message %d: a result after another kind of block", i)
				}
				results = append(results, b["tool_use_id"].(string))
			case "tool_use":
				calls = append(calls, b["id"].(string))
			case "text":
				if strings.TrimSpace(b["text"].(string)) == "" {
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
		if m.Role == "user" && fmt.Sprint(results) != fmt.Sprint(open) {
			t.Fatalf("message %d answers %v, called were %v", i, results, open)
		}
		open = calls
	}
}

func TestQuirkC20_AnyEventsGiveValidStream(t *testing.T) {
	codectest.WritesAnyEvents(t, codec, drawing(), checkWire)
}

// richStream has blocks of every kind; tests cut it anywhere.
var richStream = []byte(": keep-alive\n\n" + sseStream(startLine+`
	{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
	{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"日本 🙂"}}
	{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
	{"type":"content_block_stop","index":0}
	{"type":"ping"}
	{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
	{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"é\n"}}
	{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"c"}}}
	{"type":"content_block_stop","index":1}
	{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}
	{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\":\"🙂\"}"}}
	{"type":"content_block_stop","index":2}
	{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
	{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
	{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"日\"}"}}
	{"type":"content_block_stop","index":3}
	`+endLines("tool_use")))

func TestQuirkC16_StreamChunkingDoesNotMatter(t *testing.T) {
	codectest.ReChunked(t, codec, richStream)
}
