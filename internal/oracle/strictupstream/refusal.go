package strictupstream

import (
	"encoding/json"
	"fmt"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
)

// Refusal is a request that the vendor would not accept.
type Refusal struct {
	Dialect dragoman.Dialect
	Model   string
	Status  int
	// Code and Param are those of OpenAI errors; they may be empty.
	Code, Param string
	Message     string
	// loc is the place of an unknown field, which Mistral reports as a list.
	loc []any
}

func (r *Refusal) Error() string {
	if r.loc != nil {
		return fmt.Sprintf("%s, model %q: status %d: %s: %s", r.Dialect, r.Model, r.Status, dots(r.loc), r.Message)
	}
	return fmt.Sprintf("%s, model %q: status %d: %s", r.Dialect, r.Model, r.Status, r.Message)
}

// Body returns the error body as the vendor writes it.
func (r *Refusal) Body() []byte {
	var v any
	switch {
	case r.loc != nil:
		v = map[string]any{"detail": []any{map[string]any{"type": "extra_forbidden", "loc": r.loc, "msg": r.Message, "input": nil}}}
	case r.Dialect == dragoman.Anthropic:
		v = map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": r.Message}, "request_id": "req_strict"}
	case r.Dialect == dragoman.Gemini:
		v = map[string]any{"error": map[string]any{"code": r.Status, "message": r.Message, "status": "INVALID_ARGUMENT"}}
	case r.Dialect == dragoman.Ollama:
		v = map[string]any{"error": r.Message}
	case r.Dialect == cohereDialect:
		v = map[string]any{"id": "strict", "message": r.Message}
	case r.Dialect == dragoman.Bedrock:
		v = map[string]any{"__type": "ValidationException", "message": r.Message}
	default:
		v = map[string]any{"error": map[string]any{
			"message": r.Message, "type": "invalid_request_error", "param": orNull(r.Param), "code": orNull(r.Code),
		}}
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return body
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// write sends the refusal. An error of a Gemini array stream is in an array, too.
func (r *Refusal) write(w http.ResponseWriter, array bool) {
	body := r.Body()
	if array {
		body = append(append([]byte{'['}, body...), ']')
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Dialect == dragoman.Bedrock {
		w.Header().Set("X-Amzn-Errortype", "ValidationException")
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(body)
}
