package strictupstream

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"sync"
)

// state holds the values that a server issued. The zero value is ready to use.
type state struct {
	mu sync.Mutex
	// opaque are signatures, encrypted reasoning and redacted thinking.
	opaque map[string]bool
	// items are those of stored responses, by id.
	items     map[string]item
	responses map[string]bool
}

// item is an output item of a stored response.
type item struct {
	value map[string]any
	// reasoning is the id of the reasoning item directly before it; empty if there is none.
	reasoning string
}

// resolve checks what a request refers to, and returns the body with item references
// replaced by the items.
func (s *state) resolve(c call, body []byte) ([]byte, *Refusal) {
	req, err := object(body)
	if err != nil {
		return body, nil // Judge has reported it
	}
	j := &judge{dialect: c.dialect, model: c.model}
	s.mu.Lock()
	defer s.mu.Unlock()
	return vendorOf(c.dialect).resolve(s, j, req, body)
}

// references resolves the item references of a Responses request.
func (s *state) references(j *judge, req map[string]any, body []byte) ([]byte, *Refusal) {
	if id := str(req, "previous_response_id"); id != "" && !s.responses[id] {
		return body, j.bad("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
	}
	if conversation := req["conversation"]; conversation != nil {
		id, _ := conversation.(string)
		if o := obj(req, "conversation"); o != nil {
			id = str(o, "id")
		}
		return body, notFound(j, "Conversation with id '%s' not found.", id)
	}
	items := objects(req, "input")
	referred := false
	present := map[string]bool{}
	for i, it := range items {
		present[str(it, "id")] = true
		if isReference(it) {
			id := str(it, "id")
			stored, ok := s.items[id]
			if !ok {
				return body, notFound(j, "Item with id '%s' not found.", id)
			}
			items[i], referred = stored.value, true
			if stored.reasoning != "" && !present[stored.reasoning] && openAIModelOf(j.model) != nil {
				return body, j.bad("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, str(stored.value, "type"), stored.reasoning)
			}
		}
		if r := s.reasoningItem(j, items[i]); r != nil {
			return body, r
		}
	}
	if referred {
		body = withField(body, "input", items)
		if r := j.conversation(map[string]any{"input": anyOf(items)}, body); r != nil {
			return body, r
		}
	}
	return body, nil
}

func anyOf(items []map[string]any) (out []any) {
	for _, it := range items {
		out = append(out, it)
	}
	return out
}

// reasoningItem checks that a reasoning item is one of this server's.
func (s *state) reasoningItem(j *judge, it map[string]any) *Refusal {
	if str(it, "type") != "reasoning" || openAIModelOf(j.model) == nil {
		return nil
	}
	id, encrypted := str(it, "id"), str(it, "encrypted_content")
	if _, stored := s.items[id]; id != "" && encrypted == "" && !stored {
		return notFound(j, "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)
	}
	if encrypted != "" && !s.opaque[encrypted] {
		return j.bad("invalid_encrypted_content", "", "The encrypted content for item %s could not be verified.", id)
	}
	return nil
}

func notFound(j *judge, format string, args ...any) *Refusal {
	r := j.bad("", "input", format, args...)
	r.Status = http.StatusNotFound
	return r
}

var opaqueValue = regexp.MustCompile(`"(?:signature|thoughtSignature|encrypted_content|redactedContent|data)"\s*:\s*"([^"\\]+)"`)

// issue stores the opaque values of a piece of a response.
func (s *state) issue(piece []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opaque == nil {
		s.opaque = map[string]bool{}
	}
	for _, m := range opaqueValue.FindAllSubmatch(piece, -1) {
		s.opaque[string(m[1])] = true
	}
}

// store stores the items of a response object.
func (s *state) store(raw []byte) {
	var r struct {
		ID     string           `json:"id"`
		Output []map[string]any `json:"output"`
	}
	if json.Unmarshal(raw, &r) != nil || r.ID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items, s.responses = map[string]item{}, map[string]bool{}
	}
	s.responses[r.ID] = true
	before := ""
	for _, it := range r.Output {
		s.items[str(it, "id")] = item{value: it, reasoning: before}
		before = ""
		if str(it, "type") == "reasoning" {
			before = str(it, "id")
		}
	}
}

// isStored reports whether a Responses request wants its response stored, which is the
// default.
func isStored(body []byte) bool {
	req, err := object(body)
	return err == nil && req["store"] != false
}

// terminal are the events that carry a whole response.
var terminal = []string{"response.completed", "response.incomplete"}

// storeEvent stores the response of a terminal event of a stream.
func (s *state) storeEvent(data []byte) {
	var e struct {
		Type     string          `json:"type"`
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal(data, &e) == nil && slices.Contains(terminal, e.Type) {
		s.store(e.Response)
	}
}
