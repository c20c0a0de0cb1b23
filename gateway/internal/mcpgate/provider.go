package mcpgate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

// whole returns the servers of the endpoint that the key may use as a whole: only these have
// resources and prompts for it.
func (e *endpoint) whole() []*upstream {
	g := e.front.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*upstream
	for _, u := range e.servers() {
		if ok, _ := g.config.allowed(e.front.key, u.config.Name, ""); ok {
			out = append(out, u)
		}
	}
	return out
}

// list returns the objects of a list of all servers, changed by f. A server that fails does not
// hide the others; the endpoint of one server reports its error (pitfall K20).
func (e *endpoint) list(ctx context.Context, read func(context.Context, *mcp.Servers) ([]json.RawMessage, error), f func(label string, object json.RawMessage) json.RawMessage) ([]json.RawMessage, error) {
	out := []json.RawMessage{}
	for _, u := range e.whole() {
		items, err := read(ctx, u.servers)
		if err != nil {
			e.front.gate.opts.Log.WarnContext(ctx, "a list of an MCP server could not be read", "server", u.config.Name, "key", e.front.key, "error", err)
			if e.label != "" && len(items) == 0 {
				return nil, &unavailableError{u.config.Name, err}
			}
		}
		for _, item := range items {
			if e.label == "" {
				item = f(u.config.Name, item)
			}
			out = append(out, item)
		}
	}
	return out, nil
}

// Resources implements [mcpserver.Provider].
func (e *endpoint) Resources(ctx context.Context) ([]json.RawMessage, error) {
	return e.list(ctx, func(ctx context.Context, s *mcp.Servers) ([]json.RawMessage, error) {
		list, err := s.Resources(ctx)
		return objects(list, func(r mcp.Resource) json.RawMessage { return r.JSON }), err
	}, func(label string, o json.RawMessage) json.RawMessage { return e.renameURI(label, o, "uri") })
}

// Templates implements [mcpserver.Provider].
func (e *endpoint) Templates(ctx context.Context) ([]json.RawMessage, error) {
	return e.list(ctx, func(ctx context.Context, s *mcp.Servers) ([]json.RawMessage, error) {
		list, err := s.Templates(ctx)
		return objects(list, func(r mcp.Resource) json.RawMessage { return r.JSON }), err
	}, func(label string, o json.RawMessage) json.RawMessage { return e.renameURI(label, o, "uriTemplate") })
}

// Prompts implements [mcpserver.Provider].
func (e *endpoint) Prompts(ctx context.Context) ([]json.RawMessage, error) {
	return e.list(ctx, func(ctx context.Context, s *mcp.Servers) ([]json.RawMessage, error) {
		list, err := s.Prompts(ctx)
		return objects(list, func(p mcp.Prompt) json.RawMessage { return p.JSON }), err
	}, func(label string, o json.RawMessage) json.RawMessage {
		return jsonwire.EditField(o, "name", func(name []byte) []byte { return jsonwire.Quote(publicName(label, jsonwire.Unquote(name))) })
	})
}

func objects[T any](list []T, raw func(T) json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, v := range list {
		out[i] = raw(v)
	}
	return out
}

// Read implements [mcpserver.Provider].
func (e *endpoint) Read(ctx context.Context, uri string) (json.RawMessage, error) {
	u, own := e.ownerOf(uri)
	if u == nil {
		return nil, mcpserver.ErrNoResource
	}
	raw, err := e.request(ctx, u, "resources/read", own, jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(own)))
	if err != nil || e.label != "" {
		return raw, err
	}
	return jsonwire.EditField(raw, "contents", func(list []byte) []byte {
		return jsonwire.EditEach(list, func(o []byte) []byte { return e.renameURI(u.config.Name, o, "uri") })
	}), nil
}

// Get implements [mcpserver.Provider].
func (e *endpoint) Get(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	u, own, err := e.promptOf(ctx, name)
	if err != nil {
		return nil, err
	}
	params := jsonwire.With([]byte("{}"), "name", jsonwire.Quote(own))
	if len(arguments) > 0 {
		params = jsonwire.With(params, "arguments", arguments)
	}
	raw, err := e.request(ctx, u, "prompts/get", own, params)
	if err != nil || e.label != "" {
		return raw, err
	}
	return jsonwire.EditField(raw, "messages", func(list []byte) []byte {
		return jsonwire.EditEach(list, func(m []byte) []byte {
			return jsonwire.EditField(m, "content", func(block []byte) []byte { return e.renameBlock(u.config.Name, block) })
		})
	}), nil
}

// Complete implements [mcpserver.Provider].
func (e *endpoint) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	ref := fieldsOf(fieldsOf(params)["ref"])
	var u *upstream
	var err error
	if uri, ok := ref["uri"]; ok {
		var own string
		if u, own = e.ownerOf(jsonwire.Unquote(uri)); u == nil {
			return nil, mcpserver.ErrNoResource
		}
		params = editRef(params, "uri", own)
	} else {
		var own string
		if u, own, err = e.promptOf(ctx, jsonwire.Unquote(ref["name"])); err != nil {
			return nil, err
		}
		params = editRef(params, "name", own)
	}
	raw, err := e.request(ctx, u, "completion/complete", "", params)
	if errors.Is(err, mcp.ErrUnsupported) { // other servers of the endpoint have completions
		return json.RawMessage(`{"completion":{"values":[]}}`), nil
	}
	return raw, err
}

func editRef(params json.RawMessage, field, value string) json.RawMessage {
	return jsonwire.EditField(params, "ref", func(ref []byte) []byte { return jsonwire.With(ref, field, jsonwire.Quote(value)) })
}

// Subscribe implements [mcpserver.Provider].
func (e *endpoint) Subscribe(ctx context.Context, uri string) error {
	u, own := e.ownerOf(uri)
	if u == nil {
		return mcpserver.ErrNoResource
	}
	return u.servers.Subscribe(ctx, u.config.Name, own)
}

// unsubscribeTime limits the end of a subscription, whose client is gone.
const unsubscribeTime = 10 * time.Second

// Unsubscribe implements [mcpserver.Provider].
func (e *endpoint) Unsubscribe(ctx context.Context, uri string) {
	u, own := e.ownerOf(uri)
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTime)
	defer cancel()
	if err := u.servers.Unsubscribe(ctx, u.config.Name, own); err != nil {
		e.front.gate.opts.Log.WarnContext(ctx, "a subscription could not be ended", "server", u.config.Name, "error", err)
	}
}

// request sends a request to a server and reports it like a call.
func (e *endpoint) request(ctx context.Context, u *upstream, method, name string, params json.RawMessage) (json.RawMessage, error) {
	g := e.front.gate
	began := g.opts.Now()
	if err := u.unavailable(); err != nil {
		return nil, err
	}
	raw, err := u.servers.Request(ctx, u.config.Name, method, params)
	c, _ := mcpserver.CallerFrom(ctx)
	call := Call{Key: e.front.key, Server: u.config.Name, Tool: name, Client: c.Client, Revision: c.Revision, Method: method, Outcome: "ok", Took: g.opts.Now().Sub(began)}
	if err != nil {
		call.Outcome, call.Err = "error", err.Error()
	}
	if g.opts.OnCall != nil {
		g.opts.OnCall(call)
	}
	return raw, err
}

// promptOf returns the server and the name there of a prompt, by the lists of the servers.
func (e *endpoint) promptOf(ctx context.Context, name string) (*upstream, string, error) {
	for _, u := range e.whole() {
		list, err := u.servers.Prompts(ctx)
		if err != nil && e.label != "" {
			return nil, "", &unavailableError{u.config.Name, err}
		}
		for _, p := range list {
			if e.label != "" && p.Name == name || e.label == "" && publicName(u.config.Name, p.Name) == name {
				return u, p.Name, nil
			}
		}
	}
	return nil, "", &unknownPrompt{name}
}

type unknownPrompt struct{ name string }

func (e *unknownPrompt) Error() string     { return "unknown prompt" }
func (e *unknownPrompt) ForClient() string { return "unknown prompt; list the prompts" }
