package servers

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// Tags returns the tags of a request: its dialect, its server, and the family of its model, if
// they are known.
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

// DialectTag returns the tag of a dialect.
func DialectTag(d dragoman.Dialect) extension.Tag { return extension.Tag("dialect:" + string(d)) }

// ServerTag returns the tag of a server.
func ServerTag(name string) extension.Tag { return extension.Tag("server:" + name) }

// FamilyTag returns the tag of a family of models.
func FamilyTag(name string) extension.Tag { return extension.Tag("family:" + name) }

// families lists the known families with the prefixes of the names of their models after any
// path, as in "moonshotai/Kimi-K2", and their vendors, as in
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

// Family returns the family of a model by its name; empty means unknown.
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
