package wirekit

import (
	"cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// What OpenAI's two dialects share with each other and with nobody else.

// KnownTier reports whether OpenAI has a service tier of this name. Other words
// are those of one server, and go back only to its dialect.
func KnownTier(tier string) bool {
	switch tier {
	case "auto", "default", "flex", "scale", "priority", "fast", "ultrafast":
		return true
	default:
		return false
	}
}

// OpenAITier is the service tier to write for OpenAI.
func OpenAITier(tier string, rep *dragoman.Report) string {
	if tier == "standard_only" { // Anthropic's word
		rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
		return "default"
	}
	return tier
}

// OutputName is the name of an output schema as OpenAI's wires demand it:
// present, and of few characters (quirk F5).
func OutputName(n string, rep *dragoman.Report) string {
	const fallback = "response"
	if n == "" {
		rep.Addf(dragoman.Synthesised, dragoman.Info, "/output/name", "the wire demands a name; %q written", fallback)
		return fallback
	}
	rule := dragoman.NameRule{Rest: "a-zA-Z0-9_-", Max: 64}
	if interop.Legal(n, rule) {
		return n
	}
	b := []byte(n)
	if len(b) > rule.Max {
		b = b[:rule.Max]
	}
	for i := range b {
		if !interop.Legal(string(b[i:i+1]), rule) {
			b[i] = '_'
		}
	}
	rep.Addf(dragoman.Renamed, dragoman.Info, "/output/name", "schema name %q written as %q", n, b)
	return string(b)
}

// OpenAIErrorWords are OpenAI's type and code for a class of errors; it has no
// code for some.
func OpenAIErrorWords(class dragoman.ErrorClass) (typ, code string) {
	switch class {
	case dragoman.ErrorAuth:
		return "invalid_request_error", "invalid_api_key"
	case dragoman.ErrorNotFound:
		return "invalid_request_error", "model_not_found"
	case dragoman.ErrorContextLength:
		return "invalid_request_error", "context_length_exceeded"
	case dragoman.ErrorRateLimit:
		return "requests", "rate_limit_exceeded"
	case dragoman.ErrorQuota:
		return "insufficient_quota", "insufficient_quota"
	case dragoman.ErrorBadRequest, dragoman.ErrorPermission, dragoman.ErrorTooLarge, dragoman.ErrorConflict, dragoman.ErrorPolicy:
		return "invalid_request_error", ""
	case dragoman.ErrorOverloaded:
		return "server_error", "server_is_overloaded"
	default:
		return "server_error", ""
	}
}

// WriteOpenAIError writes the error object of OpenAI's bodies. Clients demand
// all four members, and null where there is no word.
func WriteOpenAIError(w *jsonwire.Writer, e *dragoman.APIError, typ, code string) {
	w.BeginObject()
	w.StringField("message", cmp.Or(e.Message, string(e.Class)))
	w.StringField("type", typ)
	w.StringFieldOrNull("param", e.Param)
	w.StringFieldOrNull("code", code)
	w.EndObject()
}
