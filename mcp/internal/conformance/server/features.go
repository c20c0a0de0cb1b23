package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

const watched = "test://watched-resource"

func resources() []mcpserver.Resource {
	fixed := func(c mcpserver.Content) func(context.Context, string) ([]mcpserver.Content, error) {
		return func(context.Context, string) ([]mcpserver.Content, error) { return []mcpserver.Content{c}, nil }
	}
	return []mcpserver.Resource{
		{
			URI: "test://static-text", Name: "static-text", Description: "A text.", MIME: "text/plain",
			Read: fixed(mcpserver.Content{MIME: "text/plain", Text: "This is the content of the static text resource."}),
		},
		{
			URI: "test://static-binary", Name: "static-binary", Description: "An image.", MIME: "image/png",
			Read: fixed(mcpserver.Content{MIME: "image/png", Blob: mustBase64(image)}),
		},
		{
			URI: watched, Name: "watched-resource", Description: "Changes every 3 seconds.", MIME: "text/plain",
			Read: fixed(mcpserver.Content{MIME: "text/plain", Text: "watched"}),
		},
	}
}

func templates() []mcpserver.ResourceTemplate {
	return []mcpserver.ResourceTemplate{{
		Template: "test://template/{id}/data", Name: "template", Description: "Data by id.", MIME: "application/json",
		Read: func(_ context.Context, _ string, vars map[string]string) ([]mcpserver.Content, error) {
			b, err := json.Marshal(map[string]any{"id": vars["id"], "templateTest": true, "data": "Data for ID: " + vars["id"]})
			return []mcpserver.Content{{MIME: "application/json", Text: string(b)}}, err
		},
	}}
}

func prompts() []mcpserver.Prompt {
	file := func(uri string) json.RawMessage {
		b, err := json.Marshal(map[string]any{"type": "resource", "resource": map[string]string{"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}})
		if err != nil {
			panic(err) // it has only texts
		}
		return b
	}
	return []mcpserver.Prompt{
		{
			Name: "test_simple_prompt", Title: "Simple", Description: "A prompt without arguments.",
			Get: func(context.Context, map[string]string) ([]mcpserver.PromptMessage, error) {
				return []mcpserver.PromptMessage{{Text: "This is a simple prompt for testing."}}, nil
			},
		},
		{
			Name: "test_prompt_with_arguments", Description: "A prompt with arguments.",
			Arguments: []mcpserver.PromptArgument{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}},
			Get: func(_ context.Context, a map[string]string) ([]mcpserver.PromptMessage, error) {
				return []mcpserver.PromptMessage{{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}}, nil
			},
		},
		{
			Name: "test_prompt_with_embedded_resource", Description: "A prompt with a file.",
			Arguments: []mcpserver.PromptArgument{{Name: "resourceUri", Required: true}},
			Get: func(_ context.Context, a map[string]string) ([]mcpserver.PromptMessage, error) {
				return []mcpserver.PromptMessage{{Content: file(a["resourceUri"])}, {Text: "Please process the file."}}, nil
			},
		},
		{
			Name: "test_prompt_with_image", Description: "A prompt with an image.",
			Get: func(context.Context, map[string]string) ([]mcpserver.PromptMessage, error) {
				return []mcpserver.PromptMessage{{Content: json.RawMessage(`{"type":"image","data":"` + image + `","mimeType":"image/png"}`)}, {Text: "Please look at the image."}}, nil
			},
		},
		{
			Name: "test_input_required_result_prompt", Description: "A prompt that asks.",
			Get: func(ctx context.Context, _ map[string]string) ([]mcpserver.PromptMessage, error) {
				answer, err := ask(ctx, "user_context", mcpserver.Form("Which context?", json.RawMessage(`{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`)))
				return []mcpserver.PromptMessage{{Text: "Context: " + string(answer)}}, err
			},
		},
	}
}

// skills has one skill with files in a folder.
type skills struct {
	list  []mcpserver.Skill
	files map[string][]byte
}

func newSkills() *skills {
	files := map[string][]byte{
		"SKILL.md":         []byte("---\nname: refunds\ndescription: Process refunds\nlicense: MIT\n---\n\nRead examples/mail.md first.\n"),
		"examples/mail.md": []byte("# A mail\n\nDear customer,\n"),
		"notes.txt":        []byte("Notes.\n"),
	}
	k := mcpserver.NewSkill("refunds", json.RawMessage(`{"name":"refunds","description":"Process refunds","license":"MIT"}`), files)
	s := &skills{list: []mcpserver.Skill{k}, files: map[string][]byte{}}
	for path, content := range files {
		s.files["skill://refunds/"+path] = content
	}
	return s
}

func (s *skills) List(context.Context) ([]mcpserver.Skill, error) { return s.list, nil }

func (s *skills) Read(_ context.Context, uri string) (mcpserver.Content, error) {
	b, ok := s.files[uri]
	if !ok {
		return mcpserver.Content{}, mcpserver.ErrNoResource
	}
	return mcpserver.Content{URI: uri, MIME: "text/markdown", Text: string(b)}, nil
}
