package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/tool"
)

// acmeFormat is an invented format of tool definitions:
//
//	{"acme": "get_weather", "about": "…", "needs": ["city"]}
const acmeFormat dragoman.Format = "acme.tool"

type acme struct{}

func (acme) Format() dragoman.Format { return acmeFormat }

type acmeTool struct {
	Acme  string   `json:"acme"`
	About string   `json:"about"`
	Needs []string `json:"needs"`
}

func (t acmeTool) parameters() json.RawMessage {
	properties := map[string]any{}
	for _, n := range t.Needs {
		properties[n] = map[string]any{"type": "string"}
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": t.Needs})
	if err != nil {
		panic(err)
	}
	return b
}

func (acme) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	var t acmeTool
	if err := json.Unmarshal(obj, &t); err != nil {
		return nil, dragoman.Report{}, err
	}
	return []dragoman.ToolSpec{{Name: t.Acme, Description: t.About, Parameters: t.parameters()}}, dragoman.Report{}, nil
}

// acmeToAnthropic writes a definition for Anthropic without the canonical view.
type acmeToAnthropic struct{}

func (acmeToAnthropic) Kind() string          { return codes.SchemaObject }
func (acmeToAnthropic) From() dragoman.Format { return acmeFormat }
func (acmeToAnthropic) To() dragoman.Format   { return toolformat.AnthropicTool }
func (acmeToAnthropic) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	var t acmeTool
	if err := json.Unmarshal(in.Native, &t); err != nil {
		return nil, dragoman.Report{}, err
	}
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"adapted","input_schema":%s}`, t.Acme, t.parameters())), dragoman.Report{}, nil
}

const acmeWeather = `{"needs": ["city"],  "acme":"get_weather", "about":"Looks up the weather in a city."}`

func acmeSpec() dragoman.ToolSpec {
	return dragoman.ToolSpec{Source: &dragoman.ToolSource{Format: acmeFormat, JSON: json.RawMessage(acmeWeather)}}
}

func acmeCall(_ context.Context, in tool.Input) (tool.Output, error) {
	return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "snow at " + string(in.Arguments)}}}, nil
}

// ownType is a user's own implementation of Tool, with its own format.
type ownType struct{ spec dragoman.ToolSpec }

func (o ownType) Spec() *dragoman.ToolSpec { return &o.spec }
func (ownType) Call(ctx context.Context, in tool.Input) (tool.Output, error) {
	return acmeCall(ctx, in)
}

func (ownType) Contribution() dragoman.Contribution {
	return dragoman.Contribution{Source: "own type", Schemas: []dragoman.SchemaAccessor{acme{}}}
}

func TestR10_ToolWithItsOwnSchemaFormatWorksOnEveryStack(t *testing.T) {
	contribution := dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{acme{}}}
	for how, weather := range map[string]tool.Tool{
		"option":   tool.Remote(acmeSpec(), acmeCall, tool.Contribute(contribution)),
		"own type": ownType{acmeSpec()},
	} {
		for d, s := range stacks() {
			what := how + ", " + string(d)
			u := serveStrictly(t, s)
			res, err := agent.Agent{Model: u.client, Tools: []tool.Tool{weather}}.Run(t.Context(), "What is the weather in Oslo?")
			if err != nil || len(res.Records) != 1 || !res.Records[0].OK || len(res.Pending) > 0 {
				t.Fatalf("%s: %v\n%s", what, err, recordLines(res.Records))
			}
			mustHave(t, what, u.last(t), "Looks up the weather in a city.", `"city":{"type":"string"}`, "get_weather")
			mustLack(t, what, u.last(t), `"needs"`, "acme")
			if src := weather.Spec().Source; string(src.JSON) != acmeWeather {
				t.Errorf("%s: the source became %s", what, src.JSON)
			}
		}
	}
}

func TestR10_ContributedAdapterConvertsDirectly(t *testing.T) {
	contribution := dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{acme{}}, Adapters: []dragoman.Adapter{acmeToAnthropic{}}}
	weather := tool.Remote(acmeSpec(), acmeCall, tool.Contribute(contribution))
	for _, d := range []dragoman.Dialect{dialectname.Anthropic, dialectname.OpenAIChat} {
		u := serveStrictly(t, stacks()[d])
		res, err := agent.Agent{Model: u.client, Tools: []tool.Tool{weather}}.Run(t.Context(), "What is the weather in Oslo?")
		if err != nil || len(res.Records) != 1 || !res.Records[0].OK {
			t.Fatalf("%s: %v\n%s", d, err, recordLines(res.Records))
		}
		if got := strings.Contains(u.last(t), `"adapted"`); got != (d == dialectname.Anthropic) {
			t.Errorf("%s: adapted is %v in\n%s", d, got, u.last(t))
		}
	}
}

func TestR4_StackThatAcceptsTheFormatGetsTheSource(t *testing.T) {
	u := serveStrictly(t, stack{stacks()[dialectname.Ollama].codec, "some-model", ""})
	u.client.Contributions = []dragoman.Contribution{{Source: "config", Accepts: []dragoman.Format{acmeFormat}}}
	weather := tool.Remote(acmeSpec(), acmeCall, tool.Contribute(dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{acme{}}}))
	_, _ = agent.Agent{Model: u.client, Tools: []tool.Tool{weather}}.Run(t.Context(), "hello")
	mustHave(t, "accepted", u.last(t), `"tools":[`+acmeWeather+`,`)
}

func TestR4_ToolCannotDeclareWhatProvidersAccept(t *testing.T) {
	contribution := dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{acme{}}, Accepts: []dragoman.Format{acmeFormat}}
	m := model()
	weather := tool.Remote(acmeSpec(), acmeCall, tool.Contribute(contribution))
	if _, err := (agent.Agent{Model: m, Tools: []tool.Tool{weather}}).Run(t.Context(), "go"); !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), `"acme.tool"`) || len(m.asked) > 0 {
		t.Errorf("%d requests, error %v", len(m.asked), err)
	}
	for d, s := range stacks() { // a request that was built without a toolbox
		u := serveStrictly(t, s)
		req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hello")}, Tools: []dragoman.ToolSpec{acmeSpec()}, Contributions: []dragoman.Contribution{contribution}}
		if _, err := u.client.Generate(t.Context(), req); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		mustHave(t, string(d), u.last(t), "get_weather", `"city":{"type":"string"}`)
		mustLack(t, string(d), u.last(t), `"needs"`, "acme")
	}
}

func TestR10_UnknownSourceFormatIsAnError(t *testing.T) {
	for _, spec := range []dragoman.ToolSpec{acmeSpec(), {Name: "get_weather", Source: acmeSpec().Source}} {
		m := model()
		_, err := agent.Agent{Model: m, Tools: []tool.Tool{tool.Remote(spec, acmeCall)}}.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), `"acme.tool"`) || !strings.Contains(err.Error(), "SchemaAccessor") || len(m.asked) > 0 {
			t.Errorf("%d requests, error %v", len(m.asked), err)
		}
	}
}

func TestR10_UnknownSourceFormatInARequestIsALoss(t *testing.T) {
	for d, s := range stacks() {
		u := serveStrictly(t, s)
		resp, err := u.client.Generate(t.Context(), &dragoman.Request{
			Messages: []dragoman.Message{dragoman.UserText("hello")},
			Tools:    []dragoman.ToolSpec{{Name: "get_weather", Source: acmeSpec().Source}},
		})
		if err != nil {
			t.Fatal(d, err)
		}
		mustLack(t, string(d), u.last(t), "get_weather")
		if !slices.ContainsFunc(resp.Losses.Losses, func(l dragoman.Loss) bool {
			return l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious && strings.Contains(l.Detail, "acme.tool")
		}) {
			t.Errorf("%s: losses %v", d, resp.Losses.Losses)
		}
	}
}

func TestR10_DeferredToolWithItsOwnFormatIsFound(t *testing.T) {
	spec := acmeSpec()
	spec.Deferred = true
	m := model(calls(`a tool_search {"query":"weather"}`), calls(`b get_weather {"city":"Oslo"}`), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{ownType{spec}}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if len(res.Records) != 2 || !res.Records[1].OK || len(m.asked[0].Contributions) != 1 || m.asked[0].Contributions[0].Source != "own type" {
		t.Errorf("%s\n%+v", recordLines(res.Records), m.asked[0].Contributions)
	}
}

// acmeCalls reads and writes calls {"acme_call": "name", "with": "arguments"}.
type acmeCalls struct{}

func (acmeCalls) Format() dragoman.Format { return "acme.call" }
func (acmeCalls) Recognizes(obj json.RawMessage) bool {
	return strings.Contains(string(obj), "acme_call")
}

func (acmeCalls) InspectCall(obj json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	var c struct {
		Name string `json:"acme_call"`
		With string `json:"with"`
	}
	err := json.Unmarshal(obj, &c)
	return &dragoman.ToolCall{Name: c.Name, Arguments: c.With, PayloadMetadata: json.RawMessage(`{"via":"acme"}`)}, dragoman.Report{}, err
}

type acmeCallAdapter struct{}

func (acmeCallAdapter) Kind() string          { return codes.CallObject }
func (acmeCallAdapter) From() dragoman.Format { return "" }
func (acmeCallAdapter) To() dragoman.Format   { return "acme.call" }
func (acmeCallAdapter) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	b, err := json.Marshal(map[string]string{"acme_call": in.Call.Name, "with": in.Call.Arguments})
	return b, dragoman.Report{}, err
}

func TestR7_CallsAreRecognizedByTheirShape(t *testing.T) {
	reg := all.Registry(interop.Options{Contributions: []dragoman.Contribution{{
		Source: "acme", Calls: []dragoman.CallAccessor{acmeCalls{}}, Adapters: []dragoman.Adapter{acmeCallAdapter{}},
	}}})
	for obj, want := range map[string]dragoman.Format{
		`{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}`: toolformat.ChatFunctionCall,
		`{"id":"1","type":"custom","custom":{"name":"f","input":"x"}}`:          toolformat.ChatCustomCall,
		`{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`:    toolformat.ResponsesFunctionCall,
		`{"type":"custom_tool_call","call_id":"1","name":"f","input":"x"}`:      toolformat.ResponsesCustomCall,
		`{"type":"tool_use","id":"1","name":"f","input":{}}`:                    toolformat.AnthropicToolUse,
		`{"name":"f","args":{}}`:                                                  toolformat.GeminiFunctionCall,
		`{"function":{"name":"f","arguments":{}}}`:                                toolformat.OllamaToolCall,
		`{"id":"1","function":{"index":0,"name":"f","arguments":{"a":1}}}`:        toolformat.OllamaToolCall,
		`{"toolUse":{"toolUseId":"1","name":"f","input":{}}}`:                     toolformat.BedrockToolUse,
		`{"acme_call":"f","with":"{}"}`:                                           "acme.call",
		`{"acme_call":"f","with":"{\"half\":"}`:                                   "acme.call",
		`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"h"}}`: toolformat.ChatFunctionCall,
	} {
		c, _, err := reg.InspectCall(dragoman.Native{JSON: json.RawMessage(obj)})
		if err != nil || c.Name != "f" || c.PayloadFormat != want {
			t.Errorf("%s: %v %+v", obj, err, c)
			continue
		}
		if want == "acme.call" && string(c.PayloadMetadata) != `{"via":"acme"}` {
			t.Errorf("%s: metadata %s", obj, c.PayloadMetadata)
		}
		out, rep := reg.SanitizeCall(dragoman.Native{JSON: json.RawMessage(obj)})
		broken := strings.Contains(obj, `\"h`)
		if out.Format != want || len(rep.Losses) > 0 != broken || strings.Contains(string(out.JSON), `\"h`) {
			t.Errorf("%s was sanitized to %s (%s), %v", obj, out.JSON, out.Format, rep.Losses)
		}
	}
	for _, obj := range []string{`{}`, `[]`, `{"type":"other","name":"f"}`, `"text"`, `{"half":`} {
		if _, _, err := reg.InspectCall(dragoman.Native{JSON: json.RawMessage(obj)}); err == nil {
			t.Errorf("%s was recognized", obj)
		}
		if out, rep := reg.SanitizeCall(dragoman.Native{JSON: json.RawMessage(obj)}); string(out.JSON) != obj || len(rep.Losses) > 0 {
			t.Errorf("%s was sanitized to %s, %v", obj, out.JSON, rep.Losses)
		}
	}
}
