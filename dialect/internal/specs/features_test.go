package specs_test

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// feature is a hand-written request for one feature that an API must accept.
type feature struct {
	name    string
	request *dragoman.Request
}

func features() []feature {
	yes, no := true, false
	tokens := int64(2048)
	number := func(s dragoman.Number) *dragoman.Number { return &s }
	object := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":["string","null"],"enum":["c","f",null]}},"required":["city"]}`)
	closed := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	weather := dragoman.ToolSpec{Name: "get_weather", Description: "Current weather.", Parameters: object}
	clock := dragoman.ToolSpec{Name: "now"}
	strict := dragoman.ToolSpec{Name: "strict_weather", Parameters: closed, Strict: codes.StrictOn}
	sql := dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_sql", Grammar: &dragoman.Grammar{Syntax: "regex", Definition: "SELECT .+"}}
	note := dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "note", Description: "Write anything."}
	crm := dragoman.ToolSpec{Namespace: "crm", NamespaceDescription: "Customers.", Name: "list_orders", Parameters: object}
	crm2 := dragoman.ToolSpec{Namespace: "crm", NamespaceDescription: "Customers.", Name: "find", Deferred: true}
	odd := dragoman.ToolSpec{Name: "näme with spaces/and.dots", Parameters: object}
	user := dragoman.UserText("Weather in Oslo?")
	call := func(id, name, args string) *dragoman.ToolCall {
		return &dragoman.ToolCall{ID: id, Name: name, Arguments: args}
	}
	result := func(id, text string) *dragoman.ToolResult {
		return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
	}
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBORw0KGgo="}
	pdf := &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Base64: "JVBERi0=", Name: "r.pdf"}
	assistant := func(parts ...dragoman.Part) dragoman.Message {
		return dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts}
	}
	ask := func(tools []dragoman.ToolSpec, ms ...dragoman.Message) *dragoman.Request {
		return &dragoman.Request{Model: "m", Messages: append([]dragoman.Message{user}, ms...), Tools: tools, MaxOutputTokens: &tokens}
	}
	choose := func(c dragoman.ToolChoice, tools ...dragoman.ToolSpec) *dragoman.Request {
		r := ask(tools)
		r.ToolChoice = &c
		return r
	}
	with := func(change func(r *dragoman.Request)) *dragoman.Request {
		r := ask(nil)
		change(r)
		return r
	}
	failed := result("call_1", "no such city")
	failed.Outcome = codes.OutcomeError
	shown := result("call_1", "a picture")
	shown.Content = append(shown.Content, image)
	data := &dragoman.ToolResult{CallID: "call_1", Content: []dragoman.Part{&dragoman.Data{JSON: json.RawMessage(`{"c":4}`)}}}
	text := call("call_1", "run_sql", "SELECT 1")
	text.Payload = codes.PayloadText
	textResult := result("call_1", "1")
	textResult.Payload = codes.PayloadText
	grouped := call("call_1", "list_orders", `{"city":"Oslo"}`)
	grouped.Namespace = "crm"
	ref := func(s dragoman.ToolSpec) dragoman.ToolRef {
		return dragoman.ToolRef{Namespace: s.Namespace, Name: s.Name, Kind: s.Kind}
	}
	all := []dragoman.ToolSpec{weather, clock, strict, sql, note, crm, crm2, odd}

	return []feature{
		{"a plain question", ask(nil)},
		{"instructions and developer messages", with(func(r *dragoman.Request) {
			r.Instructions = []dragoman.Part{&dragoman.Text{Text: "Be brief."}}
			r.Messages = append([]dragoman.Message{{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{&dragoman.Text{Text: "Metric units."}}}}, r.Messages...)
		})},
		{"a system message inside the conversation", ask(nil, dragoman.AssistantText("4 °C."), dragoman.SystemText("Now in French."), dragoman.UserText("Again?"))},
		{"every kind of tool", ask(all)},
		{"a call and its result", ask(all, assistant(call("call_1", "get_weather", `{"city":"Oslo"}`)), dragoman.ToolResults(result("call_1", "4 °C")))},
		{"parallel calls with text before them", ask(all, assistant(&dragoman.Text{Text: "Both."}, call("call_1", "get_weather", `{"city":"Oslo"}`), call("call_2", "now", "")), dragoman.ToolResults(result("call_1", "4"), result("call_2", "12:00")), dragoman.AssistantText("4 at noon."), dragoman.UserText("Thanks."))},
		{"text between two calls", ask(all, assistant(call("call_1", "now", "{}"), &dragoman.Text{Text: "and"}, call("call_2", "now", "{}")), dragoman.ToolResults(result("call_1", "1"), result("call_2", "2")))},
		{"results out of order, in two messages", ask(all, assistant(call("call_1", "now", "{}"), call("call_2", "now", "{}")), dragoman.ToolResults(result("call_2", "2")), dragoman.ToolResults(result("call_1", "1")))},
		{"a turn of several messages", ask(all, dragoman.AssistantText("First."), assistant(call("call_1", "now", "{}")), dragoman.ToolResults(result("call_1", "1")))},
		{"a call id of 90 characters", ask(all, assistant(call(longID, "now", "{}")), dragoman.ToolResults(result(longID, "1")))},
		{"a call id with characters no API takes", ask(all, assistant(call("functions.now:0|x", "now", "{}")), dragoman.ToolResults(result("functions.now:0|x", "1")))},
		{"a call whose arguments are not JSON", ask(all, assistant(call("call_1", "now", "{oops")), dragoman.ToolResults(result("call_1", "invalid")))},
		{"a call whose arguments are not an object", ask(all, assistant(call("call_1", "now", "[1]")), dragoman.ToolResults(result("call_1", "invalid")))},
		{"a call of a tool with an odd name", ask(all, assistant(call("call_1", odd.Name, "{}")), dragoman.ToolResults(result("call_1", "ok")))},
		{"a freeform call", ask(all, assistant(text), dragoman.ToolResults(textResult))},
		{"a namespaced call", ask(all, assistant(grouped), dragoman.ToolResults(result("call_1", "none")))},
		{"an error result", ask(all, assistant(call("call_1", "now", "{}")), dragoman.ToolResults(failed))},
		{"a result without output", ask(all, assistant(call("call_1", "now", "{}")), dragoman.ToolResults(&dragoman.ToolResult{CallID: "call_1"}))},
		{"an image result", ask(all, assistant(call("call_1", "now", "{}")), dragoman.ToolResults(shown), dragoman.UserText("And?"))},
		{"a JSON result", ask(all, assistant(call("call_1", "now", "{}")), dragoman.ToolResults(data))},
		{"a refusal in history", ask(nil, assistant(&dragoman.Refusal{Text: "No."}), dragoman.UserText("Please."))},
		{"reasoning in history", ask(nil, assistant(&dragoman.Reasoning{Text: "Think."}, &dragoman.Text{Text: "4."}), dragoman.UserText("And?"))},
		{"media of the user", ask(nil, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Look"}, image, pdf, &dragoman.Media{Media: codes.MediaImage, URL: "https://example.org/a.png", Detail: "low"}}})},
		{"files the provider stores", ask(all, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{
			&dragoman.Media{Media: codes.MediaImage, FileID: "file-1"}, &dragoman.Media{Media: codes.MediaFile, FileID: "file-2"},
		}})},
		{"a choice: auto", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, all...)},
		{"a choice: none", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, all...)},
		{"a choice: required", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, all...)},
		{"a choice: one function", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{ref(weather)}}, all...)},
		{"a choice: one freeform tool", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{ref(sql)}}, all...)},
		{"a choice: one namespaced tool", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{ref(crm)}}, all...)},
		{"a choice: some tools", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{ref(weather), ref(note)}}, all...)},
		{"a choice without tools", choose(dragoman.ToolChoice{Mode: dragoman.ChoiceAuto})},
		{"one call at a time", with(func(r *dragoman.Request) { r.Tools, r.ParallelToolCalls = all, &no })},
		{"parallel calls without tools", with(func(r *dragoman.Request) { r.ParallelToolCalls = &yes })},
		{"structured output", with(func(r *dragoman.Request) {
			r.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "answer", Schema: closed, Strict: codes.StrictOn}
		})},
		{"structured output, loose schema without a name", with(func(r *dragoman.Request) {
			r.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: object}
		})},
		{"JSON output", with(func(r *dragoman.Request) { r.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON} })},
		{"reasoning effort", with(func(r *dragoman.Request) { r.Reasoning = &dragoman.ReasoningSettings{Effort: "high", Summary: "auto"} })},
		{"a reasoning budget", with(func(r *dragoman.Request) {
			budget := int64(1024)
			r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &budget}
		})},
		{"reasoning off", with(func(r *dragoman.Request) { r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningOff} })},
		{"adaptive reasoning, encrypted", with(func(r *dragoman.Request) {
			r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Encrypted: &yes}
		})},
		{"sampling", with(func(r *dragoman.Request) {
			k := int64(40)
			r.Sampling = dragoman.Sampling{Temperature: number("0.70"), TopP: number("1.0"), TopK: &k, Seed: &k, FrequencyPenalty: number("0"), PresencePenalty: number("-1.5"), Stop: []string{"END", "\n\n", "a", "b", "c"}}
		})},
		{"no token limit", with(func(r *dragoman.Request) { r.MaxOutputTokens = nil })},
		{"a small token limit", with(func(r *dragoman.Request) { one := int64(1); r.MaxOutputTokens = &one })},
		{"cache hints everywhere", with(func(r *dragoman.Request) {
			hint := &dragoman.CacheHint{TTL: "1h"}
			r.Instructions = []dragoman.Part{&dragoman.Text{Text: "Be brief.", Cache: hint}}
			r.Tools = []dragoman.ToolSpec{weather, clock}
			r.Tools[1].Cache = hint
			r.Messages = []dragoman.Message{user, dragoman.AssistantText("4."), user, dragoman.AssistantText("5."), user}
			for i := range r.Messages {
				r.Messages[i].Cache = hint
			}
			r.Cache, r.CacheKey = hint, "k"
		})},
		{"metadata, user, tier, verbosity, store", with(func(r *dragoman.Request) {
			r.Metadata = []dragoman.KeyValue{{Key: "a", Value: "1"}}
			r.User, r.ServiceTier, r.Verbosity, r.Store = "u-1", "flex", "low", &no
		})},
		{"an Anthropic service tier", with(func(r *dragoman.Request) { r.ServiceTier = "standard_only" })},
		{"an OpenAI service tier", with(func(r *dragoman.Request) { r.ServiceTier = "priority" })},
		{"a stream with usage", with(func(r *dragoman.Request) { r.Stream, r.StreamUsage = true, true })},
		{"stream usage without a stream", with(func(r *dragoman.Request) { r.StreamUsage = true })},
	}
}

const longID = "call_0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
