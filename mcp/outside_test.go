package mcp_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// fixedModel answers every request with a text, and counts them.
type fixedModel struct{ asked atomic.Int32 }

func (m *fixedModel) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	m.asked.Add(1)
	return &dragoman.Response{Model: "m-1", Output: []dragoman.Message{dragoman.AssistantText("summary of " + req.Messages[0].Text())}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}, nil
}

func (m *fixedModel) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return nil
}

// samplingServer has a tool that asks for a model request, and for the folders of the client.
func samplingServer(t *testing.T) (mcp.Server, *atomic.Pointer[string]) {
	responses := &atomic.Pointer[string]{}
	return rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, params map[string]json.RawMessage) string {
		switch method {
		case "tools/list":
			return rawTools(rawTool("summarize", ""))
		case "tools/call":
			if got := params["inputResponses"]; got != nil {
				responses.Store(new(string(got)))
				return rawDone
			}
			if strings.Contains(string(params["_meta"]), `"sampling"`) {
				return `{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"},"s":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"a long story"}}],"maxTokens":50}}},"requestState":"s"}`
			}
			return rawDone
		}
		return rawDiscover
	}), responses
}

func TestSamplingNeedsAnApprovalAndRootsNone(t *testing.T) {
	s, responses := samplingServer(t)
	model := &fixedModel{}
	servers := connect(t, mcp.Options{Sampling: model, Roots: []string{"/work"}}, s)
	var seen []*tool.ApprovalRequest
	run(t, &tool.Runner{Approver: approver(`{}`, &seen)}, servers.Tools(), "summarize", "{}")
	if got := responses.Load(); got == nil || !strings.Contains(*got, "summary of a long story") || !strings.Contains(*got, `"uri":"file:///work"`) || model.asked.Load() != 1 {
		t.Fatalf("responses %v, asked %d", got, model.asked.Load())
	}
	if q := seen[len(seen)-1]; q.Wanted == nil || !strings.Contains(q.Wanted.Prompt, "a long story") || len(seen) != 2 {
		t.Errorf("asked %+v", seen)
	}
	responses.Store(nil)
	reject := &tool.Runner{Approver: policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		if req.Wanted != nil {
			return tool.Answer{Verdict: tool.Rejected}, nil
		}
		return tool.Answer{Verdict: tool.Approved}, nil
	})}
	b, got := run(t, reject, servers.Tools(), "summarize", "{}")
	if b.Records[0].OK || model.asked.Load() != 1 || responses.Load() != nil || !strings.Contains(got, "answer from the user") {
		t.Errorf("%q, asked %d", got, model.asked.Load())
	}
}

func TestSamplingIsNotOfferedWithoutAModel(t *testing.T) {
	s, responses := samplingServer(t)
	_, got := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, connect(t, mcp.Options{}, s).Tools(), "summarize", "{}")
	if !strings.Contains(got, "done") || responses.Load() != nil {
		t.Errorf("%q", got)
	}
}

func TestQuestionsOutsideOfCallsGoToTheApproverOfTheOptions(t *testing.T) {
	var answered atomic.Pointer[string]
	s := rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, params map[string]json.RawMessage) string {
		switch method {
		case "server/discover":
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}},"ttlMs":0,"cacheScope":"private"}`
		case "prompts/get":
			if got := params["inputResponses"]; got != nil {
				answered.Store(new(string(got)))
				return `{"resultType":"complete","messages":[]}`
			}
			return `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}}}`
		}
		return ""
	})
	var seen []*tool.ApprovalRequest
	for approve, want := range map[bool]string{true: `"accept"`, false: `"cancel"`} {
		o := mcp.Options{}
		if approve {
			o.Approver = approver(`{"n":"me"}`, &seen)
		}
		if _, err := connect(t, o, s).GetPrompt(t.Context(), "hostile", "p", nil); err != nil {
			t.Fatal(err)
		}
		if got := answered.Load(); got == nil || !strings.Contains(*got, want) {
			t.Errorf("approver %v: %v", approve, *got)
		}
	}
	if len(seen) != 1 || !strings.Contains(seen[0].Wanted.From, "hostile") {
		t.Errorf("asked %+v", seen)
	}
}

func TestToolsOutsideOfAPipelineDeclineQuestions(t *testing.T) {
	servers := connect(t, mcp.Options{}, mcp.HTTP(serveHTTP(t, sdkServer(""), false)).As("web"))
	for _, tl := range servers.Tools() {
		if tl.Spec().Name != "ask" {
			continue
		}
		out, err := tl.Call(t.Context(), tool.Input{Arguments: json.RawMessage("{}")})
		if err != nil || !strings.Contains(out.Content[0].(*dragoman.Text).Text, "cancel") {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
