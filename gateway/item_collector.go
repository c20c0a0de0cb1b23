package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// itemCollector collects the output items of a Responses stream from the events that begin or
// complete an item.
type itemCollector struct {
	// ids are those of all items, in their order.
	ids []string
	// items are those that are complete.
	items []json.RawMessage
	// final is the response object of the event that ends the stream.
	final json.RawMessage
}

// itemEventNames are parts of the names of the events with items.
var itemEventNames = [...][]byte{[]byte(`"response.output_item.`), []byte(`"response.completed"`), []byte(`"response.incomplete"`)}

func isItemEvent(p []byte) bool {
	for _, name := range itemEventNames {
		if bytes.Contains(p, name) {
			return true
		}
	}
	return false
}

// read reads whole events. It skips other events and invalid JSON.
func (w *itemCollector) read(events []byte) {
	if !isItemEvent(events) {
		return
	}
	for line := range bytes.FieldsFuncSeq(events, func(r rune) bool { return r == '\n' || r == '\r' }) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok || !isItemEvent(data) {
			continue
		}
		var e struct {
			Type     string          `json:"type"`
			Item     json.RawMessage `json:"item"`
			Response json.RawMessage `json:"response"`
		}
		if json.Unmarshal(data, &e) != nil {
			continue
		}
		id := responsesapi.IDOf(e.Item)
		switch e.Type {
		case "response.output_item.added":
			w.add(id)
		case "response.output_item.done":
			w.add(id)
			w.items = append(w.items, e.Item)
		case "response.completed", "response.incomplete":
			w.final = e.Response
		}
	}
}

func (w *itemCollector) add(id string) {
	for _, known := range w.ids {
		if known == id {
			return
		}
	}
	if id != "" {
		w.ids = append(w.ids, id)
	}
}

// upstreamTTL is the minimum lifetime of the note that names an upstream item's owner.
// OpenAI stores items for 30 days.
const upstreamTTL = 30 * 24 * time.Hour

// recordItems records the items of a response object that a Responses upstream stores.
func (x *exchange) recordItems(ctx context.Context, body []byte) {
	if !x.stateful() {
		return
	}
	w := itemCollector{final: body}
	for _, item := range responsesapi.ItemsOf(body, "output") {
		w.add(responsesapi.IDOf(item))
		w.items = append(w.items, item)
	}
	x.recordItemOwners(ctx, &w)
}

// recordItemOwners records the key that owns the items of a response that a Responses upstream
// stores: only that key may refer to them. It does so before the client gets the end of
// the response.
func (x *exchange) recordItemOwners(ctx context.Context, w *itemCollector) {
	x.extendConversation(ctx, w.final)
	if !x.stateful() || x.up == nil || !x.up.stateful() {
		return
	}
	if x.head.unstored || w.final == nil {
		return
	}
	if err := x.recordOwner(ctx, x.entry.key, responseSource{Model: x.head.model, Link: x.entry.upstream}, w.ids...); err != nil {
		x.warn(ctx, "the owner of a response's items could not be stored", err)
	}
	x.storeStateless(ctx, w.final)
}

// storeStateless stores a response of a Responses upstream that does not store responses
// itself, so that the client can continue with the response or its items.
func (x *exchange) storeStateless(ctx context.Context, body []byte) {
	var head struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Store  *bool  `json:"store"`
	}
	if json.Unmarshal(body, &head) != nil || head.ID == "" || head.Store != nil && *head.Store || head.Status != "completed" && head.Status != "incomplete" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := x.saveStateless(ctx, head.ID, body); err != nil {
		x.warn(ctx, "a response of a stateless upstream could not be stored", err)
	}
}

func (x *exchange) saveStateless(ctx context.Context, id string, body []byte) error {
	if x.req == nil { // the request was passed through
		losses := x.entry.losses
		if err := x.decode(ctx, x.up); err != nil {
			return err
		}
		x.entry.losses = losses
	}
	resp, _, err := x.codec.DecodeResponse(body, dialect.DecodeOptions{NoNative: true})
	if err != nil {
		return err
	}
	parent := ""
	if x.history != nil {
		parent = x.head.previous
	}
	if err := x.recall.SaveResponse(ctx, x.entry.key, id, parent, slices.Concat(x.own.messages, resp.Output)); err != nil {
		return err
	}
	return x.saveResponse(ctx, id, parent, body, true)
}

// recordOwner records that a key may refer to the ids that an upstream stores. Without keys
// there is one user, and nothing to record.
func (g *Gateway) recordOwner(ctx context.Context, key string, from responseSource, ids ...string) error {
	if g.keys.Open() || len(ids) == 0 {
		return nil
	}
	// A client that disconnected may come back and refer to them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	note, err := json.Marshal(from)
	if err != nil {
		return err
	}
	until := g.opts.Now().Add(max(g.ttl, upstreamTTL))
	for _, id := range ids {
		if err := g.opts.Notes.Put(ctx, ownerKey(key, id), note, until); err != nil {
			return err
		}
		if err := g.opts.Notes.Put(ctx, firstOwnerKey(id), []byte(key), until); err != nil {
			return err
		}
	}
	return nil
}

// firstOwnerKey returns the key of the note that names the first owner of a response or an item.
func firstOwnerKey(id string) string { return "first owner " + bodyKey("", id) }

// recordOwnerIfUnclaimed is recordOwner for ids that the client may have chosen: an upstream repeats
// those of the input in lists and compactions. An item that was made for another key stays
// that key's.
func (g *Gateway) recordOwnerIfUnclaimed(ctx context.Context, key string, from responseSource, ids ...string) error {
	if g.keys.Open() || len(ids) == 0 {
		return nil
	}
	notes := make([]string, len(ids))
	for i, id := range ids {
		notes[i] = firstOwnerKey(id)
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	owners, err := g.opts.Notes.GetAll(reading, notes)
	if err != nil {
		return err
	}
	var free []string
	for i, id := range ids {
		if owners[i] == nil || string(owners[i]) == key {
			free = append(free, id)
		}
	}
	return g.recordOwner(ctx, key, from, free...)
}

// markNotStored returns the events with "store": false in their responses.
func markNotStored(events []byte) []byte {
	return editResponses(events, func(response []byte) []byte { return jsonwire.With(response, "store", []byte("false")) })
}

// editResponses applies change to each response object of whole events.
func editResponses(events []byte, change func(response []byte) []byte) []byte {
	var out []byte
	for line := range bytes.Lines(events) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		if !ok || !bytes.HasPrefix(data, []byte("{")) || !bytes.Contains(data, []byte(`"response"`)) {
			out = append(out, line...)
			continue
		}
		event := jsonwire.EditField(data, "response", func(response []byte) []byte {
			if len(response) == 0 || response[0] != '{' {
				return response
			}
			return change(response)
		})
		out = append(append(append(out, "data: "...), event...), '\n')
	}
	return out
}

// itemScanner finds the ids of items in an upstream response about a stored response: the response
// itself, complete or as a stream, or a list of items.
type itemScanner struct {
	buf    []byte
	items  itemCollector
	record func(ids []string) error
}

func newItemScanner(note func(ids []string) error) *itemScanner { return &itemScanner{record: note} }

// read reads the next chunk. Ids are recorded as soon as they are complete. Nothing is
// recorded for a response that is too long to buffer: its items cannot be referred to.
func (l *itemScanner) read(p []byte, last bool) error {
	if len(l.buf)+len(p) > maxEvent {
		l.buf, p = nil, nil
	}
	l.buf = append(l.buf, p...)
	known := len(l.items.ids)
	if isStream := len(l.buf) > 0 && l.buf[0] != '{'; isStream {
		whole := bytes.LastIndexAny(l.buf, "\r\n") + 1
		l.items.read(l.buf[:whole])
		l.buf = append(l.buf[:0], l.buf[whole:]...)
	} else if last {
		for _, name := range []string{"output", "data"} {
			for _, item := range responsesapi.ItemsOf(l.buf, name) {
				l.items.add(responsesapi.IDOf(item))
			}
		}
	}
	return l.record(l.items.ids[known:])
}
