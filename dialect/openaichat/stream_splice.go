package openaichat

import (
	"bytes"
	"errors"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

var errSpliced = errors.New("a second response starts inside the first: two responses were spliced together")

// splice detects a gateway that fails over in the middle of a response (quirk C37). A new chunk
// id alone proves nothing, because some servers give every chunk another id. A repeated role
// alone proves nothing either. Both together are a splice, if the stream had neither before.
type splice struct {
	id      string // id of the last chunk
	varies  bool   // chunks of one response had different ids
	began   bool   // a choice had content before the current chunk
	begins  bool   // a choice had content, including the current chunk
	restart bool   // a choice starts again in the current chunk
}

// enter records the id of the current chunk, after all of it was decoded.
func (s *splice) enter(id string) error {
	restart, began := s.restart, s.began
	s.restart, s.began = false, s.begins
	if id == "" {
		return nil
	}
	changed := s.id != "" && s.id != id
	s.id = id
	if changed && restart && !s.varies {
		return errSpliced
	}
	s.varies = s.varies || changed && began
	return nil
}

// opening tracks where the response of a choice starts, according to its deltas.
type opening struct {
	roleless bool // a delta had no role: the server does not repeat it
	began    bool // a delta had content
	restart  bool // the current delta has a role, although the choice has started
	nonEmpty bool // the current delta has content
}

// delta records one delta of the choice.
func (o *opening) delta(role, nonEmpty bool) {
	o.restart, o.nonEmpty = role && o.roleless && o.began, nonEmpty
	o.roleless = o.roleless || !role
	o.began = o.began || nonEmpty
}

// opens records an element of choices. A last chunk that only has a finish reason may have its
// own id and role, as Perplexity sends it.
func (c *choice) opens(finishes bool) {
	s := &c.d.splice
	s.begins = s.begins || c.began
	s.restart = s.restart || c.restart && (c.nonEmpty || !finishes)
	c.restart = false
}

// isContentField reports whether a field of a delta is part of the response content.
func isContentField(key []byte) bool {
	switch string(key) {
	case "content", "tool_calls", "refusal", "function_call", "reasoning_content", "reasoning", "reasoning_text", "reasoning_details":
		return true
	default:
		return false
	}
}

// nonEmptyValue reports whether the value at the position of r is not null or empty.
func nonEmptyValue(r *jsonwire.Reader) bool {
	switch r.Kind() {
	case 'n', 0:
		return false
	case '"':
		return !bytes.HasPrefix(r.Rest(), []byte(`""`))
	case '[':
		return !bytes.HasPrefix(r.Rest(), []byte(`[]`))
	default:
		return true
	}
}

// zeroFunctionCall reports whether the next value of a document is a function_call whose fields
// are all empty. Snowflake Cortex sends one in every message; it is not a call.
func zeroFunctionCall(ahead []byte) bool {
	r := jsonwire.NewReader(ahead)
	if r.Kind() != '{' {
		return false
	}
	zero := true
	for key := range r.Object() {
		known := string(key) == "name" || string(key) == "arguments"
		zero = zero && known && !nonEmptyValue(r)
		r.Skip()
	}
	return zero && r.Err() == nil
}
