package agent_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
)

// strictServer serves a dialect: it refuses requests that break the rules of the API, and
// answers the others with the given content, one after the other, then with "done".
func strictServer(t *testing.T, codec dialect.Codec, streamed bool, turns ...string) (*provider.Client, *[]string) {
	t.Helper()
	requests := &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, string(body))
		if bad := rulecheck.Request(codec.Dialect(), body, rulecheck.Options{NoPrefill: true}); bad != nil {
			http.Error(w, fmt.Sprint(bad), http.StatusBadRequest)
			return
		}
		resp := textResponse("done")
		if n := len(*requests); n <= len(turns) {
			var err error
			if resp, _, err = codec.DecodeResponse([]byte(turns[n-1]), dialect.DecodeOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
		if err := writeWire(w, codec, resp, streamed); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	return &provider.Client{Codec: codec, BaseURL: srv.URL, Model: "claude-opus-5-5", Retry: provider.Retry{Max: -1}}, requests
}

// paused is a turn of Anthropic in which a server tool has not ended.
func paused(n int) string {
	content := fmt.Sprintf(`{"type":"text","text":"looking"},{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":"x"}}`, n)
	if n > 1 {
		content = fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]},`, n-1) + content
	}
	return strings.Replace(wireTurn(dialectname.Anthropic, content), `"end_turn"`, `"pause_turn"`, 1)
}

// A run that stopped at a pause leaves a call of the provider without its result. The next
// run of the session sends a valid conversation, to this provider and to another.
func TestQuirkI15_SessionContinuesAfterPause(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed ", streamed), func(t *testing.T) {
			run := func(a agent.Agent, s *session.Session, prompt string) (*agent.Result, error) {
				if streamed {
					return a.Stream(t.Context(), prompt, agent.In(s)).Collect()
				}
				return a.Run(t.Context(), prompt, agent.In(s))
			}
			s := must[*session.Session](t)(session.OpenOrCreate(t.Context(), &session.Memory{}, "s"))
			claude, asked := strictServer(t, anthropic.Codec{}, streamed, paused(1), paused(2))
			_, err := run(agent.Agent{Model: claude, Limits: agent.Limits{Pauses: 1}}, s, "go")
			var limit *agent.LimitError
			if !errors.As(err, &limit) {
				t.Fatalf("got %v, want a limit", err)
			}
			if want := `"content":[{"type":"text","text":"looking"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}]}]`; !strings.Contains((*asked)[1], want) {
				t.Errorf("the pause was not sent back unchanged:\n%s", (*asked)[1])
			}
			gpt, others := strictServer(t, openairesponses.Codec{}, streamed)
			for _, m := range []*provider.Client{claude, gpt, claude} {
				res, err := run(agent.Agent{Model: m}, s, "and now?")
				if err != nil || res.Output != "done" {
					t.Fatalf("got %q, %v", res.Output, err)
				}
			}
			last := (*asked)[len(*asked)-1]
			if !strings.Contains(last, `web_search_tool_result`) || strings.Contains(last, "srvtoolu_2") {
				t.Errorf("the finished search must stay, the other one go:\n%s", last)
			}
			if len(*others) != 1 || strings.Contains((*others)[0], "srvtoolu") {
				t.Errorf("another provider got %s", *others)
			}
		})
	}
}

// A run that ended because an item waits for the client leaves that item without its
// output, and the next run continues without it.
func TestL2_SessionContinuesAfterUnansweredItem(t *testing.T) {
	s := must[*session.Session](t)(session.OpenOrCreate(t.Context(), &session.Memory{}, "s"))
	gpt, asked := strictServer(t, openairesponses.Codec{}, false, wireTurn(dialectname.OpenAIResponses,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"type":"shell_call","id":"sh_1","call_id":"call_1","status":"completed","action":{"commands":["ls"]}}`))
	a := agent.Agent{Model: gpt}
	var waiting *agent.PendingItemError
	if _, err := a.Run(t.Context(), "go", agent.In(s)); !errors.As(err, &waiting) {
		t.Fatalf("got %v, want a waiting item", err)
	}
	res := must[*agent.Result](t)(a.Run(t.Context(), "and now?", agent.In(s)))
	if last := (*asked)[len(*asked)-1]; res.Output != "done" || strings.Contains(last, "shell_call") || strings.Contains(last, "rs_1") {
		t.Errorf("got %q after\n%s", res.Output, last)
	}
}
