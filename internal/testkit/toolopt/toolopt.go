// Package toolopt has short forms of tool options, for tests.
package toolopt

import (
	"context"
	"encoding/json"

	"github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// NeedsApprovalFor sets ApprovalFor.
func NeedsApprovalFor(f func(context.Context, tool.Input) (bool, error)) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.ApprovalFor = f })
}

// Structured sets Structured.
func Structured() tool.Option { return tool.Set(func(s *tool.Settings) { s.Structured = true }) }

// Tagged adds tags.
func Tagged(tags ...string) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.Tags = append(s.Tags, tags...) })
}

// Immediately sets Immediate.
func Immediately() tool.Option { return tool.Set(func(s *tool.Settings) { s.Immediate = true }) }

// WithPreview sets Preview.
func WithPreview(f func(context.Context, tool.Input) (string, error)) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.Preview = f })
}

// Pre adds hooks on the input.
func Pre(hooks ...tool.PreHook) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.Hooks.Pre = append(s.Hooks.Pre, hooks...) })
}

// Use adds middleware.
func Use(m ...tool.Middleware) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.Hooks.Use = append(s.Hooks.Use, m...) })
}

// Post adds hooks on the output.
func Post(hooks ...tool.PostHook) tool.Option {
	return tool.Set(func(s *tool.Settings) { s.Hooks.Post = append(s.Hooks.Post, hooks...) })
}

// OpenWorld annotates the tool as one that reaches other systems.
func OpenWorld() tool.Option {
	return tool.Describe(func(s *dragoman.ToolSpec) { s.Annotations.OpenWorld = new(true) })
}

// Title sets the title.
func Title(title string) tool.Option {
	return tool.Describe(func(s *dragoman.ToolSpec) { s.Annotations.Title = title })
}

// Example adds examples of arguments.
func Example(args ...json.RawMessage) tool.Option {
	return tool.Describe(func(s *dragoman.ToolSpec) { s.Examples = append(s.Examples, args...) })
}

// Strict sets Strict.
func Strict(strict string) tool.Option {
	return tool.Describe(func(s *dragoman.ToolSpec) { s.Strict = strict })
}

// Bare is the key of a tool without a namespace.
func Bare(name string) tool.Key { return tool.KeyOf(&dragoman.ToolSpec{Name: name}) }

// Namespaced is the key of a tool in a namespace.
func Namespaced(namespace, name string) tool.Key {
	return tool.KeyOf(&dragoman.ToolSpec{Namespace: namespace, Name: name})
}

// Deferred is the key of a deferred tool without a namespace.
func Deferred(name string) tool.Key {
	return tool.KeyOf(&dragoman.ToolSpec{Name: name, Deferred: true})
}
