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

// sharedMember tells of a member that requests of both of OpenAI's dialects have
// in the same place and with the same meaning, and that the canonical model has no
// place for, which kinds of value it may have; of any other, none.
func sharedMember(path string) (kinds string) {
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

// obfuscation is where a stream is asked to hide the sizes of its pieces.
const obfuscation = "/stream_options/include_obfuscation"

// Siblings splits the members that a request kept of the other of OpenAI's
// dialects: what d has as well, written as it came, and what is lost toward it.
type Siblings struct {
	// Members stand at the root.
	Members []dragoman.Field
	// Obfuscation is a member of the options of a stream; nil for none.
	Obfuscation []byte
	// Logprobs asks for how likely the tokens were: Chat has a member for it,
	// Responses a word in the list of what its answer includes.
	Logprobs bool
	// Lost is to be reported.
	Lost *dragoman.Extra
}

// SiblingsOf splits the members of a request that is written in dialect d.
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

// IncludeLogprobs is the word for that, IncludeReasoning the one for reasoning
// that can be sent back.
const (
	IncludeLogprobs  = "message.output_text.logprobs"
	IncludeReasoning = "reasoning.encrypted_content"
)

// logprobs takes the member that asks for logprobs and returns what else is in it
// that the other dialect has no word for. ok is false for any other member.
func (s *Siblings) logprobs(f dragoman.Field) (rest []byte, ok bool) {
	if v := string(f.Value); f.Path == "/logprobs" && (v == "true" || v == "false") {
		s.Logprobs = v == "true" // of a repeated member the last counts; none is asked for by no word
		return nil, true
	}
	r := jsonwire.NewReader(f.Value)
	if f.Path != "/include" || r.Kind() != '[' {
		return nil, false
	}
	var w jsonwire.Writer
	w.BeginArray()
	asked, others := false, 0
	for range r.Array() {
		switch raw := r.Raw(); string(raw) {
		case `"` + IncludeLogprobs + `"`:
			asked = true
		case `"` + IncludeReasoning + `"`: // which the model has a place for
		default:
			others++
			w.Raw(raw)
		}
	}
	w.EndArray()
	if !asked || r.Err() != nil {
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
	switch shared := strings.IndexByte(sharedMember(f.Path), byte(kind)) >= 0; {
	case shared && f.Path == obfuscation && req.Stream:
		s.Obfuscation = f.Value
	case shared && f.Path != obfuscation && string(f.Value) != `""`:
		if at := slices.IndexFunc(s.Members, func(m dragoman.Field) bool { return m.Path == f.Path }); at >= 0 {
			s.Members[at] = f // of a repeated member the last counts
			return
		}
		s.Members = append(s.Members, f)
	default:
		s.Lost.Fields = append(s.Lost.Fields, f)
	}
}

// Asks reports whether a member is among those at the root.
func (s *Siblings) Asks(path string) bool {
	return slices.ContainsFunc(s.Members, func(f dragoman.Field) bool { return f.Path == path })
}

// maxUser is how many characters of a user's id the API takes.
const maxUser = 64

// SafetyIdentifier is a user's id as OpenAI takes it. The API refuses long ones, such as
// Claude Code sends to Anthropic; the SHA-256 of one tells users apart as well.
func SafetyIdentifier(user string, rep *dragoman.Report) string {
	if utf8.RuneCountInString(user) <= maxUser {
		return user
	}
	rep.Addf(dragoman.Lowered, dragoman.Info, "/user", "the API takes at most %d characters; its SHA-256 written", maxUser)
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}
