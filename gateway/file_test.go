package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/provider"
)

const testKey = "0123456789abcdef-of-a-test"

func setKeys(t testing.TB) {
	t.Helper()
	t.Setenv("DRAGOMAN_TEST_KEY", testKey)
	t.Setenv("DRAGOMAN_TEST_SHORT", "short")
	t.Setenv("DRAGOMAN_TEST_SPACES", "a key with spaces in it")
	t.Setenv("DRAGOMAN_TEST_UNSET", "")
	t.Setenv("DRAGOMAN_TEST_OLD", "the-key-until-now")
}

func parse(t *testing.T, text string) *gateway.Config {
	t.Helper()
	c, err := gateway.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The messages are in testdata, so that they can be read.
func TestG4_BadFileReportsAllErrorsWithLines(t *testing.T) {
	setKeys(t)
	for _, name := range []string{"bad", "routes", "hints"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := gateway.Parse(name+".yaml", data)
		if err == nil || c != nil {
			t.Fatalf("%s: %v, %v", name, c, err)
		}
		got := err.Error() + "\n"
		golden := filepath.Join("testdata", name+".golden")
		if codectest.Update() {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: have\n%s\nwant\n%s", name, got, want)
		}
		for _, secret := range []string{"sk-this", "secret@h", testKey, "spaces in it"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: the errors tell %q", name, secret)
			}
		}
	}
}

func TestInvalidYAMLErrorHasAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\ngateway:\n\tlisten: 127.0.0.1:1\n":           "f:3:1: tab character found; indent YAML with spaces",
		"version: 1\naliases:\n  a: |\n\tb\n":                     "f:4:1: tab character found; indent YAML with spaces",
		"version: 1\naliases:\n  a: \"b\n\tc\"\n":                 "f:4:1: tab character found; indent YAML with spaces",
		"---\nversion: 1\n---\ngateway:\n  listen: 127.0.0.1:1\n": "f:3:1: a second document begins here",
		"version: 1\n---\n":                                       "f:2:1: a second document begins here",
	} {
		if _, err := gateway.Parse("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Some editors write it before everything else.
func TestByteOrderMarkIsIgnored(t *testing.T) {
	for _, text := range []string{"version: 1\ngateway: {listen: 127.0.0.1:1}\n", `{"version": 1, "gateway": {"listen": "127.0.0.1:1"}}`} {
		if c := parse(t, "\ufeff"+text); c.Listen != "127.0.0.1:1" {
			t.Errorf("%q: %+v", text, c)
		}
	}
	_, err := gateway.Parse("f", []byte("\ufeffversion: 2\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "f:1:10: ") {
		t.Error(err)
	}
}

func TestG3_UnservedModelsOfKeysAreWarnings(t *testing.T) {
	setKeys(t)
	for text, want := range map[string]string{
		"gateway:\n  keys: {a: {key_env: DRAGOMAN_TEST_KEY, models: [fast, \"openai/*\", gpt-4o, \"g*o\", \"*\"]}}\n  routes: {gpt-4o: {to: sim/echo}, claude-*: {to: sim/echo}}\n": `f:3:51: models: no route serves "fast", so this key cannot use it: routes are gpt-4o, claude-*` +
			`|f:3:57: models: no route serves "openai/*", so this key cannot use it: routes are gpt-4o, claude-*`,
		"aliases: {fast: sim/echo}\ngateway:\n  keys: {a: {key_env: DRAGOMAN_TEST_KEY, models: [fast, sim/echo]}}\n": `f:4:57: models: no route serves "sim/echo", so this key cannot use it: routes are fast`,
		"gateway:\n  keys: {a: {key_env: DRAGOMAN_TEST_KEY, models: \"sim/echo\"}}\n":                                "",
	} {
		if got := warned(parse(t, "version: 1\n"+text)); got != want {
			t.Errorf("%s\nhave %s\nwant %s", text, got, want)
		}
	}
}

// warned returns the warnings of a config, joined by "|".
func warned(c *gateway.Config) string {
	var all []string
	for _, w := range c.Warnings {
		all = append(all, w.Error())
	}
	return strings.Join(all, "|")
}

func TestMissingCredentialIsAWarning(t *testing.T) {
	setKeys(t)
	for _, name := range []string{"OPENAI_API_KEY", "MISTRAL_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "BEDROCK_BASE_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("MISTRAL_API_KEY", "there it is")
	const providers = "version: 1\nproviders:\n  work: {type: compatible, base_url: \"http://127.0.0.1:9\", api_key_env: DRAGOMAN_TEST_UNSET}\n" +
		"  idle: {type: mistral, api_key_env: [DRAGOMAN_TEST_UNSET, DRAGOMAN_TEST_NONE]}\n  told: {type: mistral, api_key_env: [DRAGOMAN_TEST_UNSET, DRAGOMAN_TEST_KEY]}\n"
	const both = "f:3:73: provider work: api_key_env: the environment variable DRAGOMAN_TEST_UNSET is not set|f:4:38: provider idle: api_key_env: the environment variable DRAGOMAN_TEST_UNSET or DRAGOMAN_TEST_NONE is not set"
	for text, want := range map[string]string{
		providers: both,
		providers + "gateway: {routes: {a: {to: [work/m, told/m, mistral/m, sim/echo]}}}\n":     both,
		"version: 1\naliases:\n  a: openai/m, anthropic/m\n  b: openai/n\n":                     "f:3:6: the provider openai cannot be used: the API key is missing: set OPENAI_API_KEY|f:3:6: the provider anthropic cannot be used: the API key is missing: set ANTHROPIC_API_KEY",
		"version: 1\nproviders:\n  openai: {}\n  ollama: {}\n":                                  "f:3:3: the provider openai cannot be used: the API key is missing: set OPENAI_API_KEY",
		"version: 1\naliases: {a: openai/m}\ngateway: {routes: {x: {to: sim/echo}}}\n":          "",
		"version: 1\naliases: {a: openai/m}\ngateway: {routes: {x-*: {to: \"ollama/*, a\"}}}\n": "f:3:30: the provider openai cannot be used: the API key is missing: set OPENAI_API_KEY",
		"version: 1\nproviders: {w: {type: openai, api_key_env: sk-the-key-itself}}\n":          "f:2:44: provider w: api_key_env: want the name of an environment variable: letters, digits and _",
		"version: 1\ngateway: {routes: {x: {to: bedrock/m}}}\n":                                 "f:2:28: the provider bedrock cannot be used: region: missing: set AWS_REGION or AWS_DEFAULT_REGION",
	} {
		if got := warned(parse(t, text)); got != want {
			t.Errorf("%s\nhave %s\nwant %s", text, got, want)
		}
	}
}

func TestG4_DefaultRoutes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "echo echo?* planner planner?* scenario scenario?* sim/*",
		"gateway: {listen: 127.0.0.1:1}\n": "echo echo?* planner planner?* scenario scenario?* sim/*",
		"aliases: {b: sim/echo, a: sim/echo}\nproviders: {ollama: {}}\n":            "a b ollama/*",
		"providers: {ollama: {}}\ngateway: {routes: {x: {to: sim/echo}}}\n":         "x",
		"aliases: {a: sim/echo}\ngateway: {routes: {}}\n":                           "a",
		"aliases: {a: sim/echo}\ngateway: {routes: {\"sim/*\": {to: \"sim/*\"}}}\n": "sim/*",
	} {
		c := parse(t, "version: 1\n"+text)
		var patterns []string
		for _, r := range c.Served() {
			patterns = append(patterns, r.Pattern)
		}
		if got := strings.Join(patterns, " "); got != want {
			t.Errorf("%s\nhave %s\nwant %s", text, got, want)
		}
		if _, err := gateway.New(c, gateway.Options{}); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsOfOneLineAreOrderedByColumn(t *testing.T) {
	_, err := gateway.Parse("f", []byte(`{"version": 1, "gateway": {"listen": 5, "keys": {}}, "aliases": {"a": 5}}`))
	var columns []string
	for _, m := range regexp.MustCompile(`(?m)^f:1:(\d+): `).FindAllStringSubmatch(err.Error(), -1) {
		columns = append(columns, m[1])
	}
	if got := strings.Join(columns, " "); got != "38 49 71 71" {
		t.Errorf("columns %s: %v", got, err)
	}
}

func TestConfigFileSetsStateMaxBytes(t *testing.T) {
	c, err := gateway.Parse("gateway.yaml", []byte("version: 1\ngateway: {state: {store: memory, max_bytes: 1000}}\n"))
	if err != nil || c.State.MaxBytes != 1000 {
		t.Errorf("%+v %v", c, err)
	}
}

func TestConfigFileSetsEveryField(t *testing.T) {
	setKeys(t)
	const hash = "39d11fa2a0c49447dcc8d3ccb33a7b8a6f6d6f4d3a12ec3f4f4efc5cbb5ed8ee"
	got := parse(t, `
version: 1
providers: {work: {type: compatible, base_url: "http://127.0.0.1:9/v1"}}
aliases: {fast: work/small}
gateway:
  listen: 0.0.0.0:80
  keys:
    a:
      key_env: DRAGOMAN_TEST_KEY
      models: [fast, "openai/*"]
      requests_per_minute: 60
      tokens_per_minute: 200000
      parallel: 20
      budget: {tokens: 5000000000, per: month}
    b: {key_sha256: [`+strings.ToUpper(hash)+`, `+strings.Repeat("ab", 32)+`], key_env: DRAGOMAN_TEST_OLD, models: fast}
  routes:
    claude-*: {to: [fast, work/big]}
    gpt-4o:
      to: fast
      repair: always
      lift_errors: true
      unfinished: end
      store_reasoning: false
      set: {temperature: 0.20, top_p: 1, top_k: 4, seed: 0, max_tokens: 4096, frequency_penalty: -1.5, presence_penalty: 2,
        effort: low, verbosity: high, service_tier: flex, parallel_tool_calls: false}
    plain: {to: fast, repair: auto, lift_errors: false, unfinished: error, store_reasoning: true, set: {}}
  state: {sqlite: state.db, ttl: 1h}
  heartbeat: none
  limits: {body_bytes: 1, header_bytes: 2, streams: 3}
`)
	if got.Models == nil || got.Models.Aliases["fast"] != "work/small" {
		t.Errorf("models: %+v", got.Models)
	}
	if len(got.Warnings) != 3 {
		t.Errorf("warnings: %q", got.Warnings)
	}
	got.Models, got.Warnings = nil, nil
	num := func(s string) *dragoman.Number { n := dragoman.Number(s); return &n }
	b := got.Keys[1]
	if also := [][32]byte{[32]byte(bytes.Repeat([]byte{0xab}, 32)), access.HashOf("the-key-until-now")}; fmt.Sprintf("%x", b.Hash) != hash || !reflect.DeepEqual(b.MoreHashes, also) || b.Name != "b" || !reflect.DeepEqual(b.Models, []string{"fast"}) {
		t.Errorf("b is %+v", b)
	}
	want := &gateway.Config{
		Listen: "0.0.0.0:80",
		Keys: []access.Key{{
			Name: "a", Hash: access.HashOf(testKey), Models: []string{"fast", "openai/*"}, RequestsPerMinute: 60, TokensPerMinute: 200000, Parallel: 20,
			Budget: access.Budget{Tokens: 5000000000, Per: access.Month},
		}, b},
		Routes: []gateway.Route{
			{Pattern: "claude-*", To: "fast, work/big"},
			{
				Pattern: "gpt-4o", To: "fast", Repair: "always", LiftErrors: true, Unfinished: "end", NoStoredReasoning: true,
				Set: gateway.Overrides{
					Temperature: num("0.20"), TopP: num("1"), FrequencyPenalty: num("-1.5"), PresencePenalty: num("2"),
					TopK: new(int64(4)), Seed: new(int64(0)), MaxTokens: new(int64(4096)),
					Effort: "low", Verbosity: "high", ServiceTier: "flex", ParallelToolCalls: new(bool),
				},
			},
			{Pattern: "plain", To: "fast"},
		},
		State:     gateway.State{SQLite: "state.db", TTL: time.Hour},
		Heartbeat: -1,
		Limits:    gateway.Limits{BodyBytes: 1, HeaderBytes: 2, Streams: 3},
	}
	if !reflect.DeepEqual(got, want) { //nolint:govet // a config that was read has no errors
		t.Errorf("have %+v\nwant %+v", got, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if !got.Routes[2].Set.IsZero() || got.Routes[1].Set.IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestConfigFileWithoutGatewaySection(t *testing.T) {
	c := parse(t, `{"version": 1}`)
	if c.Models == nil || c.Address() != "127.0.0.1:8088" || c.Check() != nil {
		t.Errorf("%+v, %v", c, c.Check())
	}
	// The default store is memory.
	if c = parse(t, "version: 1\ngateway: {heartbeat: 5s, state: {store: memory}}"); c.Heartbeat != 5*time.Second || c.State != (gateway.State{}) {
		t.Errorf("%+v", c)
	}
}

// Parse must not use Config.Models: a program may still set its clock.
func TestParseCallsNoModel(t *testing.T) {
	c := parse(t, "version: 1\ngateway: {routes: {a: {to: \"sim/echo, sim/planner\"}}}")
	if v := reflect.ValueOf(c.Models).Elem().FieldByName("once"); !v.IsZero() {
		t.Error("a chain was opened")
	}
}

func TestUnreadableConfigFileIsAnError(t *testing.T) {
	for name, data := range map[string]string{
		"empty":  "",
		"broken": "version: [",
		"list":   "- a",
		"long":   strings.Repeat("#", framing.MaxConfigFile+1),
		"text":   "gateway",
		"twice":  "version: 1\ngateway: {}\ngateway: {}",
		"anchor": "version: 1\ngateway: &a {listen: 127.0.0.1:1}",
	} {
		_, err := gateway.Parse("f", []byte(data))
		var bad *provider.FileError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := strings.Count(err.Error(), "\n"); n > 0 {
			t.Errorf("%s: reported more than once: %v", name, err)
		}
	}
	if _, err := gateway.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestDocumentedExampleIsValid(t *testing.T) {
	page, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("there is no example")
	}
	t.Setenv("TEAM_SEARCH_KEY", testKey)
	t.Setenv("GATEWAY_DATABASE", "postgres://localhost")
	t.Chdir(t.TempDir())
	isPolicy := func(block []string) bool { return strings.Contains(block[1], "\nrules:\n") }
	for _, block := range blocks { // the policy of the page is each that the config names
		for _, name := range []string{"policy.yaml", "search.yaml", "gpt.yaml"} {
			if isPolicy(block) {
				if err := os.WriteFile(name, []byte(block[1]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, block := range slices.DeleteFunc(blocks, isPolicy) {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := gateway.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		for _, w := range c.Warnings {
			if !strings.Contains(w.Reason, "API key is missing") {
				t.Errorf("%v", w)
			}
		}
	}
}

// Any config file is parsed, or every error has a line. A parsed config passes Check, except for
// the open relay check, and opens.
func FuzzParse(f *testing.F) {
	setKeys(f)
	for _, name := range []string{"testdata/bad.yaml", "testdata/routes.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("version: 1\ngateway:\n  listen: :80\n  keys: {a: {key_env: DRAGOMAN_TEST_KEY, models: x*, budget: {tokens: 1, per: day}}}\n  routes:\n    a*: {to: sim/echo, set: {temperature: 1e0}}\n    b: {to: [sim/echo, openai/x]}\n"))
	f.Add([]byte(`{"version":1,"aliases":{"a":"sim/echo"},"gateway":{"routes":{"*":{"to":"a"},"**":{"to":"a"}},"state":{"postgres_env":"DRAGOMAN_TEST_KEY"},"heartbeat":"none"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := gateway.Parse("f", data)
		if err != nil {
			last := 0
			for line := range strings.SplitSeq(err.Error(), "\nf:") {
				var n, column int
				if _, err := fmt.Sscanf(strings.TrimPrefix(line, "f:"), "%d:%d: ", &n, &column); err != nil || n < last || n < 1 || column < 1 {
					t.Fatalf("%q: %v", line, err)
				}
				last = n
			}
			return
		}
		var open *gateway.OpenRelayError
		if err := c.Check(); err != nil && !errors.As(err, &open) {
			t.Fatal(err)
		}
		routes, err := gateway.NewRoutes(c.Routes)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Routes {
			if _, ok := routes.Find(r.Pattern); !ok {
				t.Fatalf("%q does not match itself", r.Pattern)
			}
			if strings.Contains(r.To, "*") {
				continue // depends on the requested model
			}
			if _, err := c.Models.Open(r.To); err != nil {
				t.Fatalf("%s: %v", r.To, err)
			}
		}
	})
}
