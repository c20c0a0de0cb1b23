package responsesapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/serving"
)

// Conversation is a list of items that a server stores under one id. The model gets these
// items before those of a request that names the conversation. The items of the request and
// of its response are added to the conversation.
type Conversation struct {
	Created  int64              `json:"created"`
	Metadata map[string]string  `json:"metadata,omitempty"`
	Items    []ConversationItem `json:"items"`
}

// ConversationItem is an item of a conversation.
type ConversationItem struct {
	Item json.RawMessage `json:"item"`
	// Native is set if a Responses upstream accepts the item unchanged.
	Native bool `json:"native,omitempty"`
	// Output is set if the item is from a response, not from the client.
	Output bool `json:"output,omitempty"`
}

// MaxConversation limits the size of a conversation. See [Conversation.Size].
const MaxConversation = 8 << 20

// Size returns the length of the items and the metadata in bytes.
func (c *Conversation) Size() (n int) {
	for name, value := range c.Metadata {
		n += len(name) + len(value)
	}
	for _, item := range c.Items {
		n += len(item.Item)
	}
	return n
}

// find returns the index of the item with an id, or -1.
func (c *Conversation) find(id string) int {
	return slices.IndexFunc(c.Items, func(item ConversationItem) bool { return IDOf(item.Item) == id })
}

// ConversationStore stores the conversations of one client.
type ConversationStore interface {
	// NewID returns a new id without its prefix, such as "conv_".
	NewID() string
	// Now returns the creation time of a new conversation.
	Now() int64
	// Check returns an error for an item that the client must not add.
	Check(item []byte) error
	// Load returns a conversation. An unknown id is an error.
	Load(ctx context.Context, id string) (*Conversation, error)
	// Create stores a new conversation.
	Create(ctx context.Context, id string, c *Conversation) error
	// Change changes a conversation, unless change returns an error. No other change of
	// the conversation runs at the same time.
	Change(ctx context.Context, id string, change func(*Conversation) error) (*Conversation, error)
	// Delete removes a conversation that exists.
	Delete(ctx context.Context, id string) error
	// Listed is called before items are listed to the client, which may then refer to
	// them.
	Listed(ctx context.Context, id string, items []json.RawMessage) error
	// UnknownItem returns the error for an item that the conversation does not have, or
	// for a reference.
	UnknownItem(id string) error
}

// maxNewItems is the maximum number of items in one request.
const maxNewItems = 20

// HandleConversations serves the conversations API at /v1/conversations. open returns the
// store for a request, fail writes an error, and maxBytes is the maximum size of a body.
func HandleConversations(mux *http.ServeMux, maxBytes int, open func(*http.Request) (ConversationStore, error), fail func(http.ResponseWriter, *http.Request, error)) {
	for pattern, serve := range map[string]func(*conversationCall) error{
		"POST /v1/conversations":                     (*conversationCall).create,
		"GET /v1/conversations/{id}":                 (*conversationCall).retrieve,
		"POST /v1/conversations/{id}":                (*conversationCall).update,
		"DELETE /v1/conversations/{id}":              (*conversationCall).remove,
		"GET /v1/conversations/{id}/items":           (*conversationCall).list,
		"POST /v1/conversations/{id}/items":          (*conversationCall).add,
		"GET /v1/conversations/{id}/items/{item}":    (*conversationCall).item,
		"DELETE /v1/conversations/{id}/items/{item}": (*conversationCall).removeItem,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			store, err := open(r)
			if err == nil {
				err = serve(&conversationCall{store: store, w: w, r: r, id: r.PathValue("id"), maxBytes: maxBytes})
			}
			if err != nil {
				fail(w, r, err)
			}
		})
	}
}

// conversationCall is a request of the conversations API.
type conversationCall struct {
	store    ConversationStore
	w        http.ResponseWriter
	r        *http.Request
	id       string
	maxBytes int
}

// conversationBody holds the fields of a request body.
type conversationBody struct {
	Items    []json.RawMessage `json:"items"`
	Metadata map[string]string `json:"metadata"`
}

func (c *conversationCall) body() (body conversationBody, err error) {
	raw, err := serving.Body(c.w, c.r, c.maxBytes)
	if err != nil {
		return body, err
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return body, nil
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return body, serving.AsRequestError(fmt.Errorf("invalid body: %w", err))
	}
	return body, nil
}

// newItems checks the items of a client and returns them with ids.
func (c *conversationCall) newItems(items []json.RawMessage) (out []ConversationItem, err error) {
	if len(items) > maxNewItems {
		return nil, serving.AsRequestError(fmt.Errorf("items: got %d, at most %d can be added at once", len(items), maxNewItems))
	}
	seed := c.store.NewID()
	for i, raw := range items {
		item, err := ReadItem(raw)
		switch {
		case err != nil:
			return nil, serving.AsRequestError(fmt.Errorf("items[%d]: %w", i, err))
		case !isObject(raw):
			return nil, serving.AsRequestError(fmt.Errorf("items[%d]: want an object", i))
		case item.Reference:
			return nil, c.store.UnknownItem(item.ID)
		}
		if err := c.store.Check(raw); err != nil {
			return nil, err
		}
		out = append(out, ConversationItem{Item: Identified(raw, seed, i), Native: true})
	}
	return out, nil
}

func (c *conversationCall) create() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	conv := &Conversation{Created: c.store.Now(), Metadata: body.Metadata}
	if conv.Items, err = c.newItems(body.Items); err != nil {
		return err
	}
	c.id = "conv_" + c.store.NewID()
	if err := c.store.Create(c.r.Context(), c.id, conv); err != nil {
		return err
	}
	return c.write(conv)
}

// write writes a conversation object.
func (c *conversationCall) write(conv *Conversation) error {
	metadata := conv.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	serving.WriteJSON(c.w, struct {
		ID       string            `json:"id"`
		Object   string            `json:"object"`
		Created  int64             `json:"created_at"`
		Metadata map[string]string `json:"metadata"`
	}{c.id, "conversation", conv.Created, metadata})
	return nil
}

func (c *conversationCall) retrieve() error {
	conv, err := c.store.Load(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	return c.write(conv)
}

func (c *conversationCall) update() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	conv, err := c.store.Change(c.r.Context(), c.id, func(conv *Conversation) error {
		conv.Metadata = body.Metadata
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(conv)
}

func (c *conversationCall) remove() error {
	_, err := c.store.Load(c.r.Context(), c.id)
	if err == nil {
		err = c.store.Delete(c.r.Context(), c.id)
	}
	if err != nil {
		return err
	}
	WriteDeleted(c.w, c.id, "conversation.deleted")
	return nil
}

// WriteDeleted writes the response to the deletion of an object.
func WriteDeleted(w http.ResponseWriter, id, object string) {
	serving.WriteJSON(w, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, object, true})
}

func (c *conversationCall) list() error {
	conv, err := c.store.Load(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	return c.writeItems(c.r.URL.Query(), conv.Items)
}

// writeItems writes a page of items.
func (c *conversationCall) writeItems(query url.Values, items []ConversationItem) error {
	_, list, err := Page(query, items, func(item ConversationItem) json.RawMessage { return item.Item })
	if err != nil {
		return err
	}
	if err := c.store.Listed(c.r.Context(), c.id, list.Data); err != nil {
		return err
	}
	serving.WriteJSON(c.w, list)
	return nil
}

func (c *conversationCall) add() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	items, err := c.newItems(body.Items)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return serving.AsRequestError(errors.New("items: want at least one item"))
	}
	if _, err := c.store.Change(c.r.Context(), c.id, func(conv *Conversation) error {
		conv.Items = append(slices.Clip(conv.Items), items...)
		return nil
	}); err != nil {
		return err
	}
	return c.writeItems(url.Values{"order": {"asc"}, "limit": {strconv.Itoa(maxPage)}}, items)
}

func (c *conversationCall) item() error {
	conv, err := c.store.Load(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	i := conv.find(c.r.PathValue("item"))
	if i < 0 {
		return c.store.UnknownItem(c.r.PathValue("item"))
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(conv.Items[i].Item) // the client may be gone
	return nil
}

func (c *conversationCall) removeItem() error {
	conv, err := c.store.Change(c.r.Context(), c.id, func(conv *Conversation) error {
		i := conv.find(c.r.PathValue("item"))
		if i < 0 {
			return c.store.UnknownItem(c.r.PathValue("item"))
		}
		conv.Items = slices.Concat(conv.Items[:i], conv.Items[i+1:])
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(conv)
}
