package peer

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// TasksExtension is the id of the tasks extension.
const TasksExtension = "io.modelcontextprotocol/tasks"

// SkillsExtension is the id of the skills extension.
const SkillsExtension = "io.modelcontextprotocol/skills"

// fields returns the fields of an object; nil for any other value. Of duplicate fields it
// keeps the last one.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return nil
	}
	out := map[string]json.RawMessage{}
	for key := range r.Object() {
		name := string(key)
		out[name] = r.Raw()
	}
	return out
}

// stringsIn returns the strings of a list in a field of an object.
func stringsIn(raw json.RawMessage, field string) (out []string) {
	list := fields(raw)[field]
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	r := jsonwire.NewReader(list)
	for range r.Array() {
		if r.Kind() == '"' && len(out) < 64 {
			out = append(out, r.String())
		} else {
			r.Skip()
		}
	}
	return out
}

// isObject reports whether a value is an object.
func isObject(raw json.RawMessage) bool {
	return len(raw) > 0 && jsonwire.NewReader(raw).Kind() == '{'
}

// clientCapabilities returns the object of capabilities. Each is declared only if it is
// configured and, for a call with an offer, offered.
func (p *Peer) clientCapabilities(modern bool, o *Offer) json.RawMessage {
	if o == nil {
		o = &Offer{Form: true, URL: true, Sampling: true, Roots: true}
	}
	var w jsonwire.Writer
	w.BeginObject()
	if p.cfg.Elicitation && (o.Form || o.URL) {
		var modes jsonwire.Writer
		modes.BeginObject()
		if o.Form {
			modes.RawField("form", []byte("{}"))
		}
		if o.URL {
			modes.RawField("url", []byte("{}"))
		}
		modes.EndObject()
		w.QuotedKey("elicitation")
		w.Raw(modes.Buf)
	}
	if p.cfg.Sampling && o.Sampling {
		w.QuotedKey("sampling")
		w.Raw([]byte(`{}`))
	}
	if (p.cfg.Roots != nil || p.cfg.AskRoots) && o.Roots {
		w.QuotedKey("roots")
		w.Raw([]byte(`{}`))
	}
	if p.cfg.Tasks && modern {
		w.QuotedKey("extensions")
		w.Raw([]byte(`{"` + TasksExtension + `":{}}`))
	}
	w.EndObject()
	return w.Buf
}

// params returns the parameters of a request, with the _meta that the revision requires and a
// progress token, if there is one. The parameters of the caller are not changed.
func (l *link) params(params json.RawMessage, token string, offer *Offer) json.RawMessage {
	if !l.modern() && token == "" {
		return params
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	meta := fields(params)["_meta"]
	if !isObject(meta) {
		meta = json.RawMessage("{}")
	}
	if l.modern() {
		meta = jsonwire.With(meta, rpc.MetaRevision, jsonwire.Quote(l.info.Revision))
		meta = jsonwire.With(meta, rpc.MetaClientInfo, l.peer.cfg.ClientInfo)
		meta = jsonwire.With(meta, rpc.MetaClientCapabilities, l.peer.clientCapabilities(true, offer))
		if level := l.peer.cfg.LogLevel; level != "" {
			meta = jsonwire.With(meta, rpc.MetaLogLevel, jsonwire.Quote(level))
		}
	}
	if token != "" {
		meta = jsonwire.With(meta, "progressToken", jsonwire.Quote(token))
	}
	return jsonwire.With(params, "_meta", meta)
}

// request returns a request with the headers of modern revisions.
func (l *link) request(method string, params json.RawMessage, token string, offer *Offer) *rpc.Request {
	r := &rpc.Request{Method: method, Params: l.params(params, token, offer)}
	if !l.modern() {
		return r
	}
	m := fields(params)
	switch method {
	case "tools/call", "prompts/get":
		r.Name = jsonwire.Unquote(m["name"])
	case "resources/read":
		r.Name = jsonwire.Unquote(m["uri"])
	case "tasks/get", "tasks/update", "tasks/cancel":
		r.Name = jsonwire.Unquote(m["taskId"])
	}
	if method == "tools/call" && l.peer.cfg.HTTP {
		r.Headers = l.peer.argumentHeaders(r.Name, m["arguments"])
	}
	return r
}
