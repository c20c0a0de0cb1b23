package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// Responses clients may search for tools themselves (quirk B29): Codex makes the tools of all MCP
// servers available through its search. Other dialects have no such search. For them the gateway
// represents the search as a function, its calls and outputs as calls and results, and the tools
// that it found as tools. For the client it converts all of these back.

// searchTool is the name of the search function.
const searchTool = "tool_search"

// The types of search items.
const (
	searchCall      = "tool_search_call"
	searchOutput    = "tool_search_output"
	additionalTools = "additional_tools"
)

// searchItem has the fields of an item, or of the tool, that the gateway reads.
type searchItem struct {
	Type        string          `json:"type"`
	Execution   string          `json:"execution"`
	CallID      string          `json:"call_id"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Arguments   json.RawMessage `json:"arguments"`
	Tools       json.RawMessage `json:"tools"`
}

// convertSearch converts the search of a request to an ordinary function, and reports whether it
// has one.
func (x *exchange) convertSearch(req *dragoman.Request) (searches bool) {
	taken := func(t dragoman.ToolSpec) bool {
		return t.Kind != codes.ToolHosted && t.Name == searchTool && t.Namespace == ""
	}
	if slices.ContainsFunc(req.Tools, taken) {
		return false // the client has its own tool with this name
	}
	tools := slices.Clone(req.Tools)
	for i := range tools {
		item, ok := clientSearch(&tools[i])
		if ok {
			tools[i] = dragoman.ToolSpec{Name: searchTool, Description: item.Description, Parameters: item.Parameters}
			searches = true
		}
	}
	p := searchConverter{exchange: x, tools: tools}
	messages := make([]dragoman.Message, 0, len(req.Messages))
	for i, m := range req.Messages {
		p.at = i
		if m, ok := p.message(m); ok {
			messages = append(messages, m)
		}
	}
	if searches || p.changed {
		req.Tools, req.Messages, req.Native = p.tools, messages, nil
	}
	return searches
}

// clientSearch returns the search that a client runs itself.
func clientSearch(t *dragoman.ToolSpec) (item searchItem, ok bool) {
	if t.Kind != codes.ToolHosted || t.Source == nil || json.Unmarshal(t.Source.JSON, &item) != nil {
		return item, false
	}
	return item, item.Type == searchTool && item.Execution == "client"
}

// searchConverter converts search items to ordinary calls and results.
type searchConverter struct {
	*exchange
	tools   []dragoman.ToolSpec
	changed bool
	// at is the index of the message.
	at int
}

// message returns a message with search items converted, and whether anything is left of it.
func (p *searchConverter) message(m dragoman.Message) (dragoman.Message, bool) {
	var parts []dragoman.Part
	changed := false
	for _, part := range m.Parts {
		o, ok := part.(*dragoman.Opaque)
		if !ok || o.Dialect != dialects.Stateful().Dialect() {
			parts = append(parts, part)
			continue
		}
		plain, known := p.item(o)
		if changed = changed || known; plain != nil {
			parts = append(parts, plain)
		}
	}
	if !changed {
		return m, true
	}
	p.changed = true
	m.Parts, m.Native = parts, nil
	return m, len(parts) > 0
}

// item returns the ordinary form of an item; nil if its content is in the list of tools.
func (p *searchConverter) item(o *dragoman.Opaque) (part dragoman.Part, known bool) {
	var item searchItem
	if json.Unmarshal(o.JSON, &item) != nil || item.Execution == "server" {
		return o, false
	}
	switch o.Type {
	case searchCall:
		return &dragoman.ToolCall{ID: item.CallID, Name: searchTool, Arguments: string(item.Arguments)}, true
	case searchOutput:
		return &dragoman.ToolResult{CallID: item.CallID, Name: searchTool, Content: []dragoman.Part{&dragoman.Text{Text: foundText(p.add(item.Tools))}}}, true
	case additionalTools:
		p.add(item.Tools)
		return nil, true
	}
	return o, false
}

// add adds tools that are not in the list yet, and returns all given ones.
func (p *searchConverter) add(list json.RawMessage) []dragoman.ToolSpec {
	if len(list) == 0 {
		return nil
	}
	body := slices.Concat([]byte(`{"model":"m","input":"","tools":`), list, []byte(`}`))
	req, rep, err := p.codec.DecodeRequest(body, dialect.DecodeOptions{MaxBytes: p.setup.maxBody})
	where := fmt.Sprintf("/messages/%d", p.at)
	if err != nil { // an invalid list adds no tools
		p.entry.losses = append(p.entry.losses, dragoman.Loss{
			Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: where + "/tools", Detail: "not valid tools: " + truncate(err.Error()),
		})
		return nil
	}
	for _, l := range rep.Losses {
		l.Path = where + l.Path
		p.entry.losses = append(p.entry.losses, l)
	}
	for _, t := range req.Tools {
		t.Deferred = false // the search found it
		same := func(o dragoman.ToolSpec) bool { return o.Name == t.Name && o.Namespace == t.Namespace }
		if i := slices.IndexFunc(p.tools, same); i >= 0 {
			p.tools[i].Deferred = false
			continue
		}
		t.Source = nil // Source marks the tool as deferred
		p.tools = append(p.tools, t)
	}
	return req.Tools
}

// foundText returns the text of a search result. The tools themselves are in the list of tools.
func foundText(tools []dragoman.ToolSpec) string {
	if len(tools) == 0 {
		return "No tools were found."
	}
	var b strings.Builder
	b.WriteString("These tools were found and can be called now:")
	for i := range tools {
		b.WriteString("\n- " + tools[i].QualifiedName() + ": " + tools[i].Description)
	}
	return b.String()
}

// isSearch reports whether a part is a call of the search.
func isSearch(p dragoman.Part) (*dragoman.ToolCall, bool) {
	c, ok := p.(*dragoman.ToolCall)
	return c, ok && c.Name == searchTool && c.Namespace == ""
}

// searchCallItem returns a call of the search in the client's form.
func searchCallItem(c *dragoman.ToolCall) *dragoman.Opaque {
	item := struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Execution string          `json:"execution"`
		Status    string          `json:"status"`
		Arguments json.RawMessage `json:"arguments"`
	}{searchCall, "tsc_" + strings.TrimPrefix(c.ID, "call_"), c.ID, "client", "completed", json.RawMessage(c.Arguments)}
	if c.Problem != nil || dragoman.CheckArguments(c.Arguments) != nil { // it must not run
		item.Status, item.Arguments = "incomplete", json.RawMessage("{}")
	}
	b, _ := json.Marshal(item) // its arguments are JSON
	return &dragoman.Opaque{Dialect: dialects.Stateful().Dialect(), Type: searchCall, JSON: b, CallID: c.ID}
}

// restoreSearches returns an output with the calls of the search in the client's form.
func restoreSearches(output []dragoman.Message) []dragoman.Message {
	out := slices.Clone(output)
	for i := range out {
		m := &out[i]
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			if c, ok := isSearch(p); ok {
				parts[j], m.Native = searchCallItem(c), nil
			}
		}
		m.Parts = parts
	}
	return out
}

// restoreSearch returns an event with a call of the search in the client's form; nil if the client
// needs no such event.
func (s *clientStream) restoreSearch(ev dragoman.Event) dragoman.Event {
	switch e := ev.(type) {
	case *dragoman.PartStart:
		if _, ok := isSearch(e.Part); ok {
			start := *e
			start.Part = &dragoman.Opaque{Dialect: dialects.Stateful().Dialect(), Type: searchCall}
			s.searchParts = append(s.searchParts, partPosition{e.Choice, e.Index})
			return &start
		}
	case *dragoman.PartDelta:
		if slices.Contains(s.searchParts, partPosition{e.Choice, e.Index}) {
			return nil
		}
	case *dragoman.PartEnd:
		if c, ok := isSearch(e.Part); ok {
			end := *e
			end.Part = searchCallItem(c)
			return &end
		}
	}
	return ev
}

// partPosition is the position of a part.
type partPosition struct{ choice, index int }
