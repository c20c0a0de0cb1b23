package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

const form = `{"type":"object","required":["branch","color"],"properties":{
	"branch":{"type":"string","title":"Branch","description":"of the \u001b[2Jrepository"},
	"count":{"type":"integer","default":3},
	"ratio":{"type":"number"},
	"force":{"type":"boolean"},
	"color":{"type":"string","enum":["red","blue"],"enumNames":["Red","Blue"]},
	"tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}}}`

func TestPromptAsksForTheFieldsOfAForm(t *testing.T) {
	for _, tc := range []struct {
		name, typed, want string
		verdict           tool.Verdict
	}{
		{"every kind", "y\nmain\n4\n1.5\ny\n2\n1, b\ny\n", `{"branch":"main","count":4,"ratio":1.5,"force":true,"color":"blue","tags":["a","b"]}`, tool.Approved},
		{"defaults and fields left out", "y\nn\n\n\n\nred\n\ny\n", `{"branch":"n","count":3,"color":"red"}`, tool.Approved},
		{"mistakes are asked again", "y\n\nmain\nx\n4.5\n4\n\nmaybe\nno\ngreen\n1\n\ny\n", `{"branch":"main","count":4,"force":false,"color":"red"}`, tool.Approved},
		{"declined at first", "n because no\n", ``, tool.Rejected},
		{"declined at the end", "y\nmain\n\n\n\nred\n\nn\n", ``, tool.Rejected},
		{"no valid answer", "y\nmain\nx\nx\nx\n", ``, tool.Undecided},
		{"the input ends", "y\nmain\n", ``, tool.Undecided},
		{"a value at once", "={\"branch\":\"x\",\"color\":\"red\"}\n", `{"branch":"x","color":"red"}`, tool.Approved},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			p := policy.NewPrompt(strings.NewReader(tc.typed), &out)
			a, err := p.Approve(context.Background(), &tool.ApprovalRequest{
				From: `MCP server "git"`, Input: tool.Input{Arguments: json.RawMessage(`{}`)},
				Wanted: &tool.InputRequest{Name: "q", From: `MCP server "git" (tool push)`, Prompt: "Where to?", Schema: json.RawMessage(form)},
			})
			if err != nil || a.Verdict != tc.verdict || string(a.Value) != tc.want {
				t.Errorf("%+v %s, %v\n%s", a, a.Value, err, out.String())
			}
			if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), `MCP server "git" (tool push) asks:`) {
				t.Errorf("%s", out.String())
			}
		})
	}
}

func TestPromptNamesTheProviderOfATool(t *testing.T) {
	var out bytes.Buffer
	p := policy.NewPrompt(strings.NewReader("y\n"), &out)
	req := &tool.ApprovalRequest{From: `MCP server "files"`, Binding: tool.Binding{Key: tool.Key{Name: "write_file"}}, Input: tool.Input{Arguments: json.RawMessage(`{}`)}}
	if a, err := p.Approve(context.Background(), req); err != nil || a.Verdict != tool.Approved {
		t.Fatalf("%+v, %v", a, err)
	}
	if !strings.Contains(out.String(), `write_file of MCP server "files" wants to run`) {
		t.Errorf("%s", out.String())
	}
}

func TestPromptTakesOtherSchemasAsJSON(t *testing.T) {
	var out bytes.Buffer
	p := policy.NewPrompt(strings.NewReader("={\"a\":{}}\n"), &out)
	a, err := p.Approve(context.Background(), &tool.ApprovalRequest{Wanted: &tool.InputRequest{Name: "q", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"object"}}}`)}})
	if err != nil || string(a.Value) != `{"a":{}}` || !strings.Contains(out.String(), "Type = and then the value as JSON") {
		t.Errorf("%+v, %v\n%s", a, err, out.String())
	}
}
