package emitcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/internal/specs"
)

// Document judges response objects by the schema of Open Responses, the
// vendor-neutral profile of the Responses API.
type Document struct{ response *jsonschema.Schema }

// OpenResponses compiles the document. Where it is absent, the log of the test says
// so, and what is returned takes everything.
func OpenResponses(t testing.TB) *Document {
	t.Helper()
	d, err := LoadOpenResponses()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Logf("responses are not held against the Open Responses document: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return d
}

// LoadOpenResponses compiles the document. The error wraps [io/fs.ErrNotExist] where it
// is absent; what is returned beside an error takes everything.
func LoadOpenResponses() (*Document, error) {
	var library specs.Library
	s, err := library.Schema("openresponses.openapi.json", "ResponseResource")
	return &Document{response: s}, err
}

// Absent says that the document is not there and nothing is judged.
func (d *Document) Absent() bool { return d.response == nil }

// Whole judges a response object.
func (d *Document) Whole(body []byte) error {
	if d.response == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	forgive(doc)
	return d.response.Validate(doc)
}

// Stream judges the response object that ends a stream.
func (d *Document) Stream(body []byte) error {
	var last []byte
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok {
			last = append([]byte{'{'}, data...)
		}
	}
	return d.end(last)
}

// end judges the response object in the event that ends a stream.
func (d *Document) end(event []byte) error {
	var e struct {
		Type     string
		Response json.RawMessage
	}
	if err := json.Unmarshal(event, &e); err != nil || e.Response == nil {
		return fmt.Errorf("no response ends the stream: %w", err)
	}
	if err := d.Whole(e.Response); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

// forgive takes out of a response object in what the document differs from the API
// that it describes, each with its reason.
func forgive(doc any) {
	r, _ := doc.(map[string]any)
	for _, k := range []string{"temperature", "top_p"} {
		if v, told := r[k]; told && v == nil {
			r[k] = json.Number("1") // OpenAI's own document has null, for models that have no such setting
		}
	}
	if _, told := r["service_tier"]; !told {
		r["service_tier"] = "default" // optional in OpenAI's; nobody knows the tier of another vendor's answer
	}
	if _, list := r["instructions"].([]any); list {
		r["instructions"] = nil // a text in the document, also a list of items in the API
	}
	if text, _ := r["text"].(map[string]any); text != nil {
		if format, _ := text["format"].(map[string]any); format["schema"] != nil {
			format["schema"] = nil // the document has no schema but null
		}
	}
	if tools, ok := r["tools"].([]any); ok { // the document has functions only
		r["tools"] = slices.DeleteFunc(tools, func(tool any) bool {
			m, _ := tool.(map[string]any)
			return m["type"] != "function"
		})
	}
	output, _ := r["output"].([]any)
	known := output[:0:0]
	for _, item := range output {
		m, _ := item.(map[string]any)
		switch m["type"] {
		case "message", "function_call", "function_call_output", "reasoning", "compaction":
			known = append(known, item)
		default:
			// The document has five kinds of items and none of custom tools or of
			// hosted ones (wire/openai.md 4.3).
		}
	}
	if output != nil {
		r["output"] = known
	}
	for _, item := range known {
		for _, p := range parts(item, "content") {
			if p["type"] == "output_text" {
				// It has one kind of annotation; the API has four (5).
				p["annotations"] = []any{}
			}
		}
	}
}

func parts(item any, key string) (out []map[string]any) {
	m, _ := item.(map[string]any)
	list, _ := m[key].([]any)
	for _, p := range list {
		if part, ok := p.(map[string]any); ok {
			out = append(out, part)
		}
	}
	return out
}
