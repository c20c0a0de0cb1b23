package agent_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// An agent cannot answer items that wait for the client. The run fails with an error.
func TestRunFailsOnItemThatWaitsForTheClient(t *testing.T) {
	const computer = `{"type":"computer_call","id":"cu_1","call_id":"call_1","status":"completed","action":{"type":"screenshot"},"pending_safety_checks":[]}`
	const function = `{"type":"function_call","id":"fc_1","call_id":"call_2","name":"look","arguments":"{\"word\":\"x\"}","status":"completed"}`
	const approval = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"n","arguments":"{}"}`
	for _, tc := range []struct {
		name, output string
		types        []string
		text         string
	}{
		{"computer", computer, []string{"computer_call"}, ""},
		{"local shell", `{"type":"local_shell_call","id":"ls_1","call_id":"call_1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}`, []string{"local_shell_call"}, ""},
		{"shell", `{"type":"shell_call","id":"sh_1","call_id":"call_1","status":"completed","action":{"commands":["ls"]}}`, []string{"shell_call"}, ""},
		{"patch", `{"type":"apply_patch_call","id":"ap_1","call_id":"call_1","status":"completed","operation":{"type":"delete_file","path":"a"}}`, []string{"apply_patch_call"}, ""},
		{"approval of a hosted tool", `{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]},` + approval, []string{"mcp_approval_request"}, ""},
		{"with text", `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"looking","annotations":[]}]},` + computer, []string{"computer_call"}, "looking"},
		{"function call before it", function + "," + computer, []string{"computer_call"}, ""},
		{"function call after it", approval + "," + function, []string{"mcp_approval_request"}, ""},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(tc.name+map[bool]string{true: " streamed"}[streamed], func(t *testing.T) {
				codec := openairesponses.Codec{}
				resp, _, err := codec.DecodeResponse([]byte(wireTurn(codec.Dialect(), tc.output)), dialect.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				requests := 0
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					requests++
					if err := writeWire(w, codec, resp, streamed); err != nil {
						t.Error(err)
					}
				}))
				defer srv.Close()
				look := tool.New("look", "Look.", func(context.Context, word) (string, error) {
					t.Error("a call ran although an item waits for the client")
					return "", nil
				})
				a := agent.Agent{Tools: []tool.Tool{look}, Model: &provider.Client{Codec: codec, BaseURL: srv.URL, Model: "m", Retry: provider.Retry{Max: -1}}}
				var res *agent.Result
				if streamed {
					res, err = a.Stream(t.Context(), "go").Collect()
				} else {
					res, err = a.Run(t.Context(), "go")
				}
				var waiting *agent.PendingItemError
				if !errors.As(err, &waiting) || !errors.Is(err, agent.ErrResponse) || !slices.Equal(waiting.Types, tc.types) || !strings.Contains(err.Error(), tc.types[0]) {
					t.Fatalf("error %v", err)
				}
				if requests != 1 || res.Output != tc.text || len(res.Messages) < 2 {
					t.Errorf("%d requests, output %q, %d messages", requests, res.Output, len(res.Messages))
				}
				for _, call := range resp.ToolCalls() { // each has a result, so that the conversation can continue
					if text := resultText(res.Messages, call.ID); !strings.Contains(text, "look did not run") || !strings.Contains(text, tc.types[0]) {
						t.Errorf("result %q", text)
					}
				}
				if _, err := a.Resume(t.Context(), res.State); !errors.Is(err, agent.ErrResponse) || !strings.Contains(err.Error(), tc.types[0]) {
					t.Errorf("resumed: %v", err)
				}
			})
		}
	}
}

// resultText returns the text of the result of a call.
func resultText(messages []dragoman.Message, id string) string {
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok && r.CallID == id {
				return r.Text()
			}
		}
	}
	return ""
}

// A canceled run with calls that wait for approval is canceled and interrupted.
func TestCanceledRunWithPendingCallsReportsBoth(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		pay := tool.New("pay", "Pay.", func(context.Context, word) (string, error) { return "paid", nil }, tool.NeedsApproval())
		stop := tool.New("stop", "Stop.", func(context.Context, word) (string, error) {
			cancel()
			return "stopped", nil
		})
		a := agent.Agent{Model: model(calls(`a stop {"word":"x"}`, `b pay {"word":"x"}`)), Tools: []tool.Tool{pay, stop}}
		var res *agent.Result
		var err error
		if streamed {
			res, err = a.Stream(ctx, "go").Collect()
		} else {
			res, err = a.Run(ctx, "go")
		}
		cancel()
		if !errors.Is(err, agent.ErrInterrupted) || !errors.Is(err, context.Canceled) || len(res.Pending) != 1 {
			t.Errorf("streamed %v: %v, pending %v", streamed, err, res.Pending)
		}
	}
}
