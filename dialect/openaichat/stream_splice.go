package openaichat

import (
	"bytes"
	"errors"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

var errSpliced = errors.New("a second answer starts inside the first: two answers were spliced together")

// splice watches for a gateway that fails over in the middle of an answer
// (quirk C37). The id of a chunk alone tells nothing, since some servers give
// every chunk another, and neither does a role, since others repeat it. Both
// together tell it where so far neither was so.
type splice struct {
	id      string // of the last chunk
	varies  bool   // chunks of one answer had different ids
	began   bool   // a choice said something before the chunk at hand
	begins  bool   // or in it
	restart bool   // in the chunk at hand a choice begins once more
}

// enter takes the id of the chunk at hand, once all of it was read.
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

// opening is what the deltas of a choice say of where an answer begins.
type opening struct {
	roleless bool // a delta had no role: the server does not repeat it
	began    bool // a delta said something
	restart  bool // the delta at hand has a role though the choice began
	says     bool // the delta at hand says something
}

// delta takes what one delta of the choice has.
func (o *opening) delta(role, says bool) {
	o.restart, o.says = role && o.roleless && o.began, says
	o.roleless = o.roleless || !role
	o.began = o.began || says
}

// opens takes an element of choices. A last chunk that only finishes may have an
// id and a role of its own: Perplexity's has.
func (c *choice) opens(finishes bool) {
	s := &c.d.splice
	s.begins = s.begins || c.began
	s.restart = s.restart || c.restart && (c.says || !finishes)
	c.restart = false
}

// tells reports whether a member of a delta is some of the answer.
func tells(key []byte) bool {
	switch string(key) {
	case "content", "tool_calls", "refusal", "function_call", "reasoning_content", "reasoning", "reasoning_text", "reasoning_details":
		return true
	default:
		return false
	}
}

// saysMore reports whether the value that r is at is more than nothing.
func saysMore(r *jsonwire.Reader) bool {
	switch r.Kind() {
	case 'n', 0:
		return false
	case '"':
		return !bytes.HasPrefix(r.Ahead(), []byte(`""`))
	case '[':
		return !bytes.HasPrefix(r.Ahead(), []byte(`[]`))
	default:
		return true
	}
}

// zeroFunctionCall reports whether the next value of a document is a function_call
// whose fields are all empty. Snowflake Cortex writes one in every message; it is
// no call.
func zeroFunctionCall(ahead []byte) bool {
	r := jsonwire.NewReader(ahead)
	if r.Kind() != '{' {
		return false
	}
	zero := true
	for key := range r.Object() {
		known := string(key) == "name" || string(key) == "arguments"
		zero = zero && known && !saysMore(r)
		r.Skip()
	}
	return zero && r.Err() == nil
}
