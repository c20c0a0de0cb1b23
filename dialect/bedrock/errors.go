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

// DecodeError implements [dialect.Codec]. The type of an error is told in a
// header, x-amzn-errortype, or in the body, or by nothing but the status.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorAnswer{Status: status, Header: header, Body: body}.Decode("x-amzn-requestid", formatError, readError)
	if typ := errorType(header.Get("x-amzn-errortype")); typ != "" {
		e.Type = typ
	}
	e.Class = classOf(e)
	return e
}

// readError reads {"__type": …, "message": …}, in the spellings that AWS's
// services have for it; anything but an object is none.
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
		case k == "Output" && r.Kind() == '{': // of the router in front of the service
			readError(r, e)
		default:
			r.Skip()
		}
	}
	if e.Message == "" {
		e.Message = e.Type // an error without words is still understood
	}
}

// errorType is the name of an exception without the namespace before it and the
// address behind it.
func errorType(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if i := strings.LastIndexByte(s, '#'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSpace(s)
}

// classOf classifies an error. Streams spell the names of exceptions with a
// small letter.
func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch strings.ToLower(e.Type) {
	case "validationexception":
		switch {
		case wirekit.SaysTooLong(e):
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
		if wirekit.SaysTooLong(e) {
			return dragoman.ErrorContextLength
		}
		return dragoman.ErrorServer
	case "internalserverexception", "internalfailure":
		return dragoman.ErrorServer
	}
	switch {
	case e.Status == http.StatusFailedDependency:
		return dragoman.ErrorServer // the model's, not the caller's
	case e.Status == http.StatusBadRequest && wirekit.SaysTooLong(e):
		return dragoman.ErrorContextLength
	case e.Status == http.StatusBadRequest && unknownModel(e):
		return dragoman.ErrorNotFound
	case e.Status != 0:
		return wirekit.ClassOfStatus(e.Status)
	default:
		return dragoman.ErrorUnknown
	}
}

// unknownModel reports whether an error says that there is no such model in the region.
func unknownModel(e *dragoman.APIError) bool {
	return wirekit.MessageHas(e, "model identifier is invalid")
}

// EncodeError implements [dialect.Codec]. An error of this dialect keeps its
// own bytes, if they are a JSON object and still say what it does, and its
// status, if it is one of an error. AWS's clients read the type from the header x-amzn-errortype or from
// __type in the body, where it stands here. No error at all is one of the
// server.
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	return blockwire.ErrorEncoder{Own: formatError, Words: wordsOf, Native: nativeError, Write: func(w *jsonwire.Writer, e *dragoman.APIError, typ string) wirekit.ErrorSaid {
		w.BeginObject()
		w.StringField("__type", typ)
		w.StringField("message", cmp.Or(e.Message, string(e.Class)))
		w.EndObject()
		return wirekit.ErrorSaid{Type: typ}
	}}.Encode(e)
}

// nativeError is the error as it came from this dialect; nil for one of another,
// one that was changed, and one that could be taken for an answer.
func nativeError(e *dragoman.APIError) []byte {
	again := func(status int, header http.Header, body []byte) *dragoman.APIError {
		came := Codec{}.DecodeError(status, header, body)
		if came.Type != "" {
			return came
		}
		// A header told the type.
		return Codec{}.DecodeError(status, http.Header{"X-Amzn-Errortype": {e.Type}}, body)
	}
	// Errors may stand in an "Output" of their own.
	raw := wirekit.OwnError{Format: formatError, Decode: again}.JSON(e)
	if raw == nil || holdsCall(jsonwire.NewReader(raw)) {
		return nil
	}
	return raw
}

// holdsCall reads a value and reports whether a member of it, at any depth and in
// letters of any case, is one that holds a call.
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

// wordsOf are the type and status this dialect has for an error. Words of
// another API never leak (quirk J3).
func wordsOf(e *dragoman.APIError) (typ string, status int) {
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

// streamWord is the exception that says an error inside a stream: there are
// five.
func streamWord(e *dragoman.APIError) string {
	for _, word := range []string{
		"validationException", "throttlingException", "serviceUnavailableException", "internalServerException", "modelStreamErrorException",
	} {
		if strings.EqualFold(word, e.Type) && classOf(&dragoman.APIError{Type: word, Message: e.Message}) == e.Class {
			return word
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
