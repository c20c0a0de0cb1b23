package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

// script calls tools of two servers, two at a time: texts, a failure, a picture, and a question
// to the user.
const script = `
turn begin
  match turn 1
  call mcp_web__echo {"text": "one"}
  call mcp_web__fail {}
  call local_echo {"text": "two"}
  call mcp_web__picture {}
turn second
  match turn 2
  call mcp_web__ask {}
  call local_structured {}
turn end
  match turn 3
  say All done.
`

// dialects are the dialects that the simulator serves, with the path of their APIs.
var dialects = []struct {
	codec dialect.Codec
	base  string
}{
	{openaichat.Codec{}, "/v1"},
	{openairesponses.Codec{}, "/v1"},
	{anthropic.Codec{}, ""},
	{gemini.Codec{}, ""},
	{ollama.Codec{}, ""},
	{bedrock.Codec{}, ""},
	{cohere.Codec{}, ""},
}

func TestAgentUsesTwoServersOnEveryDialectWithAProviderSwitchMidway(t *testing.T) {
	scenario, err := sim.ParseScenario("mcp", script)
	if err != nil {
		t.Fatal(err)
	}
	models := httptest.NewServer(sim.Handler(sim.Config{Scenario: scenario}))
	t.Cleanup(models.Close)
	web := mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("web")
	web.Prefix = true
	local := mcp.HTTP(serveHTTP(t, sdkServer("local_"), true)).As("local")
	servers := connect(t, mcp.Options{}, web, local)
	model := func(i int) dragoman.Model {
		d := dialects[i%len(dialects)]
		return &provider.Client{Name: string(d.codec.Dialect()), Codec: d.codec, BaseURL: models.URL + d.base, Model: "sim/scenario", Retry: provider.Retry{Max: -1}}
	}
	for i := range dialects {
		t.Run(string(dialects[i].codec.Dialect()), func(t *testing.T) {
			s, err := session.Create(t.Context(), &session.Memory{}, session.Info{})
			if err != nil {
				t.Fatal(err)
			}
			first := agent.Agent{Model: model(i), ToolSource: servers.Source, Runner: &tool.Runner{Approver: approveCalls}}
			res, err := first.Run(t.Context(), "go", agent.In(s))
			if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Wanted == nil {
				t.Fatalf("%v, pending %+v", err, res.Pending)
			}
			question := res.Pending[0]
			if !strings.Contains(question.Wanted.From, `"web"`) || question.Wanted.Prompt != "Which branch?" {
				t.Errorf("question %+v", question.Wanted)
			}
			next := agent.Agent{Model: model(i + 1), ToolSource: servers.Source, Runner: &tool.Runner{Approver: approveCalls}}
			res, err = next.Resume(t.Context(), nil, agent.In(s), agent.Value(question, []byte(`{"b":"main"}`)))
			if err != nil || res.Output != "All done." {
				t.Fatalf("%v, output %q, pending %+v", err, res.Output, res.Pending)
			}
			conversation, _, err := s.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := results(conversation)
			for name, want := range map[string]string{
				"mcp_web__echo": "ok said one", "mcp_web__fail": "error no such file", "local_echo": "ok local_said two",
				"mcp_web__picture": "ok a picture", "mcp_web__ask": "ok accept main", "local_structured": "9007199254740993",
			} {
				if !strings.Contains(got[name], strings.TrimPrefix(want, "ok ")) && !strings.Contains(got[name], want) {
					t.Errorf("%s: %q, want %q", name, got[name], want)
				}
			}
			if !strings.Contains(got["mcp_web__picture"], "image/png") || !strings.HasPrefix(got["mcp_web__fail"], "error") {
				t.Errorf("results %q", got)
			}
		})
	}
}

// results returns the results of a conversation by the names of their tools.
func results(ms []dragoman.Message) map[string]string {
	out := map[string]string{}
	for i := range ms {
		for _, p := range ms[i].Parts {
			r, ok := p.(*dragoman.ToolResult)
			if !ok {
				continue
			}
			state := "ok"
			if r.Outcome == "error" {
				state = "error"
			}
			text := state + " " + r.PlainText()
			for _, c := range r.Content {
				if m, ok := c.(*dragoman.Media); ok {
					text += fmt.Sprintf(" (%s)", m.MIME)
				}
			}
			out[r.Name] = text
		}
	}
	return out
}

func TestListChangesReachTheAgentBetweenTurns(t *testing.T) {
	for _, sessions := range []bool{false, true} {
		s := sdkServer("")
		changed := make(chan struct{}, 10)
		servers := connect(t, mcp.Options{Observe: func(e mcp.Event) {
			if e.Kind == "tools" {
				changed <- struct{}{}
			}
		}}, mcp.HTTP(serveHTTP(t, s, sessions)).As("web"))
		before, err := servers.Source(t.Context())
		if err != nil || len(before) != 7 {
			t.Fatal(len(before), err)
		}
		s.RemoveTools("echo")
		for waiting, i := true, 0; waiting; i++ { // a change before the stream for changes is open is lost
			select {
			case <-changed:
				waiting = false
			case <-time.After(300 * time.Millisecond):
				s.AddTool(&sdk.Tool{Name: fmt.Sprintf("extra%d", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			}
		}
		after, err := servers.Source(t.Context())
		if err != nil || slices.ContainsFunc(after, func(t tool.Tool) bool { return t.Spec().Name == "echo" }) {
			t.Errorf("sessions %v: %d tools, %v", sessions, len(after), err)
		}
	}
}
