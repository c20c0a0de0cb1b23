package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

type city struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

// echo is a tool that returns its argument.
func echo(name string, opts ...tool.Option) tool.Tool {
	return tool.New(name, "Says it again.", func(_ context.Context, in struct {
		Text string `json:"text,omitempty"`
	},
	) (string, error) {
		return in.Text, nil
	}, opts...)
}

func mustBox(t testing.TB, tools ...tool.Tool) *tool.Box {
	t.Helper()
	box, err := tool.NewBox(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func call(id, name, args string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: name, Arguments: args}
}

// do runs one call and returns its result and record.
func do(t testing.TB, r *tool.Runner, box *tool.Box, c *dragoman.ToolCall) (*dragoman.ToolResult, tool.Record) {
	t.Helper()
	b, err := r.Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{c}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Results) != 1 || b.Results[0] == nil {
		t.Fatalf("no result: %+v", b)
	}
	return b.Results[0], b.Records[0]
}

// wantKind fails unless the call has an error result of the kind.
func wantKind(t testing.TB, res *dragoman.ToolResult, rec tool.Record, kind tool.ErrorKind) {
	t.Helper()
	outcome := codes.OutcomeOK
	if kind != "" {
		outcome = codes.OutcomeError
	}
	if rec.ErrorKind != kind || res.Outcome != outcome || rec.OK != (kind == "") {
		t.Fatalf("%s, %q, ok %v: %s", res.Outcome, rec.ErrorKind, rec.OK, res.Text())
	}
}

// withoutFence removes the fence from a text and fails if it has no fence.
func withoutFence(t testing.TB, text string) string {
	t.Helper()
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) == 3 && strings.HasPrefix(lines[1], "<<< ") {
		boundary := lines[1][4:]
		if inner, ok := strings.CutSuffix(lines[2], "\n>>> "+boundary); ok && strings.Contains(lines[0], boundary) && strings.Count(text, boundary) == 3 {
			return inner
		}
	}
	t.Fatalf("no fence around %q", text)
	return ""
}

// policyFunc is a policy made of one function.
type policyFunc func(ctx context.Context, q *tool.Question) (tool.Decision, error)

func (f policyFunc) Decide(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	return f(ctx, q)
}
func (policyFunc) Version() string { return "v1" }

type approverFunc func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error)

func (f approverFunc) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	return f(ctx, req)
}

// zeroReader is a source of randomness that returns only zeros.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var _ io.Reader = zeroReader{}

func mustJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("%T: %v", v, err))
	}
	return bytes.TrimSpace(b.Bytes())
}
