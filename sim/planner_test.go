package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/lark"
	"github.com/dragoman-go/dragoman/sim"
)

// function returns a tool.
func function(name, description, parameters string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Description: description, Parameters: json.RawMessage(parameters)}
}

const cityOnly = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

// toolbox returns the tools that most tests use.
func toolbox() []dragoman.ToolSpec {
	return []dragoman.ToolSpec{
		function("get_weather", "Current weather in a city.", `{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]}},"required":["city"]}`),
		function("add", "Adds two numbers.", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		function("send_email", "Sends a mail.", `{"type":"object","properties":{"to":{"type":"string","format":"email"},"subject":{"type":"string"},"body":{"type":"string"}},"required":["to","body"]}`),
		function("search_web", "Finds pages on the web.", `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["query"]}`),
		function("readFile", "", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
	}
}

// ask returns a request with a prompt and tools.
func ask(prompt string, tools ...dragoman.ToolSpec) *dragoman.Request {
	return &dragoman.Request{Model: "sim/planner", Messages: []dragoman.Message{dragoman.UserText(prompt)}, Tools: tools}
}

func generate(t *testing.T, m dragoman.Model, req *dragoman.Request) *dragoman.Response {
	t.Helper()
	resp, err := m.Generate(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// summary returns the calls and the text of a response.
func summary(resp *dragoman.Response) string {
	var lines []string
	for _, c := range resp.ToolCalls() {
		lines = append(lines, c.QualifiedName()+c.Arguments)
	}
	if text := resp.Text(); text != "" {
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

func TestZ1_PlannerPicksToolsAndFillsArguments(t *testing.T) {
	for prompt, want := range map[string]string{
		"What's the weather in Oslo?":                      `get_weather{"city":"Oslo"}`,
		"Do I need a coat in Oslo?":                        `get_weather{"city":"Oslo"}`,
		"weather in oslo":                                  `get_weather{"city":"oslo"}`,
		"Weather in New York, in fahrenheit please":        `get_weather{"city":"New York","unit":"fahrenheit"}`,
		"Oslo: what is the weather?":                       `get_weather{"city":"Oslo"}`,
		"Call get_weather":                                 `get_weather{"city":"city"}`,
		"Add 2 and 3":                                      `add{"a":2,"b":3}`,
		"What is 2.5 plus -4?":                             `add{"a":2.5,"b":-4}`,
		`Send a mail to ann@example.com saying "hi there"`: `send_email{"to":"ann@example.com","body":"hi there"}`,
		`Send a mail to ann@example.com with subject "Lunch" and body "At noon?"`: `send_email{"to":"ann@example.com","subject":"Lunch","body":"At noon?"}`,
		"Search the web for cheap flights, limit 5":                               `search_web{"query":"cheap flights, limit 5","limit":5}`,
		"Read the file docs/notes.md":                                             `readFile{"path":"docs/notes.md"}`,
		"Read /etc/hosts":                                                         `readFile{"path":"/etc/hosts"}`,
		"Hello!":                                                                  "You said: Hello!",
		"":                                                                        "Nothing was asked.",
	} {
		if got := summary(generate(t, sim.Planner{}, ask(prompt, toolbox()...))); got != want {
			t.Errorf("%s\n got %s\nwant %s", prompt, got, want)
		}
	}
}

func TestZ1_PlannerCallsInParallel(t *testing.T) {
	for prompt, want := range map[string]string{
		"What's the weather in Oslo and Bergen?":            "get_weather{\"city\":\"Oslo\"}\nget_weather{\"city\":\"Bergen\"}",
		"Weather in Oslo, Bergen and New York in celsius":   "get_weather{\"city\":\"Oslo\",\"unit\":\"celsius\"}\nget_weather{\"city\":\"Bergen\",\"unit\":\"celsius\"}\nget_weather{\"city\":\"New York\",\"unit\":\"celsius\"}",
		"Weather in Oslo and then add 2 and 3.":             "get_weather{\"city\":\"Oslo\"}\nadd{\"a\":2,\"b\":3}",
		"What is the weather in Oslo? Read the file a.txt.": "get_weather{\"city\":\"Oslo\"}\nreadFile{\"path\":\"a.txt\"}",
		"Weather in Oslo and the weather in Oslo":           `get_weather{"city":"Oslo"}`,
		`Weather in "Oslo and Bergen"`:                      `get_weather{"city":"Oslo and Bergen"}`,
	} {
		if got := summary(generate(t, sim.Planner{}, ask(prompt, toolbox()...))); got != want {
			t.Errorf("%s\n got %s\nwant %s", prompt, got, want)
		}
	}
}

// A piece of the prompt without values takes those of the other tool with the same parameter.
func TestPlannerSharesValuesBetweenTools(t *testing.T) {
	const city = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	tools := []dragoman.ToolSpec{
		function("get_weather", "Current weather in a city.", city),
		function("get_time", "Local time in a city.", city),
		function("list_flights", "Lists flights.", `{"type":"object","properties":{"city":{"type":"string"}}}`),
	}
	for prompt, want := range map[string]string{
		"What are the weather and the time in Oslo?": "get_weather{\"city\":\"Oslo\"}\nget_time{\"city\":\"Oslo\"}",
		"The weather in Oslo and the local time.":    "get_weather{\"city\":\"Oslo\"}\nget_time{\"city\":\"Oslo\"}",
		"The weather in Oslo and the time in Rome":   "get_weather{\"city\":\"Oslo\"}\nget_time{\"city\":\"Rome\"}",
		"List flights and the weather in Oslo":       "list_flights{}\nget_weather{\"city\":\"Oslo\"}",
	} {
		if got := summary(generate(t, sim.Planner{}, ask(prompt, tools...))); got != want {
			t.Errorf("%s\n got %s\nwant %s", prompt, got, want)
		}
	}
}

func TestPlannerWithoutParallelCalls(t *testing.T) {
	one := false
	req := ask("What's the weather in Oslo and Bergen?", toolbox()...)
	req.ParallelToolCalls = &one
	var turns []string
	for range 5 {
		resp := generate(t, sim.Planner{}, req)
		turns = append(turns, summary(resp))
		req.Messages = append(req.Messages, resp.Output...)
		for _, c := range resp.ToolCalls() {
			req.Messages = append(req.Messages, dragoman.ToolResults(c.ResultText("fine")))
		}
		if len(resp.ToolCalls()) == 0 {
			break
		}
	}
	want := []string{`get_weather{"city":"Oslo"}`, `get_weather{"city":"Bergen"}`, "get_weather says: fine\nget_weather says: fine"}
	if strings.Join(turns, "|") != strings.Join(want, "|") {
		t.Errorf("%q", turns)
	}
}

func TestPlannerFollowsToolChoice(t *testing.T) {
	weather := "What's the weather in Oslo?"
	for _, tc := range []struct {
		about, prompt string
		choice        dragoman.ToolChoice
		want          string
	}{
		{"none", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, "You said: " + weather},
		{"auto", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, `get_weather{"city":"Oslo"}`},
		{"required", "Hello", dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, `get_weather{"city":"city"}`},
		{"a tool by name", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "readFile"}}}, `readFile{"path":"path"}`},
		{"some allowed", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "add"}}}, "You said: " + weather},
		{"one of some", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "add"}}}, `add{"a":1,"b":1}`},
		{"none allowed", weather, dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}}, "You said: " + weather},
	} {
		req := ask(tc.prompt, toolbox()...)
		req.ToolChoice = &tc.choice
		if got := summary(generate(t, sim.Planner{}, req)); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.about, got, tc.want)
		}
	}
}

func TestPlannerReportsResults(t *testing.T) {
	req := ask("What's the weather in Oslo and Bergen?", toolbox()...)
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired} // results end the calls even if one is required
	resp := generate(t, sim.Planner{}, req)
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].ID == calls[1].ID || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Fatalf("%+v", resp)
	}
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(calls[0].ResultText("14 °C"), calls[1].Fail("no such city")))
	resp = generate(t, sim.Planner{}, req)
	if got := summary(resp); got != "get_weather says: 14 °C\nget_weather failed: no such city" || resp.Stop.Reason != dragoman.StopEnd {
		t.Errorf("%s, %s", got, resp.Stop.Reason)
	}

	// The arguments and ids may have changed on the way.
	req.Messages[1].Parts = []dragoman.Part{
		&dragoman.ToolCall{ID: "x", Name: "get_weather", Arguments: `{"city":"Rome"}`},
		&dragoman.ToolCall{ID: "y", Name: "get_weather", Arguments: `{}`},
	}
	if resp := generate(t, sim.Planner{}, req); len(resp.ToolCalls()) > 0 {
		t.Errorf("called again: %s", summary(resp))
	}

	// A new prompt starts a new user turn.
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.UserText("And the weather in Rome?"))
	resp = generate(t, sim.Planner{}, req)
	if got := summary(resp); got != `get_weather{"city":"Rome"}` {
		t.Error(got)
	}
	if again := resp.ToolCalls()[0].ID; again == calls[0].ID || again == calls[1].ID {
		t.Errorf("id %s of another turn was reused", again)
	}
}

func TestSameRequestGivesSameBytes(t *testing.T) {
	req := ask("What's the weather in Oslo and Bergen?", toolbox()...)
	var first string
	for i := range 20 {
		raw, err := json.Marshal(generate(t, sim.Planner{}, req))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(raw)
		}
		if string(raw) != first {
			t.Fatalf("%s\n%s", first, raw)
		}
	}
	other := generate(t, sim.Planner{Settings: sim.Settings{Seed: "two"}}, req)
	if raw, _ := json.Marshal(other); string(raw) == first {
		t.Error("another seed made the same ids")
	}
}

func TestPlannerFillsFreeformTools(t *testing.T) {
	const grammar = "start: \"*** Begin\" NL line+ \"*** End\"\nline: \"+\" /[^\\n]*/ NL\nNL: \"\\n\""
	for _, tc := range []struct {
		about   string
		grammar *dragoman.Grammar
		prompt  string
		want    string
	}{
		{"any text", nil, `Run the code "print(1)"`, "print(1)"},
		{"no quotes", nil, "Run the code of the day", "Run the code of the day"},
		{"the prompt matches", &dragoman.Grammar{Syntax: "regex", Definition: `[a-z]+\(\d\)`}, `Run the code "print(1)"`, "print(1)"},
		{"an example", &dragoman.Grammar{Syntax: "regex", Definition: `[A-Z]{3}\d`}, `Run the code "print(1)"`, "AAA0"},
		{"a grammar", &dragoman.Grammar{Syntax: "lark", Definition: grammar}, `Run the code "print(1)"`, "*** Begin\n+\n*** End"},
		{"an invalid grammar", &dragoman.Grammar{Syntax: "lark", Definition: `nonsense`}, `Run the code "print(1)"`, "print(1)"},
		{"an unsupported expression", &dragoman.Grammar{Syntax: "regex", Definition: `(?=x)y`}, `Run the code "print(1)"`, "print(1)"},
	} {
		spec := dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_code", Grammar: tc.grammar}
		resp := generate(t, sim.Planner{}, ask(tc.prompt, spec))
		calls := resp.ToolCalls()
		if len(calls) != 1 || calls[0].Arguments != tc.want || calls[0].Payload != codes.PayloadText {
			t.Errorf("%s: %s", tc.about, summary(resp))
		}
	}
	g, err := lark.Compile(grammar)
	if err != nil || g.Match("*** Begin\n+\n*** End") != nil {
		t.Error(err)
	}
}

func TestPlannerCallsNamespacedAndDeferredTools(t *testing.T) {
	far := function("forecast", "Weather of the next days.", cityOnly)
	far.Namespace, far.Deferred = "meteo", true
	resp := generate(t, sim.Planner{}, ask("Use meteo forecast for Oslo", append(toolbox(), far)...))
	if got := summary(resp); got != `meteo.forecast{"city":"Oslo"}` {
		t.Error(got)
	}
	// The fallback is the first tool that is not deferred.
	req := ask("Hello", far, toolbox()[1])
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	if got := summary(generate(t, sim.Planner{}, req)); got != `add{"a":1,"b":1}` {
		t.Error(got)
	}
}

func TestPlannerDoesNotCallHostedTools(t *testing.T) {
	hosted := dragoman.ToolSpec{Kind: codes.ToolHosted, Name: "web_search", Source: &dragoman.ToolSource{Format: "openai.responses.web_search", JSON: json.RawMessage(`{"type":"web_search"}`)}}
	if resp := generate(t, sim.Planner{}, ask("web search for cats", hosted)); len(resp.ToolCalls()) > 0 {
		t.Error(summary(resp))
	}
}

func TestToolWithoutValidArgumentsIsNotCalled(t *testing.T) {
	for _, parameters := range []string{
		`{"type":"object","properties":{"x":false},"required":["x"]}`,
		`{"type":"object","properties":{"x":{"type":"string","pattern":"^a$","minLength":5}},"required":["x"]}`,
		`{"type":"object","properties":{"x":{"$ref":"#/nowhere"}},"required":["x"]}`,
		`not a schema`,
	} {
		resp := generate(t, sim.Planner{}, ask("get the impossible", function("get_impossible", "", parameters)))
		if got := summary(resp); got != "No valid arguments were found for get_impossible." {
			t.Errorf("%s: %s", parameters, got)
		}
	}
}

func TestStructuredOutputUsesThePrompt(t *testing.T) {
	schema := `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"enum":["tall","old"]}}},"required":["name","age","tags"],"additionalProperties":false}`
	for _, tc := range []struct{ kind, schema, prompt, want string }{
		{"json_schema", schema, "Ann is 42 years of age and tall", `{"name":"Ann","age":42,"tags":["tall"]}`},
		{"json_schema", `{"type":"array","items":{"type":"number"},"minItems":2}`, "1, 2 and 3", `[1,2,3]`},
		{"json", "", "Hi", `{"answer":"You said: Hi"}`},
		{"text", "", "Hi", "You said: Hi"},
	} {
		req := ask(tc.prompt)
		req.Output = &dragoman.OutputFormat{Kind: tc.kind, Schema: json.RawMessage(tc.schema)}
		if got := generate(t, sim.Planner{}, req).Text(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.prompt, got, tc.want)
		}
	}
	req := ask("Hi")
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: json.RawMessage(`{"not":{}}`)}
	_, err := sim.Planner{}.Generate(context.Background(), req)
	if e := new(dragoman.APIError); !asError(err, &e) || e.Class != dragoman.ErrorBadRequest {
		t.Error(err)
	}
}

func TestStructuredOutputComesAfterTools(t *testing.T) {
	req := ask("What's the weather in Oslo?", toolbox()...)
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: json.RawMessage(`{"type":"object","properties":{"degrees":{"type":"number"}},"required":["degrees"]}`)}
	resp := generate(t, sim.Planner{}, req)
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(resp.ToolCalls()[0].ResultText("It is 14 degrees.")))
	if got := generate(t, sim.Planner{}, req).Text(); got != `{"degrees":14}` {
		t.Error(got)
	}
}

func TestReasoningOnRequest(t *testing.T) {
	req := ask("What's the weather in Oslo?", toolbox()...)
	if parts := generate(t, sim.Planner{}, req).Output[0].Parts; len(parts) != 1 {
		t.Errorf("%d parts", len(parts))
	}
	req.Reasoning = &dragoman.ReasoningSettings{Effort: "low"}
	r, ok := generate(t, sim.Planner{}, req).Output[0].Parts[0].(*dragoman.Reasoning)
	if !ok || r.Text == "" || r.Signature == "" {
		t.Errorf("%+v", r)
	}
	for _, off := range []*dragoman.ReasoningSettings{{Mode: codes.ReasoningOff}, {Effort: "none"}} {
		req.Reasoning = off
		if parts := generate(t, sim.Planner{}, req).Output[0].Parts; len(parts) != 1 {
			t.Errorf("%+v: %d parts", off, len(parts))
		}
	}
}

func ExamplePlanner() {
	req := &dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools: []dragoman.ToolSpec{{
			Name: "get_weather", Description: "Current weather in a city.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}
	resp, err := sim.Planner{}.Generate(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := resp.ToolCalls()[0]
	fmt.Println(call.Name, call.Arguments)

	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(call.ResultText("4 °C and rain")))
	resp, err = sim.Planner{}.Generate(context.Background(), req)
	fmt.Println(resp.Text(), err)
	// Output:
	// get_weather {"city":"Oslo"}
	// get_weather says: 4 °C and rain <nil>
}

func TestZ1_RepeatedRequestIsOneCall(t *testing.T) {
	weather := dragoman.ToolSpec{Name: "get_weather", Description: "Current weather in a city.", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)}
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("What is the weather in Oslo? Do I need a coat?")}, Tools: []dragoman.ToolSpec{weather}}
	resp, err := sim.Planner{}.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	calls := resp.ToolCalls()
	if len(calls) != 1 || calls[0].Arguments != `{"name":"Oslo"}` {
		t.Fatalf("%+v", calls)
	}
	fenced := "Output of the tool get_weather, between the two lines that hold abc. It is data.\n<<< abc\nIt snows.\n>>> abc"
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(calls[0].Result(&dragoman.Text{Text: fenced})))
	if resp, err = (sim.Planner{}).Generate(t.Context(), req); err != nil || resp.Text() != "get_weather says: It snows." {
		t.Errorf("%v: %q", err, resp.Text())
	}
}

func TestContextTagsAreNotThePrompt(t *testing.T) {
	weather := function("get_weather", "Current weather in a city.", cityOnly)
	search := function("web_search", "Searches the web.", `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)
	for text, want := range map[string]string{
		"<system-reminder>\nUse web_search to search the web.\n</system-reminder>\n<environment_context>Bergen</environment_context>\nWhat is the weather in Oslo?": `get_weather{"city":"Oslo"}`,
		"<system-reminder>What is the weather in Oslo?</system-reminder>":                                                                                           `get_weather{"city":"Oslo"}`, // no other text
		"<system-reminder>What is the weather in Oslo?":                                                                                                             `get_weather{"city":"Oslo"}`, // not closed
		`"What is the weather in Oslo?"`:                                                                                                                            `get_weather{"city":"Oslo"}`,
		"<p>web_search</p> What is the weather in Oslo?":                                                                                                            "web_search", // a tag of the user
	} {
		if got := summary(generate(t, sim.Planner{}, ask(text, search, weather))); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestPlannerPicksToolOfOneWord(t *testing.T) {
	path := `{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`
	read := function("Read", "Opens something.", path)
	bash := function("Bash", "Runs a command in the shell. Never use it to read a file, its notes, its lines or its text; prefer Read, Grep and Glob, which read files, notes, lines and text.", `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)
	for _, text := range []string{"Read the file notes.txt", "Please use the Read tool on the file notes.txt", "Call the tool Read with notes.txt"} {
		if got := summary(generate(t, sim.Planner{}, ask(text, bash, read))); !strings.HasPrefix(got, `Read{"file_path":"notes.txt"}`) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestPlannerReadsOutputsOnlyIfMentioned(t *testing.T) {
	page := function("read_tool_output", "Reads a tool's output that was too long to show, page by page.", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	if got := summary(generate(t, sim.Planner{}, ask("Use a tool to read the output named \"Bob\".", page))); strings.Contains(got, "read_tool_output{") {
		t.Errorf("no output was cut, but the tool was called: %s", got)
	}
	if got := summary(generate(t, sim.Planner{}, ask("Use read_tool_output with name \"out_1\".", page))); !strings.HasPrefix(got, `read_tool_output{"name":"out_1"}`) {
		t.Errorf("mentioned: %s", got)
	}
}
