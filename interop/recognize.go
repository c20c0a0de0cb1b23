package interop

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// RecognizeCall returns the format of a call object by its shape, or "" where no
// format has it. Contributed accessors with a [dragoman.Recognizer] come first, in
// order of precedence, then the built-in formats, then the other contributed accessors:
// the first that reads a call with a name. A Gemini part that holds a call counts as the
// call. Last come the function inside a Chat or Ollama call and the toolUse inside a
// Bedrock block.
func (r *Registry) RecognizeCall(obj json.RawMessage) dragoman.Format {
	if jsonwire.Check(obj) != nil {
		return ""
	}
	var others []callGuard
	for _, e := range r.listing {
		if e.What != "call" || e.Shadowed != "" {
			continue
		}
		a := r.calls[e.From]
		yes, known := a.recognizes(obj)
		switch {
		case !known:
			others = append(others, a)
		case yes:
			return e.From
		}
	}
	if f := builtInCall(obj); f != "" {
		return f
	}
	for _, a := range others {
		if c, _, err := a.InspectCall(obj); err == nil && c != nil && c.Name != "" {
			return a.Format()
		}
	}
	return innerCall(obj)
}

// builtInCall recognizes the calls of the built-in formats.
func builtInCall(obj json.RawMessage) dragoman.Format {
	kinds := map[string]byte{}
	typ, argumentKind := "", byte(0)
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return ""
	}
	for key := range rd.Object() {
		k := string(key)
		kinds[k] = byte(rd.Kind())
		switch {
		case k == "type" && rd.Kind() == '"':
			typ = rd.String()
		case k == "function" && rd.Kind() == '{':
			for inner := range rd.Object() {
				if string(inner) == "arguments" {
					argumentKind = byte(rd.Kind())
				}
				rd.Skip()
			}
		default:
			rd.Skip()
		}
	}
	has := func(key string) bool { _, ok := kinds[key]; return ok }
	switch {
	case rd.End() != nil:
		return ""
	case typ == "function_call":
		return dragoman.FormatResponsesFunctionCall
	case typ == "custom_tool_call":
		return dragoman.FormatResponsesCustomCall
	case typ == "tool_use":
		return dragoman.FormatAnthropicToolUse
	case typ == "custom" && kinds["custom"] == '{':
		return dragoman.FormatChatCustomCall
	case kinds["function"] == '{' && typ == "" && argumentKind == '{': // newer servers add an id; Chat calls have a type
		return dragoman.FormatOllamaToolCall
	case kinds["function"] == '{' && (typ == "" || typ == "function"):
		return dragoman.FormatChatFunctionCall
	case typ != "":
		return ""
	case kinds["toolUse"] == '{':
		return dragoman.FormatBedrockToolUse
	case kinds["name"] == '"' && has("args") && !has("functionCall") && !has("function_call"):
		return dragoman.FormatGeminiFunctionCall
	default:
		if _, ok := geminiPart(obj); ok {
			return dragoman.FormatGeminiFunctionCall
		}
		return ""
	}
}

// sanitizeContributed makes a call of a contributed format safe for a history.
func (r *Registry) sanitizeContributed(a callGuard, out *dragoman.Native, rep *dragoman.Report) {
	c, _, err := a.InspectCall(out.JSON)
	if err != nil || c == nil || c.Payload == dragoman.PayloadText {
		return
	}
	why := "they are blank"
	if strings.TrimSpace(c.Arguments) != "" {
		p := dragoman.CheckArguments(c.Arguments)
		if p == nil || p.Code != dragoman.ProblemInvalidJSON {
			return
		}
		why = p.Message
	}
	w, ok := r.adapters[adapterKey{dragoman.CallObject, "", a.Format()}]
	if !ok {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "", "arguments kept, though %s: no adapter writes calls as %s; contribute one", why, a.Format())
		return
	}
	clean := *c
	clean.Arguments, clean.Problem = "{}", nil
	raw, _, err := w.Adapt(dragoman.AdapterInput{Call: &clean})
	if err != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "", "arguments kept, though %s: %v", why, err)
		return
	}
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/arguments", "arguments written as {}: %s", why)
	out.JSON = raw
}

// ReadsSchema reports whether the registry reads tool definitions of a format: a
// contributed one, or a built-in one.
func (r *Registry) ReadsSchema(f dragoman.Format) bool {
	if _, ok := r.schemas[f]; ok {
		return true
	}
	for _, e := range builtIns() {
		if e.What == "schema" && e.From == f {
			return true
		}
	}
	return false
}

// unreadSpec reports whether all that is known of a tool is its source: nothing has read
// its name, or the schema of its arguments, from there.
func unreadSpec(s *dragoman.ToolSpec) bool {
	if s.Source == nil || s.Kind == dragoman.ToolHosted {
		return false
	}
	return s.Name == "" || s.Kind == dragoman.ToolFunction && len(s.Parameters) == 0 && s.Source.Mirror == dragoman.Fingerprint{}
}
