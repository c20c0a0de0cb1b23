package openairesponses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. It accepts every form that servers of this dialect are
// known to send: an error object, a bare string with a code, fields without an envelope, or only
// "detail".
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-request-id", dragoman.Format(name), readErrorBody)
	settleError(e)
	return e
}

// decodeErrorObject reads the error of a failed response or of an error event.
func decodeErrorObject(raw []byte) *dragoman.APIError {
	e := &dragoman.APIError{Native: &dragoman.Native{Format: dragoman.Format(name), JSON: raw}}
	readErrorObject(jsonwire.NewReader(raw), e)
	settleError(e)
	return e
}

// decodeErrorEvent decodes an error event in either form: fields next to the type, or nested
// under "error".
func decodeErrorEvent(raw []byte) *dragoman.APIError {
	e := &dragoman.APIError{Native: &dragoman.Native{Format: dragoman.Format(name), JSON: raw}}
	readErrorEnvelope(jsonwire.NewReader(raw), e)
	if e.Type == "error" { // the type of the event, not of the error
		e.Type = ""
	}
	settleError(e)
	return e
}

func settleError(e *dragoman.APIError) {
	e.Class = classOf(e)
	if e.RetryAfter == 0 && e.Class == dragoman.ErrorRateLimit {
		e.RetryAfter = retryDelay(e.Message)
	}
}

// readErrorBody reads a single JSON object. Anything else is not an error of this dialect.
func readErrorBody(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() == '{' {
		readErrorEnvelope(r, e)
	}
	if r.End() != nil {
		e.Message = ""
	}
}

func readErrorEnvelope(r *jsonwire.Reader, e *dragoman.APIError) {
	nested := false
	for key := range r.Object() {
		switch {
		case string(key) == "error":
			nested = r.Kind() == '{'
			readErrorObject(r, e)
		case nested:
			r.Skip()
		default:
			readErrorField(r, string(key), e)
		}
	}
}

// readErrorObject reads the value of an "error" field: an object or a string.
func readErrorObject(r *jsonwire.Reader, e *dragoman.APIError) {
	switch r.Kind() {
	case '"':
		e.Message = r.String()
	case '{':
		e.Type = ""
		for key := range r.Object() {
			readErrorField(r, string(key), e)
		}
	default:
		r.Skip()
	}
}

func readErrorField(r *jsonwire.Reader, key string, e *dragoman.APIError) {
	switch key {
	case "message":
		e.Message = wirekit.Text(r, e.Message)
	case "detail":
		if s := wirekit.Text(r, ""); e.Message == "" {
			e.Message = s
		}
	case "type":
		e.Type = wirekit.Text(r, e.Type)
	case "code":
		e.Code = wirekit.Text(r, e.Code)
	case "param":
		e.Param = wirekit.Text(r, e.Param)
	default:
		r.Skip()
	}
}

// retryDelay finds the wait time in the message of a rate limit ("try again in 2.5s"). In a stream it
// is available nowhere else.
func retryDelay(message string) time.Duration {
	_, rest, ok := strings.Cut(message, "try again in ")
	if !ok {
		return 0
	}
	n := strings.IndexFunc(rest, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
	if n <= 0 {
		return 0
	}
	value, err := strconv.ParseFloat(rest[:n], 64)
	if err != nil || value > 1e6 {
		return 0
	}
	unit := time.Second
	switch rest = strings.TrimLeft(rest[n:], " "); {
	case strings.HasPrefix(rest, "ms"):
		unit = time.Millisecond
	case strings.HasPrefix(rest, "m"):
		unit = time.Minute
	}
	return time.Duration(value * float64(unit))
}

func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	for _, word := range []string{e.Code, e.Type} {
		switch word {
		case "context_length_exceeded", "exceed_context_size_error":
			return dragoman.ErrorContextLength
		case "insufficient_quota", "credit_balance_exhausted", "project_spend_limit_exceeded", "organization_spend_limit_exceeded":
			return dragoman.ErrorQuota
		case "rate_limit_exceeded", "too_many_requests":
			return dragoman.ErrorRateLimit
		case "invalid_api_key", "authentication_error":
			return dragoman.ErrorAuth
		case "model_not_found", "previous_response_not_found", "not_found":
			return dragoman.ErrorNotFound
		case "server_is_overloaded", "slow_down":
			return dragoman.ErrorOverloaded
		case "cyber_policy", "bio_policy", "misalignment_policy_violation", "content_policy_violation":
			return dragoman.ErrorPolicy
		case "invalid_prompt", "invalid_request":
			return dragoman.ErrorBadRequest
		case "vector_store_timeout":
			return dragoman.ErrorTimeout
		case "server_error", "model_error":
			if e.Status == 0 {
				return dragoman.ErrorServer
			}
		}
	}
	if class := wirekit.OpenAIWordsClass(e); class != "" {
		return class
	}
	if e.Status != 0 {
		return wirekit.ClassOfStatus(e.Status)
	}
	if status, err := strconv.Atoi(e.Code); err == nil && status >= 400 && status < 600 { // the code of a router in a stream
		return wirekit.ClassOfStatus(status)
	}
	switch {
	case e.Type == "invalid_request_error", strings.Contains(e.Code, "image"):
		return dragoman.ErrorBadRequest
	default:
		return dragoman.ErrorUnknown
	}
}

// EncodeError implements [dialect.Codec]. A native body of this dialect is written unchanged if
// it still matches the error.
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	status := wirekit.OpenAIStatuses(dragoman.Format(name)).Of(e)
	if raw := nativeBody(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	typ, code := errorTypeAndCode(e)
	var w jsonwire.Writer
	w.BeginObject()
	w.Key("error")
	wirekit.WriteOpenAIError(&w, e, typ, code)
	w.EndObject()
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, wirekit.WrittenError{Status: status, Type: typ, Code: code, Param: e.Param}, "")
	return status, w.Buf, rep
}

// nativeBody returns the original body of an error from this dialect. It returns nil for an error
// of another dialect, an error that was changed, and an error that was not a response body but an
// event, a field of a response, or part of a whole response.
func nativeBody(e *dragoman.APIError) []byte {
	own := wirekit.OwnError{Format: dragoman.Format(name), Decode: Codec{}.DecodeError, ResponseFields: []string{"type", "output", "response"}}
	raw := own.JSON(e)
	if r := jsonwire.NewReader(raw); raw == nil || r.Kind() != '{' || !hasEnvelope(r) {
		return nil
	}
	return raw
}

// hasEnvelope reports whether the body has an error object in its error field.
func hasEnvelope(r *jsonwire.Reader) (has bool) {
	for key := range r.Object() {
		has = has || string(key) == "error" && r.Kind() == '{'
		r.Skip()
	}
	return has
}

func messageOf(e *dragoman.APIError) string { return cmp.Or(e.Message, string(e.Class)) }

func optional(w *jsonwire.Writer, key, v string) {
	w.StringFieldOrNull(key, v)
}

// errorTypeAndCode returns the OpenAI type and code of an error: the native ones if they match
// its class, otherwise those of its class. Types and codes of another API are never written
// (quirk J3). An error for a conversation that is too long always gets the OpenAI code, because
// clients check it to shorten the conversation; compatible servers often send only the message.
func errorTypeAndCode(e *dragoman.APIError) (typ, code string) {
	typ, code = wirekit.OpenAIErrorWords(e.Class)
	if ownError(e) && (!isNative(e.Native) || classOf(e) == e.Class) {
		if e.Class != dragoman.ErrorContextLength {
			code = e.Code
		}
		return cmp.Or(e.Type, typ), code
	}
	return typ, code
}

func ownError(e *dragoman.APIError) bool {
	return e.Native != nil && (e.Native.Format == dragoman.Format(name) || e.Native.Format == dragoman.Format(dialectname.OpenAIChat))
}

// failureCode returns the code of a failed response or an error event, which have no separate
// type.
func failureCode(e *dragoman.APIError) string {
	typ, code := errorTypeAndCode(e)
	if code != "" {
		return code
	}
	if typ == "invalid_request_error" {
		return "invalid_prompt"
	}
	return "server_error"
}

// writeFailure writes the error field of a failed response, which has fewer fields than an error
// body.
func (e *outputEncoder) writeFailure(w *jsonwire.Writer, err *dragoman.APIError) {
	if isNative(err.Native) && json.Valid(err.Native.JSON) {
		// The native error, if it still matches.
		same := decodeErrorObject(err.Native.JSON)
		if same.Message == err.Message && same.Code == err.Code && bytes.TrimSpace(err.Native.JSON)[0] == '{' {
			w.Raw(err.Native.JSON)
			return
		}
	}
	w.BeginObject()
	written := wirekit.WrittenError{Code: failureCode(err)}
	w.StringField("code", written.Code)
	w.StringField("message", messageOf(err))
	w.EndObject()
	if e.paramSent {
		written.Param = err.Param
	}
	wirekit.ReportError(e.rep, err, written, "/error")
}

// ForeignReasoning reports whether the server refused reasoning in earlier turns that it did not
// produce, such as encrypted content of another account or region (quirk D30), or refused any
// reasoning because the model does not reason. The client can retry the request without that
// reasoning.
func (Codec) ForeignReasoning(e *dragoman.APIError) bool {
	return e.Code == "invalid_encrypted_content" || wirekit.MessageHas(e, "encrypted content", "could not be") ||
		wirekit.MessageHas(e, "reasoning input items")
}
