package wire

import "strings"

// Signs that several dialects share: a document with one of them fits each dialect that
// lists it.
var (
	HasMessages  = Sign{50, `it has "messages"`, func(m Object) bool { return m.Has("messages") }}
	HasFunctions = Sign{20, `its tools have a "function"`, func(m Object) bool {
		return Any(m.List("tools"), func(t Object) bool { return t.In("function").Has("name") })
	}}
	TypedParts = Sign{70, "its messages hold parts with a type", func(m Object) bool {
		return Any(Blocks(m), func(b Object) bool { return b.Has("type") })
	}}
	TextContent = Sign{80, "the content of a message is a text", func(m Object) bool {
		return Any(m.List("messages"), func(m Object) bool { return m.IsText("content") })
	}}
	ToolMessages = Sign{140, "it has tool messages, or calls outside of the content", func(m Object) bool {
		return Any(m.List("messages"), func(m Object) bool { return m.Is("role", "tool") || m.Has("tool_calls") })
	}}
	SystemField = Sign{10, `it has "messages" and a separate "system"`, func(m Object) bool { return m.Has("system") }}
	HasThinking = Sign{40, `it has "thinking"`, func(m Object) bool { return len(m.In("thinking")) > 0 }}
	SystemFirst = Sign{10, "its first message is a system message", func(m Object) bool {
		ms := m.List("messages")
		return len(ms) > 0 && ms[0].Is("role", "system")
	}}
	CommonSettings = Sign{20, `it has "max_tokens", "temperature", "top_p" or "top_k"`, func(m Object) bool {
		return m.Has("max_tokens", "temperature", "top_p", "top_k")
	}}
	RolesAndContent = Sign{30, "it has a role and content", func(m Object) bool {
		ms := m.List("messages")
		return Any(ms, func(m Object) bool { return m.Has("role") && m.Has("content", "tool_calls", "function_call") }) && !Any(ms, IsItem)
	}}
	SystemMessage = Sign{10, "it is a system message", func(m Object) bool {
		return Any(m.List("messages"), func(m Object) bool { return m.Is("role", "system") })
	}}
	FunctionTool = Sign{10, `it has a "function" with parameters`, func(m Object) bool {
		return len(m["function"]) > 0 && m.In("function").Has("name") && !m.Has("id", "index")
	}}
	ErrorMessage = Sign{90, `it has an "error" with a message`, func(m Object) bool {
		return m.In("error").Has("message") && !IsRequest(m)
	}}
)

// IsRequest reports whether an object has a conversation, so that an error in it is not
// the error of a response.
func IsRequest(m Object) bool { return m.Has("messages", "input", "contents") }

// Blocks returns the blocks of content of all messages.
func Blocks(m Object) (out []Object) {
	for _, m := range m.List("messages") {
		out = append(out, m.List("content")...)
	}
	return out
}

// Calls returns the calls outside of the content of all messages.
func Calls(m Object) (out []Object) {
	for _, m := range m.List("messages") {
		out = append(out, m.List("tool_calls")...)
	}
	return out
}

// ArgumentsStart reports whether the arguments of a call begin with c: a brace or a
// quote.
func ArgumentsStart(call Object, c byte) bool {
	args := call.In("function")["arguments"]
	return len(args) > 0 && args[0] == c
}

// IsItem reports whether an object is an item of a conversation that has items instead of
// messages.
func IsItem(m Object) bool {
	switch typ := m.Text("type"); {
	case typ == "message", typ == "reasoning", typ == "item_reference", typ == "mcp_approval_response",
		strings.HasSuffix(typ, "_call"), strings.HasSuffix(typ, "_call_output"):
		return true
	}
	return m.Has("call_id", "encrypted_content") || Any(m.List("content"), func(b Object) bool {
		switch b.Text("type") {
		case "input_text", "output_text", "input_image", "input_file":
			return true
		}
		return false
	})
}

// HasField returns a sign for a document that has one of some fields.
func HasField(rank int, names ...string) Sign {
	return Sign{rank, `it has "` + strings.Join(names, `" or "`) + `"`, func(m Object) bool { return m.Has(names...) }}
}
