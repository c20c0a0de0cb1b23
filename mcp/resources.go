package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
)

// ErrUnsupported is wrapped by errors about features that a server does not have.
var ErrUnsupported = peer.ErrUnsupported

// Resource is a resource of a server, or a template of resources. Its texts are untrusted.
type Resource struct {
	Server string
	// URI is empty for a template, and Template is empty for a resource.
	URI, Template            string
	Name, Title, Description string
	MIME                     string
	// Size is the number of bytes; zero means unknown.
	Size int64
	// JSON is the whole object of the server.
	JSON json.RawMessage
}

// Prompt is a prompt of a server. Its texts are untrusted.
type Prompt struct {
	Server, Name, Title, Description string
	Arguments                        []PromptArgument
	JSON                             json.RawMessage
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Resources returns the resources of all servers that are ready and have resources, in the
// order of the configuration. The error joins those of servers whose list failed; the
// resources of the others are returned with it.
func (s *Servers) Resources(ctx context.Context) ([]Resource, error) {
	return s.resources(ctx, peer.Resources)
}

// Templates returns the templates of resources, like [Servers.Resources].
func (s *Servers) Templates(ctx context.Context) ([]Resource, error) {
	return s.resources(ctx, peer.ResourceTemplates)
}

func (s *Servers) resources(ctx context.Context, which peer.List) (out []Resource, err error) {
	err = s.each(ctx, which, func(label string, raw json.RawMessage) {
		var r struct {
			URI         string `json:"uri"`
			URITemplate string `json:"uriTemplate"`
			Name        string `json:"name"`
			Title       string `json:"title"`
			Description string `json:"description"`
			MIMEType    string `json:"mimeType"`
			Size        int64  `json:"size"`
		}
		_ = json.Unmarshal(raw, &r) // a field of another type does not hide the others
		if r.URI+r.URITemplate == "" {
			return
		}
		out = append(out, Resource{Server: label, URI: r.URI, Template: r.URITemplate, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIMEType, Size: r.Size, JSON: raw})
	})
	return out, err
}

// Prompts returns the prompts of all servers, like [Servers.Resources].
func (s *Servers) Prompts(ctx context.Context) (out []Prompt, err error) {
	err = s.each(ctx, peer.Prompts, func(label string, raw json.RawMessage) {
		var p struct {
			Name        string           `json:"name"`
			Title       string           `json:"title"`
			Description string           `json:"description"`
			Arguments   []PromptArgument `json:"arguments"`
		}
		_ = json.Unmarshal(raw, &p)
		if p.Name == "" {
			return
		}
		out = append(out, Prompt{Server: label, Name: p.Name, Title: p.Title, Description: p.Description, Arguments: p.Arguments, JSON: raw})
	})
	return out, err
}

// each calls f for the items of a list of every server that is ready and has it.
func (s *Servers) each(ctx context.Context, which peer.List, f func(label string, raw json.RawMessage)) error {
	var errs []error
	for _, one := range s.list {
		one.mu.Lock()
		ready := one.state == StateReady
		one.mu.Unlock()
		if !ready || !one.peer.Supports(string(which)) {
			continue
		}
		list, err := one.peer.List(ctx, which)
		switch {
		case errors.Is(err, peer.ErrUnsupported):
		case err != nil:
			errs = append(errs, fmt.Errorf("mcp: %w", err))
		}
		for _, raw := range list.Items {
			f(one.label, raw)
		}
	}
	return errors.Join(errs...)
}

// ReadResource returns the contents of a resource as parts: text under a line with its URI,
// media, and files.
func (s *Servers) ReadResource(ctx context.Context, server, uri string) ([]dragoman.Part, error) {
	raw, err := s.request(ctx, server, "resources/read", jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(uri)))
	if err != nil {
		return nil, err
	}
	contents := fieldsOf(raw)["contents"]
	if len(contents) == 0 || contents[0] != '[' {
		return nil, fmt.Errorf("mcp: server %q: the result of resources/read has no contents", server)
	}
	var out []dragoman.Part
	r := jsonwire.NewReader(contents)
	for range r.Array() {
		out = append(out, resourcePart(append(json.RawMessage(nil), r.Raw()...)))
	}
	return out, r.Err()
}

// Subscribe asks a server to report changes of a resource, as an [Event] of the kind
// "resource". Each call needs one call of [Servers.Unsubscribe]. The subscription survives a
// lost connection.
func (s *Servers) Subscribe(ctx context.Context, server, uri string) error {
	one, err := s.find(server)
	if err != nil {
		return err
	}
	return prefixed(one.peer.Subscribe(ctx, uri))
}

// Unsubscribe ends a subscription.
func (s *Servers) Unsubscribe(ctx context.Context, server, uri string) error {
	one, err := s.find(server)
	if err != nil {
		return err
	}
	return prefixed(one.peer.Unsubscribe(ctx, uri))
}

// GetPrompt returns the messages of a prompt. They are untrusted text of the server: show them
// to the user before a model gets them.
func (s *Servers) GetPrompt(ctx context.Context, server, name string, arguments map[string]string) ([]dragoman.Message, error) {
	params := jsonwire.With([]byte("{}"), "name", jsonwire.Quote(name))
	if len(arguments) > 0 {
		b, err := json.Marshal(arguments)
		if err != nil {
			return nil, fmt.Errorf("mcp: %w", err)
		}
		params = jsonwire.With(params, "arguments", b)
	}
	raw, err := s.request(ctx, server, "prompts/get", params)
	if err != nil {
		return nil, err
	}
	list := fieldsOf(raw)["messages"]
	if len(list) == 0 || list[0] != '[' {
		return nil, fmt.Errorf("mcp: server %q: the result of prompts/get has no messages", server)
	}
	var out []dragoman.Message
	r := jsonwire.NewReader(list)
	for range r.Array() {
		m := fieldsOf(append(json.RawMessage(nil), r.Raw()...))
		role := dragoman.RoleUser
		if jsonwire.Unquote(m["role"]) == "assistant" {
			role = dragoman.RoleAssistant
		}
		out = append(out, dragoman.Message{Role: role, Parts: []dragoman.Part{contentPart(m["content"])}})
	}
	return out, r.Err()
}

// Completion are suggestions for the value of an argument.
type Completion struct {
	Values []string
	// Total is the number of all suggestions, if the server says it.
	Total int
	More  bool
}

// Complete returns suggestions for an argument. ref is the name of a prompt, or the URI or
// template of a resource. known holds the arguments that are already known.
func (s *Servers) Complete(ctx context.Context, server, ref, argument, value string, known map[string]string) (Completion, error) {
	kind, field := "ref/prompt", "name"
	if isURI(ref) {
		kind, field = "ref/resource", "uri"
	}
	params := map[string]any{"ref": map[string]string{"type": kind, field: ref}, "argument": map[string]string{"name": argument, "value": value}}
	if len(known) > 0 {
		params["context"] = map[string]any{"arguments": known}
	}
	b, err := json.Marshal(params)
	if err != nil {
		return Completion{}, fmt.Errorf("mcp: %w", err)
	}
	raw, err := s.request(ctx, server, "completion/complete", b)
	if err != nil {
		return Completion{}, err
	}
	var out struct {
		Completion struct {
			Values  []string `json:"values"`
			Total   int      `json:"total"`
			HasMore bool     `json:"hasMore"`
		} `json:"completion"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return Completion{}, fmt.Errorf("mcp: server %q: completion/complete: %w", server, err)
	}
	c := out.Completion
	return Completion{Values: c.Values[:min(len(c.Values), 100)], Total: c.Total, More: c.HasMore}, nil
}

// isURI reports whether a reference is a URI or a template of one, not the name of a prompt.
func isURI(ref string) bool {
	for i, c := range ref {
		switch {
		case c == ':':
			return i > 0
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}

// request sends a request to a server.
func (s *Servers) request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	one, err := s.find(server)
	if err != nil {
		return nil, err
	}
	raw, err := one.peer.Call(ctx, method, params, peer.Options{})
	return raw, prefixed(err)
}

func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mcp: %w", err)
}
