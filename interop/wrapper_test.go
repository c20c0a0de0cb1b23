package interop_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/interop"
)

func resolved(calls ...*dragoman.ToolCall) *dragoman.Response {
	m := dragoman.AssistantText("both at once")
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return &dragoman.Response{Output: []dragoman.Message{m}}
}

func TestQuirkB23_UndeclaredParallelWrapperIsUnfolded(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn("read"), fn("list"), fn("last")})
	resp := resolved(
		&dragoman.ToolCall{ID: "c1", Name: "parallel", Signature: "sig", Arguments: `{"tool_uses":[{"recipient_name":"functions.read","parameters":{"path":"a"}},{"recipient_name":"list","parameters":{}}]}`},
		&dragoman.ToolCall{ID: "c2", Name: "last", Arguments: `{}`},
	)
	var rep dragoman.Report
	reg.UnfoldParallel(resp, &rep)
	var got []string
	for _, c := range resp.ToolCalls() {
		got = append(got, c.ID+" "+c.Name+" "+c.Arguments+" "+c.Signature)
	}
	want := []string{`c1_0 read {"path":"a"} sig`, `c1_1 list {} `, `c2 last {} `}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if !strings.Contains(rep.String(), "2 calls") {
		t.Errorf("the report lacks the loss: %s", rep.String())
	}
}

func TestQuirkB23_AmbiguousWrapperIsKept(t *testing.T) {
	valid := `{"tool_uses":[{"recipient_name":"read","parameters":{}}]}`
	for name, tc := range map[string]struct {
		tools []dragoman.ToolSpec
		call  dragoman.ToolCall
		other string
	}{
		"the request declared it":            {tools: []dragoman.ToolSpec{fn("parallel")}, call: dragoman.ToolCall{Arguments: valid}},
		"a recipient is not declared":        {call: dragoman.ToolCall{Arguments: `{"tool_uses":[{"recipient_name":"read","parameters":{}},{"recipient_name":"rm","parameters":{}}]}`}},
		"a recipient has no name":            {call: dragoman.ToolCall{Arguments: `{"tool_uses":[{"parameters":{}}]}`}},
		"arguments are no object":            {call: dragoman.ToolCall{Arguments: `{"tool_uses":[{"recipient_name":"read","parameters":[1]}]}`}},
		"it says more":                       {call: dragoman.ToolCall{Arguments: `{"tool_uses":[{"recipient_name":"read","parameters":{},"if":"ok"}]}`}},
		"the wrapper says more":              {call: dragoman.ToolCall{Arguments: `{"tool_uses":[{"recipient_name":"read","parameters":{}}],"order":1}`}},
		"it holds no calls":                  {call: dragoman.ToolCall{Arguments: `{"tool_uses":[]}`}},
		"it is not JSON":                     {call: dragoman.ToolCall{Arguments: `{"tool_uses":[`}},
		"it must not run":                    {call: dragoman.ToolCall{Arguments: valid, Problem: &dragoman.CallProblem{Code: codes.ProblemStopped}}},
		"the provider runs it":               {call: dragoman.ToolCall{Arguments: valid, Hosted: true}},
		"an id would occur twice":            {call: dragoman.ToolCall{Arguments: valid}, other: "c1_0"},
		"it is a call of another name space": {call: dragoman.ToolCall{Arguments: valid, Namespace: "crm"}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registry(dialectname.OpenAIChat, append(tc.tools, fn("read")))
			tc.call.ID, tc.call.Name = "c1", "parallel"
			resp := resolved(&tc.call)
			if tc.other != "" {
				resp = resolved(&tc.call, &dragoman.ToolCall{ID: tc.other, Name: "read"})
			}
			var rep dragoman.Report
			reg.UnfoldParallel(resp, &rep)
			if calls := resp.ToolCalls(); calls[0] != &tc.call || len(rep.Losses) > 0 {
				t.Errorf("unfolded into %d calls, %s", len(calls), rep.String())
			}
		})
	}
}

func TestQuirkB22_DecoratedNameResolvesToOneTool(t *testing.T) {
	crm := fn("find")
	crm.Namespace = "crm"
	reg := registry(dialectname.Anthropic, []dragoman.ToolSpec{fn("Bash"), fn("read_file"), fn("get"), fn("GET"), fn("tools.odd"), crm})
	for wire, want := range map[string]string{
		"Bash":                                  "Bash",
		"default_api:Bash":                      "Bash",
		"default_api.read_file":                 "read_file",
		"functions.read_file":                   "read_file",
		" read_file\n":                          "read_file",
		"read_file<|channel|>commentary":        "read_file",
		"functions.Bash<|constrain|>json":       "Bash",
		"functions.functions. bash ":            "Bash",
		"BASH":                                  "Bash",
		"Read_File":                             "read_file",
		"crm__crm__find":                        "crm.find",
		"crm__crm__crm__find":                   "crm.find",
		"CRM__find":                             "crm.find",
		"get":                                   "get",
		"Get":                                   "Get", // two tools match
		"functions.rm":                          "functions.rm",
		"read":                                  "read", // a prefix is not a name
		"":                                      "",
		"<|channel|>":                           "<|channel|>",
		strings.Repeat("functions.", 100) + "x": strings.Repeat("functions.", 100) + "x",
	} {
		c := &dragoman.ToolCall{ID: "c", Name: wire, Arguments: "{}"}
		var rep dragoman.Report
		reg.ResolveCall(c, interop.Path{}, &rep)
		if got := c.QualifiedName(); got != want {
			t.Errorf("%q is taken for %q, want %q", wire, got, want)
		}
		decorated := want != wire && want != "crm.find" || strings.HasPrefix(wire, "crm__crm") || wire == "CRM__find"
		if reported := strings.Contains(rep.String(), "does not exist"); reported != decorated {
			t.Errorf("%q: report %q", wire, rep.String())
		}
	}
}

// Tool results use qualified names, whatever the names on the wire.
func TestQuirkB22_QualifiedNameResolvesToItsTool(t *testing.T) {
	find := fn("find")
	find.Namespace = "crm"
	merge := fn("merge")
	merge.Namespace = "crm"
	twin := fn("b.c")
	twin.Namespace = "a"
	other := fn("c")
	other.Namespace = "a.b"
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{find, merge, fn("crm.merge"), fn("calendar.add"), twin, other})
	for wire, want := range map[string]tool{
		"crm.find":           {"crm", "find"},
		"functions.crm.find": {"crm", "find"},
		" crm.find ":         {"crm", "find"},
		"calendar.add":       {"", "calendar.add"},
		"crm.merge":          {"", "crm.merge"}, // two tools have it
		"a.b.c":              {"", "a.b.c"},     // two tools have it
		"crm.":               {"", "crm."},
		"crmfind":            {"", "crmfind"},
		"find":               {"", "find"},
	} {
		c := &dragoman.ToolCall{ID: "c", Name: wire, Arguments: "{}"}
		reg.ResolveCall(c, interop.Path{}, new(dragoman.Report))
		if got := (tool{c.Namespace, c.Name}); got != want {
			t.Errorf("%q is taken for %+v, want %+v", wire, got, want)
		}
	}
}

type tool struct{ namespace, name string }

// Without a request, no tools are declared.
func TestQuirkB22_NamesWithoutARequestAreKept(t *testing.T) {
	c := &dragoman.ToolCall{ID: "c", Name: "functions.read", Arguments: "{}"}
	registry(dialectname.OpenAIChat, nil).ResolveCall(c, interop.Path{}, new(dragoman.Report))
	if c.Name != "functions.read" {
		t.Errorf("became %q", c.Name)
	}
}
