package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"github.com/dragoman-go/dragoman/sim"
)

// task is a request of a client to the simulator.
type task struct {
	model  string // empty means the planner
	prompt string
	tools  bool
	schema map[string]any
	// made holds the calls of the previous turn, and results their results.
	made    []call
	results []string
	stream  bool
}

func (w *task) name() string { return cmp.Or(w.model, "sim/planner") }

// The tool of all clients.
const (
	toolName  = "get_weather"
	toolAbout = "Current weather in a city."
)

func cityProperty() map[string]any {
	return map[string]any{"city": map[string]any{"type": "string"}}
}

func citySchema() map[string]any {
	return map[string]any{"type": "object", "properties": cityProperty(), "required": []string{"city"}}
}

// person is the schema of a structured output.
func person() map[string]any {
	return map[string]any{
		"type":     "object",
		"required": []string{"name", "age"}, "additionalProperties": false,
		"properties": map[string]any{"name": map[string]any{"type": "string"}, "age": map[string]any{"type": "integer"}},
	}
}

// users returns the official clients. Each sends a task to a server.
func users() map[string]func(ctx context.Context, server string, w task) (content, error) {
	return map[string]func(context.Context, string, task) (content, error){
		"openai-go, Chat Completions": askChat,
		"openai-go, Responses":        askResponses,
		"anthropic-sdk-go":            askAnthropic,
		"genai":                       askGemini,
		"ollama's api":                askOllama,
		"aws-sdk-go-v2, Bedrock":      askBedrock,
	}
}

// TestOfficialSDKsAreServed checks the server side: the unmodified official clients complete their
// tasks.
func TestOfficialSDKsAreServed(t *testing.T) {
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	for name, ask := range users() {
		for _, mode := range []string{"whole", "stream"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				complete(t, func(w task) (content, error) {
					w.stream = mode == "stream"
					return ask(context.Background(), server.URL, w)
				})
			})
		}
	}
}

// complete runs the typical tasks of a client.
func complete(t *testing.T, ask func(task) (content, error)) {
	t.Helper()
	run := func(w task) content {
		t.Helper()
		s, err := ask(w)
		if err != nil {
			t.Fatal(err)
		}
		if s.usage == nil || s.usage.input == 0 || s.usage.output == 0 {
			t.Errorf("%s: usage %+v", w.prompt, s.usage)
		}
		return s
	}
	if s := run(task{prompt: "Hello 🙂!"}); s.text != "You said: Hello 🙂!" || len(s.calls) > 0 {
		t.Errorf("text: %+v", s)
	}
	one := task{prompt: "What's the weather in Oslo?", tools: true}
	s := run(one)
	if len(s.calls) != 1 || s.calls[0].name != toolName || sorted(s.calls[0].arguments) != `{"city":"Oslo"}` || s.calls[0].id == "" {
		t.Fatalf("a call: %+v", s)
	}
	one.made, one.results = s.calls, []string{"4 °C"}
	if s := run(one); s.text != "get_weather says: 4 °C" || len(s.calls) > 0 {
		t.Errorf("the result of a call: %+v", s)
	}
	two := task{prompt: "What's the weather in Oslo and Bergen?", tools: true}
	s = run(two)
	if len(s.calls) != 2 || sorted(s.calls[0].arguments) != `{"city":"Oslo"}` || sorted(s.calls[1].arguments) != `{"city":"Bergen"}` || s.calls[0].id == s.calls[1].id {
		t.Fatalf("parallel calls: %+v", s)
	}
	two.made, two.results = s.calls, []string{"4 °C", "8 °C"}
	if s := run(two); s.text != "get_weather says: 4 °C\nget_weather says: 8 °C" {
		t.Errorf("the results of parallel calls: %+v", s)
	}
	if s := run(task{prompt: "Ann is 42", schema: person()}); sorted(s.text) != `{"age":42,"name":"Ann"}` {
		t.Errorf("structured output: %+v", s)
	}
}

// TestOfficialSDKsGetErrors checks that an error has a type of the SDK.
func TestOfficialSDKsGetErrors(t *testing.T) {
	server := httptest.NewServer(sim.Handler(sim.Config{Fault: "429"}))
	defer server.Close()
	for name, ask := range users() {
		for _, stream := range []bool{false, true} {
			s, err := ask(context.Background(), server.URL, task{prompt: "hi", stream: stream})
			if err == nil {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

func askChat(ctx context.Context, server string, w task) (content, error) {
	client := openai.NewClient(option.WithBaseURL(server+"/v1/"), option.WithAPIKey("any"), option.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{
		Model:    w.name(),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(w.prompt)},
	}
	if w.tools {
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: toolName, Description: openai.String(toolAbout), Parameters: citySchema(),
		})}
	}
	if w.made != nil {
		var m openai.ChatCompletionAssistantMessageParam
		for _, c := range w.made {
			m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: c.id, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.name, Arguments: c.arguments},
			}})
		}
		p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &m})
		for i, c := range w.made {
			p.Messages = append(p.Messages, openai.ToolMessage(w.results[i], c.id))
		}
	}
	if w.schema != nil {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Schema: w.schema, Strict: openai.Bool(true)}}
	}
	if w.stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		return chatFold(client.Chat.Completions.NewStreaming(ctx, p))
	}
	resp, err := client.Chat.Completions.New(ctx, p)
	if err != nil {
		return content{}, err
	}
	return chatContent(resp), nil
}

func askResponses(ctx context.Context, server string, w task) (content, error) {
	client := openai.NewClient(option.WithBaseURL(server+"/v1/"), option.WithAPIKey("any"), option.WithMaxRetries(0))
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(w.prompt, responses.EasyInputMessageRoleUser)}
	for _, c := range w.made {
		input = append(input, responses.ResponseInputItemParamOfFunctionCall(c.arguments, c.id, c.name))
	}
	for i, c := range w.made {
		result := responses.ResponseInputItemParamOfFunctionCallOutput(w.results[i])
		result.OfFunctionCallOutput.CallID = openai.String(c.id)
		input = append(input, result)
	}
	p := responses.ResponseNewParams{Model: w.name(), Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input}}
	if w.tools {
		p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction(toolName, citySchema(), false)}
	}
	if w.schema != nil {
		p.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("person", w.schema)
	}
	if w.stream {
		s, _, err := responsesEvents(client.Responses.NewStreaming(ctx, p))
		return s, err
	}
	resp, err := client.Responses.New(ctx, p)
	if err != nil {
		return content{}, err
	}
	s := responsesContent(resp.Output)
	s.usage = responsesUsage(resp)
	return s, nil
}

func askAnthropic(ctx context.Context, server string, w task) (content, error) {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(server), anthropicoption.WithAPIKey("any"), anthropicoption.WithMaxRetries(0))
	p := anthropic.MessageNewParams{
		Model: w.name(), MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(w.prompt))},
	}
	if w.tools {
		p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: toolName, Description: anthropic.String(toolAbout),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: cityProperty(), Required: []string{"city"}},
		}}}
	}
	if w.made != nil {
		var uses, results []anthropic.ContentBlockParamUnion
		for i, c := range w.made {
			uses = append(uses, anthropic.NewToolUseBlock(c.id, json.RawMessage(c.arguments), c.name))
			results = append(results, anthropic.NewToolResultBlock(c.id, w.results[i], false))
		}
		p.Messages = append(p.Messages, anthropic.NewAssistantMessage(uses...), anthropic.NewUserMessage(results...))
	}
	if w.schema != nil {
		p.OutputConfig.Format.Schema = w.schema
	}
	if w.stream {
		return anthropicFold(client.Messages.NewStreaming(ctx, p))
	}
	m, err := client.Messages.New(ctx, p)
	if err != nil {
		return content{}, err
	}
	return anthropicContent(m), nil
}

func askGemini(ctx context.Context, server string, w task) (content, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "any", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server},
	})
	if err != nil {
		return content{}, err
	}
	contents := genai.Text(w.prompt)
	config := &genai.GenerateContentConfig{}
	if w.tools {
		config.Tools = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: toolName, Description: toolAbout, ParametersJsonSchema: citySchema(),
		}}}}
	}
	if w.made != nil {
		callMessage, got := &genai.Content{Role: genai.RoleModel}, &genai.Content{Role: genai.RoleUser}
		for i, c := range w.made {
			var args map[string]any
			if err := json.Unmarshal([]byte(c.arguments), &args); err != nil {
				return content{}, err
			}
			callMessage.Parts = append(callMessage.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.id, Name: c.name, Args: args}})
			got.Parts = append(got.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: c.id, Name: c.name, Response: map[string]any{"output": w.results[i]}}})
		}
		contents = append(contents, callMessage, got)
	}
	if w.schema != nil {
		config.ResponseMIMEType, config.ResponseJsonSchema = "application/json", w.schema
	}
	var s content
	if !w.stream {
		r, err := client.Models.GenerateContent(ctx, w.name(), contents, config)
		if err != nil {
			return content{}, err
		}
		return s, s.gemini(r)
	}
	for r, err := range client.Models.GenerateContentStream(ctx, w.name(), contents, config) {
		if err == nil {
			err = s.gemini(r)
		}
		if err != nil {
			return content{}, err
		}
	}
	return s, nil
}

func askOllama(ctx context.Context, server string, w task) (content, error) {
	base, err := url.Parse(server)
	if err != nil {
		return content{}, err
	}
	client := api.NewClient(base, http.DefaultClient)
	req := &api.ChatRequest{Model: w.name(), Stream: &w.stream, Messages: []api.Message{{Role: "user", Content: w.prompt}}}
	if w.tools {
		f := api.ToolFunction{Name: toolName, Description: toolAbout}
		f.Parameters.Type, f.Parameters.Required, f.Parameters.Properties = "object", []string{"city"}, api.NewToolPropertiesMap()
		f.Parameters.Properties.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}})
		req.Tools = api.Tools{{Type: "function", Function: f}}
	}
	if w.made != nil {
		callMessage := api.Message{Role: "assistant"}
		for _, c := range w.made {
			k := api.ToolCall{ID: c.id, Function: api.ToolCallFunction{Name: c.name}}
			if err := json.Unmarshal([]byte(c.arguments), &k.Function.Arguments); err != nil {
				return content{}, err
			}
			callMessage.ToolCalls = append(callMessage.ToolCalls, k)
		}
		req.Messages = append(req.Messages, callMessage)
		for i, c := range w.made {
			req.Messages = append(req.Messages, api.Message{Role: "tool", Content: w.results[i], ToolName: c.name, ToolCallID: c.id})
		}
	}
	if w.schema != nil {
		if req.Format, err = json.Marshal(w.schema); err != nil {
			return content{}, err
		}
	}
	var s content
	err = client.Chat(ctx, req, s.ollama)
	return s, err
}

func askBedrock(ctx context.Context, server string, w task) (content, error) {
	client := bedrockruntime.New(bedrockruntime.Options{
		Region: "none", BaseEndpoint: aws.String(server), Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	messages := []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: w.prompt}}}}
	if w.made != nil {
		callMessage, got := types.Message{Role: types.ConversationRoleAssistant}, types.Message{Role: types.ConversationRoleUser}
		for i, c := range w.made {
			var args map[string]any
			if err := json.Unmarshal([]byte(c.arguments), &args); err != nil {
				return content{}, err
			}
			callMessage.Content = append(callMessage.Content, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
				ToolUseId: aws.String(c.id), Name: aws.String(c.name), Input: document.NewLazyDocument(args),
			}})
			got.Content = append(got.Content, &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
				ToolUseId: aws.String(c.id), Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: w.results[i]}},
			}})
		}
		messages = append(messages, callMessage, got)
	}
	var tools *types.ToolConfiguration
	if w.tools {
		tools = &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(toolName), Description: aws.String(toolAbout), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(citySchema())},
		}}}}
	}
	var output *types.OutputConfig
	if w.schema != nil {
		text, err := json.Marshal(w.schema)
		if err != nil {
			return content{}, err
		}
		output = &types.OutputConfig{TextFormat: &types.OutputFormat{Type: types.OutputFormatTypeJsonSchema, Structure: &types.OutputFormatStructureMemberJsonSchema{
			Value: types.JsonSchemaDefinition{Name: aws.String("person"), Schema: aws.String(string(text))},
		}}}
	}
	if w.stream {
		out, err := client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{ModelId: aws.String(w.name()), Messages: messages, ToolConfig: tools, OutputConfig: output})
		if err != nil {
			return content{}, err
		}
		return bedrockFold(out.GetStream())
	}
	out, err := client.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String(w.name()), Messages: messages, ToolConfig: tools, OutputConfig: output})
	if err != nil {
		return content{}, err
	}
	return bedrockContent(out)
}
