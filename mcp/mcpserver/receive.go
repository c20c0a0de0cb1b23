package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// inbound is the knowledge of a transport about a message. It reaches receive in the TokenInfo
// of the request, which the SDK passes on.
type inbound struct {
	principal Principal
	// counted reports that the transport counted the request.
	counted bool
	// responses is the raw inputResponses of the message, which the SDK does not see.
	responses json.RawMessage
	// started is called when a session begins.
	started func(*mcp.ServerSession)
}

const inboundKey = "dragoman"

func (in *inbound) token() *auth.TokenInfo {
	return &auth.TokenInfo{UserID: in.principal.ID, Scopes: in.principal.Scopes, Expiration: in.principal.Expires, Extra: map[string]any{inboundKey: in}}
}

// request is one request, as the methods of Server answer it.
type request struct {
	method  string
	modern  bool
	caller  Caller
	session *mcp.ServerSession
	token   json.RawMessage
	detach  func(time.Duration)
	counted bool

	name, uri, cursor, state, idempotency string
	arguments                             json.RawMessage
	responses                             map[string]json.RawMessage
}

// extParams are the parameters of the methods of extensions.
type extParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
	URI    string `json:"uri"`
	Cursor string `json:"cursor"`
}

// receive answers the requests about tools, prompts, resources and extensions, and leaves the
// others to the SDK.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("mcpserver: a request panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, rpcError(jsonrpc.CodeInternalError, "internal error")
			}
			if err != nil {
				res, err = nil, asWire(ctx, err)
			}
		}()
		if r, ok := req.(*mcp.ServerRequest[*extParams]); ok && r.Params == nil {
			r.Params = &extParams{} // the SDK reads its _meta
		}
		in, transport, err := s.read(method, req)
		if err != nil {
			return nil, err
		}
		if s.o.Admit != nil && admitted(method) {
			done, err := s.o.Admit(ctx, in.caller, method)
			if err != nil {
				return refused(in, err)
			}
			defer done()
		}
		switch method {
		case "initialize":
			res, err := next(ctx, method, req)
			if err == nil && transport != nil && transport.started != nil {
				transport.started(in.session)
			}
			return withoutTasks(res), err
		case "tools/list":
			return s.listTools(ctx, in)
		case "tools/call":
			return s.callTool(ctx, in)
		case "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "completion/complete":
			if s.o.Provider != nil {
				return s.provide(ctx, in, req)
			}
		}
		switch method {
		case "resources/list":
			return s.listResources(ctx, in)
		case "resources/templates/list":
			return s.listTemplates(in)
		case "resources/read":
			return s.readResource(ctx, in)
		case "prompts/list":
			return s.listPrompts(in)
		case "prompts/get":
			return s.getPrompt(ctx, in)
		case "completion/complete":
			return s.completeParams(ctx, in, req)
		case "logging/setLevel":
			if !s.o.Logging {
				return nil, notFound(method)
			}
		case "resources/subscribe", "resources/unsubscribe":
			if !s.o.Subscriptions && s.o.Provider == nil {
				return nil, notFound(method)
			}
			ctx = context.WithValue(ctx, contextKey{}, s.newCall(ctx, in))
		case "subscriptions/listen":
			ctx = s.follow(ctx, in, req)
		case methodTaskGet, methodTaskUpdate, methodTaskCancel:
			return s.taskMethod(ctx, in)
		case methodSkillsList:
			return s.listSkills(ctx, in)
		case methodSkillsGet:
			return s.getSkill(ctx, in)
		case methodDirectory:
			return s.readDirectory(ctx, in)
		}
		return next(ctx, method, req)
	}
}

// admitted reports whether [Options.Admit] decides on a method.
func admitted(method string) bool {
	switch method {
	case "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "completion/complete":
		return true
	}
	return false
}

// codeRefused is the code of a request that the host refused: codes of the protocol and of
// JSON-RPC are negative.
const codeRefused = 1

// refused returns the response to a request that the host refused.
func refused(in *request, err error) (mcp.Result, error) {
	if in.method == "tools/call" { // the client's model reads it
		return errorResult(in.modern, in.name+" did not run: "+err.Error()), nil
	}
	return nil, rpcError(codeRefused, err.Error())
}

// withoutTasks removes the tasks extension from the answer to initialize: it belongs to the
// modern revision.
func withoutTasks(res mcp.Result) mcp.Result {
	r, ok := res.(*mcp.InitializeResult)
	if !ok || r == nil || r.Capabilities == nil {
		return res
	}
	copied, caps := *r, *r.Capabilities
	caps.Extensions = maps.Clone(caps.Extensions)
	delete(caps.Extensions, tasksExtension)
	if len(caps.Extensions) == 0 {
		caps.Extensions = nil
	}
	copied.Capabilities = &caps
	return &copied
}

// asWire returns an error with a code: the SDK would send others with code 0.
func asWire(ctx context.Context, err error) error {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		return err
	case ctx.Err() != nil:
		return rpcError(jsonrpc.CodeInternalError, "the request was canceled")
	}
	return rpcError(jsonrpc.CodeInvalidRequest, err.Error())
}

// describer is implemented by all requests to a server.
type describer interface {
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// read collects what is known about a request.
func (s *Server) read(method string, req mcp.Request) (*request, *inbound, error) {
	in := &request{method: method}
	in.session, _ = req.GetSession().(*mcp.ServerSession)
	var transport *inbound
	if e := req.GetExtra(); e != nil {
		if e.TokenInfo != nil {
			transport, _ = e.TokenInfo.Extra[inboundKey].(*inbound)
		}
		if f := e.CloseSSEStream; f != nil {
			in.detach = func(d time.Duration) { f(mcp.CloseSSEStreamArgs{RetryAfter: d}) }
		}
	}
	if transport != nil {
		in.caller.Principal, in.counted = transport.principal, transport.counted
		if len(transport.responses) > 0 {
			if json.Unmarshal(transport.responses, &in.responses) != nil || in.responses == nil {
				return nil, nil, invalidParams("inputResponses must be an object")
			}
		}
	}
	var meta map[string]any
	if p := req.GetParams(); p != nil {
		meta = metaOf(p)
	}
	version, _ := meta[mcp.MetaKeyProtocolVersion].(string)
	in.modern = rpc.Modern(version)
	in.caller.Revision = version
	if in.session != nil {
		in.caller.Session = in.session.ID()
		if p := in.session.InitializeParams(); p != nil && !in.modern {
			in.caller.Revision = p.ProtocolVersion
		}
	}
	if token := meta["progressToken"]; token != nil {
		in.token = encode(token)
	}
	in.idempotency, _ = meta[MetaIdempotencyKey].(string)
	if d, ok := req.(describer); ok {
		if info := d.ClientInfo(); info != nil {
			in.caller.Client, in.caller.ClientVersion = info.Name, info.Version
		}
		in.caller.Capabilities = capabilities(d.ClientCapabilities())
	}
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		in.name, in.arguments, in.state = p.Name, p.Arguments, p.RequestState
	case *mcp.GetPromptParams:
		in.name, in.state = p.Name, p.RequestState
		if p.Arguments != nil {
			in.arguments = encode(p.Arguments)
		}
	case *mcp.ReadResourceParams:
		in.uri, in.state = p.URI, p.RequestState
	case *mcp.ListToolsParams:
		in.cursor = cursorOf(p, func(p *mcp.ListToolsParams) string { return p.Cursor })
	case *mcp.ListPromptsParams:
		in.cursor = cursorOf(p, func(p *mcp.ListPromptsParams) string { return p.Cursor })
	case *mcp.ListResourcesParams:
		in.cursor = cursorOf(p, func(p *mcp.ListResourcesParams) string { return p.Cursor })
	case *mcp.ListResourceTemplatesParams:
		in.cursor = cursorOf(p, func(p *mcp.ListResourceTemplatesParams) string { return p.Cursor })
	case *extParams:
		if p != nil {
			in.name, in.uri, in.cursor = p.TaskID, p.URI, p.Cursor
		}
	}
	return in, transport, nil
}

func cursorOf[P any](p *P, cursor func(*P) string) string {
	if p == nil {
		return ""
	}
	return cursor(p)
}

// metaOf returns the _meta of parameters, which may be a nil pointer.
func metaOf(p mcp.Params) (meta map[string]any) {
	defer func() {
		if recover() != nil {
			meta = nil
		}
	}()
	return p.GetMeta()
}

func capabilities(c *mcp.ClientCapabilities) []string {
	if c == nil {
		return nil
	}
	var out []string
	if e := c.Elicitation; e != nil {
		if e.Form != nil || e.URL == nil {
			out = append(out, CapElicitation)
		}
		if e.URL != nil {
			out = append(out, CapElicitationURL)
		}
	}
	if c.Sampling != nil { //nolint:staticcheck // clients still declare it
		out = append(out, CapSampling)
	}
	if c.RootsV2 != nil { //nolint:staticcheck // clients still declare it
		out = append(out, CapRoots)
	}
	if _, ok := c.Extensions[tasksExtension]; ok {
		out = append(out, CapTasks)
	}
	return out
}

func (s *Server) completeParams(ctx context.Context, in *request, req mcp.Request) (mcp.Result, error) {
	p, ok := req.GetParams().(*mcp.CompleteParams)
	if !ok || p == nil || p.Ref == nil || p.Argument.Name == "" {
		return nil, invalidParams("completion/complete needs ref and argument.name")
	}
	q := Completion{Argument: p.Argument.Name, Value: p.Argument.Value}
	switch p.Ref.Type {
	case "ref/prompt":
		q.Prompt = p.Ref.Name
	case "ref/resource":
		q.Template = p.Ref.URI
	default:
		return nil, invalidParams("ref.type is neither ref/prompt nor ref/resource")
	}
	if p.Context != nil {
		q.Arguments = p.Context.Arguments
	}
	return s.complete(ctx, in, q)
}
