package wirekit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
)

// Code that only the two OpenAI dialects share.

// KnownTier reports whether OpenAI has a service tier of this name. Other names belong
// to one server and are sent back only to its dialect.
func KnownTier(tier string) bool {
	switch tier {
	case "auto", "default", "flex", "scale", "priority", "fast", "ultrafast":
		return true
	default:
		return false
	}
}

// OpenAITier returns the service tier to write for OpenAI.
func OpenAITier(tier string, rep *dragoman.Report) string {
	if tier == "standard_only" { // Anthropic's name
		rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
		return "default"
	}
	return tier
}

// OutputName returns the name of an output schema in the form that OpenAI requires:
// present, and with a restricted set of characters (quirk F5).
func OutputName(n string, rep *dragoman.Report) string {
	const fallback = "response"
	if n == "" {
		rep.Addf(dragoman.Synthesized, dragoman.Info, "/output/name", "the API requires a name; %q written", fallback)
		return fallback
	}
	rule := targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64}
	if rule.Allows(n) {
		return n
	}
	b := []byte(n)
	if len(b) > rule.Max {
		b = b[:rule.Max]
	}
	for i := range b {
		if !rule.Allows(string(b[i : i+1])) {
			b[i] = '_'
		}
	}
	rep.AddRename(dragoman.Info, "/output/name", "schema name", n, string(b))
	return string(b)
}

// OpenAIErrorWords returns OpenAI's type and code for an error class; some classes have
// no code.
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

// WriteOpenAIError writes the error object of an OpenAI body. Clients require all four
// fields, with null for an absent value.
func WriteOpenAIError(w *jsonwire.Writer, e *dragoman.APIError, typ, code string) {
	w.BeginObject()
	w.StringField("message", cmp.Or(e.Message, string(e.Class)))
	w.StringField("type", typ)
	w.StringFieldOrNull("param", e.Param)
	w.StringFieldOrNull("code", code)
	w.EndObject()
}

// isSharedField returns the JSON kinds that a request field may have, for a field that
// both OpenAI dialects have at the same path with the same meaning and that the
// canonical model lacks. It returns "" for any other path.
func isSharedField(path string) (kinds string) {
	switch path {
	case "/top_logprobs":
		return "0"
	case "/prompt_cache_retention", "/user":
		return `"`
	case "/prompt_cache_options", "/moderation":
		return "{"
	case obfuscation:
		return "tf"
	default:
		return ""
	}
}

// obfuscation is the path of the field that hides the sizes of chunks in a stream.
const obfuscation = "/stream_options/include_obfuscation"

// Siblings splits the fields that a request kept from the other OpenAI dialect into
// those that the target dialect also has, which are written unchanged, and those that
// are lost.
type Siblings struct {
	// Fields are fields at the root.
	Fields []dragoman.Field
	// Obfuscation is a field of the stream options; nil if absent.
	Obfuscation []byte
	// Logprobs asks for token log probabilities: Chat has a field for it, Responses a
	// value in its include list.
	Logprobs bool
	// Lost holds the fields to report as lost.
	Lost *dragoman.Extra
}

// SiblingsOf splits the fields of a request that is written in dialect d.
func SiblingsOf(req *dragoman.Request, d dragoman.Dialect) (s Siblings) {
	e := req.Extra
	if e == nil || e.Dialect == d || e.Dialect != dialectname.OpenAIChat && e.Dialect != dialectname.OpenAIResponses {
		s.Lost = e
		return s
	}
	s.Lost = &dragoman.Extra{Dialect: e.Dialect}
	for _, f := range e.Fields {
		if f.Path == "/stream_options" && jsonwire.NewReader(f.Value).Kind() == '{' {
			r := jsonwire.NewReader(f.Value)
			for key := range r.Object() {
				s.add(req, dragoman.Field{Path: f.Path + "/" + extra.Escape(string(key)), Value: r.Raw()})
			}
			continue
		}
		s.add(req, f)
	}
	return s
}

// IncludeLogprobs is the include value for log probabilities; IncludeReasoning is the
// one for encrypted reasoning that clients can send back.
const (
	IncludeLogprobs  = "message.output_text.logprobs"
	IncludeReasoning = "reasoning.encrypted_content"
)

// logprobs handles a field that asks for log probabilities. It returns the rest of the
// field that the other dialect has no value for. ok is false for any other field.
func (s *Siblings) logprobs(f dragoman.Field) (rest []byte, ok bool) {
	if v := string(f.Value); f.Path == "/logprobs" && (v == "true" || v == "false") {
		s.Logprobs = v == "true" // the last duplicate counts; false needs no include value
		return nil, true
	}
	r := jsonwire.NewReader(f.Value)
	if f.Path != "/include" || r.Kind() != '[' {
		return nil, false
	}
	var w jsonwire.Writer
	w.BeginArray()
	requested, others := false, 0
	for range r.Array() {
		switch raw := r.Raw(); string(raw) {
		case `"` + IncludeLogprobs + `"`:
			requested = true
		case `"` + IncludeReasoning + `"`: // the canonical model has a field for it
		default:
			others++
			w.Raw(raw)
		}
	}
	w.EndArray()
	if !requested || r.Err() != nil {
		return nil, false
	}
	if s.Logprobs = true; others == 0 {
		return nil, true
	}
	return w.Buf, true
}

func (s *Siblings) add(req *dragoman.Request, f dragoman.Field) {
	if rest, ok := s.logprobs(f); ok {
		if rest != nil {
			s.Lost.Fields = append(s.Lost.Fields, dragoman.Field{Path: f.Path, Value: rest})
		}
		return
	}
	kind := jsonwire.NewReader(f.Value).Kind()
	switch shared := strings.IndexByte(isSharedField(f.Path), byte(kind)) >= 0; {
	case shared && f.Path == obfuscation && req.Stream:
		s.Obfuscation = f.Value
	case shared && f.Path != obfuscation && string(f.Value) != `""`:
		if at := slices.IndexFunc(s.Fields, func(m dragoman.Field) bool { return m.Path == f.Path }); at >= 0 {
			s.Fields[at] = f // the last duplicate counts
			return
		}
		s.Fields = append(s.Fields, f)
	default:
		s.Lost.Fields = append(s.Lost.Fields, f)
	}
}

// Asks reports whether a field is among Fields.
func (s *Siblings) Asks(path string) bool {
	return slices.ContainsFunc(s.Fields, func(f dragoman.Field) bool { return f.Path == path })
}

// maxUser is the maximum length of a user id in characters.
const maxUser = 64

// SafetyIdentifier returns a user id in a form that OpenAI accepts. The API refuses
// long ids, such as those that Claude Code sends to Anthropic. The SHA-256 of the id
// also distinguishes users.
func SafetyIdentifier(user string, rep *dragoman.Report) string {
	if utf8.RuneCountInString(user) <= maxUser {
		return user
	}
	rep.Addf(dragoman.Lowered, dragoman.Info, "/user", "the API accepts at most %d characters; the SHA-256 of the id written", maxUser)
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}
