package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// choosing lists body fields that choose models or their servers, and the path that the
// refusal names.
var choosing = map[string]string{
	`"models":["dear"]`:                                      "models",
	`"Models":["dear"]`:                                      "Models",
	`"models":null,"MODELS":["dear"]`:                        "MODELS",
	`"models":[],"models":["dear"]`:                          "models",
	`"mod\u0065ls":["dear"]`:                                 "models",
	`"model\u017f":["dear"]`:                                 "model\u017f",
	`"route":"fallback"`:                                     "route",
	`"provider":{"order":["Dear"]}`:                          "provider",
	`"plugins":[{"id":"fusion","analysis_models":["dear"]}]`: "plugins",
	`"preset":"dear"`:                                        "preset",
	`"fallbacks":["dear"]`:                                   "fallbacks",
	`"fallbacks":"default"`:                                  "fallbacks",
	`"context_window_fallback_dict":{"m":"dear"}`:            "context_window_fallback_dict",
	`"contextWindowFallbacks":[{"m":["dear"]}]`:              "contextWindowFallbacks",
	`"model_list":[{"model_name":"m","litellm_params":{"model":"dear"}}]`:                      "model_list",
	`"user_config":{"model_list":[]}`:                                                          "user_config",
	`"custom_llm_provider":"dear"`:                                                             "custom_llm_provider",
	`"api_base":"https://elsewhere.example"`:                                                   "api_base",
	`"extra_body":{"models":["dear"]}`:                                                         "extra_body",
	`"providerOptions":{"gateway":{"models":["dear"],"order":["x"]}}`:                          "providerOptions",
	`"provider_options":{"gateway":{"only":["x"]}}`:                                            "provider_options",
	`"compound_custom":{"models":{"answering_model":"dear"}}`:                                  "compound_custom.models",
	`"advisor":{"model":"dear","mode":"auto"}`:                                                 "advisor.model",
	`"data_sources":[{"parameters":{"embedding_dependency":{"deployment_name":"dear"}}}]`:      "data_sources.parameters.embedding_dependency.deployment_name",
	`"extra":{"default":{"model":"dear"}}`:                                                     "extra.default.model",
	`"x":{"parameters":{"properties":{"models":["dear"]}}}`:                                    "x.parameters.properties.models",
	`"tools":[{"type":"x","default":{"model":"dear"}}]`:                                        "tools.default.model",
	`"lora_path":"dear"`:                                                                       "lora_path",
	`"agent_id":"dear"`:                                                                        "agent_id",
	`"moderation":{"model":"dear"}`:                                                            "moderation.model",
	`"tools":[{"type":"advisor_20260301","name":"advisor","model":"dear"}]`:                    "tools.model",
	`"tools":[{"type":"openrouter:advisor","parameters":{"model":"dear"}}]`:                    "tools.parameters.model",
	`"tools":[{"type":"image_generation","model":"dear"}]`:                                     "tools.model",
	`"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"x","x":[{"MODEL":"d"}]}]`: "tools.x.MODEL",
	`"generationConfig":{"routingConfig":{"manualMode":{"modelName":"dear"}}}`:                 "generationConfig.routingConfig.manualMode.modelName",
	`"generation_config":{"routing_config":{"manual_mode":{"model_name":"dear"}}}`:             "generation_config.routing_config.manual_mode.model_name",
}

// harmless lists body fields that choose no model but look as if they might.
var harmless = []string{
	`"models":null,"provider":{},"plugins":[],"route":"","fallbacks":[]`,
	`"metadata":{"model":"dear","models":"dear"}`,
	`"tools":[{"name":"f","input_schema":{"type":"object","default":{"model":"m"},"$defs":{"model":{"type":"string"}}},"input_examples":[{"model":"m"}]}]`,
	`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"properties":{"model":{"type":"string"}},"required":["model"]}}}`,
	`"text":{"format":{"type":"json_schema","schema":{"properties":{"model":{"type":"string"}}}}}`,
	`"output_config":{"format":{"type":"json_schema","schema":{"properties":{"model":{"type":"string"}}}}}`,
	`"generationConfig":{"responseJsonSchema":{"properties":{"model":{"type":"string"}}}}`,
	`"format":{"type":"object","properties":{"model":{"type":"string"}}}`,
	`"structured_outputs":{"json":{"properties":{"model":{"type":"string"}}}}`,
	`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"enum":[{"model":"m"}]}},"anyOf":[{"properties":{"model":{"type":"string"}}}]}}]`,
	`"tools":[{"type":"function","name":"f","function":{"name":"f","parameters":{"type":"object","properties":{"model":{"type":"string"},"fallbacks":{"type":"array","items":{"type":"string"}}},"required":["model"]}},"parameters":{"type":"object","properties":{"model":{"type":"string"}}},"input_schema":{"type":"object","properties":{"models":{"type":"string"}}}}]`,
}

// restricted is a world whose team may ask for one model, which four servers have, through
// pass-through and translation.
func restricted(t *testing.T, fields string, handler http.HandlerFunc) *world {
	t.Helper()
	t.Setenv("TEAM_KEY", teamKey)
	t.Setenv("ALL_KEY", "a-secret-of-all-the-models")
	routes := "chat: {to: openai/m}, responses: {to: responses/m}, messages: {to: anthropic/m}, gemini: {to: gemini/m}, ollama: {to: ollama/m}, repaired: {to: openai/m, repair: always}, dear: {to: openai/dear}"
	return newServerWorld(t, "gateway: {keys: {team: {key_env: TEAM_KEY, models: [chat, responses, messages, gemini, ollama, repaired]"+fields+"}, all: {key_env: ALL_KEY}}, routes: {"+routes+"}}\n", handler)
}

// requestsWith returns requests of each dialect for a model, with an additional field.
func requestsWith(model, field string) map[string]string {
	return map[string]string{
		"/v1/chat/completions":                               `{` + field + `,"model":"` + model + `","messages":[{"role":"user","content":"models"}]}`,
		"/v1/responses":                                      `{"model":"` + model + `","input":[{"role":"user","content":"hi"}],"store":false,` + field + `}`,
		"/v1/messages":                                       `{"model":"` + model + `",` + field + `,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/messages/count_tokens":                          `{"model":"` + model + `",` + field + `,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1beta/models/" + model + ":generateContent":       `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],` + field + `}`,
		"/v1beta/models/" + model + ":streamGenerateContent": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],` + field + `}`,
		"/api/chat":                                          `{"model":"` + model + `","stream":false,"messages":[{"role":"user","content":"hi"}],` + field + `}`,
	}
}

func TestG3_BodyFieldCannotReachAnotherModel(t *testing.T) {
	var requests atomic.Int32
	w := restricted(t, "", func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		t.Errorf("the upstream was called: %s", body)
		rw.WriteHeader(http.StatusBadRequest)
	})
	var wg sync.WaitGroup
	for _, model := range []string{"chat", "responses", "messages", "gemini", "ollama", "repaired"} {
		wg.Go(func() {
			for field, name := range choosing {
				for path, body := range requestsWith(model, field) {
					status, text := get(t, http.MethodPost, w.url+path, body, "authorization", "Bearer "+teamKey, "content-type", "application/json")
					if status != http.StatusForbidden || !strings.Contains(text, "the key team may use only chat, ") || !strings.Contains(text, name) {
						t.Errorf("%s to %s with %s: %d %s", path, model, field, status, text)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := requests.Load(); n != 0 {
		t.Errorf("%d upstream requests", n)
	}
	w.wantLog(t, `"status":403`, "in addition to model")
}

func TestG3_BodyModelMustMatchTheURL(t *testing.T) {
	w := restricted(t, "", hello)
	for body, want := range map[string]int{
		`"model":"gemini"`:        200,
		`"model":"models/gemini"`: 200,
		`"model":"dear"`:          403,
		`"MODEL":"models/dear"`:   403,
		`"model":{"name":"dear"}`: 403,
		`'models':['dear']`:       400, // which Google's parser takes for JSON
		`models:["dear"]`:         400,
	} {
		status, text := get(t, http.MethodPost, w.url+"/v1beta/models/gemini:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],`+body+`}`, "x-goog-api-key", teamKey)
		if status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions?model=dear", `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`, "authorization", "Bearer "+teamKey)
	if status != http.StatusForbidden || !strings.Contains(text, "?model") {
		t.Errorf("in the query: %d %s", status, text)
	}
	for params, want := range map[string]int{"model=models/gemini": 200, "model=models%2Fgemini&x=y": 200, "model=models/dear": 403, "x=y&model=gemini&model=dear": 403, "a;model=dear": 403} {
		status, text := get(t, http.MethodPost, w.url+"/v1beta/models/gemini:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "x-goog-api-key", teamKey, "x-goog-request-params", params)
		if status != want {
			t.Errorf("in the header for routing, %s: %d %s", params, status, text)
		}
	}
}

func TestG3_FieldsThatChooseNoModelAreAccepted(t *testing.T) {
	w := restricted(t, "", hello)
	for _, field := range harmless {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{` + field + `,"model":"chat","messages":[{"role":"user","content":"{\"models\":[\"dear\"]}"}]}`,
			"/v1/messages":         `{` + field + `,"model":"messages","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		} {
			if status, text := get(t, http.MethodPost, w.url+path, body, "authorization", "Bearer "+teamKey); status != http.StatusOK {
				t.Errorf("%s with %s: %d %s", path, field, status, text)
			}
		}
	}
}

func TestG3_KeyMayUseItsAllowedFields(t *testing.T) {
	var received atomic.Pointer[string]
	note := func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received.Store(new(string(body)))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		hello(rw, r)
	}
	for _, tc := range []struct {
		fields, secret, field string
		status                int
	}{
		{"", "a-secret-of-all-the-models", `"models":["dear"]`, 200}, // it may use all models
		{", fields: [models]", teamKey, `"models":["dear"]`, 200},
		{", fields: provider", teamKey, `"provider":{"sort":"price"}`, 200},
		{", fields: [models]", teamKey, `"Models":["dear"]`, 403},
		{", fields: [models]", teamKey, `"models":["dear"],"provider":{"sort":"price"}`, 403},
		{", fields: ['*']", teamKey, `"provider":{"sort":"price"},"fallbacks":["dear"]`, 200},
		{", fields: [tools.model]", teamKey, `"tools":[{"type":"x","model":"dear"}]`, 200},
		{", fields: [tools]", teamKey, `"tools":[{"type":"x","parameters":{"model":"dear"}}]`, 200},
		{", fields: [tools.model]", teamKey, `"tools":[{"type":"x","parameters":{"model":"dear"}}]`, 403},
	} {
		w := restricted(t, tc.fields, note)
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", fmt.Sprintf(`{"model":"chat",%s,"messages":[{"role":"user","content":"hi"}]}`, tc.field), "authorization", "Bearer "+tc.secret)
		if status != tc.status {
			t.Errorf("%s: %s: %d %s", tc.fields, tc.field, status, text)
		}
		if tc.status == http.StatusOK && !strings.Contains(*received.Load(), tc.field) {
			t.Errorf("%s: the upstream gets %s", tc.fields, *received.Load())
		}
	}
}
