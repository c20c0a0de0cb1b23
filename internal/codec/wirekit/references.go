package wirekit

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

// A request may refer to conversation that one server stored. No other target can resolve
// the reference, and without it the model would miss part of the conversation. Encoders
// refuse such a request instead of reporting a loss (decision 74).

// itemReference is the type of an opaque part that refers to a stored item.
const itemReference = "item_reference"

// storedBy are the request fields, by dialect, that refer to stored conversation.
var storedBy = map[dragoman.Dialect][]string{
	dialectname.OpenAIResponses: {"/conversation", "/prompt"},
	dialectname.Anthropic:       {"/thread"},
	dialectname.Gemini:          {"/cachedContent", "/cached_content"},
}

// CheckReferences refuses a request that refers to conversation which the target has not
// stored. The error wraps [dragoman.ErrUnsupported] and names the reference.
func CheckReferences(req *dragoman.Request, limits targets.Limits) error {
	target := limits.Dialect
	if req.PreviousResponseID != "" && !slices.Contains(limits.StoredBy, "previous_response_id") {
		return unresolved(target, "/previous_response_id", "response", req.PreviousResponseID, "send the whole conversation")
	}
	if x := req.Extra; x != nil && x.Dialect != target {
		for _, path := range storedBy[x.Dialect] {
			for _, f := range x.Fields {
				if id := referenceID(f.Value); f.Path == path && id != "" {
					return unresolved(target, path, path[1:], id, "send the content itself")
				}
			}
		}
	}
	for i := range req.Messages {
		for j, p := range req.Messages[i].Parts {
			o, ok := p.(*dragoman.Opaque)
			if ok && o.Type == itemReference && o.Dialect != target {
				return unresolved(target, fmt.Sprintf("/messages/%d/parts/%d", i, j), "item", referenceID(o.JSON), "send the item itself")
			}
		}
	}
	return nil
}

// UnresolvedItem is the error for an item reference that the target has not stored.
func UnresolvedItem(target dragoman.Dialect, path string, p *dragoman.Opaque) error {
	return unresolved(target, path, "item", referenceID(p.JSON), "send the item itself")
}

func unresolved(target dragoman.Dialect, path, kind, id, advice string) error {
	return fmt.Errorf("%s: %s %.80q is stored by another server and cannot be resolved for %s: %s: %w", path, kind, id, target, advice, dragoman.ErrUnsupported)
}

// referenceID returns the id in a reference: a string, or the id of an object. It
// returns "" if the value refers to nothing.
func referenceID(raw []byte) (id string) {
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	var ref struct {
		ID       string `json:"id"`
		Previous string `json:"previous_message_id"`
	}
	if json.Unmarshal(raw, &ref) != nil {
		return ""
	}
	if ref.ID == "" {
		return ref.Previous
	}
	return ref.ID
}
