package servers

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// Tags are those of a request: its dialect, who serves it, and the family of its
// model, where they are known.
func Tags(d dragoman.Dialect, server, model string) []extension.Tag {
	tags := []extension.Tag{DialectTag(d)}
	if server != "" {
		tags = append(tags, ServerTag(server))
	}
	if f := Family(model); f != "" {
		tags = append(tags, FamilyTag(f))
	}
	return tags
}

// DialectTag is the tag of a dialect.
func DialectTag(d dragoman.Dialect) extension.Tag { return extension.Tag("dialect:" + string(d)) }

// ServerTag is the tag of who serves the model.
func ServerTag(name string) extension.Tag { return extension.Tag("server:" + name) }

// FamilyTag is the tag of a family of models.
func FamilyTag(name string) extension.Tag { return extension.Tag("family:" + name) }

// families are those that models are known by, with the beginnings of the names of
// their models behind any path, as in "moonshotai/Kimi-K2", and who makes them, as in
// "us.anthropic.claude-opus-5-5-v1:0".
var families = []struct {
	name   string
	begins []string
}{
	{"deepseek", []string{"deepseek"}},
	{"mistral", []string{"mistral", "magistral", "ministral", "codestral", "devstral", "pixtral", "open-mistral", "open-mixtral"}},
	{"kimi", []string{"kimi", "moonshot"}},
	{"qwen", []string{"qwen", "qwq", "qvq"}},
	{"glm", []string{"glm", "chatglm"}},
	{"grok", []string{"grok"}},
	{"llama", []string{"llama", "meta-llama"}},
	{"claude", []string{"claude"}},
	{"gemini", []string{"gemini"}},
	{"gpt-oss", []string{"gpt-oss"}},
	{"gpt", []string{"gpt-", "chatgpt", "o1", "o3", "o4"}},
}

// Family is the family of a model by its name; empty means that it is unknown.
func Family(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if _, own, resold := strings.Cut(name, "anthropic."); resold {
		name = own
	}
	for _, f := range families {
		if slices.ContainsFunc(f.begins, func(b string) bool { return strings.HasPrefix(name, b) }) {
			return f.name
		}
	}
	return ""
}
