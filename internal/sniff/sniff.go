// Package sniff guesses what a piece of wire traffic is: which dialect, and
// whether it is a request, a response, a stream, a list of messages or a tool.
//
// A guess is made from members that only one dialect has. Where several fit,
// it is the likeliest, and says which others could be meant.
package sniff

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
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

// Of guesses what data is; for a stream its beginning will do. kind and
// dialect, where they are not empty, are already known.
func Of(data []byte, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	doc := data
	if kind == "" || kind == Stream {
		event, ok := streamHead(data)
		switch {
		case ok:
			kind, doc = Stream, event
		case kind == Stream && dialect == "":
			return Guess{}, false
		}
	}
	if kind != "" && dialect != "" {
		return Guess{Dialect: dialect, Kind: kind, Because: "you said so"}, true
	}
	if kind == Stream {
		if g, ok := choose(streams, doc, kind, dialect); ok {
			return g, true
		}
		if _, binary := frame(data); binary {
			return Guess{Dialect: dragoman.Bedrock, Kind: Stream, Because: "it is made of binary frames"}, true
		}
		return Guess{}, false
	}
	doc = bytes.TrimLeft(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(doc) > 0 && doc[0] == '[' {
		return list(doc, kind, dialect)
	}
	for _, set := range []struct {
		kind  Kind
		signs []sign
	}{{Response, responses}, {Request, requests}, {Tools, tools}, {Messages, messages}} {
		if kind != "" && kind != set.kind {
			continue
		}
		if g, ok := choose(set.signs, doc, set.kind, dialect); ok {
			return g, true
		}
	}
	return Guess{}, false
}

// list guesses what the elements of a list are.
func list(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	var elements []json.RawMessage
	if json.Unmarshal(doc, &elements) != nil || len(elements) == 0 {
		return Guess{}, false
	}
	best, found := Guess{}, false
	for _, el := range elements[:min(len(elements), 200)] {
		for _, set := range []struct {
			kind  Kind
			signs []sign
		}{{Tools, tools}, {Messages, messages}} {
			if kind != "" && kind != set.kind {
				continue
			}
			g, ok := choose(set.signs, el, set.kind, dialect)
			if ok && (!found || len(g.Or) < len(best.Or)) {
				best, found = g, true
			}
		}
		if found && len(best.Or) == 0 {
			break
		}
	}
	return best, found
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

// contains reports whether the text of a member has one of some quoted words.
func (m members) contains(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(m[name], []byte(`"`+w+`"`)) })
}

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
func choose(signs []sign, doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	m := open(doc)
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

func of(d ...dragoman.Dialect) []dragoman.Dialect { return d }

func hasOne(names ...string) (string, func(members) bool) {
	return "it has " + quoted(names), func(m members) bool { return m.has(names...) }
}

func quoted(names []string) string { return `"` + strings.Join(names, `" or "`) + `"` }

func only(d dragoman.Dialect, names ...string) sign {
	because, holds := hasOne(names...)
	return sign{of(d), because, holds}
}

var anthropicBlocks = []string{"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document", "image"}

var requests = []sign{
	only(dragoman.Gemini, "contents", "generationConfig", "generation_config"),
	only(dragoman.Bedrock, "inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig"),
	only(dragoman.OpenAIResponses, "input", "previous_response_id", "max_output_tokens"),
	{of(dragoman.OpenAIResponses), `it has "instructions" and no messages`, func(m members) bool { return m.has("instructions") && !m.has("messages") }},
	{of(dragoman.Bedrock), `its blocks have no type, only "toolUse", "toolResult" or "text"`, func(m members) bool {
		return m.has("messages") && bareBlocks(m["messages"])
	}},
	{of(dragoman.Anthropic), `it has "messages" and a "system", "anthropic_version" or "stop_sequences"`, func(m members) bool {
		return m.has("messages") && m.has("system", "anthropic_version", "anthropic_beta", "stop_sequences")
	}},
	{of(dragoman.Anthropic), "its tools have an input_schema", func(m members) bool { return m.contains("tools", "input_schema") }},
	{of(dragoman.Ollama), `it has "options", "keep_alive", "think" or "format"`, func(m members) bool {
		return m.has("messages") && m.has("options", "keep_alive", "think", "format")
	}},
	{of(dragoman.Ollama), "its calls have objects for arguments, or its messages images or a tool_name", func(m members) bool {
		return m.contains("messages", "tool_name") || eachMessage(m["messages"], func(msg members) bool {
			return msg.has("images", "tool_name") || objectArguments(msg["tool_calls"])
		})
	}},
	{of(dragoman.OpenAIChat), "its messages are those of Chat Completions", func(m members) bool {
		return m.has("messages") && (m.has("max_completion_tokens", "response_format", "stream_options", "reasoning_effort", "functions", "parallel_tool_calls", "logprobs", "n", "stop", "seed", "frequency_penalty", "presence_penalty") ||
			m.contains("messages", "tool_calls", "tool_call_id", "system", "developer", "image_url", "input_audio"))
	}},
	{of(dragoman.Anthropic), "its messages hold blocks of Anthropic's", func(m members) bool {
		return eachMessage(m["messages"], func(msg members) bool { return msg.contains("content", anthropicBlocks...) })
	}},
	{of(dragoman.OpenAIChat, dragoman.Anthropic), `it has "thinking" or "top_k"`, func(m members) bool {
		return m.has("messages") && m.has("thinking", "top_k") && (!m.contains("tools", "function"))
	}},
	{of(dragoman.OpenAIChat, dragoman.Ollama), `its tools have a "function"`, func(m members) bool { return m.has("messages") && m.contains("tools", "function") }},
	{of(dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama), `it has "messages"`, func(m members) bool { return m.has("messages") }},
}

var responses = []sign{
	only(dragoman.OpenAIChat, "choices"),
	only(dragoman.Gemini, "candidates", "promptFeedback"),
	{of(dragoman.OpenAIResponses), `it is a "response"`, func(m members) bool { return m.is("object", "response") || m.has("output") && !m.has("stopReason") }},
	{of(dragoman.Bedrock), `it has "output" and "stopReason"`, func(m members) bool { return m.has("output") && m.has("stopReason") }},
	{of(dragoman.Ollama), `it has "message" and "done"`, func(m members) bool { return m.has("message") && m.has("done") }},
	{of(dragoman.Anthropic), `it is a "message" of the assistant`, func(m members) bool {
		return m.is("type", "message") && m.is("role", "assistant") && m.has("content", "stop_reason") && m.has("id", "model", "usage")
	}},
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
	{of(MCP), `it is a list of tools of an MCP server`, func(m members) bool { return m.contains("tools", "inputSchema") && !m.has("messages") }},
	{of(dragoman.Gemini), `it has a name and "parameters"`, func(m members) bool { return m.has("name") && m.has("parameters") && !m.has("type", "role") }},
}

var messages = []sign{
	{of(dragoman.OpenAIResponses), "it is an item of a response", func(m members) bool {
		return m.has("call_id", "encrypted_content") || m.is("type", "message") || m.is("type", "function_call") || m.is("type", "reasoning") ||
			m.contains("content", "input_text", "output_text", "input_image")
	}},
	{of(dragoman.Gemini), `it has "parts"`, func(m members) bool { return m.has("parts") }},
	{of(dragoman.Ollama), "it has images, a tool_name, or objects for arguments", func(m members) bool {
		return m.has("role") && (m.has("images", "tool_name") || objectArguments(m["tool_calls"]))
	}},
	{of(dragoman.OpenAIChat), "it is a message of Chat Completions", func(m members) bool {
		return m.has("role") && (m.has("tool_calls", "tool_call_id", "function_call", "refusal") || m.is("role", "developer") || m.contains("content", "image_url", "input_audio"))
	}},
	{of(dragoman.Anthropic), "it holds blocks of Anthropic's", func(m members) bool { return m.has("role") && m.contains("content", anthropicBlocks...) }},
	{of(dragoman.Bedrock), "its blocks have no type", func(m members) bool { return m.has("role") && bareContent(m["content"]) }},
	{of(dragoman.OpenAIChat, dragoman.Ollama), "it is a message of the system", func(m members) bool { return m.is("role", "system") || m.is("role", "tool") }},
	{of(dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama), "it has a role and content", func(m members) bool { return m.has("role") && m.has("content") }},
}

// eachMessage reports whether one of a list of messages is like that.
func eachMessage(raw json.RawMessage, like func(members) bool) bool {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return false
	}
	return slices.ContainsFunc(list, func(el json.RawMessage) bool { return like(open(el)) })
}

func bareBlocks(messages json.RawMessage) bool {
	return eachMessage(messages, func(m members) bool { return bareContent(m["content"]) })
}

// bareContent reports whether content is a list of blocks that are told apart
// by their only member, as Bedrock's are.
func bareContent(content json.RawMessage) bool {
	return eachMessage(content, func(b members) bool {
		return !b.has("type") && b.has("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint")
	})
}

// objectArguments reports whether calls have their arguments as an object.
func objectArguments(calls json.RawMessage) bool {
	return eachMessage(calls, func(call members) bool {
		args := open(call["function"])["arguments"]
		return len(args) > 0 && args[0] == '{'
	})
}
