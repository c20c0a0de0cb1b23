package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/tool"
)

// formatTool is the format of the definition of a tool of another MCP server, and formatMCP that
// of its results and questions.
const (
	formatTool dragoman.Format = "mcp.tool"
	formatMCP  dragoman.Format = "mcp"
)

// fieldsOf returns the fields of an object; nil for any other value.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// tagForwarded marks the tools of package mcp with Options.Forward, whose results have their raw
// form.
const tagForwarded = "forwarded"

func isForwarded(t tool.Tool) bool {
	s, ok := t.(interface{ Settings() tool.Settings })
	return ok && s.Settings().Source == codes.FromMCP && slices.Contains(s.Settings().Tags, tagForwarded)
}

// forward makes the wire objects of a tool of another server from its own object. Only the name
// changes, and what clients of a revision cannot use (pitfall K9): the execution of tasks,
// because this server runs them itself, and for older revisions an output schema that does not
// describe an object.
func (d *definition) forward(object json.RawMessage, unfenced bool) {
	raw := jsonwire.Without(object, "execution")
	raw = jsonwire.With(raw, "name", jsonwire.Quote(d.name))
	fields := fieldsOf(raw)
	if in := fields["inputSchema"]; isObjectSchema(in) {
		d.input = in
	} else {
		raw = jsonwire.With(raw, "inputSchema", d.input)
	}
	out, has := fields["outputSchema"]
	if has && (!unfenced || len(out) == 0 || out[0] != '{') { // fenced results have no structured value
		raw, has = jsonwire.Without(raw, "outputSchema"), false
	}
	d.remote, d.modern, d.legacy = true, raw, raw
	if d.structured = has; has && !isObjectSchema(out) {
		d.legacy = jsonwire.Without(raw, "outputSchema")
		d.lowered = true
	}
}

// eraFields are fields of results that belong to one connection.
var eraFields = []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}

// ownMeta are the keys of _meta that belong to one connection.
var ownMeta = []string{rpc.MetaServerInfo, rpc.MetaProgressToken, rpc.MetaSubscriptionID, rpc.MetaRevision, rpc.MetaClientInfo, rpc.MetaClientCapabilities, rpc.MetaRelatedTask}

// passed returns a result of another server for the client: the same bytes, except for the fields
// that belong to one connection.
func passed(modern bool, raw json.RawMessage) *rawResult {
	r := newResult(modern)
	in := jsonwire.NewReader(raw)
	for key := range in.Object() {
		name := string(key)
		value := slices.Clone(in.Raw())
		switch {
		case slices.Contains(eraFields, name):
		case name == "_meta":
			if value = jsonwire.Without(value, ownMeta...); string(value) != "{}" && string(value) != "null" {
				r.add(name, value)
			}
		default:
			r.add(name, value)
		}
	}
	return r
}

func (r *rawResult) value(name string) json.RawMessage {
	for _, f := range r.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (r *rawResult) remove(name string) {
	r.fields = slices.DeleteFunc(r.fields, func(f field) bool { return f.name == name })
}

func (r *rawResult) replace(name string, value json.RawMessage) {
	for i := range r.fields {
		if r.fields[i].name == name {
			r.fields[i].value = value
			return
		}
	}
	r.add(name, value)
}

// forwarded returns the result of a tool of another server, or nil if its raw form cannot be used:
// there is none, or a bound has cut the content.
func (s *Server) forwarded(c *call, d *definition, res *dragoman.ToolResult, record *tool.Record) mcp.Result {
	if !d.remote || !s.o.Unfenced || res.Envelope == nil || res.Envelope.Format != formatMCP {
		return nil
	}
	if record.Cut != nil {
		s.lost(c, d, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/content", Detail: "the result is longer than the limit: it was shortened, and its structured value was left out"})
		return nil
	}
	r := passed(c.modern, res.Envelope.JSON)
	if content := r.value("content"); len(content) == 0 || content[0] != '[' {
		r.replace("content", json.RawMessage("[]"))
	}
	if !c.modern {
		s.lowerStructured(c, d, r)
	}
	s.lowerBlocks(c, d, r)
	return r
}

// lowerStructured leaves out a structured value that clients of older revisions refuse. The text
// has every value.
func (s *Server) lowerStructured(c *call, d *definition, r *rawResult) {
	v := r.value("structuredContent")
	if v == nil || v[0] == '{' {
		return
	}
	r.remove("structuredContent")
	if string(r.value("content")) == "[]" {
		r.replace("content", slices.Concat([]byte("["), object("type", "text", "text", string(v)), []byte("]")))
	}
	s.lost(c, d, dragoman.Loss{Kind: dragoman.Lowered, Severity: dragoman.Warn, Path: "/structuredContent", Detail: "clients before 2026-07-28 accept only objects, so the value is sent as text"})
}

// lowerBlocks replaces content blocks that the revision of the client does not have.
func (s *Server) lowerBlocks(c *call, d *definition, r *rawResult) {
	revision := c.caller.Revision
	if revision == "" || revision >= rpc.Revision20250618 {
		return
	}
	r.replace("content", jsonwire.EditEach(r.value("content"), func(block []byte) []byte {
		m := fieldsOf(block)
		switch kind := jsonwire.TypeOf(block); {
		case kind == "resource_link":
			s.lost(c, d, dragoman.Loss{Kind: dragoman.Lowered, Severity: dragoman.Warn, Path: "/content", Detail: "clients before 2025-06-18 have no resource links, so they are sent as text"})
			return object("type", "text", "text", fmt.Sprintf("Link to a resource: %s <%s>", jsonwire.Unquote(m["name"]), jsonwire.Unquote(m["uri"])))
		case kind == "audio" && revision < rpc.Revision20250326:
			s.lost(c, d, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/content", Detail: "clients of 2024-11-05 have no audio"})
			return object("type", "text", "text", fmt.Sprintf("[Audio of the type %s, which this client does not support.]", jsonwire.Unquote(m["mimeType"])))
		}
		return block
	}))
}

// lost reports what a client did not get.
func (s *Server) lost(c *call, d *definition, l dragoman.Loss) {
	if s.o.OnLoss != nil {
		s.o.OnLoss(c.caller, d.spec, c.run, l)
	}
}

// forwardedError returns the error of another server for the client: its code, message and data.
// Errors about one connection stay out of it.
func forwardedError(modern bool, cause error) *jsonrpc.Error {
	var e *rpc.Error
	if errors.As(cause, &e) && modern && e.Code == rpc.CodeMissingCapability {
		return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: slices.Clone(e.Data)}
	}
	if e == nil || e.Code == rpc.CodeURLElicitation || e.Code <= rpc.CodeHeaderMismatch && e.Code >= -32099 {
		return nil
	}
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: slices.Clone(e.Data)}
}

// missingFor returns the capabilities that the client of a forwarded call lacks.
func missingFor(cause error) *missingCapability {
	var e *rpc.MissingCapability
	if !errors.As(cause, &e) {
		return nil
	}
	return &missingCapability{need: e.Need}
}

// ownQuestion returns a question of a tool itself, which the client answers in the form of the
// protocol.
func ownQuestion(p *tool.Pending) asked {
	w := p.Wanted
	q := asked{Binding: bindingKey(p.Binding), Wanted: w, Own: true}
	from := ""
	if w.From != "" {
		from = visible(w.From) + ": " // the user must know who asks (pitfall K28)
	}
	if r := w.Request; r != nil && r.Format == formatMCP {
		m := fieldsOf(r.JSON)
		q.Question = Question{Method: jsonwire.Unquote(m["method"]), Params: m["params"]}
		if q.Method == methodElicit {
			params := jsonwire.Without(q.Params, "elicitationId", "_meta")
			text := jsonwire.Unquote(fieldsOf(params)["message"])
			q.Params = jsonwire.With(params, "message", jsonwire.Quote(from+text))
		}
		return q
	}
	switch prompt := from + w.Prompt; {
	case w.URL != "":
		q.Question = OpenURL(prompt, w.URL)
	case w.Schema != nil:
		q.Question = Form(prompt, w.Schema)
	default:
		q.Question = Form(prompt, json.RawMessage(`{"type":"object","properties":{}}`))
	}
	return q
}

// decideOwn reads the answer to a question of a tool.
func (q *asked) decideOwn(answer json.RawMessage) tool.Answer {
	a := tool.Answer{Verdict: tool.Approved}
	m := fieldsOf(answer)
	if q.Method == methodElicit && jsonwire.Unquote(m["action"]) != "accept" {
		a.Verdict = tool.Rejected
	}
	switch {
	case q.Wanted.Request != nil:
		a.Value = answer
	case a.Verdict == tool.Approved:
		a.Value = m["content"]
	}
	return a
}

// openOwn puts the questions of a tool into the state. They have the names that the tool gave
// them.
func (s *Server) openOwn(c *call, st *state, questions []tool.Pending) (mcp.Result, error) {
	st.Open = map[string]asked{}
	var need []string
	for i := range questions {
		q := ownQuestion(&questions[i])
		if _, given := st.Granted[q.Binding]; given {
			continue
		}
		if n := q.needs(); !c.caller.Can(n) && !slices.Contains(need, n) {
			need = append(need, n)
		}
		st.Open[q.Wanted.Name] = q
	}
	tool := st.Pending.Tool()
	switch {
	case len(st.Open) == 0:
		return errorResult(c.modern, tool+" did not finish: the answer to its question could not be used."), nil
	case s.o.NoClientApprovals:
		return errorResult(c.modern, tool+" did not finish: it asked a question, and the operator of this server lets no client answer it."), nil
	case need == nil:
		return nil, nil
	case c.modern:
		return nil, (&missingCapability{need: need}).rpc()
	}
	text := fmt.Sprintf("%s did not finish: %v.", tool, &missingCapability{need: need})
	for _, name := range slices.Sorted(keys(st.Open)) {
		if q := st.Open[name]; q.mode() == "url" {
			text += fmt.Sprintf(" Open this page, and call the tool again: %s", jsonwire.Unquote(fieldsOf(q.Params)["url"]))
		}
	}
	return errorResult(false, text), nil
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// ownQuestions returns the questions of the tool itself that a pending call waits for.
func ownQuestions(p *tool.Pending) []tool.Pending {
	var out []tool.Pending
	for _, inner := range p.Inner {
		if w := inner.Wanted; w != nil && w.Name != "" && inner.Binding.CallID == p.Binding.CallID && inner.Binding.Run == p.Binding.Run {
			out = append(out, inner)
		}
	}
	return out
}

// taskResult marks a raw result in the outcome of background work.
const taskResult = `{"dragoman/mcp_result":`

// forwardedOutcome returns the raw result of a task of another server; nil if the outcome has
// none.
func (s *Server) forwardedOutcome(c *call, d *definition, parts []dragoman.Part) *rawResult {
	if !d.remote || !s.o.Unfenced || len(parts) != 1 {
		return nil
	}
	var text string
	for _, b := range s.blocks(c, parts[0], 0) {
		text = jsonwire.Unquote(fieldsOf(b)["text"])
	}
	if !strings.HasPrefix(text, taskResult) || jsonwire.Check([]byte(text)) != nil {
		return nil
	}
	for _, raw := range fieldsOf(json.RawMessage(text)) {
		r := passed(c.modern, raw)
		if !c.modern {
			s.lowerStructured(c, d, r)
		}
		return r
	}
	return nil
}
