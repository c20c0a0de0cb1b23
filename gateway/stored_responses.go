package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// storedResponse is a response that the gateway stores, with its input.
type storedResponse struct {
	V int `json:"v"`
	// Until is when the response expires, unless it is used before.
	Until time.Time `json:"until"`
	// Parent is the stored response that it continues; empty for none.
	Parent string `json:"parent,omitempty"`
	// Input are the items of the request, each with an id, without those before them.
	Input []json.RawMessage `json:"input"`
	// Body is the response object that the client received.
	Body json.RawMessage `json:"body"`
	// Native reports that a Responses upstream made the items; it accepts them unchanged.
	Native bool `json:"native,omitempty"`
}

const storedVersion = 1

// size returns the number of stored bytes.
func (s *storedResponse) size() int {
	size := len(s.Body)
	for _, item := range s.Input {
		size += len(item)
	}
	return size
}

// maxInputChain bounds the number of earlier responses from which an input is gathered.
const maxInputChain = 1000

// itemNote names the response that an item belongs to.
type itemNote struct {
	Until    time.Time `json:"until"`
	Response string    `json:"response"`
}

// itemKey returns the key of the note of an item.
func itemKey(key, id string) string { return "item " + bodyKey(key, id) }

// saveResponse stores the response object that the client gets, and its items.
func (x *exchange) saveResponse(ctx context.Context, id, parent string, body []byte, native bool) error {
	until := x.opts.Now().Add(x.ttl)
	record := storedResponse{V: storedVersion, Until: until, Parent: parent, Body: body, Native: native}
	for i, item := range slices.Concat(x.conversationItems, x.input) {
		record.Input = append(record.Input, responsesapi.Identified(item.original(), id, i))
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := x.opts.Notes.Put(ctx, bodyKey(x.entry.key, id), raw, until); err != nil {
		return err
	}
	return x.storeItemNotes(ctx, x.entry.key, id, responsesapi.ItemsOf(body, "output"))
}

// storeItemNotes stores which response the items belong to, so that clients can refer to them.
func (g *Gateway) storeItemNotes(ctx context.Context, key, response string, items []json.RawMessage) error {
	until := g.opts.Now().Add(g.ttl)
	note, err := json.Marshal(itemNote{Until: until, Response: response})
	if err != nil {
		return err
	}
	for _, item := range items {
		if id := responsesapi.IDOf(item); id != "" {
			if err := g.opts.Notes.Put(ctx, itemKey(key, id), note, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// storedResponse loads a stored response, or returns nil if there is none. Use extends
// its lifetime.
func (g *Gateway) storedResponse(ctx context.Context, key, id string) (*storedResponse, error) {
	raw, found, err := g.opts.Notes.Get(ctx, bodyKey(key, id))
	if err != nil || !found {
		return nil, err
	}
	s := new(storedResponse)
	if json.Unmarshal(raw, s) != nil || s.V > storedVersion {
		return nil, fmt.Errorf("gateway: the stored response %.80q is damaged", id)
	}
	if s.V == 0 { // an earlier version stored the response object alone
		return &storedResponse{Body: raw}, nil
	}
	if now := g.opts.Now(); s.Until.Sub(now) <= g.ttl/2 {
		s.Until = now.Add(g.ttl)
		if raw, err := json.Marshal(s); err == nil {
			_ = g.opts.Notes.Put(ctx, bodyKey(key, id), raw, s.Until) // else it expires when its time is over
		}
	}
	return s, nil
}

// storedItem is an item of a stored response.
type storedItem struct {
	json   json.RawMessage
	native bool
}

// byteCounter counts the bytes that a request holds toward the limits on buffered bytes.
type byteCounter interface {
	hold(bytes int) error
	release(bytes int)
}

// storedItems finds items that the gateway stored for a key, by their ids. The result
// lacks ids that the gateway does not hold. It loads one response at a time, and retains
// and counts only the items that it returns.
func (g *Gateway) storedItems(ctx context.Context, mem byteCounter, key string, ids []string) (map[string]storedItem, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = itemKey(key, id)
	}
	raw, err := g.opts.Notes.GetAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	notes := map[string]itemNote{}
	var responses []string
	wanted := map[string]map[string]bool{} // ids by response
	for i, id := range ids {
		var note itemNote
		if _, known := notes[id]; known || raw[i] == nil || json.Unmarshal(raw[i], &note) != nil {
			continue
		}
		notes[id] = note
		if wanted[note.Response] == nil {
			responses = append(responses, note.Response)
			wanted[note.Response] = map[string]bool{}
		}
		wanted[note.Response][id] = true
	}
	out := map[string]storedItem{}
	for _, response := range responses {
		if err := g.itemsOfStored(ctx, mem, key, response, wanted[response], out); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		item, ok := out[id]
		if note := notes[id]; ok && note.Until.Sub(g.opts.Now()) <= g.ttl/2 {
			if err := g.storeItemNotes(ctx, key, note.Response, []json.RawMessage{item.json}); err != nil {
				return nil, err
			}
			note.Until = g.opts.Now().Add(g.ttl)
			notes[id] = note
		}
	}
	return out, nil
}

// itemsOfStored adds some items of a stored response or conversation to out.
func (g *Gateway) itemsOfStored(ctx context.Context, mem byteCounter, key, id string, wanted map[string]bool, out map[string]storedItem) error {
	var items []storedItem
	if strings.HasPrefix(id, "conv_") {
		c, err := g.loadConversation(ctx, key, id)
		if err != nil || c == nil {
			return err
		}
		for _, item := range c.Items {
			items = append(items, storedItem{json: item.Item, native: item.Native})
		}
	} else {
		s, err := g.storedResponse(ctx, key, id)
		if err != nil || s == nil {
			return err
		}
		for _, item := range slices.Concat(s.Input, responsesapi.ItemsOf(s.Body, "output")) {
			items = append(items, storedItem{json: item, native: s.Native})
		}
	}
	loaded := 0
	for i := range items {
		loaded += len(items[i].json)
	}
	if err := mem.hold(loaded); err != nil {
		return err
	}
	defer mem.release(loaded)
	for i := range items {
		id := responsesapi.IDOf(items[i].json)
		if !wanted[id] {
			continue
		}
		before := len(out[id].json) // an id may occur twice; the last item wins
		if err := mem.hold(len(items[i].json)); err != nil {
			return err
		}
		mem.release(before)
		out[id] = items[i]
	}
	return nil
}

// serveInputItems serves the input items of a stored response: all that the model saw,
// including those of the responses before it.
func (g *Gateway) serveInputItems(w http.ResponseWriter, r *http.Request) {
	key, err := g.admitStateRequest(r)
	if err != nil {
		writeAuxError(w, r, err)
		return
	}
	id := r.PathValue("id")
	s, err := g.storedResponse(r.Context(), key.Name, id)
	switch {
	case err != nil:
		writeAuxError(w, r, err)
		return
	case s == nil:
		g.serveSubresource(w, r, &key, "/input_items")
		return
	}
	mem := &auxBuffer{Gateway: g, setup: g.current.Load(), key: key.Name}
	defer mem.free()
	items, err := g.gatherInput(r.Context(), mem, &key, id, s)
	if err == nil {
		err = g.listItems(w, r, key.Name, items)
	}
	if err != nil {
		writeAuxError(w, r, err)
	}
}

// gatherInput returns the input of a stored response, after the input and output of the
// responses that it continues.
func (g *Gateway) gatherInput(ctx context.Context, mem byteCounter, key *access.Key, id string, s *storedResponse) ([]listedItem, error) {
	if err := mem.hold(s.size()); err != nil {
		return nil, err
	}
	chain := [][]listedItem{listedItems(id, s.Input)}
	for parent := s.Parent; parent != ""; {
		above, err := g.storedResponse(ctx, key.Name, parent)
		if err != nil {
			return nil, err
		}
		if above == nil || len(chain) > 2*maxInputChain {
			return nil, noResponse(parent)
		}
		if err := mem.hold(above.size()); err != nil {
			return nil, err
		}
		chain = append(chain, listedItems(parent, responsesapi.ItemsOf(above.Body, "output")), listedItems(parent, above.Input))
		parent = above.Parent
	}
	slices.Reverse(chain)
	return slices.Concat(chain...), nil
}

// listedItem is an item of a list, and the id of its response or conversation.
type listedItem struct {
	json json.RawMessage
	of   string
}

func listedItems(id string, items []json.RawMessage) []listedItem {
	out := make([]listedItem, len(items))
	for i := range items {
		out[i] = listedItem{json: items[i], of: id}
	}
	return out
}

// listItems writes a page of items and records them, so that clients can refer to them by
// the ids in the page.
func (g *Gateway) listItems(w http.ResponseWriter, r *http.Request, key string, items []listedItem) error {
	items, list, err := responsesapi.Page(r.URL.Query(), items, func(item listedItem) json.RawMessage { return item.json })
	if err != nil {
		return markOwn(err)
	}
	if err := g.storeListedItems(r.Context(), key, items); err != nil {
		return err
	}
	serving.WriteJSON(w, list)
	return nil
}

// storeListedItems stores the notes of items of a page that have none.
func (g *Gateway) storeListedItems(ctx context.Context, key string, items []listedItem) error {
	keys := make([]string, len(items))
	for i := range items {
		keys[i] = itemKey(key, responsesapi.IDOf(items[i].json))
	}
	known, err := g.opts.Notes.GetAll(ctx, keys)
	if err != nil {
		return err
	}
	for i, item := range items {
		if known[i] != nil {
			continue
		}
		if err := g.storeItemNotes(ctx, key, item.of, []json.RawMessage{item.json}); err != nil {
			return err
		}
	}
	return nil
}
