package interop_test

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
)

func TestBedrockObjectsConvertBothWays(t *testing.T) {
	r := all.Registry(interop.Options{})
	for name, tc := range map[string]struct {
		convert  func([]dragoman.Native, dragoman.Format) ([]dragoman.Native, dragoman.Report, error)
		from, to dragoman.Native
	}{
		"a tool": {
			r.ConvertSchemas,
			dragoman.Native{Format: toolformat.AnthropicTool, JSON: json.RawMessage(`{"name":"f","description":"d","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}}`)},
			dragoman.Native{Format: toolformat.BedrockTool, JSON: json.RawMessage(`{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{"type":"object","properties":{"a":{"type":"string"}}}}}}`)},
		},
		"a call": {
			r.ConvertCalls,
			dragoman.Native{Format: toolformat.AnthropicToolUse, JSON: json.RawMessage(`{"type":"tool_use","id":"1","name":"f","input":{"b":1.0,"a":2}}`)},
			dragoman.Native{Format: toolformat.BedrockToolUse, JSON: json.RawMessage(`{"toolUse":{"toolUseId":"1","name":"f","input":{"b":1.0,"a":2}}}`)},
		},
		"a failed result": {
			r.ConvertResults,
			dragoman.Native{Format: toolformat.AnthropicResult, JSON: json.RawMessage(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"no"}],"is_error":true}`)},
			dragoman.Native{Format: toolformat.BedrockResult, JSON: json.RawMessage(`{"toolResult":{"toolUseId":"1","content":[{"text":"no"}],"status":"error"}}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range [][2]dragoman.Native{{tc.from, tc.to}, {tc.to, tc.from}} {
				got, rep, err := tc.convert([]dragoman.Native{way[0]}, way[1].Format)
				if err != nil || len(got) != 1 || string(got[0].JSON) != string(way[1].JSON) || len(rep.Losses) > 0 {
					t.Errorf("%v %s %s", err, got, rep)
				}
			}
		})
	}
}

func TestBedrockFormatsAreRecognizedByTheirField(t *testing.T) {
	for obj, want := range map[string]dragoman.Format{
		`{"toolSpec":{}}`: toolformat.BedrockTool, `{"x":1,"toolSpec":{}}`: toolformat.BedrockTool,
		`{"systemTool":{"name":"n"}}`: "bedrock.converse.systemTool", `{}`: "bedrock.converse.", `7`: "bedrock.converse.",
	} {
		if got := toolFormat(dialectname.Bedrock, json.RawMessage(obj)); got != want {
			t.Errorf("%s: %s", obj, got)
		}
	}
	for obj, want := range map[string]dragoman.Format{
		`{"toolUse":{}}`: toolformat.BedrockToolUse, `{"text":"a","TOOLUSE":{}}`: toolformat.BedrockToolUse, `{"text":"a"}`: "bedrock.converse.text",
	} {
		if got := callFormat(dialectname.Bedrock, json.RawMessage(obj)); got != want {
			t.Errorf("%s: %s", obj, got)
		}
	}
	if specs, _, err := all.Registry(interop.Options{}).InspectSchema(dragoman.Native{Format: "bedrock.converse.systemTool", JSON: json.RawMessage(`{"systemTool":{"name":"n"}}`)}); err != nil || specs[0].Name != "n" || specs[0].Kind != codes.ToolHosted {
		t.Errorf("%v %+v", err, specs)
	}
}
