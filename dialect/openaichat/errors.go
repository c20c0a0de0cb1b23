package openaichat

import (
	"encoding/json"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// DecodeError implements [dialect.Codec]. Compatible servers write the code as
// a number, the error as a bare string, or leave the envelope out.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := &dragoman.APIError{Status: status, RequestID: header.Get("x-request-id"), RetryAfter: wirekit.RetryAfter(header)}
	r := jsonwire.NewReader(body)
	switch r.Kind() {
	case '{':
		readErrorEnvelope(r, e)
	case '[': // Gemini's compatible endpoint
		for i := range r.Array() {
			if i == 0 && r.Kind() == '{' {
				readErrorEnvelope(r, e)
			} else {
				r.Skip()
			}
		}
	}
	switch {
	case r.Err() != nil || e.Message == "":
		e.Message = wirekit.PlainMessage(status, body)
	case r.End() == nil: // else something stands behind it
		e.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: body}
	}
	e.Class = classOf(e)
	return e
}

func readErrorEnvelope(r *jsonwire.Reader, e *dragoman.APIError) {
	for key := range r.Object() {
		if string(key) == "error" {
			readErrorObject(r, e)
			continue
		}
		readErrorMember(r, string(key), e)
	}
}

// errorEnvelope puts an error object where clients look for it.
func errorEnvelope(raw []byte) []byte {
	var w jsonwire.Writer
	w.BeginObject()
	w.RawField("error", raw)
	w.EndObject()
	return w.Buf
}

// readErrorObject reads the value of an "error" member: an object or a string.
func readErrorObject(r *jsonwire.Reader, e *dragoman.APIError) {
	switch r.Kind() {
	case '"':
		e.Message = r.String()
	case '{':
		for key := range r.Object() {
			readErrorMember(r, string(key), e)
		}
	default:
		r.Skip()
	}
}

func readErrorMember(r *jsonwire.Reader, key string, e *dragoman.APIError) {
	text := func() string {
		switch r.Kind() {
		case '"':
			return r.String()
		case '0':
			return string(r.Raw())
		default:
			r.Skip()
			return ""
		}
	}
	switch key {
	case "message", "detail":
		if s := text(); e.Message == "" {
			e.Message = s
		}
	case "type":
		e.Type = text()
	case "code":
		e.Code = text()
	case "param":
		e.Param = text()
	default:
		r.Skip()
	}
}

func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch e.Code {
	case "context_length_exceeded":
		return dragoman.ErrorContextLength
	case "insufficient_quota", "credit_balance_exhausted", "project_spend_limit_exceeded", "organization_spend_limit_exceeded":
		return dragoman.ErrorQuota
	case "rate_limit_exceeded":
		return dragoman.ErrorRateLimit
	case "invalid_api_key":
		return dragoman.ErrorAuth
	case "model_not_found":
		return dragoman.ErrorNotFound
	case "server_is_overloaded", "slow_down":
		return dragoman.ErrorOverloaded
	case "cyber_policy", "content_policy_violation":
		return dragoman.ErrorPolicy
	}
	switch e.Type {
	case "exceed_context_size_error":
		return dragoman.ErrorContextLength
	case "insufficient_quota":
		return dragoman.ErrorQuota
	case "authentication_error":
		return dragoman.ErrorAuth
	case "permission_error":
		return dragoman.ErrorPermission
	case "not_found_error":
		return dragoman.ErrorNotFound
	case "rate_limit_error":
		return dragoman.ErrorRateLimit
	case "timeout_error":
		return dragoman.ErrorTimeout
	case "server_error", "api_error":
		return dragoman.ErrorServer
	case "overloaded_error":
		return dragoman.ErrorOverloaded
	}
	if e.Status != 0 {
		return wirekit.ClassOfStatus(e.Status)
	}
	if len(e.Code) == 3 && strings.Trim(e.Code, "0123456789") == "" { // an HTTP status inside a stream
		status := int(e.Code[0]-'0')*100 + int(e.Code[1]-'0')*10 + int(e.Code[2]-'0')
		return wirekit.ClassOfStatus(status)
	}
	switch e.Type {
	case "invalid_request_error":
		return dragoman.ErrorBadRequest
	default:
		return dragoman.ErrorUnknown
	}
}

// EncodeError implements [dialect.Codec].
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	status := e.Status
	if status < 400 || status > 599 {
		status = wirekit.StatusOfClass(e.Class)
	}
	if e.Native != nil && e.Native.Format == dragoman.Format(name) && json.Valid(e.Native.JSON) {
		return status, e.Native.JSON
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.Key("error")
	writeErrorObject(&w, e)
	w.EndObject()
	return status, w.Buf
}

func writeErrorObject(w *jsonwire.Writer, e *dragoman.APIError) {
	typ, code := wordsOf(e)
	w.BeginObject()
	w.StringField("message", orElse(e.Message, string(e.Class)))
	w.StringField("type", typ)
	optional := func(key, v string) {
		if v == "" {
			w.NullField(key)
		} else {
			w.StringField(key, v)
		}
	}
	optional("param", e.Param)
	optional("code", code)
	w.EndObject()
}

// wordsOf are OpenAI's type and code for an error: its own where it has them,
// else those of its class. Words of another API never leak (quirk J3).
func wordsOf(e *dragoman.APIError) (typ, code string) {
	typ, code = wordsOfClass(e.Class)
	if e.Native != nil && e.Native.Format == dragoman.Format(name) {
		return orElse(e.Type, typ), e.Code
	}
	return typ, code
}

func wordsOfClass(class dragoman.ErrorClass) (typ, code string) {
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

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
