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

	"github.com/dragoman-go/dragoman/internal/oracle/specs"
)

// Document checks response objects and events against the schema of Open Responses, the
// vendor-neutral profile of the Responses API. A nil Document or one that could not be loaded
// accepts everything.
type Document struct {
	response *jsonschema.Schema
	// compaction is the schema of the response of /responses/compact.
	compaction *jsonschema.Schema
	// events holds the schemas of stream events, by type.
	events map[string]*jsonschema.Schema
}

// eventSchemas names the schema of each event. It has no deltas, because [Stream] checks
// their whole structure, and no error event, which the document nests but the API and its
// clients do not.
var eventSchemas = map[string]string{
	"response.created":                      "ResponseCreatedStreamingEvent",
	"response.in_progress":                  "ResponseInProgressStreamingEvent",
	"response.completed":                    "ResponseCompletedStreamingEvent",
	"response.failed":                       "ResponseFailedStreamingEvent",
	"response.incomplete":                   "ResponseIncompleteStreamingEvent",
	"response.output_item.added":            "ResponseOutputItemAddedStreamingEvent",
	"response.output_item.done":             "ResponseOutputItemDoneStreamingEvent",
	"response.content_part.added":           "ResponseContentPartAddedStreamingEvent",
	"response.content_part.done":            "ResponseContentPartDoneStreamingEvent",
	"response.output_text.done":             "ResponseOutputTextDoneStreamingEvent",
	"response.refusal.done":                 "ResponseRefusalDoneStreamingEvent",
	"response.reasoning_summary_part.added": "ResponseReasoningSummaryPartAddedStreamingEvent",
	"response.reasoning_summary_part.done":  "ResponseReasoningSummaryPartDoneStreamingEvent",
	"response.reasoning_summary_text.done":  "ResponseReasoningSummaryDoneStreamingEvent",
	"response.function_call_arguments.done": "ResponseFunctionCallArgumentsDoneStreamingEvent",
	"response.output_text.annotation.added": "ResponseOutputTextAnnotationAddedStreamingEvent",
}

// OpenResponses compiles the document. If it is absent, it logs that to t and returns a
// document that accepts everything.
func OpenResponses(t testing.TB) *Document {
	t.Helper()
	d, err := LoadOpenResponses()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Logf("responses are not checked against the Open Responses document: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return d
}

// LoadOpenResponses compiles the document. The error wraps [io/fs.ErrNotExist] if it is
// absent; the document returned with an error accepts everything.
func LoadOpenResponses() (*Document, error) {
	var library specs.Library
	const file = "openresponses.openapi.json"
	d := &Document{events: make(map[string]*jsonschema.Schema, len(eventSchemas))}
	var err error
	if d.response, err = library.Schema(file, "ResponseResource"); err != nil {
		return d, err
	}
	if d.compaction, err = library.Schema(file, "CompactResource"); err != nil {
		return d, err
	}
	for typ, schema := range eventSchemas {
		if d.events[typ], err = library.Schema(file, schema); err != nil {
			return d, err
		}
	}
	return d, nil
}

// Absent reports whether the document is absent, so that nothing is checked.
func (d *Document) Absent() bool { return d.response == nil }

// Whole checks a response object.
func (d *Document) Whole(body []byte) error {
	if d.response == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if r, ok := doc.(map[string]any); ok && r["object"] == "response.compaction" {
		return d.compaction.Validate(doc)
	}
	removeKnownDifferences(doc)
	return d.response.Validate(doc)
}

// event checks one event of a stream.
func (d *Document) event(typ string, data []byte) error {
	s := d.events[typ]
	if s == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	e, _ := doc.(map[string]any)
	if r, ok := e["response"]; ok {
		removeKnownDifferences(r)
	}
	if item, ok := e["item"].(map[string]any); ok {
		if !knownItem(item) {
			return nil
		}
		forgiveItem(item)
	}
	if part, ok := e["part"].(map[string]any); ok {
		forgivePart(part)
	}
	if a, ok := e["annotation"].(map[string]any); ok && a["type"] != "url_citation" {
		return nil
	}
	if err := s.Validate(doc); err != nil {
		return fmt.Errorf("%s: %w", typ, err)
	}
	return nil
}

// Stream checks the response object at the end of a stream.
func (d *Document) Stream(body []byte) error {
	var last []byte
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok {
			last = append([]byte{'{'}, data...)
		}
	}
	return d.end(last)
}

// end checks the response object in the last event of a stream.
func (d *Document) end(event []byte) error {
	var e struct {
		Type     string
		Response json.RawMessage
	}
	if err := json.Unmarshal(event, &e); err != nil || e.Response == nil {
		return fmt.Errorf("the stream does not end with a response: %w", err)
	}
	if err := d.Whole(e.Response); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

// removeKnownDifferences removes fields of a response object in which the document differs from
// the API that it describes. Each line has the reason.
func removeKnownDifferences(doc any) {
	r, _ := doc.(map[string]any)
	if _, list := r["instructions"].([]any); list {
		r["instructions"] = nil // the document allows only text, the API also a list of items
	}
	if text, _ := r["text"].(map[string]any); text != nil {
		if format, _ := text["format"].(map[string]any); format["schema"] != nil {
			format["schema"] = nil // the document allows only null
		}
	}
	if tools, ok := r["tools"].([]any); ok { // the document knows only functions
		r["tools"] = slices.DeleteFunc(tools, func(tool any) bool {
			m, _ := tool.(map[string]any)
			return m["type"] != "function"
		})
	}
	output, _ := r["output"].([]any)
	known := output[:0:0]
	for _, item := range output {
		if m, _ := item.(map[string]any); knownItem(m) {
			forgiveItem(m)
			known = append(known, item)
		}
	}
	if output != nil {
		r["output"] = known
	}
}

// knownItem reports whether the document has an item type. It has five types, without custom
// and hosted tools.
func knownItem(item map[string]any) bool {
	switch item["type"] {
	case "message", "function_call", "function_call_output", "reasoning", "compaction":
		return true
	}
	return false
}

func forgiveItem(item map[string]any) {
	for _, p := range parts(item, "content") {
		forgivePart(p)
	}
}

// forgivePart removes annotations: the document has one kind, the API four.
func forgivePart(p map[string]any) {
	if p["type"] == "output_text" {
		p["annotations"] = []any{}
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
