package openaichat

import (
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. Compatible servers send the code as a number, the error
// as a bare string, or no envelope.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-request-id", dragoman.Format(name), readErrorBody)
	e.Class = classOf(e)
	return e
}

func readErrorBody(r *jsonwire.Reader, e *dragoman.APIError) {
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
}

func readErrorEnvelope(r *jsonwire.Reader, e *dragoman.APIError) {
	for key := range r.Object() {
		if string(key) == "error" {
			readErrorObject(r, e)
			continue
		}
		readErrorField(r, string(key), e)
	}
}

// errorEnvelope wraps an error object in the field that clients read.
func errorEnvelope(raw []byte) []byte {
	var w jsonwire.Writer
	w.BeginObject()
	w.RawField("error", raw)
	w.EndObject()
	return w.Buf
}

// readErrorObject reads the value of an "error" field: an object or a string.
func readErrorObject(r *jsonwire.Reader, e *dragoman.APIError) {
	switch r.Kind() {
	case '"':
		e.Message = r.String()
	case '{':
		for key := range r.Object() {
			readErrorField(r, string(key), e)
		}
	default:
		r.Skip()
	}
}

func readErrorField(r *jsonwire.Reader, key string, e *dragoman.APIError) {
	switch key {
	case "message", "detail":
		if s := wirekit.Text(r, ""); e.Message == "" {
			e.Message = s
		}
	case "type":
		e.Type = wirekit.Text(r, "")
	case "code":
		e.Code = wirekit.Text(r, "")
	case "param":
		e.Param = wirekit.Text(r, "")
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
	if class := wirekit.OpenAIWordsClass(e); class != "" {
		return class
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
		if e.Status >= 400 && e.Status < 500 {
			break // Ollama uses this type for every error
		}
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
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	status := wirekit.OpenAIStatuses(dragoman.Format(name)).Of(e)
	if raw := ownError(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.Key("error")
	var rep dragoman.Report
	written := writeErrorObject(&w, e)
	w.EndObject()
	written.Status = status
	wirekit.ReportError(&rep, e, written, "")
	return status, w.Buf, rep
}

func writeErrorObject(w *jsonwire.Writer, e *dragoman.APIError) wirekit.WrittenError {
	typ, code := errorTypeAndCode(e)
	wirekit.WriteOpenAIError(w, e, typ, code)
	return wirekit.WrittenError{Type: typ, Code: code, Param: e.Param}
}

// errorTypeAndCode returns the OpenAI type and code of an error: the native ones if they match
// its class, otherwise those of its class. Types and codes of another API are never written
// (quirk J3).
func errorTypeAndCode(e *dragoman.APIError) (typ, code string) {
	typ, code = wirekit.OpenAIErrorWords(e.Class)
	if e.Native != nil && e.Native.Format == dragoman.Format(name) && classOf(e) == e.Class {
		return orElse(e.Type, typ), e.Code
	}
	return typ, code
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// ownError returns an error that came from this dialect as its original bytes; nil for other
// errors.
func ownError(e *dragoman.APIError) []byte {
	own := wirekit.OwnError{Format: dragoman.Format(name), Decode: Codec{}.DecodeError, ResponseFields: []string{"choices"}}
	return own.JSON(e)
}

// enveloped reports whether raw is an object whose error field is an object.
func enveloped(raw []byte) (found bool) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Object() {
		found = found || string(key) == "error" && r.Kind() == '{'
		r.Skip()
	}
	return found && r.Err() == nil
}
