package strictupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
)

// Judge returns why the vendor would refuse a request to a model; nil if it would accept
// it. Where several rules are broken it returns the first: unknown fields, then parameters,
// then the conversation. It knows nothing of earlier requests.
func Judge(d dragoman.Dialect, model string, header http.Header, body []byte) *Refusal {
	name, _, _ := strings.Cut(model, "?")
	j := &judge{dialect: d, model: name, header: header}
	req, err := object(body)
	if err != nil {
		return j.bad("", "", "%v", err)
	}
	var r *Refusal
	switch d {
	case dragoman.OpenAIChat:
		r = j.chat(req)
	case dragoman.OpenAIResponses:
		r = j.responses(req)
	case dragoman.Anthropic:
		r = j.anthropic(req)
	case dragoman.Gemini:
		r = j.gemini(req)
	case dragoman.Ollama:
		r = j.ollama(req)
	case dragoman.Bedrock:
		r = j.bedrock(req)
	case cohereDialect:
		r = j.cohere(req)
	}
	if r == nil {
		r = j.media(req)
	}
	if r == nil {
		r = j.conversation(req, body)
	}
	return r
}

type judge struct {
	dialect dragoman.Dialect
	model   string
	header  http.Header
}

func (j *judge) bad(code, param, format string, args ...any) *Refusal {
	return &Refusal{Dialect: j.dialect, Model: j.model, Status: http.StatusBadRequest, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// conversation applies the structural rules. Signatures of Gemini are checked elsewhere:
// the vendor wants them in the current turn only.
func (j *judge) conversation(req map[string]any, body []byte) *Refusal {
	o := rulecheck.Options{NoSignatures: true, MidSystem: true}
	if j.dialect == dragoman.OpenAIResponses && slices.ContainsFunc(objects(req, "input"), isReference) {
		return nil // [Server] judges it once the references are resolved
	}
	if j.dialect == dragoman.Gemini {
		body = mergedContents(req, body)
	}
	for _, v := range rulecheck.Request(j.dialect, body, o) {
		if !j.accepted(v) {
			return j.bad("invalid_value", "", "%s", v)
		}
	}
	return nil
}

// mergedContents returns a Gemini request with adjacent contents of one role merged, as the
// vendor reads them. Its SDK sends a content for each chunk of a stream.
func mergedContents(req map[string]any, body []byte) []byte {
	var merged []map[string]any
	for _, c := range objects(req, "contents") {
		if n := len(merged); n > 0 && str(merged[n-1], "role") == str(c, "role") {
			both := slices.Concat(list(merged[n-1], "parts"), list(c, "parts"))
			merged[n-1] = map[string]any{"role": c["role"], "parts": both}
			continue
		}
		merged = append(merged, c)
	}
	if len(merged) == len(list(req, "contents")) {
		return body
	}
	return withField(body, "contents", merged)
}

// accepted reports whether a vendor accepts what the rules forbid our encoders: the SDK of
// Gemini sends back the empty text that ends a stream; Ollama ignores unknown fields and
// does not need the name of a result's tool.
func (j *judge) accepted(v rulecheck.Violation) bool {
	switch j.dialect {
	case dragoman.Gemini:
		return v.Rule == "an empty text"
	case dragoman.Ollama:
		return v.Rule == "no such member" || v.Rule == "a result without tool_name"
	default:
		return false
	}
}

// isReference reports whether an input item is a reference. The type may be absent.
func isReference(item map[string]any) bool {
	typ := str(item, "type")
	return typ == "item_reference" || typ == "" && set(item, "id") && !set(item, "role")
}

// number reads a number, and reports whether there is one.
func number(m map[string]any, key string) (float64, bool) {
	n, ok := m[key].(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
