package interop_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

var idRules = map[string]targets.IDRule{
	"chat":            {Max: 40},
	"responses":       {Max: 64},
	"anthropic":       {Chars: "a-zA-Z0-9_-"},
	"mistral":         {Chars: "a-zA-Z0-9", Exact: 9},
	"bedrock":         {Chars: "a-zA-Z0-9_.:-", Max: 64},
	"digits only":     {Chars: "0-9", Exact: 12},
	"no separator":    {Chars: "a-zA-Z0-9", Max: 40},
	"lower case only": {Chars: "a-z0-9", Exact: 16},
}

func withID(rule targets.IDRule) func(*interop.Options) {
	return withCaps(targets.Capabilities{ID: &rule})
}

func TestQuirkB13_TenThousandIDsDoNotCollide(t *testing.T) {
	for name, rule := range idRules {
		t.Run(name, func(t *testing.T) {
			reg := registry(dialectname.OpenAIChat, nil, withID(rule))
			rnd := rand.New(rand.NewPCG(7, 9))
			seen := make(map[string]string, 10000)
			for i := range 10000 {
				// One long common prefix, like the ids of real providers.
				id := fmt.Sprintf("call_%d|fc_%s.%x", i%7, strings.Repeat("k", rnd.IntN(60)), rnd.Uint64())
				alias := reg.WireID(id)
				if !rule.Allows(alias) {
					t.Fatalf("%q is aliased to %q, which the rule forbids", id, alias)
				}
				if other, dup := seen[alias]; dup && other != id {
					t.Fatalf("%q and %q are both %q", id, other, alias)
				}
				seen[alias] = id
				if reg.PublicID(alias) != id {
					t.Fatalf("%q came back as %q", id, reg.PublicID(alias))
				}
				if reg.WireID(id) != alias {
					t.Fatalf("%q has two aliases", id)
				}
			}
		})
	}
}

func TestQuirkB13_ValidIDIsUnchanged(t *testing.T) {
	for name, tc := range map[string]struct {
		rule targets.IDRule
		id   string
	}{
		"chat":      {idRules["chat"], strings.Repeat("x", 40)},
		"unicode":   {idRules["chat"], "日本"},
		"anthropic": {idRules["anthropic"], "toolu_01-A"},
		"mistral":   {idRules["mistral"], "D681PevKs"},
		"none":      {idRules["mistral"], ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := registry(dialectname.OpenAIChat, nil, withID(tc.rule)).WireID(tc.id); got != tc.id {
				t.Errorf("%q became %q", tc.id, got)
			}
		})
	}
}

func TestQuirkB13_AliasIsValidUTF8(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil)
	id := strings.Repeat("é", 25) // 50 bytes; every even prefix ends inside a character
	out, rep := writeCall(t, reg, &dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"})
	mustNotContain(t, out, "\ufffd")
	lost(t, rep, dragoman.Renamed, "call id")
	c, _, err := reg.InspectCall(native(toolformat.ChatFunctionCall, out))
	if err != nil || c.ID != id {
		t.Errorf("came back as %+v, %v", c, err)
	}
}

func TestQuirkB13_CallAndResultShareTheAlias(t *testing.T) {
	for _, d := range threeDialects {
		t.Run(string(d), func(t *testing.T) {
			reg := registry(d, nil, withID(idRules["mistral"]))
			id := "call_with/an id no|target accepts" + strings.Repeat("x", 60)
			alias := reg.WireID(id)
			call, _ := writeCall(t, reg, &dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"})
			result, _, _ := writeResult(t, reg, &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{text("x")}})
			mustContain(t, call, `"`+alias+`"`)
			mustContain(t, result, `"`+alias+`"`)
		})
	}
}

func TestQuirkB14_IDOfTheTargetIsUnchanged(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil, withID(idRules["mistral"]))
	const kimi = "functions.Read:0"
	reg.KeepID(kimi)
	if got := reg.WireID(kimi); got != kimi {
		t.Errorf("%q became %q", kimi, got)
	}
	if got := reg.WireID("functions.Read:1"); got == "functions.Read:1" {
		t.Error("an id of another target was kept too")
	}
}

func TestI8_IDIsNotDerivedFromOtherFields(t *testing.T) {
	reg := all.Registry(interop.Options{})
	for _, id := range []string{"5", "null", "true", `{"a":1}`, `["x"]`} {
		c, _, err := reg.InspectCall(native(toolformat.ChatFunctionCall, `{"id":`+id+`,"type":"function","function":{"name":"f","arguments":"{}"}}`))
		if err != nil || c.ID != "" {
			t.Errorf("id %s read as %+v, %v", id, c, err)
		}
	}
}
