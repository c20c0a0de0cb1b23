package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Provider serves resources and prompts that are known only when a client asks, such as those of
// other MCP servers. It gets and returns objects of the protocol, raw: what it returns reaches the
// client with the same bytes, except for the fields that belong to one revision. [CallerFrom]
// returns the client. An error of package mcp about a server keeps its code.
type Provider interface {
	Resources(ctx context.Context) ([]json.RawMessage, error)
	Templates(ctx context.Context) ([]json.RawMessage, error)
	Prompts(ctx context.Context) ([]json.RawMessage, error)
	// Read returns the result of resources/read, Get that of prompts/get, and Complete that of
	// completion/complete, for the parameters of the request without _meta. ErrNoResource
	// reports that a resource is unknown.
	Read(ctx context.Context, uri string) (json.RawMessage, error)
	Get(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error)
	Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Subscribe is called when a client subscribes to a resource, and Unsubscribe when that
	// ends, once for each.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string)
}

// ResourcesChanged notifies the clients that the resources of the provider changed.
func (s *Server) ResourcesChanged() {
	if !s.hasResources {
		return
	}
	// Adding anything makes the SDK announce a change. It is never listed, because receive
	// answers the lists.
	const uri = "dragoman:changed"
	s.sdk.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, notFound("resources/read")
	})
}

// PromptsChanged notifies the clients that the prompts of the provider changed.
func (s *Server) PromptsChanged() {
	if !s.hasPrompts {
		return
	}
	s.sdk.AddPrompt(&mcp.Prompt{Name: "changed"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, notFound("prompts/get")
	})
}

// provide answers the requests that the provider answers.
func (s *Server) provide(ctx context.Context, in *request, req mcp.Request) (mcp.Result, error) {
	p := s.o.Provider
	ctx = context.WithValue(ctx, contextKey{}, s.newCall(ctx, in))
	var list func(context.Context) ([]json.RawMessage, error)
	field := ""
	switch in.method {
	case "resources/list":
		list, field = p.Resources, "resources"
	case "resources/templates/list":
		list, field = p.Templates, "resourceTemplates"
	case "prompts/list":
		list, field = p.Prompts, "prompts"
	}
	if list != nil {
		var all []json.RawMessage
		if err := guarded(ctx, func(ctx context.Context) (err error) { all, err = list(ctx); return err }); err != nil {
			return nil, s.providerError(in, err)
		}
		part, next, err := page(all, in.cursor, s.o.PageSize)
		if err != nil {
			return nil, err
		}
		return listResult(in.modern, field, elements(part, func(o json.RawMessage) json.RawMessage { return o }), next), nil
	}
	var raw json.RawMessage
	err := guarded(ctx, func(ctx context.Context) (err error) {
		switch in.method {
		case "resources/read":
			raw, err = p.Read(ctx, in.uri)
		case "prompts/get":
			raw, err = p.Get(ctx, in.name, in.arguments)
		default:
			var params json.RawMessage
			if params, err = completeParams(req); err == nil {
				raw, err = p.Complete(ctx, params)
			}
		}
		return err
	})
	if err != nil {
		return nil, s.providerError(in, err)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, s.internal(in.method+" failed", errors.New("the result is not an object"))
	}
	r := passed(in.modern, raw)
	if in.method == "resources/read" {
		r.private(in.modern)
	}
	return r, nil
}

// completeParams returns the parameters of completion/complete.
func completeParams(req mcp.Request) (json.RawMessage, error) {
	p, ok := req.GetParams().(*mcp.CompleteParams)
	if !ok || p == nil || p.Ref == nil || p.Argument.Name == "" {
		return nil, invalidParams("completion/complete needs ref and argument.name")
	}
	w := jsonwire.Writer{}
	w.BeginObject()
	w.RawField("ref", encode(p.Ref))
	w.RawField("argument", encode(map[string]string{"name": p.Argument.Name, "value": p.Argument.Value}))
	if p.Context != nil && len(p.Context.Arguments) > 0 {
		w.RawField("context", encode(map[string]any{"arguments": p.Context.Arguments}))
	}
	w.EndObject()
	return w.Buf, nil
}

// providerError returns an error of the provider for the client. The code for an unknown
// resource depends on the revision.
func (s *Server) providerError(in *request, err error) error {
	var e *rpc.Error
	switch {
	case errors.Is(err, ErrNoResource):
		return s.noResource(in)
	case errors.As(err, &e) && in.method == "resources/read" && (e.Code == rpc.CodeResourceNotFound || e.Code == rpc.CodeInvalidParams):
		wire := s.noResource(in)
		return wire
	}
	if missing := missingFor(err); missing != nil {
		return missing.rpc()
	}
	if wire := forwardedError(in.modern, err); wire != nil {
		return wire
	}
	var visible interface{ ForClient() string }
	if errors.As(err, &visible) {
		return rpcError(-32603, visible.ForClient())
	}
	return s.internal(in.method+" failed", err)
}

// subscriptions counts the resources that sessions follow, so that those of a session that ended
// are ended, too.
type subscriptions struct {
	mu sync.Mutex
	of map[*mcp.ServerSession]map[string]int
}

// maxSubscriptions limits the resources that a session follows.
const maxSubscriptions = 1000

func (s *Server) subscribe(ctx context.Context, session *mcp.ServerSession, uri string) error {
	if s.o.Provider == nil {
		return s.maySubscribe(uri)
	}
	if err := s.o.Provider.Subscribe(ctx, uri); err != nil {
		var e *rpc.Error
		if errors.Is(err, ErrNoResource) || errors.As(err, &e) {
			return invalidParams("the resource cannot be followed")
		}
		return s.internal("subscribing failed", err)
	}
	l := &s.followed
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[*mcp.ServerSession]map[string]int{}
	}
	if l.of[session] == nil {
		l.of[session] = map[string]int{}
		go func() {
			_ = session.Wait()
			s.unfollow(session)
		}()
	}
	if len(l.of[session]) >= maxSubscriptions {
		go s.o.Provider.Unsubscribe(context.WithoutCancel(ctx), uri)
		return invalidParams(fmt.Sprintf("the session follows %d resources already", maxSubscriptions))
	}
	l.of[session][uri]++
	return nil
}

func (s *Server) unsubscribe(ctx context.Context, session *mcp.ServerSession, uri string) {
	l := &s.followed
	l.mu.Lock()
	known := l.of[session][uri] > 0
	if known {
		if l.of[session][uri]--; l.of[session][uri] == 0 {
			delete(l.of[session], uri)
		}
	}
	l.mu.Unlock()
	if known {
		s.o.Provider.Unsubscribe(context.WithoutCancel(ctx), uri)
	}
}

// unfollow ends the subscriptions of a session.
func (s *Server) unfollow(session *mcp.ServerSession) {
	l := &s.followed
	l.mu.Lock()
	uris := l.of[session]
	delete(l.of, session)
	l.mu.Unlock()
	for _, uri := range slices.Sorted(keys(uris)) {
		for range uris[uri] {
			s.o.Provider.Unsubscribe(context.Background(), uri)
		}
	}
}

// followedKey is the key of the resources that receive has subscribed to for a listen request.
type followedKey struct{}

// follow subscribes to the resources of a listen request, and leaves out those that cannot be
// followed: the acknowledgement says which remain.
func (s *Server) follow(ctx context.Context, in *request, req mcp.Request) context.Context {
	p, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if s.o.Provider == nil || !ok || p == nil || p.Notifications == nil || len(p.Notifications.ResourceSubscriptions) == 0 {
		return ctx
	}
	ctx = context.WithValue(ctx, contextKey{}, s.newCall(ctx, in))
	set := map[string]bool{}
	n := *p.Notifications
	n.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(n.ResourceSubscriptions), func(uri string) bool {
		if set[uri] {
			return true
		}
		set[uri] = s.subscribe(ctx, in.session, uri) == nil
		return !set[uri]
	})
	p.Notifications = &n
	return context.WithValue(ctx, followedKey{}, set)
}
