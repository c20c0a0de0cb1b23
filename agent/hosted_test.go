package agent_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
)

// hostedTurns are responses of real wires in which only tools of the provider ran, and
// similar responses that are final.
var hostedTurns = []struct {
	name  string
	codec dialect.Codec
	// turn holds the items, blocks or parts of the response.
	turn  string
	final bool
}{
	{"web search", openairesponses.Codec{}, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`, false},
	{"file search", openairesponses.Codec{}, `{"type":"file_search_call","id":"fs_1","status":"completed","queries":["x"],"results":null}`, false},
	{"code interpreter", openairesponses.Codec{}, `{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1","container_id":"c","outputs":null}`, false},
	{"MCP", openairesponses.Codec{}, `{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]},{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"n","arguments":"{}","output":"x"}`, false},
	{"tool search", openairesponses.Codec{}, `{"type":"tool_search_call","id":"ts_1","call_id":null,"execution":"server","status":"completed","arguments":{"q":"x"}},{"type":"tool_search_output","id":"tso_1","call_id":null,"execution":"server","status":"completed","tools":[]}`, false},
	{"image", openairesponses.Codec{}, `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGVsbG8="}`, true},
	{"hosted shell", openairesponses.Codec{}, `{"type":"shell_call","id":"sh_1","call_id":"call_1","status":"completed","action":{"commands":["ls"]}},{"type":"shell_call_output","id":"sho_1","call_id":"call_1","output":[]}`, false},
	{"web search", anthropic.Codec{}, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`, false},
	{"MCP", anthropic.Codec{}, `{"type":"mcp_tool_use","id":"mcptoolu_1","name":"n","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]}`, false},
	{"with text", anthropic.Codec{}, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"found"}`, true},
	{"unknown block", anthropic.Codec{}, `{"type":"container_upload","file_id":"file_1"}`, true},
	{"code execution", gemini.Codec{}, `{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`, false},
	{"grounding", bedrock.Codec{}, `{"toolUse":{"toolUseId":"t1","name":"nova_grounding","type":"server_tool_use","input":{}}},{"toolResult":{"toolUseId":"t1","type":"nova_grounding_result","content":[{"json":{}}]}}`, false},
}

// wireTurn returns a whole response with the given content.
func wireTurn(d dragoman.Dialect, content string) string {
	switch d {
	case dialectname.OpenAIResponses:
		return `{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[` + content + `],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	case dialectname.Anthropic:
		return `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + content + `],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	case dialectname.Gemini:
		return `{"candidates":[{"content":{"role":"model","parts":[` + content + `]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`
	default:
		return `{"output":{"message":{"role":"assistant","content":[` + content + `]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`
	}
}

func TestL2_HostedTurnContinuesOnEveryWire(t *testing.T) {
	for _, tc := range hostedTurns {
		for _, streamed := range []bool{false, true} {
			name := string(tc.codec.Dialect()) + " " + tc.name
			if streamed {
				name += " streamed"
			}
			t.Run(name, func(t *testing.T) {
				first, _, err := tc.codec.DecodeResponse([]byte(wireTurn(tc.codec.Dialect(), tc.turn)), dialect.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var requests []string
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					resp := first
					if requests = append(requests, string(body)); len(requests) > 1 {
						resp = textResponse("done")
					}
					if err := writeWire(w, tc.codec, resp, streamed); err != nil {
						t.Error(err)
					}
				}))
				defer srv.Close()
				a := agent.Agent{Model: &provider.Client{Codec: tc.codec, BaseURL: srv.URL, Model: "m", Retry: provider.Retry{Max: -1}}}
				var res *agent.Result
				if streamed {
					res, err = a.Stream(t.Context(), "go").Collect()
				} else {
					res, err = a.Run(t.Context(), "go")
				}
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case tc.final && (len(requests) != 1 || res.Turns != 1):
					t.Errorf("final response, but %d requests and output %q", len(requests), res.Output)
				case !tc.final && (len(requests) != 2 || res.Output != "done" || res.Turns != 2):
					t.Errorf("%d requests, output %q", len(requests), res.Output)
				case !tc.final && !strings.Contains(requests[1], tc.turn):
					t.Errorf("the turn was not sent back unchanged:\n%s", requests[1])
				}
			})
		}
	}
}

// writeWire writes a response as a server does.
func writeWire(w io.Writer, codec dialect.Codec, resp *dragoman.Response, streamed bool) error {
	if !streamed {
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
		if err == nil {
			_, err = w.Write(enc.Body)
		}
		return err
	}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
	head := *resp
	head.Output, head.Stop = nil, dragoman.Stop{}
	events := []dragoman.Event{&dragoman.ResponseStart{Response: head}}
	index := 0
	for n, m := range resp.Output {
		for j, p := range m.Parts {
			start := &dragoman.PartStart{Index: index, Message: n, Part: p}
			if j == 0 {
				header := m
				header.Parts = nil
				start.Header = &header
			}
			if t, ok := p.(*dragoman.Text); ok {
				start.Part = &dragoman.Text{}
				events = append(events, start, &dragoman.PartDelta{Index: index, Kind: codes.KindText, Text: t.Text})
			} else {
				events = append(events, start)
			}
			events = append(events, &dragoman.PartEnd{Index: index, Part: p})
			index++
		}
	}
	events = append(events, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: head})
	var out []byte
	for _, ev := range events {
		var err error
		if out, err = enc.Encode(out, ev); err != nil {
			return err
		}
	}
	out, err := enc.Close(out)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// A forced choice is reset after a hosted tool satisfied it; otherwise the model would never
// give a final answer.
func TestL4_ForcedChoiceIsResetAfterHostedTools(t *testing.T) {
	searched := &dragoman.Response{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Output: []dragoman.Message{{
		Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Opaque{Dialect: dialectname.OpenAIResponses, Type: "web_search_call", Hosted: true}},
	}}}
	for _, keep := range []bool{false, true} {
		m := model(searched, textResponse("done"))
		a := agent.Agent{Model: m, KeepToolChoice: keep}
		a.Settings.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if len(m.asked) != 2 || m.asked[0].ToolChoice == nil || (m.asked[1].ToolChoice != nil) != keep {
			t.Errorf("keep %v: %d requests, then %+v", keep, len(m.asked), m.asked[len(m.asked)-1].ToolChoice)
		}
	}
}
