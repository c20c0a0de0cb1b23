package tool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

func TestI2_ToolsAndCallsHaveOneKey(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec dragoman.ToolSpec
		call dragoman.ToolCall
		want tool.Key
	}{
		{"bare", dragoman.ToolSpec{Name: "a"}, dragoman.ToolCall{Name: "a"}, toolopt.Bare("a")},
		{"namespaced", dragoman.ToolSpec{Namespace: "n", Name: "a"}, dragoman.ToolCall{Namespace: "n", Name: "a"}, toolopt.Namespaced("n", "a")},
		{"namespaced and deferred", dragoman.ToolSpec{Namespace: "n", Name: "a", Deferred: true}, dragoman.ToolCall{Namespace: "n", Name: "a"}, toolopt.Namespaced("n", "a")},
		{"deferred", dragoman.ToolSpec{Name: "a", Deferred: true}, dragoman.ToolCall{Namespace: "a", Name: "a"}, toolopt.Deferred("a")},
	} {
		if got := tool.KeyOf(&tc.spec); got != tc.want {
			t.Errorf("%s: the tool answers to %v", tc.name, got)
		}
		if got := tool.KeyOfCall(&tc.call); got != tc.want {
			t.Errorf("%s: the call asks for %v", tc.name, got)
		}
	}
	box := mustBox(t, echo("a", tool.Deferred()))
	if _, found := box.Find(toolopt.Bare("a")); found {
		t.Error("a deferred tool answers to its bare name")
	}
	if _, found := box.Find(toolopt.Deferred("a")); !found {
		t.Error("a deferred tool does not answer to its own key")
	}
}

// Collisions of names between bare, namespaced, deferred, MCP, local and handoff tools.
func TestI4_NameCollisionsAreErrors(t *testing.T) {
	bare := func(n string) tool.Named { return tool.Named{Spec: &dragoman.ToolSpec{Name: n}} }
	in := func(ns, n string) tool.Named {
		return tool.Named{Spec: &dragoman.ToolSpec{Namespace: ns, Name: n, NamespaceDescription: "d"}}
	}
	deferred := func(n string) tool.Named {
		return tool.Named{Spec: &dragoman.ToolSpec{Name: n, Deferred: true}}
	}
	from := func(s string, n tool.Named) tool.Named { n.Source = s; return n }
	other := in("n", "b")
	other.Spec.NamespaceDescription = "another"
	later := in("n", "b")
	later.Spec.Deferred = true
	for _, tc := range []struct {
		name  string
		tools []tool.Named
		want  string // part of the error; empty means no error
		won   int    // number of tools that remain with "win"
	}{
		{"nothing", nil, "", 0},
		{"two bare names", []tool.Named{bare("a"), bare("a")}, `two tools are named "a" (local and local)`, 2},
		{"bare and deferred siblings", []tool.Named{bare("a"), deferred("a")}, "", 2},
		{"two deferred", []tool.Named{deferred("a"), deferred("a")}, `two deferred tools are named "a"`, 2},
		{"one name in two namespaces", []tool.Named{in("n", "a"), in("m", "a")}, "", 2},
		{"one name twice in a namespace", []tool.Named{in("n", "a"), in("n", "a")}, `two tools are named "n.a"`, 2},
		{"bare and namespaced", []tool.Named{bare("a"), in("n", "a")}, "", 2},
		{"a dotted bare name against namespace and name", []tool.Named{bare("n.a"), in("n", "a")}, `"n.a" is ambiguous`, 2},
		{"the approval key of a deferred tool", []tool.Named{deferred("a"), bare("deferred_top_level:a")}, `the same key for approvals, "deferred_top_level:a"`, 2},
		{"a dotted deferred name against namespace and name", []tool.Named{deferred("n.a"), in("n", "a")}, "", 2},
		{"the reserved shape", []tool.Named{in("a", "a")}, "looks like a call of a deferred tool", 1},
		{"two descriptions of a namespace", []tool.Named{in("n", "a"), other}, "give all its tools one description", 2},
		{"immediate and deferred members of a namespace", []tool.Named{in("n", "a"), later}, "", 2},
		{"no name", []tool.Named{bare("")}, "has no name", 1},
		{"MCP against local", []tool.Named{from(codes.FromMCP, bare("a")), bare("a")}, "(mcp and local)", 1},
		{"handoff against local", []tool.Named{bare("a"), from(codes.FromHandoff, bare("a"))}, "(local and handoff)", 1},
		{"handoff against MCP", []tool.Named{from(codes.FromMCP, bare("a")), from(codes.FromHandoff, bare("a"))}, "(mcp and handoff)", 1},
		{"all three", []tool.Named{from(codes.FromMCP, bare("a")), bare("a"), from(codes.FromHandoff, bare("a"))}, "two tools", 1},
		{"two of MCP", []tool.Named{from(codes.FromMCP, bare("a")), from(codes.FromMCP, bare("a"))}, "(mcp and mcp)", 2},
		{"a dotted MCP name against a local namespace", []tool.Named{from(codes.FromMCP, bare("n.a")), in("n", "a")}, "is ambiguous", 1},
		{"MCP deferred against local bare", []tool.Named{from(codes.FromMCP, deferred("a")), bare("a")}, "", 2},
	} {
		err := tool.CheckNames(tc.tools)
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, tool.ErrNames) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		stay, lost := tool.Winners(tc.tools)
		if len(stay) != tc.won || len(stay)+len(lost) != len(tc.tools) {
			t.Errorf("%s: %v stay, %q give way, want %d", tc.name, stay, lost, tc.won)
		}
	}
}

func TestI3_NamespaceConflictsAreErrors(t *testing.T) {
	if _, err := tool.NewBox(echo("a", tool.InNamespace("crm", "Customers")), echo("b", tool.InNamespace("crm", "Customers"), tool.Deferred())); err != nil {
		t.Errorf("immediate and deferred members of one namespace: %v", err)
	}
	for name, tools := range map[string][]tool.Tool{
		"a tool of its own name": {echo("crm", tool.InNamespace("crm", "Customers"))},
		"two descriptions":       {echo("a", tool.InNamespace("crm", "Customers")), echo("b", tool.InNamespace("crm", "Orders"))},
	} {
		if _, err := tool.NewBox(tools...); !errors.Is(err, tool.ErrNames) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestI4_AllNameErrorsAreReported(t *testing.T) {
	_, err := tool.NewBox(echo("a"), echo("a"), echo("n", tool.InNamespace("n", "d")), echo(""))
	for _, want := range []string{`two tools are named "a"`, "the namespace \"n\" has a tool of the same name", "it has no name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestI1_CollisionsBetweenSourcesAreResolved(t *testing.T) {
	mcp := func(s *tool.Settings) { s.Source = codes.FromMCP }
	box, err := tool.Config{Collisions: "win"}.Box(echo("a", tool.Set(mcp)), echo("b", tool.Set(mcp)))
	if err != nil {
		t.Fatal(err)
	}
	more, err := box.With(echo("a"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(b *tool.Box) (out []string) {
		for _, l := range b.List() {
			out = append(out, l.Source+":"+l.Name)
		}
		return out
	}
	if got := names(more); !slices.Equal(got, []string{"mcp:b", ":a"}) || len(more.Shadowed()) != 1 {
		t.Errorf("%q, lost %q", got, more.Shadowed())
	}
	if got := names(box); !slices.Equal(got, []string{"mcp:a", "mcp:b"}) {
		t.Errorf("the original changed: %q", got)
	}
}

func TestI5_SyntheticNamespaceIsRemovedForTheHandler(t *testing.T) {
	k := toolopt.Deferred("a")
	c := dragoman.ToolCall{ID: "1", Namespace: "a", Name: "a"}
	if got := k.Call(c, true); got.Namespace != "" || got.Name != "a" {
		t.Errorf("the handler's: %q.%q", got.Namespace, got.Name)
	}
	if got := k.Call(c, false); got.Namespace != "a" {
		t.Errorf("the others': %q.%q", got.Namespace, got.Name)
	}
	if k.CallNamespace() != "a" || toolopt.Bare("a").CallNamespace() != "" || toolopt.Namespaced("n", "a").CallNamespace() != "n" {
		t.Error("a namespace is not restored from its key")
	}
	var asked tool.Key
	var handler tool.Info
	box := mustBox(t, tool.New("a", "", func(ctx context.Context, _ struct{}) (string, error) {
		handler, _ = tool.InfoFrom(ctx)
		return "", nil
	}, tool.Deferred(), tool.NeedsApproval()))
	r := &tool.Runner{Approver: approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		asked = req.Binding.Key
		return tool.Answer{Verdict: tool.Approved}, nil
	})}
	res, rec := do(t, r, box, &c)
	wantKind(t, res, rec, "")
	if asked != k || rec.Key != k || handler.Key != k || res.Namespace != "a" {
		t.Errorf("approval %v, record %v, handler %v, result %q", asked, rec.Key, handler.Key, res.Namespace)
	}
}

func TestI6_ApprovalKeysNeverFallBackToAnotherTool(t *testing.T) {
	box := mustBox(t, echo("a"), echo("a", tool.InNamespace("n", "d")), echo("a", tool.Deferred()), echo("b", tool.Deferred()), echo("n.a", tool.Deferred()))
	for k, want := range map[tool.Key][]string{
		toolopt.Bare("a"):            {"a"},
		toolopt.Namespaced("n", "a"): {"n.a"},
		toolopt.Deferred("a"):        {"deferred_top_level:a"},
		toolopt.Deferred("b"):        {"deferred_top_level:b", "b"},
		// The dotted name is also the key of the tool in the namespace.
		toolopt.Deferred("n.a"): {"deferred_top_level:n.a"},
	} {
		if got := box.ApprovalKeys(k); !slices.Equal(got, want) {
			t.Errorf("%v is filed under %q, want %q", k, got, want)
		}
	}
}

func TestI7_TraceNameDefaultsToTheQualifiedName(t *testing.T) {
	if got := toolopt.Deferred("a").TraceName(""); got != "a" {
		t.Errorf("a deferred call is traced as %q", got)
	}
	if got := toolopt.Namespaced("n", "a").TraceName(""); got != "n.a" {
		t.Errorf("%q", got)
	}
	box := mustBox(t, echo("a", tool.Set(func(s *tool.Settings) { s.TraceName = "shown" })))
	if _, rec := do(t, &tool.Runner{}, box, call("1", "a", "")); rec.Trace != "shown" {
		t.Errorf("traced as %q", rec.Trace)
	}
}

func TestI8_CallIDIsNotTheToolIdentity(t *testing.T) {
	box := mustBox(t, echo("a"), echo("b"))
	res, rec := do(t, &tool.Runner{}, box, call("b", "a", `{"text":"x"}`))
	if wantKind(t, res, rec, ""); rec.Tool != "a" || res.CallID != "b" {
		t.Errorf("%s answered %s", rec.Tool, res.CallID)
	}
}

func TestI9_GeneratedNamesAreUnique(t *testing.T) {
	taken := map[string]bool{"transfer_to_billing_agent": true, "transfer_to_billing_agent_2": true}
	if got := toolname.Handoff("Billing Agent", func(s string) bool { return taken[s] }); got != "transfer_to_billing_agent_3" {
		t.Errorf("%q", got)
	}
	if got := toolname.Handoff("Übersetzer", nil); got != "transfer_to__bersetzer" {
		t.Errorf("%q", got)
	}
}

func TestI1_KeyRoundTripsThroughText(t *testing.T) {
	part := rapid.StringOf(rapid.SampledFrom([]rune("ab:%.25é3A")))
	rapid.Check(t, func(t *rapid.T) {
		draw := func() tool.Key {
			name := part.Draw(t, "name")
			return rapid.SampledFrom([]tool.Key{toolopt.Bare(name), toolopt.Deferred(name), toolopt.Namespaced(part.Draw(t, "ns"), name), {}}).Draw(t, "key")
		}
		a, b := draw(), draw()
		text, err := a.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back tool.Key
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Fatalf("%v is stored as %q and read as %v (%v)", a, text, back, err)
		}
		if other, _ := b.MarshalText(); a != b && string(other) == string(text) {
			t.Fatalf("%v and %v are both stored as %q", a, b, text)
		}
	})
	for _, bad := range []string{"a", "bare", "bare:a:b", "namespaced:a", "other:a", "bare:%zz", "bare:%2A"} {
		var k tool.Key
		if err := k.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, k)
		}
	}
}

func TestQuirkI10_UnknownToolErrorSuggestsTheNearestName(t *testing.T) {
	box := mustBox(t, echo("get_weather"), echo("get_time"), echo("secret", tool.Deferred()))
	res, rec := do(t, &tool.Runner{}, box, call("1", "getWeather", "{}"))
	wantKind(t, res, rec, tool.ErrorUnknownTool)
	text := res.Text()
	if !strings.Contains(text, "Did you mean get_weather") || !strings.Contains(text, "get_time") || strings.Contains(text, "secret") {
		t.Errorf("%q", text)
	}
	if rec.Executed {
		t.Error("counted as an execution")
	}
	if res, rec := do(t, &tool.Runner{}, nil, call("1", "x", "{}")); rec.ErrorKind != tool.ErrorUnknownTool || !strings.Contains(res.Text(), "There are no tools") {
		t.Errorf("without a toolbox: %s", res.Text())
	}
}
