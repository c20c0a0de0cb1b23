package gateway_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
)

func TestG3_NonLoopbackRequiresKeys(t *testing.T) {
	key := access.Key{Name: "a", Hash: access.HashOf("a secret of a test")}
	for listen, public := range map[string]bool{
		"":                         false,
		"127.0.0.1:8088":           false,
		"127.9.9.9:0":              false,
		"localhost:80":             false,
		"LocalHost:80":             false,
		"[::1]:80":                 false,
		"[::ffff:127.0.0.1]:80":    false,
		":8088":                    true,
		"0.0.0.0:8088":             true,
		"[::]:8088":                true,
		"[::ffff:0.0.0.0]:80":      true,
		"192.168.1.1:80":           true,
		"example.com:80":           true,
		"localhost.example.com:80": true,
		"127.0.0.1.example.com:80": true,
		"my-own-machine:80":        true,
		"*:80":                     true,
		"[fe80::1%eth0]:80":        true,
		"2130706433:80":            true, // a resolver may map it to 127.0.0.1; names are not resolved here
	} {
		err := (&gateway.Config{Listen: listen}).Check()
		var open *gateway.OpenRelayError
		if got := errors.As(err, &open); got != public || !public && err != nil {
			t.Errorf("%q without keys: %v", listen, err)
		}
		if public && (!strings.Contains(err.Error(), listen) || !strings.Contains(err.Error(), "gateway.keys") || !strings.Contains(err.Error(), "listen on 127.0.0.1:")) {
			t.Errorf("the error does not say what to do: %v", err)
		}
		if err := (&gateway.Config{Listen: listen, Keys: []access.Key{key}}).Check(); err != nil {
			t.Errorf("%q with a key: %v", listen, err)
		}
	}
}

func TestCheckReportsInvalidSettings(t *testing.T) {
	for want, c := range map[string]gateway.Config{
		"listen: want host:port":                         {Listen: "8088"},
		"listen: want host:port such":                    {Listen: "::1"},
		`want a port from 0 to 65535`:                    {Listen: "localhost:http"},
		`65535, have "65536"`:                            {Listen: "localhost:65536"},
		`65535, have ""`:                                 {Listen: "localhost:"},
		`65535, have "+80"`:                              {Listen: "localhost:+80"},
		`"a/b" is not a valid host name`:                 {Listen: "a/b:80"},
		`"a b" is not a valid host name`:                 {Listen: "a b:80"},
		`key "": the name is missing`:                    {Keys: []access.Key{{}}},
		`route "": the name is empty`:                    {Routes: []gateway.Route{{To: "sim/echo"}}},
		`route "a": the target is empty`:                 {Routes: []gateway.Route{{Pattern: "a", To: " "}}},
		`route "a": same pattern as "a"`:                 {Routes: []gateway.Route{{Pattern: "a", To: "x"}, {Pattern: "a", To: "y"}}},
		`route "*a***": same pattern as`:                 {Routes: []gateway.Route{{Pattern: "**a*", To: "x"}, {Pattern: "*a***", To: "y"}}},
		`unprintable characters`:                         {Routes: []gateway.Route{{Pattern: "a\nb", To: "x"}}},
		`longer than 1024 bytes`:                         {Routes: []gateway.Route{{Pattern: strings.Repeat("a", 1025), To: "x"}}},
		`but the route name has none`:                    {Routes: []gateway.Route{{Pattern: "a", To: "x/*"}}},
		`route "a*b*": the target has a *, but the`:      {Routes: []gateway.Route{{Pattern: "a*b*", To: "x/*"}}},
		`as in sim/*; have "*/planner"`:                  {Routes: []gateway.Route{{Pattern: "a*", To: "sim/*, */planner"}}},
		`as in sim/*; have "fast-*"`:                     {Routes: []gateway.Route{{Pattern: "*", To: "fast-*"}}},
		`state: both sqlite and`:                         {State: gateway.State{SQLite: "a", PostgresEnv: "b"}},
		`limits.body_bytes: must not be negative`:        {Limits: gateway.Limits{BodyBytes: -1}},
		`state.ttl: must not be negative`:                {State: gateway.State{TTL: -1}},
		`repair: want always or empty, have "sometimes"`: {Routes: []gateway.Route{{Pattern: "a", To: "sim/echo", Repair: "sometimes"}}},
		`unfinished: want end or empty, have "maybe"`:    {Routes: []gateway.Route{{Pattern: "a", To: "sim/echo", Unfinished: "maybe"}}},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNewRefusesInvalidConfig(t *testing.T) {
	for want, c := range map[string]*gateway.Config{
		"needs Options.Notes":             {State: gateway.State{SQLite: "state.db"}},
		"state: a Config with a database": {State: gateway.State{PostgresEnv: "DATABASE"}},
		"must not be negative":            {Limits: gateway.Limits{Streams: -1}},
		"there are no keys":               {Listen: "0.0.0.0:80"},
	} {
		if _, err := gateway.New(c, gateway.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := gateway.New(&gateway.Config{State: gateway.State{SQLite: "state.db"}}, gateway.Options{Notes: new(storekit.Notes)}); err != nil {
		t.Error(err)
	}
	g, err := gateway.New(nil, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(&gateway.Config{Limits: gateway.Limits{BodyBytes: -1}}); err == nil {
		t.Error("a config was taken over that New refuses")
	}
}

func TestG4_MostSpecificRouteWins(t *testing.T) {
	patterns := []string{"*", "gpt-*", "gpt-4*", "gpt-4o", "*-mini", "g*-mini", "a*c", "ab*", "*bc", "openai/*", "*/*"}
	for model, want := range map[string]string{
		"gpt-4o":          "gpt-4o",
		"gpt-4o-mini":     "g*-mini", // six letters against five
		"gpt-4":           "gpt-4*",
		"gpt-5":           "gpt-*",
		"o4-mini":         "*-mini",
		"abc":             "*bc", // of three equally specific patterns, the first in the alphabet
		"openai/gpt-4o":   "openai/*",
		"other/a/b":       "*/*",
		"":                "*",
		"GPT-4o":          "*",
		"gpt-4o*":         "gpt-4*",
		"anything at all": "*",
	} {
		for range 5 {
			rand.Shuffle(len(patterns), func(i, j int) { patterns[i], patterns[j] = patterns[j], patterns[i] })
			routes := newRoutes(t, patterns...)
			if got, ok := routes.Find(model); !ok || got.Pattern != want || got.To != targetOf(want) {
				t.Errorf("%q has route %q, want %q", model, got.Pattern, want)
			}
		}
	}
	routes := newRoutes(t, "b", "a", "c*")
	if _, ok := routes.Find("d"); ok {
		t.Error("d has a route")
	}
	if _, ok := routes.Find("c" + strings.Repeat("x", 2000)); ok {
		t.Error("a name of 2000 letters has a route")
	}
	if got := routes.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names are %q", got)
	}
}

// targetOf returns the target of a pattern's route in these tests.
func targetOf(pattern string) string { return "to " + strings.ReplaceAll(pattern, "*", "any") }

func newRoutes(t testing.TB, patterns ...string) *gateway.Routes {
	t.Helper()
	var list []gateway.Route
	for _, p := range patterns {
		list = append(list, gateway.Route{Pattern: p, To: targetOf(p)})
	}
	routes, err := gateway.NewRoutes(list)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

func TestOverridesAreAppliedToACopy(t *testing.T) {
	effort := dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(5)), Summary: "auto"}
	requests := dragoman.Request{
		Sampling: dragoman.Sampling{Temperature: dragoman.Num(1), TopP: dragoman.Num(0.5)}, Reasoning: &effort,
		MaxOutputTokens: new(int64(7)), Verbosity: "low", ParallelToolCalls: new(true),
	}
	o := gateway.Overrides{Temperature: dragoman.Num(0.2), MaxTokens: new(int64(9)), Effort: "high", ParallelToolCalls: new(bool), ServiceTier: "flex"}
	got := requests
	o.Apply(&got)
	if *got.Sampling.Temperature != "0.2" || *got.Sampling.TopP != "0.5" || *got.MaxOutputTokens != 9 || *got.ParallelToolCalls ||
		got.Verbosity != "low" || got.ServiceTier != "flex" {
		t.Errorf("%+v", got)
	}
	if r := got.Reasoning; r.Effort != "high" || r.Mode != codes.ReasoningDefault || r.BudgetTokens != nil || r.Summary != "auto" {
		t.Errorf("%+v", r)
	}
	*got.MaxOutputTokens = 11
	if *requests.Sampling.Temperature != "1" || *requests.MaxOutputTokens != 7 || requests.Reasoning.Effort != "" || !*requests.ParallelToolCalls || *o.MaxTokens != 9 {
		t.Error("the request or the override has changed")
	}
	got = dragoman.Request{}
	o.Apply(&got)
	if got.Reasoning == nil || got.Reasoning.Effort != "high" {
		t.Errorf("%+v", got.Reasoning)
	}
	same := requests
	gateway.Overrides{}.Apply(&same)
	if same.Reasoning != requests.Reasoning || same.MaxOutputTokens != requests.MaxOutputTokens {
		t.Error("nothing changed something")
	}
}

func BenchmarkFindOneOfAThousand(b *testing.B) {
	var patterns []string
	for i := range 500 {
		patterns = append(patterns, fmt.Sprint("model-", i), fmt.Sprintf("family-%d-*", i))
	}
	routes := newRoutes(b, patterns...)
	for name, model := range map[string]string{"exact": "model-400", "pattern": "family-7-large", "none": "nothing-of-the-kind"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				routes.Find(model)
			}
		})
	}
}
