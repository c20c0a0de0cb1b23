package gemini_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/targets"
)

// knownAs returns the encode options for a model of the model table.
func knownAs(model string) dialect.EncodeOptions {
	m, _ := models.Default().Lookup("gemini", model)
	return dialect.EncodeOptions{Target: targets.Target{Caps: m.Capabilities(dialectname.Gemini)}}
}

func TestQuirkA44_OldModelDropsHostedToolsNextToFunctions(t *testing.T) {
	const config = `"toolConfig":{"retrievalConfig":{"languageCode":"de"},"includeServerSideToolInvocations":true`
	const body = `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f","description":""}]},{"codeExecution":{}}],` + config + `}}`
	req := decode(t, body)
	if got, _ := encode(t, req, knownAs("gemini-3-pro")); got != body {
		t.Errorf("a newer model accepts both: %s", got)
	}
	got, rep := encode(t, req, knownAs("gemini-2.5-flash"))
	if topField(t, got, "tools") != `[{"functionDeclarations":[{"name":"f","description":""}]}]` || topField(t, got, "toolConfig") != "" {
		t.Errorf("got %s", got)
	}
	has(t, rep, dragoman.Dropped, "/tools/0")
	has(t, rep, dragoman.Dropped, "/tools/2")

	chosen := decode(t, strings.Replace(body, config, config+`,"functionCallingConfig":{"mode":"ANY"}`, 1))
	if got, _ := encode(t, chosen, knownAs("gemini-2.5-flash")); topField(t, got, "toolConfig") != `{"functionCallingConfig":{"mode":"ANY"}}` {
		t.Errorf("got %s", got)
	}
	alone := decode(t, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"googleSearch":{}}],`+config+`}}`)
	if got, rep := encode(t, alone, knownAs("gemini-2.5-flash")); topField(t, got, "tools") != `[{"googleSearch":{}}]` || !strings.Contains(got, "retrievalConfig") || len(rep.Losses) > 0 {
		t.Errorf("hosted tools alone are accepted: %s\n%s", got, rep)
	}
}

func TestQuirkF1_OldModelWithFunctionsGetsSchemaInPrompt(t *testing.T) {
	const contents = `{"contents":[{"role":"user","parts":[{"text":"x"}]}],`
	const output = `"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"array","items":{"type":"string"}}}}`
	req := decode(t, contents+`"systemInstruction":{"parts":[{"text":"Be kind."}]},"tools":[{"functionDeclarations":[{"name":"f","description":""}]}],`+output)
	got, rep := encode(t, req, knownAs("gemini-2.5-flash"))
	if strings.Contains(got, "responseMimeType") || strings.Contains(got, "responseJsonSchema") || !strings.Contains(got, "functionDeclarations") {
		t.Errorf("the API refuses functions with JSON output: %s", got)
	}
	if prompt := topField(t, got, "systemInstruction"); !strings.Contains(prompt, "Be kind.") || !strings.Contains(prompt, `{\"type\":\"array\",\"items\":{\"type\":\"string\"}}`) {
		t.Errorf("the schema is not in the prompt: %s", prompt)
	}
	has(t, rep, dragoman.Lowered, "/output")
	if req.Output == nil || len(req.Instructions) != 1 {
		t.Error("the caller's request was changed")
	}
	if got, _ := encode(t, req, knownAs("gemini-3.8-flash")); !strings.Contains(got, "responseJsonSchema") {
		t.Errorf("a newer model accepts both: %s", got)
	}
	for _, alone := range []string{contents + output, contents + `"tools":[],` + output} {
		if got, _ := encode(t, decode(t, alone), knownAs("gemini-2.5-flash")); !strings.Contains(got, "responseJsonSchema") {
			t.Errorf("JSON output without functions is accepted: %s", got)
		}
	}
}

func TestQuirkG10_Gemini25GetsBudget(t *testing.T) {
	req := requestOf(dragoman.UserText("go"))
	req.Reasoning = &dragoman.ReasoningSettings{Effort: "low"}
	for model, want := range map[string]string{"gemini-2.5-flash": `{"thinkingBudget":1024}`, "gemini-3.8-flash": `{"thinkingLevel":"LOW"}`} {
		if got, _ := encode(t, req, knownAs(model)); topField(t, got, "generationConfig") != `{"thinkingConfig":`+want+`}` {
			t.Errorf("%s: %s", model, got)
		}
	}
}
