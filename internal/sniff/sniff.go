// Package sniff guesses what a piece of wire traffic is: which dialect, and
// whether it is a request, a response, a stream, a list of messages or a tool.
//
// A guess is made from structure: which members stand in which places, and of
// what type they are. Words inside texts, descriptions and arguments never
// count, because people quote one API to another. Where several dialects fit,
// it is the likeliest, and says which others could be meant; where the document
// contradicts itself there is no guess, but an error that names them.
package sniff

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Kind is what an object is.
type Kind string

// The kinds of objects.
const (
	Request  Kind = "request"
	Response Kind = "response"
	Stream   Kind = "stream"
	Messages Kind = "messages"
	Tools    Kind = "tools"
)

// Kinds are all kinds, in the order in which help texts list them.
var Kinds = []Kind{Request, Response, Stream, Messages, Tools}

// MCP stands for a tool as MCP servers list them: no dialect, but a source of
// tools.
const MCP dragoman.Dialect = "mcp"

// Canonical stands for what the root package stores as JSON: no wire language,
// but what all of them are turned into.
const Canonical dragoman.Dialect = "canonical"

// Guess is what something seems to be.
type Guess struct {
	Dialect dragoman.Dialect
	Kind    Kind
	// Because names what told.
	Because string
	// Or lists dialects that fit as well.
	Or []dragoman.Dialect
}

// HeadSize is how much of the beginning of something IsStream and Of want to
// see.
const HeadSize = 64 << 10

// IsStream reports whether something that begins with head is a stream: server
// sent events, lines of JSON, binary frames, or a list that is sent piece by
// piece.
func IsStream(head []byte) bool {
	_, ok := streamHead(head)
	return ok
}

// streamHead returns the first event of a stream, as JSON.
func streamHead(head []byte) (event []byte, ok bool) {
	if payload, ok := frame(head); ok {
		return payload, true
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if isSSE(text) {
		return firstData(text), true
	}
	if first, rest, ok := firstValue(text); ok && first[0] == '{' && bytes.HasPrefix(rest, []byte("{")) {
		return first, true // lines of JSON
	}
	// Gemini without alt=sse: a list of chunks.
	if len(text) > 0 && text[0] == '[' {
		if first, _, ok := firstValue(bytes.TrimLeft(text[1:], " \t\r\n")); ok && has(first, "candidates", "promptFeedback") {
			return first, true
		}
	}
	return nil, false
}

// frame returns the payload of a binary frame that head begins with.
func frame(head []byte) ([]byte, bool) {
	const prelude = 12
	if len(head) < prelude || crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]) {
		return nil, false
	}
	total, headers := int(binary.BigEndian.Uint32(head)), int(binary.BigEndian.Uint32(head[4:]))
	if prelude+headers > len(head) || total < prelude+headers+4 {
		return nil, true
	}
	return head[prelude+headers : min(total-4, len(head))], true
}

func isSSE(text []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(text, []byte(field)) {
			return true
		}
	}
	return false
}

// firstData returns the data of the first event that has any.
func firstData(text []byte) []byte {
	for line := range bytes.Lines(text) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
				return data
			}
		}
	}
	return nil
}

// firstValue cuts the JSON value that text begins with.
func firstValue(text []byte) (value, rest []byte, ok bool) {
	r := jsonwire.NewReader(text)
	value = r.Raw()
	if r.Err() != nil || len(value) == 0 {
		return nil, nil, false
	}
	return value, bytes.TrimLeft(text[len(value):], " \t\r\n"), true
}

// youSaidSo is the reason where nothing in the document is one.
const youSaidSo = "you said so"

// Of guesses what data is; for a stream its beginning will do. kind and
// dialect, where they are not empty, are already known. The error is
// ErrUnknown, a *NotChatError or an *AmbiguousError.
func Of(data []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	doc := data
	if kind == "" || kind == Stream {
		event, ok := streamHead(data)
		switch {
		case ok:
			kind, doc = Stream, event
		case kind == Stream && dialect == "":
			return Guess{}, ErrUnknown
		}
	}
	if kind != "" && dialect != "" {
		return Guess{Dialect: dialect, Kind: kind, Because: youSaidSo}, nil
	}
	if kind == Stream {
		return streamed(data, doc, dialect)
	}
	doc = bytes.TrimLeft(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")), " \t\r\n")
	if g, ok := canonical(doc, kind, dialect); ok {
		return g, nil
	}
	if len(doc) > 0 && doc[0] == '[' {
		return list(doc, kind, dialect)
	}
	return object(doc, kind, dialect)
}

// canonical recognises stored JSON: it says its version, and what it holds is
// made of parts, which no wire language has beside one.
func canonical(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	if dialect != "" && dialect != Canonical {
		return Guess{}, false
	}
	m, suffix := open(doc), ""
	if els := elementsOf(doc); len(els) > 0 {
		m, suffix = els[0], "s"
	}
	if v := m["v"]; len(v) == 0 || v[0] < '0' || v[0] > '9' {
		return Guess{}, false
	}
	is := Kind("")
	because := ""
	switch {
	case suffix == "" && m.has("messages", "instructions") && !some(elementsOf(m["messages"]), hasContent):
		is, because = Request, "request"
	case suffix == "" && m.has("output", "stop", "error") && !m.has("object", "stopReason", "choices"):
		is, because = Response, "response"
	case hasParts(m):
		is, because = Messages, "message"+suffix
	case m.has("name") && isText(m["parameters"]):
		is, because = Tools, "tool"+suffix
	}
	if is == "" || kind != "" && kind != is {
		return Guess{}, false
	}
	return Guess{Dialect: Canonical, Kind: is, Because: `it has a version "v", as a stored ` + because + " does"}, true
}

func hasParts(m members) bool { return m.has("parts") }

func hasContent(m members) bool { return m.has("content", "tool_calls") }

// streamed guesses what a stream is that starts with event.
func streamed(data, event []byte, dialect dragoman.Dialect) (Guess, error) {
	m := open(event)
	if err := notChat(m); err != nil && dialect == "" {
		return Guess{}, err
	}
	if g, ok := choose(streams, m, Stream, dialect); ok {
		return g, nil
	}
	if _, binary := frame(data); binary {
		return Guess{Dialect: dragoman.Bedrock, Kind: Stream, Because: "it is made of binary frames"}, nil
	}
	return Guess{}, ErrUnknown
}

// object guesses what one object is.
func object(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	m := open(doc)
	other := notChat(m)
	if other != nil && dialect == "" {
		return Guess{}, other
	}
	unknown := ErrUnknown
	if other != nil {
		unknown = other
	}
	for _, try := range []struct {
		kind  Kind
		guess func() (Guess, error)
	}{
		{Response, func() (Guess, error) { return chosen(responses, m, Response, dialect) }},
		{Request, func() (Guess, error) { return narrow(requestOf(m), Request, dialect) }},
		{Tools, func() (Guess, error) { return chosen(tools, m, Tools, dialect) }},
		{Messages, func() (Guess, error) { return narrow(messagesOf([]members{m}), Messages, dialect) }},
	} {
		if kind != "" && kind != try.kind {
			continue
		}
		if g, err := try.guess(); !errors.Is(err, ErrUnknown) {
			return g, err
		}
	}
	return Guess{}, unknown
}

// list guesses what the elements of a list are.
func list(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	elements := elementsOf(doc)
	best, found := Guess{}, false
	for _, el := range elements[:min(len(elements), 200)] {
		if kind != "" && kind != Tools {
			break
		}
		if g, ok := choose(tools, el, Tools, dialect); ok && (!found || len(g.Or) < len(best.Or)) {
			best, found = g, true
		}
	}
	switch {
	case found:
		return best, nil
	case kind != "" && kind != Messages:
		return Guess{}, ErrUnknown
	}
	return narrow(messagesOf(elements), Messages, dialect)
}

// sign is something that tells a dialect.
type sign struct {
	dialects []dragoman.Dialect
	because  string
	holds    func(members) bool
}

// members are the members of an object, raw.
type members map[string]json.RawMessage

func (m members) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return m[n] != nil })
}

func (m members) is(name, text string) bool { return string(m[name]) == `"`+text+`"` }

func has(doc []byte, names ...string) bool { return open(doc).has(names...) }

// open reads the members of an object; one that ends in the middle gives those
// before it.
func open(doc []byte) members {
	m := members{}
	r := jsonwire.NewReader(doc)
	if r.Kind() != '{' {
		return m
	}
	for key := range r.Object() {
		name := string(key)
		if raw := r.Raw(); r.Err() == nil {
			m[name] = raw
		}
	}
	return m
}

// choose returns the first sign of an object that holds, for a dialect if one
// is known.
func choose(signs []sign, m members, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	for _, s := range signs {
		if !s.holds(m) || dialect != "" && !slices.Contains(s.dialects, dialect) {
			continue
		}
		g := Guess{Dialect: s.dialects[0], Kind: kind, Because: s.because, Or: s.dialects[1:]}
		if dialect != "" {
			g.Dialect, g.Or = dialect, nil
		}
		return g, true
	}
	return Guess{}, false
}

func chosen(signs []sign, m members, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	g, ok := choose(signs, m, kind, dialect)
	if !ok {
		return Guess{}, ErrUnknown
	}
	return g, nil
}

func of(d ...dragoman.Dialect) []dragoman.Dialect { return d }

func hasOne(names ...string) (string, func(members) bool) {
	return "it has " + quoted(names), func(m members) bool { return m.has(names...) }
}

func quoted(names []string) string { return `"` + strings.Join(names, `" or "`) + `"` }

func only(d dragoman.Dialect, names ...string) sign {
	because, holds := hasOne(names...)
	return sign{of(d), because, holds}
}

var responses = []sign{
	only(dragoman.OpenAIChat, "choices"),
	only(dragoman.Gemini, "candidates", "promptFeedback"),
	{of(dragoman.OpenAIResponses), `it is a "response"`, func(m members) bool {
		return m.is("object", "response") || m.has("output") && !m.has("stopReason") && !responsesItem(m)
	}},
	{of(dragoman.Bedrock), `it has "output" and "stopReason"`, func(m members) bool { return m.has("output") && m.has("stopReason") }},
	{of(dragoman.Ollama), `it has "message" and "done"`, func(m members) bool { return m.has("message") && m.has("done") }},
	{of(dragoman.Anthropic), `it is a "message" of the assistant`, func(m members) bool {
		return m.is("type", "message") && m.is("role", "assistant") && m.has("content", "stop_reason") && m.has("id", "model", "usage")
	}},
	{of(dragoman.Anthropic), `it is an "error" with a type`, func(m members) bool { return m.is("type", "error") && has(m["error"], "type", "message") }},
	{of(dragoman.Gemini), `its "error" has a status`, func(m members) bool { return isText(open(m["error"])["status"]) && has(m["error"], "message") }},
	{of(dragoman.OpenAIChat, dragoman.OpenAIResponses), `it has an "error" with a message`, func(m members) bool { return has(m["error"], "message") && !m.has("messages", "input", "contents") }},
	{of(dragoman.Bedrock), `it is an error of AWS, with a "__type"`, func(m members) bool { return isText(m["__type"]) && !m.has("messages", "input", "contents") }},
	{of(dragoman.Ollama), `its "error" is a text`, func(m members) bool { return isText(m["error"]) && !m.has("messages", "input", "contents") }},
}

var streams = []sign{
	only(dragoman.Gemini, "candidates", "promptFeedback"),
	{of(dragoman.OpenAIChat), `its events have "choices"`, func(m members) bool { return m.has("choices") }},
	{of(dragoman.OpenAIResponses), "its events are of a response", func(m members) bool {
		return bytes.HasPrefix(m["type"], []byte(`"response.`)) || m.has("sequence_number")
	}},
	{of(dragoman.Ollama), `its lines have "message" and "done"`, func(m members) bool { return m.has("done") && m.has("message", "model") }},
	{of(dragoman.Anthropic), "its events are of a message", func(m members) bool {
		for _, typ := range []string{"message_start", "content_block_start", "content_block_delta", "message_delta", "ping"} {
			if m.is("type", typ) {
				return true
			}
		}
		return false
	}},
	{of(dragoman.Bedrock), "its frames are of a conversation", func(m members) bool {
		return m.has("contentBlockIndex", "stopReason") || m.has("role") && m.has("p")
	}},
}

func mcpTools(m members) bool {
	return some(elementsOf(m["tools"]), func(el members) bool { return el.has("inputSchema") })
}

var tools = []sign{
	{of(dragoman.OpenAIChat, dragoman.Ollama), `it has a "function" with parameters`, func(m members) bool {
		return len(m["function"]) > 0 && has(m["function"], "name") && !m.has("id", "index")
	}},
	{of(dragoman.OpenAIChat), `it has a "custom" tool`, func(m members) bool { return m.is("type", "custom") && has(m["custom"], "name", "format") }},
	{of(dragoman.OpenAIResponses), `it is a "function" with a name`, func(m members) bool {
		return (m.is("type", "function") || m.is("type", "custom") || m.is("type", "namespace")) && m.has("name") && !m.has("input_schema", "role")
	}},
	only(dragoman.Anthropic, "input_schema"),
	only(dragoman.Gemini, "functionDeclarations", "function_declarations", "parametersJsonSchema"),
	only(dragoman.Bedrock, "toolSpec"),
	{of(MCP), `it has an "inputSchema", as MCP servers list tools`, func(m members) bool { return m.has("name") && m.has("inputSchema") }},
	{of(MCP), `it is a list of tools of an MCP server`, func(m members) bool { return mcpTools(m) && !m.has("messages") }},
	{of(MCP), `it is the answer of an MCP server with its tools`, func(m members) bool { return m.has("jsonrpc") && mcpTools(open(m["result"])) }},
	{of(dragoman.Gemini), `it has a name and "parameters"`, func(m members) bool { return m.has("name") && m.has("parameters") && !m.has("type", "role") }},
}
