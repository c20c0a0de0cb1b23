package sim_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/sim"
)

// forcedArguments returns the arguments of a forced call.
func forcedArguments(t *testing.T, prompt, parameters string) string {
	t.Helper()
	req := ask(prompt, function("f", "", parameters))
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "f"}}}
	resp := generate(t, sim.Planner{}, req)
	if len(resp.ToolCalls()) != 1 {
		t.Fatalf("%s: %s", parameters, summary(resp))
	}
	return resp.ToolCalls()[0].Arguments
}

func TestZ1_ArgumentsAreFilledFromTheSchema(t *testing.T) {
	member := func(s string) string { return `{"type":"object","properties":{"x":` + s + `},"required":["x"]}` }
	for parameters, want := range map[string]string{
		``:                                                      `{}`,
		`{}`:                                                    `{}`,
		`{"type":"object"}`:                                     `{}`,
		member(`{"type":"string"}`):                             `{"x":"x"}`,
		member(`{"type":"integer"}`):                            `{"x":1}`,
		member(`{"type":"boolean"}`):                            `{"x":false}`,
		member(`{"type":"null"}`):                               `{"x":null}`,
		member(`{"type":["null","number"]}`):                    `{"x":1}`,
		member(`{"enum":["a","b"]}`):                            `{"x":"a"}`,
		member(`{"const":{"k":[1]}}`):                           `{"x":{"k":[1]}}`,
		member(`{"type":"string","default":"d"}`):               `{"x":"d"}`,
		member(`{"type":"string","examples":["e"]}`):            `{"x":"e"}`,
		member(`{"type":"string","format":"date"}`):             `{"x":"2026-01-15"}`,
		member(`{"type":"string","format":"uuid"}`):             `{"x":"00000000-0000-4000-8000-000000000001"}`,
		member(`{"type":"string","minLength":4,"maxLength":5}`): `{"x":"xxxx"}`,
		member(`{"type":"string","pattern":"^[A-Z]{2}\\d$"}`):   `{"x":"AA0"}`,
		member(`{"type":"number","exclusiveMinimum":5}`):        `{"x":5.5}`,
		member(`{"type":"integer","minimum":7,"multipleOf":5}`): `{"x":10}`,
		member(`{"type":"integer","maximum":-3}`):               `{"x":-3}`,
		member(`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.5}`):                                                                            `{"x":0.25}`,
		member(`{"type":"array","items":{"type":"integer"},"minItems":2}`):                                                                                 `{"x":[1,1]}`,
		member(`{"type":"array","items":{"type":"integer"},"minItems":2,"uniqueItems":true}`):                                                              `{"x":[1,2]}`,
		member(`{"type":"array","items":{"type":"string"},"maxItems":0}`):                                                                                  `{"x":[]}`,
		member(`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"minItems":2}`):                                                       `{"x":["x",1]}`,
		member(`{"type":"object","properties":{"y":{"type":"object","properties":{"z":{"type":"integer"}},"required":["z"]},"o":{}},"required":["y"]}`):    `{"x":{"y":{"z":1}}}`,
		member(`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":2}`):                                                            `{"x":{"key1":1,"key2":1}}`,
		member(`{"anyOf":[false,{"type":"integer"}]}`):                                                                                                     `{"x":1}`,
		member(`{"oneOf":[{"type":"integer"},{"type":"number"}]}`):                                                                                         `{"x":1.5}`,
		member(`{"allOf":[{"minimum":3},{"type":"integer","minimum":9}]}`):                                                                                 `{"x":9}`,
		`{"$defs":{"n":{"type":"integer","minimum":2}},"type":"object","properties":{"x":{"$ref":"#/$defs/n"}},"required":["x"]}`:                          `{"x":2}`,
		`{"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},"required":["v"]}},"$ref":"#/$defs/node"}`: `{"v":1}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`:     `{"a":1,"b":"b"}`,
		`{"type":"object","required":["ghost"]}`:                                                                                                           `{"ghost":"ghost"}`,
	} {
		got := forcedArguments(t, "", parameters)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", parameters, got, want)
		}
	}
}

func TestZ1_ArgumentsAreFilledFromThePrompt(t *testing.T) {
	for _, tc := range []struct{ prompt, parameters, want string }{
		{"limit 5, page 2", `{"type":"object","properties":{"page":{"type":"integer"},"limit":{"type":"integer"}}}`, `{"page":2,"limit":5}`},
		{"show 7 results", `{"type":"object","properties":{"max_results":{"type":"integer"}}}`, `{"max_results":7}`},
		{"1000 results", `{"type":"object","properties":{"results":{"type":"integer","maximum":10}},"required":["results"]}`, `{"results":1}`},
		{`tags "a" and "b"`, `{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}}},"required":["tags"]}`, `{"tags":["a","b"]}`},
		{"dry run, without force", `{"type":"object","properties":{"force":{"type":"boolean"},"dry_run":{"type":"boolean"}}}`, `{"force":false,"dry_run":true}`},
		{"open https://example.org/a?b=c.", `{"type":"object","properties":{"url":{"type":"string","format":"uri"}},"required":["url"]}`, `{"url":"https://example.org/a?b=c"}`},
		{"from 2026-03-01", `{"type":"object","properties":{"since":{"type":"string","format":"date"}}}`, `{"since":"2026-03-01"}`},
		{`copy "a.txt" to "b.txt"`, `{"type":"object","properties":{"source":{"type":"string"},"target":{"type":"string"}},"required":["source","target"]}`, `{"source":"a.txt","target":"b.txt"}`},
		{`the code is "ABC"`, `{"type":"object","properties":{"code":{"type":"string","pattern":"^[a-z]{3}$"}},"required":["code"]}`, `{"code":"aaa"}`},
		{"Ann, in the city of Oslo", `{"type":"object","properties":{"address":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"name":{"type":"string"}},"required":["address","name"]}`, `{"address":{"city":"Oslo"},"name":"Ann"}`},
	} {
		if got := forcedArguments(t, tc.prompt, tc.parameters); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.prompt, got, tc.want)
		}
	}
}

// zoo reads real tool definitions. It skips the test if they are absent.
func zoo(t *testing.T, file string) []byte {
	t.Helper()
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "..", "shared", "toolzoo")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real tool schemas at %s", folder)
	}
	raw, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err) // the folder exists, but not this file
	}
	return raw
}

func TestRealToolsGetValidArguments(t *testing.T) {
	type tool struct {
		Name        string
		InputSchema json.RawMessage
	}
	var all []tool
	for _, file := range []string{"npm-everything", "npm-filesystem", "npm-memory", "npm-sequential-thinking"} {
		var list []tool
		if err := json.Unmarshal(zoo(t, file+".tools.json"), &list); err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	var servers any
	if err := json.Unmarshal(zoo(t, "docker-mcp-registry.tools.json"), &servers); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if s, ok := v["inputSchema"].(map[string]any); ok {
				raw, _ := json.Marshal(s)
				name, _ := v["name"].(string)
				all = append(all, tool{name, raw})
				return
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(servers)
	tried := 0
	for _, tool := range all {
		v, err := schema.Compile(tool.InputSchema)
		if err != nil {
			continue
		}
		tried++
		for _, prompt := range []string{"", `Please use it for Oslo, with "some text", 3 of them, at https://example.com/x and /tmp/a.txt`} {
			req := ask(prompt, dragoman.ToolSpec{Name: tool.Name, Parameters: tool.InputSchema})
			req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
			resp := generate(t, sim.Planner{}, req)
			if len(resp.ToolCalls()) == 0 {
				t.Errorf("%s: %s", tool.Name, resp.Text())
				continue
			}
			for _, c := range resp.ToolCalls() {
				if err := v.Validate(json.RawMessage(c.Arguments)); err != nil {
					t.Errorf("%s%s: %v", c.Name, c.Arguments, err)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d tools were tried", tried)
	}
}

// The planner should be useful: for a public benchmark with several functions per question,
// it picks the right one most of the time.
func TestPlannerPicksMostBenchmarkFunctions(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(zoo(t, "BFCL_v4_multiple.json"))), "\n")
	answers := strings.Split(strings.TrimSpace(string(zoo(t, "answer_BFCL_v4_multiple.json"))), "\n")
	right := 0
	for i, line := range lines {
		var q struct {
			Question [][]struct{ Content string }
			Function []struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		var a struct {
			GroundTruth []map[string]any `json:"ground_truth"`
		}
		if json.Unmarshal([]byte(line), &q) != nil || json.Unmarshal([]byte(answers[i]), &a) != nil {
			t.Fatal(line)
		}
		var tools []dragoman.ToolSpec
		for _, f := range q.Function {
			parameters := strings.NewReplacer(`"dict"`, `"object"`, `"float"`, `"number"`, `"tuple"`, `"array"`).Replace(string(f.Parameters))
			tools = append(tools, function(f.Name, f.Description, parameters))
		}
		resp := generate(t, sim.Planner{}, ask(q.Question[0][0].Content, tools...))
		if calls := resp.ToolCalls(); len(calls) > 0 {
			if _, ok := a.GroundTruth[0][calls[0].Name]; ok {
				right++
			}
		}
	}
	t.Logf("%d of %d", right, len(lines))
	if right*100 < len(lines)*75 {
		t.Errorf("only %d of %d", right, len(lines))
	}
}

func TestZ1_NotesInDescriptionsAreRead(t *testing.T) {
	member := func(s string) string { return `{"type":"object","properties":{"x":` + s + `},"required":["x"]}` }
	text := func(description string) string {
		return member(`{"type":"string","description":"` + description + `"}`)
	}
	for parameters, want := range map[string]string{
		text(`When. (format: date-time)`):                                                                      `{"x":"2026-01-15T09:30:00Z"}`,
		text(`(format: email)`):                                                                                `{"x":"user@example.com"}`,
		text(`A thing (format: uuid) (minLength: 36) (title: x)`):                                              `{"x":"00000000-0000-4000-8000-000000000001"}`,
		text(`(pattern: ^(a|b)\\d$) (maxLength: 9)`):                                                           `{"x":"a0"}`,
		text(`(contentEncoding: base64)`):                                                                      `{"x":"aGVsbG8="}`,
		text(`(default: yes please)`):                                                                          `{"x":"yes please"}`,
		text(`(format: nonsense) and more`):                                                                    `{"x":"x"}`,
		text(`(pattern: ^a…)`):                                                                                 `{"x":"x"}`,
		text(`(pattern: ()`):                                                                                   `{"x":"x"}`,
		member(`{"type":"integer","description":"(minimum: 7)"}`):                                              `{"x":7}`,
		member(`{"type":"integer","description":"(minimum: x)"}`):                                              `{"x":1}`,
		member(`{"anyOf":[{"type":"string","description":"(format: date)"},{"type":"null"}]}`):                 `{"x":"2026-01-15"}`,
		member(`{"type":"array","items":{"type":"string","description":"(format: ipv4)"}}`):                    `{"x":["192.0.2.1"]}`,
		member(`{"type":"string","default":"d","enum":["d"],"examples":[{"description":"(format: date)"}]}`):   `{"x":"d"}`,
		member(`{"type":"object","properties":{"description":{"type":"integer"}},"required":["description"]}`): `{"x":{"description":1}}`,
	} {
		if got := forcedArguments(t, "go on", parameters); got != want {
			t.Errorf("%s: %s, want %s", parameters, got, want)
		}
	}
	if got := forcedArguments(t, "x 7", member(`{"type":"integer","description":"(multipleOf: 5)"}`)); got != `{"x":5}` {
		t.Errorf("a value of the prompt does not match the note: %s", got)
	}
	if got := forcedArguments(t, "remind me on 2026-03-04", text("(format: date-time)")); got != `{"x":"2026-03-04T00:00:00Z"}` {
		t.Error(got)
	}
}
