package bedrock

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. The error type is in the header
// x-amzn-errortype or in the body; some errors only have a status.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-amzn-requestid", formatError, readError)
	if typ := errorType(header.Get("x-amzn-errortype")); typ != "" {
		e.Type = typ
	}
	e.Class = classOf(e)
	return e
}

// readError reads {"__type": …, "message": …} in the spellings that AWS
// services use. It ignores anything but an object.
func readError(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		switch k := string(key); {
		case k == "__type" || k == "code" && e.Type == "":
			e.Type = errorType(wirekit.Text(r, ""))
		case strings.EqualFold(k, "message"):
			if s := wirekit.Text(r, ""); s != "" {
				e.Message = s
			}
		case k == "originalStatusCode":
			e.Code = wirekit.Text(r, "")
		case k == "resourceName":
			e.Param = wirekit.Text(r, "")
		case k == "Output" && r.Kind() == '{': // written by the router in front of the service
			readError(r, e)
		default:
			r.Skip()
		}
	}
	if e.Message == "" {
		e.Message = e.Type // an error without a message still has a type
	}
}

// errorType returns the name of an exception without its namespace prefix and
// URL suffix.
func errorType(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if i := strings.LastIndexByte(s, '#'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSpace(s)
}

// classOf classifies an error. Streams write exception names with a lower-case
// first letter.
func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch strings.ToLower(e.Type) {
	case "validationexception":
		switch {
		case wirekit.IsContextLength(e):
			return dragoman.ErrorContextLength
		case unknownModel(e):
			return dragoman.ErrorNotFound
		}
		return dragoman.ErrorBadRequest
	case "accessdeniedexception":
		return dragoman.ErrorPermission
	case "unrecognizedclientexception", "invalidsignatureexception", "expiredtokenexception", "missingauthenticationtokenexception",
		"incompletesignatureexception", "invalidclienttokenid", "signaturedoesnotmatch", "notauthorizedexception":
		return dragoman.ErrorAuth
	case "resourcenotfoundexception", "unknownoperationexception":
		return dragoman.ErrorNotFound
	case "conflictexception":
		return dragoman.ErrorConflict
	case "servicequotaexceededexception":
		return dragoman.ErrorQuota
	case "throttlingexception", "toomanyrequestsexception":
		return dragoman.ErrorRateLimit
	case "modelnotreadyexception", "serviceunavailableexception":
		return dragoman.ErrorOverloaded
	case "modeltimeoutexception", "requesttimeoutexception":
		return dragoman.ErrorTimeout
	case "modelerrorexception", "modelstreamerrorexception":
		if wirekit.IsContextLength(e) {
			return dragoman.ErrorContextLength
		}
		return dragoman.ErrorServer
	case "internalserverexception", "internalfailure":
		return dragoman.ErrorServer
	}
	switch {
	case e.Status == http.StatusFailedDependency:
		return dragoman.ErrorServer // an error of the model, not of the caller
	case e.Status == http.StatusBadRequest && wirekit.IsContextLength(e):
		return dragoman.ErrorContextLength
	case e.Status == http.StatusBadRequest && unknownModel(e):
		return dragoman.ErrorNotFound
	case e.Status != 0:
		return wirekit.ClassOfStatus(e.Status)
	default:
		return dragoman.ErrorUnknown
	}
}

// unknownModel reports whether an error says that the region has no such model.
func unknownModel(e *dragoman.APIError) bool {
	return wirekit.MessageHas(e, "model identifier is invalid")
}

// EncodeError implements [dialect.Codec]. An unchanged error of this dialect
// keeps its body, if that is a JSON object, and its status, if that is an error
// status. AWS clients read the type from the header x-amzn-errortype or from
// __type in the body; EncodeError writes __type. A nil error is written as a
// server error.
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	return blockwire.ErrorEncoder{Own: formatError, Words: errorTypeOf, Native: nativeError, Write: func(w *jsonwire.Writer, e *dragoman.APIError, typ string) wirekit.WrittenError {
		w.BeginObject()
		w.StringField("__type", typ)
		w.StringField("message", cmp.Or(e.Message, string(e.Class)))
		w.EndObject()
		return wirekit.WrittenError{Type: typ}
	}}.Encode(e)
}

// nativeError returns the original body of an error of this dialect. It returns
// nil if the error is of another dialect, was changed, or could be mistaken for
// a response.
func nativeError(e *dragoman.APIError) []byte {
	again := func(status int, header http.Header, body []byte) *dragoman.APIError {
		decoded := Codec{}.DecodeError(status, header, body)
		if decoded.Type != "" {
			return decoded
		}
		// The type was in the header.
		return Codec{}.DecodeError(status, http.Header{"X-Amzn-Errortype": {e.Type}}, body)
	}
	// An error may be nested in an "Output" object.
	raw := wirekit.OwnError{Format: formatError, Decode: again}.JSON(e)
	if raw == nil || holdsCall(jsonwire.NewReader(raw)) {
		return nil
	}
	return raw
}

// holdsCall reads a value and reports whether it contains a call: a toolUse
// field at any depth, in any letter case.
func holdsCall(r *jsonwire.Reader) (holds bool) {
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			holds = bytes.EqualFold(key, []byte(keyCall)) || holds
			holds = holdsCall(r) || holds
		}
	case '[':
		for range r.Array() {
			holds = holdsCall(r) || holds
		}
	default:
		r.Skip()
	}
	return holds
}

// errorTypeOf returns the exception type and status for an error of this dialect.
// Types of other APIs are never written (quirk J3).
func errorTypeOf(e *dragoman.APIError) (typ string, status int) {
	switch e.Class {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorPolicy, dragoman.ErrorTooLarge:
		return "ValidationException", 400
	case dragoman.ErrorConflict:
		return "ConflictException", 400
	case dragoman.ErrorQuota:
		return "ServiceQuotaExceededException", 400
	case dragoman.ErrorAuth:
		return "UnrecognizedClientException", 403
	case dragoman.ErrorPermission:
		return "AccessDeniedException", 403
	case dragoman.ErrorNotFound:
		return "ResourceNotFoundException", 404
	case dragoman.ErrorTimeout:
		return "ModelTimeoutException", 408
	case dragoman.ErrorRateLimit:
		return "ThrottlingException", 429
	case dragoman.ErrorOverloaded:
		return "ServiceUnavailableException", 503
	default:
		return "InternalServerException", 500
	}
}

// streamErrorType returns the exception type for an error in a stream. The API has
// five.
func streamErrorType(e *dragoman.APIError) string {
	for _, typ := range []string{
		"validationException", "throttlingException", "serviceUnavailableException", "internalServerException", "modelStreamErrorException",
	} {
		if strings.EqualFold(typ, e.Type) && classOf(&dragoman.APIError{Type: typ, Message: e.Message}) == e.Class {
			return typ
		}
	}
	switch e.Class {
	case dragoman.ErrorRateLimit, dragoman.ErrorQuota:
		return "throttlingException"
	case dragoman.ErrorOverloaded, dragoman.ErrorTimeout:
		return "serviceUnavailableException"
	case dragoman.ErrorServer, dragoman.ErrorUnknown, "":
		return "internalServerException"
	default:
		return "validationException"
	}
}

// ForeignReasoning reports whether the server refused reasoning in earlier turns that it
// did not make, such as a signature of another model or account (quirk D23). The client can
// retry the request without that reasoning.
func (Codec) ForeignReasoning(e *dragoman.APIError) bool {
	return blockwire.RefusedThinking(e)
}
