package bedrock_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
)

func TestQuirkF8_AModelThatBreaksOutputsAfterToolsIsAskedInWords(t *testing.T) {
	calls := ask(dragoman.UserText("q"), said(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{}`}), said(dragoman.RoleTool, &dragoman.ToolResult{CallID: "c", Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "r"}}}))
	tools := ask(dragoman.UserText("q"))
	tools.Tools = []dragoman.ToolSpec{{Name: "f"}}
	for what, c := range map[string]struct {
		req   *dragoman.Request
		model string
		words bool
	}{
		"tools":                  {tools, "us.anthropic.claude-opus-4-8-v1:0", true},
		"a conversation of them": {calls, "anthropic.claude-opus-4-7", true},
		"neither":                {ask(dragoman.UserText("q")), "anthropic.claude-opus-4-7", false},
		"a model that does not":  {tools, "anthropic.claude-sonnet-5-5", false},
	} {
		c.req.Output = &dragoman.OutputFormat{Kind: dragoman.OutputSchema, Name: "o", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
		v, enc := encode(t, c.req, dialect.EncodeOptions{Target: dragoman.Target{Caps: bedrock.CapabilitiesOf(c.model)}})
		said, _ := field(v, "system", 0, "text").(string)
		if native := v["outputConfig"] != nil; native == c.words || strings.Contains(said, `{"n":{"type":"integer"}}`) != c.words {
			t.Errorf("%s: %s", what, enc.Body)
		}
		if c.words {
			has(t, enc.Report, dragoman.Lowered, "/output")
		}
	}
}

func TestAmazonsOwnModelsTakeTheClosedForm(t *testing.T) {
	if !bedrock.CapabilitiesOf("us.amazon.nova-pro-v1:0").ClosedSchemas || bedrock.CapabilitiesOf("anthropic.claude-sonnet-5-5") != (dragoman.Capabilities{}) {
		t.Error("the capabilities of Nova and Claude")
	}
}
