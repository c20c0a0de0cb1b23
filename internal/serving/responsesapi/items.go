// Package responsesapi helps servers of the OpenAI Responses API with the parts beyond the
// codec: reading input items and references, the form in which items are stored and
// listed, the fields of the request that a response repeats, conversations, compaction,
// and the errors for unknown ids. The gateway and the simulator share it. It stores
// nothing itself.
package responsesapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Item is an element of the input of a Responses request.
type Item struct {
	Raw      []byte
	Type, ID string
	// Reference is set for a reference to a stored item: an item_reference, or an object
	// with only an id.
	Reference bool
	// Lookup is set for reasoning without content and for an image without data. OpenAI
	// looks them up by their ids, as if they were references.
	Lookup bool
}

// ReadInput reads the elements of an input: a list of items, a string or null. It refuses
// any other value, because it could contain references that are not checked.
func ReadInput(input []byte) (items []Item, err error) {
	if len(input) == 0 {
		return nil, nil
	}
	r := jsonwire.NewReader(input)
	switch r.Kind() {
	case '"':
		return []Item{{Raw: Message(dragoman.RoleUser, r.String()), Type: "message"}}, nil
	case '[':
	case 'n':
		return nil, nil
	default:
		return nil, fmt.Errorf("input: want a string or a list of items, got %s", kindName(byte(r.Kind())))
	}
	for i := range r.Array() {
		if kind := r.Kind(); kind != '{' && r.Err() == nil {
			return nil, fmt.Errorf("input[%d]: want an object, got %s", i, kindName(byte(kind)))
		}
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		item, err := ReadItem(raw)
		if err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		if item.Reference && item.ID == "" {
			return nil, fmt.Errorf("input[%d]: an item_reference needs an id", i)
		}
		items = append(items, item)
	}
	return items, r.Err()
}

// kindName returns the name of a JSON type for the kind that a reader reports.
func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// identifying lists the fields that distinguish an item from a reference.
var identifying = []string{"type", "id", "role", "content", "encrypted_content", "result"}

// ReadItem reads the fields that identify an item. It refuses duplicates of these
// fields, also in other case, because another server could read the one that was not
// checked.
func ReadItem(raw []byte) (item Item, err error) {
	item.Raw = raw
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return item, nil
	}
	var role, content, result bool
	seen := make([]string, 0, len(identifying))
	for key := range r.Object() {
		name := string(key)
		if i := slices.IndexFunc(identifying, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
			if name != identifying[i] || slices.Contains(seen, name) {
				return item, fmt.Errorf("duplicate field %.80q", name)
			}
			seen = append(seen, name)
		}
		switch {
		case name == "type" && r.Kind() == '"':
			item.Type = r.String()
		case name == "id" && r.Kind() == '"':
			item.ID = r.String()
		case name == "role":
			role = r.Kind() != 'n'
			r.Skip()
		case name == "content" || name == "encrypted_content":
			content = hasValue(r.Raw()) || content
		case name == "result":
			result = hasValue(r.Raw())
		default:
			r.Skip()
		}
	}
	item.Reference = item.Type == "item_reference" || item.Type == "" && !role && item.ID != ""
	item.Lookup = item.ID != "" && (item.Type == "reasoning" && !content || item.Type == "image_generation_call" && !result)
	return item, r.Err()
}

// hasValue reports whether a value is neither null nor empty.
func hasValue(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case 'n':
		return false
	case '"':
		return r.String() != ""
	case '[':
		for range r.Array() {
			return true
		}
		return false
	default:
		return true
	}
}

// Message returns a text as an input item.
func Message(role dragoman.Role, text string) []byte {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "message")
	w.StringField("role", string(role))
	w.StringField("content", text)
	w.EndObject()
	return w.Buf
}

// ConversationID returns the id in the field "conversation" of a request: a string, or
// an object with an id.
func ConversationID(raw []byte) (id string, err error) {
	if json.Unmarshal(raw, &id) == nil && id != "" {
		return id, nil
	}
	item, err := ReadItem(raw)
	if err != nil || item.ID == "" {
		return "", errors.Join(errors.New("conversation: neither an id nor an object with an id"), err)
	}
	return item.ID, nil
}

// ItemsOf returns the elements of a list within an object.
func ItemsOf(object []byte, name string) []json.RawMessage {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(object, &fields) != nil || json.Unmarshal(fields[name], &items) != nil {
		return nil
	}
	return items
}

// IDOf returns the id of an item, or "" if the item has no id.
func IDOf(item []byte) string {
	r := jsonwire.NewReader(item)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) != "id" {
			r.Skip()
			continue
		}
		if r.Kind() == '"' {
			return r.String()
		}
		return ""
	}
	return ""
}

// isObject reports whether a JSON value is an object.
func isObject(raw []byte) bool { return jsonwire.NewReader(raw).Kind() == '{' }

// idPrefixes are the prefixes of OpenAI item ids, by type.
var idPrefixes = map[string]string{
	"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "custom_tool_call": "ctc_", "custom_tool_call_output": "ctco_",
	"reasoning": "rs_", "compaction": "cmp_", "tool_search_call": "tsc_", "tool_search_output": "tso_", "additional_tools": "at_",
}

// Identified returns an input item in the form in which servers store and list it, with
// its type and an id. The text of a message becomes a list of parts, as in OpenAI's
// lists. An item without an id gets one that is derived from the seed and the index of
// the item.
func Identified(item []byte, seed string, at int) json.RawMessage {
	typ := jsonwire.TypeOf(item)
	if typ == "" {
		typ = "message"
		item = jsonwire.With(item, "type", []byte(`"message"`))
	}
	if typ == "message" {
		item = listedMessage(item)
	}
	if IDOf(item) != "" {
		return item
	}
	prefix := idPrefixes[typ]
	if prefix == "" {
		prefix = "item_"
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", seed, at))
	return jsonwire.With(item, "id", fmt.Appendf(nil, `"%s%s"`, prefix, hex.EncodeToString(sum[:20])))
}

// listedMessage returns a message with its content as a list, and a status.
func listedMessage(item []byte) []byte {
	var head struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(item, &head) != nil {
		return item
	}
	if len(head.Content) > 0 && head.Content[0] == '"' {
		var w jsonwire.Writer
		w.BeginArray()
		w.BeginObject()
		if head.Role == string(dragoman.RoleAssistant) {
			w.StringField("type", "output_text")
			w.RawField("text", head.Content)
			w.RawField("annotations", []byte("[]"))
		} else {
			w.StringField("type", "input_text")
			w.RawField("text", head.Content)
		}
		w.EndObject()
		w.EndArray()
		item = jsonwire.With(item, "content", w.Buf)
	}
	return jsonwire.Fill(item, jsonwire.Field{Name: "status", Value: `"completed"`})
}
