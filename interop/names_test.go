package interop_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
	"pgregory.net/rapid"
)

func TestQuirkA34_ValidNameIsItsOwnWireName(t *testing.T) {
	for _, name := range []string{"a", "get_weather", "Get-Weather-9", "_x", strings.Repeat("n", 64)} {
		reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn(name)})
		if got := reg.WireName("", name); got != name {
			t.Errorf("WireName(%q) = %q", name, got)
		}
	}
}

func TestQuirkA34_InvalidNameIsSanitizedAndHashed(t *testing.T) {
	chat := targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64}
	bedrock := targets.NameRule{First: "a-zA-Z", Rest: "a-zA-Z0-9_-", Max: 64}
	gemini := targets.NameRule{First: "a-zA-Z_", Rest: "a-zA-Z0-9_.:-", Max: 63}
	alnum := targets.NameRule{Rest: "a-zA-Z0-9", Max: 20}
	for _, tc := range []struct {
		name   string
		rule   targets.NameRule
		public string
		prefix string
	}{
		{"a dot", chat, "calendar.respondToEvent", "calendar_respondToEvent_"},
		{"a slash", chat, "a/b", "a_b_"},
		{"too long", chat, strings.Repeat("x", 65), strings.Repeat("x", 55) + "_"},
		{"letters of no wire", chat, "天気", "______"},
		{"nothing at all", chat, "", ""},
		{"a digit first", bedrock, "9lives", "t9lives_"},
		{"a forbidden first", bedrock, ".x", "t"},
		{"a digit first where _ is allowed", gemini, "9lives", "_9lives_"},
		{"no separator allowed", alnum, "a_b", "ab"},
		{"a very short rule", targets.NameRule{Rest: "a-z0-9_", Max: 5}, "Hello World", ""},
		{"the shortest rule", targets.NameRule{Rest: "a-z", Max: 1}, "Hello", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn(tc.public)}, func(o *interop.Options) { o.Limits.Name = tc.rule })
			wire := reg.WireName("", tc.public)
			if tc.rule.Max != 1 && tc.rule.Max != 5 && !tc.rule.Allows(wire) {
				t.Fatalf("WireName(%q) = %q, which the rule forbids", tc.public, wire)
			}
			if tc.rule.Max > 0 && len(wire) > tc.rule.Max {
				t.Errorf("WireName(%q) = %q, longer than %d", tc.public, wire, tc.rule.Max)
			}
			if !strings.HasPrefix(wire, tc.prefix) {
				t.Errorf("WireName(%q) = %q, want prefix %q", tc.public, wire, tc.prefix)
			}
			if _, back, _ := reg.PublicName("", wire); back != tc.public {
				t.Errorf("PublicName(%q) = %q, want %q", wire, back, tc.public)
			}
		})
	}
}

func TestQuirkA34_TruncatedNameIsValidUTF8(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil, func(o *interop.Options) { o.Limits.Name = targets.NameRule{Max: 20} })
	public := strings.Repeat("é", 30)
	wire := reg.WireName("", public)
	if !strings.HasPrefix(wire, "é") || strings.ToValidUTF8(wire, "?") != wire || len(wire) > 20 {
		t.Errorf("WireName = %q", wire)
	}
}

func TestQuirkA35_NamesWithEqualSanitizedFormStayDistinct(t *testing.T) {
	tools := []dragoman.ToolSpec{fn("a.b"), fn("a_b"), fn("a/b")}
	reg := registry(dialectname.OpenAIChat, tools)
	seen := map[string]string{}
	for _, s := range tools {
		w := reg.WireName("", s.Name)
		if other, dup := seen[w]; dup {
			t.Errorf("%q and %q are both %q", s.Name, other, w)
		}
		seen[w] = s.Name
	}
	if reg.WireName("", "a_b") != "a_b" {
		t.Error("the legal name was changed")
	}
}

func TestQuirkA35_NameThatLooksLikeAnAliasIsKept(t *testing.T) {
	alias := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn("a.b")}).WireName("", "a.b")
	for _, tools := range [][]dragoman.ToolSpec{{fn("a.b"), fn(alias)}, {fn(alias), fn("a.b")}} {
		reg := registry(dialectname.OpenAIChat, tools)
		if got := reg.WireName("", alias); got != alias {
			t.Errorf("the tool named %q is written as %q", alias, got)
		}
		other := reg.WireName("", "a.b")
		if other == alias {
			t.Fatalf("two tools are written as %q", alias)
		}
		if _, back, _ := reg.PublicName("", other); back != "a.b" {
			t.Errorf("PublicName(%q) = %q", other, back)
		}
		if _, back, _ := reg.PublicName("", alias); back != alias {
			t.Errorf("PublicName(%q) = %q", alias, back)
		}
	}
}

func TestQuirkA35_AliasesAreDistinctValidAndReversible(t *testing.T) {
	rules := []targets.NameRule{
		{Rest: "a-zA-Z0-9_-", Max: 64},
		{First: "a-zA-Z", Rest: "a-zA-Z0-9_-", Max: 64},
		{First: "a-zA-Z_", Rest: "a-zA-Z0-9_.:-", Max: 63},
		{Rest: "a-z0-9", Max: 30},
	}
	name := rapid.OneOf(
		rapid.StringMatching(`[a-c._/]{1,4}`), // close together
		rapid.StringN(1, 20, -1),
		rapid.StringMatching(`[a-z]{60,140}`),
		rapid.StringMatching(`a_b_[0-9a-f]{8}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) [2]string {
			return [2]string{rapid.OneOf(rapid.Just(""), rapid.Just(""), rapid.StringMatching(`[a-c_]{1,4}`)).Draw(t, "ns"), name.Draw(t, "name")}
		}), 1, 40, rapid.ID[[2]string]).Draw(t, "tools")
		tools := make([]dragoman.ToolSpec, len(ids))
		for i, id := range ids {
			tools[i] = dragoman.ToolSpec{Namespace: id[0], Name: id[1]}
		}
		set := func(o *interop.Options) { o.Limits.Name = rule }
		reg := registry(dialectname.OpenAIChat, tools, set)
		shuffled := append([]dragoman.ToolSpec(nil), tools...)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again := registry(dialectname.OpenAIChat, shuffled, set)
		seen := map[string]bool{}
		for i := range tools {
			s := &tools[i]
			wire := reg.WireName(s.Namespace, s.Name)
			if !rule.Allows(wire) {
				t.Fatalf("%q is written as %q, which the rule forbids", s.QualifiedName(), wire)
			}
			if seen[wire] {
				t.Fatalf("two tools are written as %q", wire)
			}
			seen[wire] = true
			if other := again.WireName(s.Namespace, s.Name); other != wire {
				t.Fatalf("%q is %q in one order and %q in another", s.QualifiedName(), wire, other)
			}
			ns, back, spec := reg.PublicName("", wire)
			if ns != s.Namespace || back != s.Name || spec == nil {
				t.Fatalf("%q came back as %q.%q", wire, ns, back)
			}
		}
	})
}

func TestQuirkA36_FirstDeclarationWins(t *testing.T) {
	first, second := fn("f"), fn("f")
	second.Description = "another"
	for _, d := range threeDialects {
		t.Run(string(d), func(t *testing.T) {
			same := []dragoman.ToolSpec{first, first}
			out, rep := writeTools(t, registry(d, same), same)
			if strings.Count(out, `"name":"f"`) != 1 {
				t.Errorf("not declared once: %s", out)
			}
			if l := lost(t, rep, dragoman.Dropped, "identically"); l.Path != "/tools/1" || l.Severity != dragoman.Info {
				t.Errorf("the same is reported as %v", l)
			}
			differ := []dragoman.ToolSpec{first, second}
			out, rep = writeTools(t, registry(d, differ), differ)
			mustNotContain(t, out, "another")
			if l := lost(t, rep, dragoman.Dropped, "the first declaration is used"); l.Path != "/tools/1" || l.Severity != dragoman.Warn {
				t.Errorf("another is reported as %v", l)
			}
		})
	}
}

func TestNamespace_FlattenedNamesDoNotReplaceBareNames(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Namespace: "crm", Name: "list"},
		{Name: "crm__list"},
		{Namespace: "crm__a", Name: "b"},
		{Namespace: "crm", Name: "a__b"},
		{Namespace: "erp", Name: "list"},
	}
	reg := registry(dialectname.Anthropic, tools)
	if got := reg.WireName("", "crm__list"); got != "crm__list" {
		t.Errorf("the author's own name became %q", got)
	}
	if got := reg.WireName("erp", "list"); got != "erp__list" {
		t.Errorf("a free flat name became %q", got)
	}
	seen := map[string]bool{}
	for i := range tools {
		w := reg.WireName(tools[i].Namespace, tools[i].Name)
		if seen[w] {
			t.Errorf("%q twice", w)
		}
		seen[w] = true
		ns, name, _ := reg.PublicName("", w)
		if ns != tools[i].Namespace || name != tools[i].Name {
			t.Errorf("%q came back as %q.%q", w, ns, name)
		}
	}
}

func TestNamespace_SupportedNamespacesKeepNames(t *testing.T) {
	tools := []dragoman.ToolSpec{{Namespace: "crm", Name: "list"}, {Namespace: "erp", Name: "list"}, {Name: "list"}}
	reg := registry(dialectname.OpenAIResponses, tools)
	for i := range tools {
		s := &tools[i]
		if w := reg.WireName(s.Namespace, s.Name); w != "list" {
			t.Errorf("%s is written as %q", s.QualifiedName(), w)
		}
		_, _, spec := reg.PublicName(s.Namespace, "list")
		if spec == nil || spec.Namespace != s.Namespace {
			t.Errorf("%s resolves to %+v", s.QualifiedName(), spec)
		}
	}
	flat := registry(dialectname.OpenAIResponses, tools, withCaps(targets.Capabilities{NoNamespaces: true}))
	if w := flat.WireName("crm", "list"); w != "crm__list" {
		t.Errorf("without namespaces crm.list is %q", w)
	}
}

// Quirk J13: a name that was never renamed is its own name, even if it looks like an alias.
func TestQuirkJ13_OnlyRenamedNamesAreReversed(t *testing.T) {
	reg := registry(dialectname.Anthropic, []dragoman.ToolSpec{{Namespace: "crm", Name: "list"}})
	for _, w := range []string{"erp__list", "list", "crm", "a_b_12345678"} {
		if ns, name, spec := reg.PublicName("", w); ns != "" || name != w || spec != nil {
			t.Errorf("PublicName(%q) = %q, %q, %v", w, ns, name, spec)
		}
	}
}

func TestNamesInHistoryAreAliased(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn("other")})
	out, rep := writeCall(t, reg, &dragoman.ToolCall{ID: "c1", Name: "old.tool", Arguments: "{}"})
	mustNotContain(t, out, "old.tool")
	lost(t, rep, dragoman.Renamed, "old.tool")
	c, _, err := reg.InspectCall(native(toolformat.ChatFunctionCall, out))
	if err != nil || c.Name != "old.tool" {
		t.Errorf("came back as %+v, %v", c, err)
	}
}
