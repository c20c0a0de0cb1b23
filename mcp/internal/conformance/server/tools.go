package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

const (
	image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	audio = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

type fixture struct{ server *mcpserver.Server }

type none struct{}

// trusted marks a tool whose output is its own text.
var trusted = tool.Set(func(s *tool.Settings) { s.Trusted = true })

func text(name, description string, f func(ctx context.Context) (string, error)) tool.Tool {
	return tool.New(name, description, func(ctx context.Context, _ none) (string, error) { return f(ctx) }, trusted)
}

func says(name, description, text string) tool.Tool {
	return tool.New(name, description, func(context.Context, none) (string, error) { return text, nil }, trusted)
}

func parts(name, description string, parts ...dragoman.Part) tool.Tool {
	return tool.New(name, description, func(context.Context, none) ([]dragoman.Part, error) { return parts, nil }, trusted)
}

func (f *fixture) tools() []tool.Tool {
	picture := &dragoman.Media{Media: "image", MIME: "image/png", Base64: image}
	file := &dragoman.Media{Media: "file", MIME: "text/plain", Text: "This is an embedded resource", Name: "test://embedded-resource"}
	return append([]tool.Tool{
		says("test_simple_text", "Returns a text.", "This is a simple text response for testing."),
		parts("test_image_content", "Returns an image.", picture),
		parts("test_audio_content", "Returns a sound.", &dragoman.Media{Media: "audio", MIME: "audio/wav", Base64: audio}),
		parts("test_embedded_resource", "Returns a file.", file),
		parts("test_multiple_content_types", "Returns a text, an image and a file.", &dragoman.Text{Text: "Several kinds of content:"}, picture, file),
		text("test_error_handling", "Fails.", func(context.Context) (string, error) {
			return "", errors.New("this tool always fails")
		}),
		text("test_tool_with_progress", "Reports progress.", func(ctx context.Context) (string, error) {
			for done := 0.0; done <= 100; done += 50 {
				mcpserver.Progress(ctx, done, 100, fmt.Sprintf("%.0f of 100", done))
				pause(ctx, 20*time.Millisecond)
			}
			return "done", nil
		}),
		text("test_tool_with_logging", "Sends log messages.", func(ctx context.Context) (string, error) {
			for _, m := range []string{"started", "working", "ended"} {
				mcpserver.Log(ctx, "info", "fixture", m)
				pause(ctx, 20*time.Millisecond)
			}
			return "done", nil
		}),
		text("test_logging_tool", "Sends a log message.", func(ctx context.Context) (string, error) {
			mcpserver.Log(ctx, "info", "fixture", "called")
			return "done", nil
		}),
		tool.Raw("test_sampling", "Asks the model of the client.",
			json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`),
			func(ctx context.Context, args json.RawMessage) (any, error) {
				var in struct{ Prompt string }
				if err := json.Unmarshal(args, &in); err != nil {
					return nil, err
				}
				answer, err := ask(ctx, "answer", sample(in.Prompt))
				return "LLM response: " + string(answer), err
			}, trusted),
		tool.Raw("test_elicitation", "Asks the user of the client.",
			json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`),
			func(ctx context.Context, args json.RawMessage) (any, error) {
				var in struct{ Message string }
				if err := json.Unmarshal(args, &in); err != nil {
					return nil, err
				}
				answer, err := ask(ctx, "user", mcpserver.Form(in.Message, json.RawMessage(
					`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)))
				return "User response: " + string(answer), err
			}, trusted),
		form("test_elicitation_sep1034_defaults", `{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`),
		form("test_elicitation_sep1330_enums", `{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"},{"const":"value3","title":"Third"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},
			"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"},{"const":"value3","title":"Third"}]}}}}`),
		tool.Raw("json_schema_2020_12_tool", "Has a schema with many keywords.", json.RawMessage(`{
			"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
			"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
			"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
			"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
			"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
			"additionalProperties":false}`),
			func(_ context.Context, args json.RawMessage) (any, error) { return string(args), nil }, trusted),
		tool.Raw("test_x_mcp_header", "Has an argument that is also a header.", json.RawMessage(
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`),
			func(_ context.Context, args json.RawMessage) (any, error) { return string(args), nil }, trusted),
		text("test_reconnection", "Closes its stream; the client comes back for the result.", func(ctx context.Context) (string, error) {
			mcpserver.Detach(ctx, 10*time.Millisecond)
			pause(ctx, 100*time.Millisecond)
			return "The stream was closed and continued.", nil
		}),
		text("test_missing_capability", "Needs a model at the client.", func(ctx context.Context) (string, error) {
			return "the client has a model", mcpserver.Require(ctx, mcpserver.CapSampling)
		}),
		says("test_streaming_elicitation", "Returns at once.", "done"),
		text("test_trigger_tool_change", "Changes the list of tools.", func(context.Context) (string, error) {
			extra := says("test_extra", "Exists since "+time.Now().String(), "extra")
			return "changed", f.server.SetTools(append(f.tools(), extra)...)
		}),
		text("test_trigger_prompt_change", "Changes the list of prompts.", func(context.Context) (string, error) {
			return "changed", f.server.SetPrompts(prompts()...)
		}),
	}, append(questionTools(), taskTools()...)...)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func ask(ctx context.Context, key string, q mcpserver.Question) (json.RawMessage, error) {
	answers, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{key: q})
	return answers[key], err
}

func sample(prompt string) mcpserver.Question {
	params, err := json.Marshal(map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]string{"type": "text", "text": prompt}}},
		"maxTokens": 100,
	})
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return mcpserver.Sample(params)
}

func form(name, schema string) tool.Tool {
	return text(name, "Asks the user with a form.", func(ctx context.Context) (string, error) {
		answer, err := ask(ctx, "form", mcpserver.Form("Please fill in the form.", json.RawMessage(schema)))
		return "Elicitation completed: " + string(answer), err
	})
}

var (
	nameForm  = mcpserver.Form("What is your name?", json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`))
	okForm    = mcpserver.Form("Please confirm.", json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`))
	colorForm = mcpserver.Form("Which color?", json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`))
)

func name(answer json.RawMessage) string {
	var a struct{ Content struct{ Name string } }
	if json.Unmarshal(answer, &a) != nil {
		return ""
	}
	return a.Content.Name
}

func questionTools() []tool.Tool {
	confirm := func(ctx context.Context) (string, error) {
		_, err := ask(ctx, "confirm", okForm)
		return "state-ok", err
	}
	return []tool.Tool{
		text("test_input_required_result_elicitation", "Asks for a name.", func(ctx context.Context) (string, error) {
			answer, err := ask(ctx, "user_name", nameForm)
			return "Hello, " + name(answer) + "!", err
		}),
		text("test_input_required_result_sampling", "Asks the model.", func(ctx context.Context) (string, error) {
			answer, err := ask(ctx, "capital_question", sample("What is the capital of France?"))
			return string(answer), err
		}),
		text("test_input_required_result_list_roots", "Asks for folders.", func(ctx context.Context) (string, error) {
			answer, err := ask(ctx, "client_roots", mcpserver.Roots())
			return string(answer), err
		}),
		text("test_input_required_result_request_state", "Asks for a confirmation.", confirm),
		text("test_input_required_result_tampered_state", "Asks for a confirmation.", confirm),
		text("test_input_required_result_multiple_inputs", "Asks three questions at once.", func(ctx context.Context) (string, error) {
			_, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"user_name": nameForm, "greeting": sample("Write a greeting."), "client_roots": mcpserver.Roots()})
			return "All inputs received.", err
		}),
		text("test_input_required_result_multi_round", "Asks two questions, one after the other.", func(ctx context.Context) (string, error) {
			who, err := ask(ctx, "step1", nameForm)
			if err != nil {
				return "", err
			}
			color, err := ask(ctx, "step2", colorForm)
			return name(who) + " likes " + string(color), err
		}),
		text("test_input_required_result_capabilities", "Asks what the client supports.", func(ctx context.Context) (string, error) {
			caller, _ := mcpserver.CallerFrom(ctx)
			questions := map[string]mcpserver.Question{}
			if caller.Can(mcpserver.CapElicitation) {
				questions["user_name"] = nameForm
			}
			if caller.Can(mcpserver.CapSampling) {
				questions["greeting"] = sample("Write a greeting.")
			}
			_, err := mcpserver.Ask(ctx, questions)
			return "done", err
		}),
	}
}

type work func(ctx context.Context) (tool.Output, error)

func output(s string) (tool.Output, error) {
	return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: s}}}, nil
}

// background makes a tool that only clients with tasks can use.
func background(name, description string, w work) tool.Tool {
	return tool.New(name, description, func(ctx context.Context, _ struct {
		Filename string `json:"filename,omitempty"`
	},
	) (tool.Output, error) {
		if err := mcpserver.Require(ctx, mcpserver.CapTasks); err != nil {
			return tool.Output{}, err
		}
		return mcpserver.Background(ctx, time.Hour, w)
	}, trusted)
}

func taskTools() []tool.Tool {
	type seconds struct {
		Seconds float64 `json:"seconds,omitempty"`
		Label   string  `json:"label,omitempty"`
	}
	type person struct {
		Name string `json:"name"`
	}
	confirmForm := mcpserver.Form("Delete it?", json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`))
	return []tool.Tool{
		tool.New("greet", "Greets.", func(_ context.Context, p person) (string, error) { return "Hello, " + p.Name + "!", nil }, trusted),
		tool.New("slow_compute", "Computes for some seconds.", func(ctx context.Context, in seconds) (tool.Output, error) {
			return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) {
				pause(ctx, time.Duration(in.Seconds*float64(time.Second)))
				if ctx.Err() != nil {
					return tool.Output{}, ctx.Err()
				}
				return output("computed " + in.Label)
			})
		}, trusted),
		background("failing_job", "Fails after a second.", func(ctx context.Context) (tool.Output, error) {
			pause(ctx, time.Second)
			return tool.Output{}, errors.New("the job failed")
		}),
		background("protocol_error_job", "Panics.", func(context.Context) (tool.Output, error) { panic("on purpose") }),
		background("confirm_delete", "Asks before it deletes.", func(ctx context.Context) (tool.Output, error) {
			answer, err := ask(ctx, "confirm", confirmForm)
			if err != nil {
				return tool.Output{}, err
			}
			return output("deleted: " + string(answer))
		}),
		background("multi_input", "Asks two questions at once.", func(ctx context.Context) (tool.Output, error) {
			either := mcpserver.Form("Please answer.", json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"confirm":{"type":"boolean"}}}`))
			if _, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"first": either, "second": either}); err != nil {
				return tool.Output{}, err
			}
			return output("both answered")
		}),
		tool.New("test_tool_with_task", "Asks for a name, then works.", func(ctx context.Context, _ none) (tool.Output, error) {
			answer, err := ask(ctx, "user_name", nameForm)
			if err != nil {
				return tool.Output{}, err
			}
			return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) {
				pause(ctx, 100*time.Millisecond)
				return output("Done for " + name(answer))
			})
		}, trusted),
	}
}

func mustBase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err) // it is a constant
	}
	return b
}
