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
	v := vendorOf(r.Dialect).errorBody(r)
	if r.loc != nil {
		v = map[string]any{"detail": []any{map[string]any{"type": "extra_forbidden", "loc": r.loc, "msg": r.Message, "input": nil}}}
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return body
}

// write sends the refusal. An error of an array stream is in an array, too.
func (r *Refusal) write(w http.ResponseWriter, array bool) {
	body := r.Body()
	if array {
		body = append(append([]byte{'['}, body...), ']')
	}
	w.Header().Set("Content-Type", "application/json")
	if name, value := vendorOf(r.Dialect).errorHeader(); name != "" {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(body)
}
