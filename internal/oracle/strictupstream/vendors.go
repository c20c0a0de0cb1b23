package strictupstream

import (
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
)

// vendor has the rules of the servers of one dialect.
type vendor interface {
	dialect() dragoman.Dialect
	// call reads the URL of a request, and reports whether it is one to a model.
	call(r *http.Request) (call, bool)
	// fields refuses unknown fields, and parameters that the model does not accept.
	fields(j *judge, req map[string]any) *Refusal
	// media refuses media that the model cannot read (quirk D14).
	media(j *judge, req map[string]any) *Refusal
	// conversation returns the body as the vendor reads it. later says that the conversation
	// is judged once its references are resolved.
	conversation(req map[string]any, body []byte) (read []byte, later bool)
	// accepts reports whether the vendor accepts what a rule forbids our encoders.
	accepts(rule string) bool
	// resolve checks what a request refers to, and returns the body with item references
	// replaced by the items. The state is locked.
	resolve(s *state, j *judge, req map[string]any, body []byte) ([]byte, *Refusal)
	// errorBody returns the JSON value of an error, and errorHeader a header of it.
	errorBody(r *Refusal) any
	errorHeader() (name, value string)
	// namesModel reports whether responses name the model.
	namesModel() bool
}

// vendors returns all of them.
func vendors() []vendor {
	return []vendor{chatVendor{}, responsesVendor{}, anthropicVendor{}, geminiVendor{}, ollamaVendor{}, converseVendor{}, cohereVendor{}}
}

// vendorOf returns the rules of a dialect. One without rules accepts everything.
func vendorOf(d dragoman.Dialect) vendor {
	for _, v := range vendors() {
		if v.dialect() == d {
			return v
		}
	}
	return defaultRules{}
}

// defaultRules is embedded in a vendor for the rules that most vendors share.
type defaultRules struct{}

func (defaultRules) dialect() dragoman.Dialect                                 { return "" }
func (defaultRules) call(*http.Request) (call, bool)                           { return call{}, false }
func (defaultRules) fields(*judge, map[string]any) *Refusal                    { return nil }
func (defaultRules) media(*judge, map[string]any) *Refusal                     { return nil }
func (defaultRules) conversation(_ map[string]any, body []byte) ([]byte, bool) { return body, false }
func (defaultRules) accepts(string) bool                                       { return false }
func (defaultRules) errorHeader() (name, value string)                         { return "", "" }
func (defaultRules) namesModel() bool                                          { return true }

func (defaultRules) resolve(_ *state, _ *judge, _ map[string]any, body []byte) ([]byte, *Refusal) {
	return body, nil
}

// errorBody is an error of OpenAI, which compatible servers write as well.
func (defaultRules) errorBody(r *Refusal) any {
	return map[string]any{"error": map[string]any{
		"message": r.Message, "type": "invalid_request_error", "param": orNull(r.Param), "code": orNull(r.Code),
	}}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// at reports whether a request is to a path.
func at(r *http.Request, path string) bool { return r.URL.Path == path }
