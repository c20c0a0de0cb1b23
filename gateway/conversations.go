package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway/access"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// Conversations of the Responses API are items that a server stores under one id. The
// gateway stores them itself, for every upstream: a request that names one is sent with
// its items, and the items of the request and of the response are added to it. One that
// the gateway does not hold is an error, unless the gateway has no keys and the upstream
// may hold it.

// conversation is a conversation that the gateway stores.
type conversation struct {
	V        int                `json:"v"`
	Until    time.Time          `json:"until"`
	Created  int64              `json:"created"`
	Metadata map[string]string  `json:"metadata,omitempty"`
	Items    []conversationItem `json:"items"`
}

// conversationItem is an item of a conversation.
type conversationItem struct {
	Item json.RawMessage `json:"item"`
	// Native is set if a Responses upstream accepts the item unchanged.
	Native bool `json:"native,omitempty"`
	// Output is set if the item is from a response, not from the client.
	Output bool `json:"output,omitempty"`
}

// maxConversation bounds the items of a conversation in bytes, and maxNewItems how many a
// client may add at once.
const (
	maxConversation = 8 << 20
	maxNewItems     = 20
)

// conversationLocks keep two requests of one process from changing one conversation at
// once.
type conversationLocks [64]sync.Mutex

func (l *conversationLocks) of(key, id string) *sync.Mutex {
	sum := sha256.Sum256([]byte(conversationKey(key, id)))
	return &l[int(sum[0])%len(l)]
}

// conversationKey returns the key under which the state holds a conversation.
func conversationKey(key, id string) string { return "conversation " + bodyKey(key, id) }

// errConversationFull reports that a conversation cannot take more items.
var errConversationFull = fmt.Errorf("the conversation has more than %d bytes of items; start a new one", maxConversation)

// loadConversation returns a conversation of a key, or nil if there is none.
func (g *Gateway) loadConversation(ctx context.Context, key, id string) (*conversation, error) {
	raw, found, err := g.opts.Notes.Get(ctx, conversationKey(key, id))
	if err != nil || !found {
		return nil, err
	}
	c := new(conversation)
	if json.Unmarshal(raw, c) != nil || c.V != storedVersion {
		return nil, fmt.Errorf("gateway: conversation %.80q cannot be read", id)
	}
	return c, nil
}

// saveConversation stores a conversation and renews its lifetime.
func (g *Gateway) saveConversation(ctx context.Context, key, id string, c *conversation) error {
	size := 0
	for _, item := range c.Items {
		size += len(item.Item)
	}
	if size > maxConversation {
		return &ownError{&dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: errConversationFull.Error(), Err: errConversationFull}}
	}
	c.V, c.Until = storedVersion, g.opts.Now().Add(g.ttl)
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return g.opts.Notes.Put(ctx, conversationKey(key, id), raw, c.Until)
}

// changeConversation loads, changes and stores a conversation.
func (g *Gateway) changeConversation(ctx context.Context, key, id string, change func(*conversation) error) (*conversation, error) {
	lock := g.conversations.of(key, id)
	lock.Lock()
	defer lock.Unlock()
	c, err := g.loadConversation(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, unknownConversation(id)
	}
	if err := change(c); err != nil {
		return nil, err
	}
	return c, g.saveConversation(ctx, key, id, c)
}

// joinConversation finds the conversation that a request names.
func (x *exchange) joinConversation(ctx context.Context) error {
	if x.codec.Dialect() != dragoman.OpenAIResponses || len(x.asked.conversation) == 0 || string(x.asked.conversation) == "null" {
		return nil
	}
	id, err := conversationID(x.asked.conversation)
	if err != nil {
		return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "conversation", Message: err.Error()}
	}
	if x.asked.previous != "" {
		return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "conversation", Message: "conversation and previous_response_id cannot be used together; send one of them"}
	}
	c, err := x.loadConversation(ctx, x.entry.key, id)
	if err != nil {
		return err
	}
	if c == nil {
		if x.keys.Open() && x.native() { // the one user of the upstream's account may have made it there
			x.conversation.upstream = id
			return nil
		}
		return unknownConversation(id)
	}
	x.conversation.id = id
	for _, stored := range c.Items {
		item, err := readInputItem(stored.Item)
		if err != nil {
			return err
		}
		item.ref, item.stored = false, !stored.Native
		item.lookup = item.lookup && stored.Native && !stored.Output // a client may name any id
		x.conversationItems = append(x.conversationItems, item)
	}
	return nil
}

// conversationID is the id that a request names: a string, or an object with it.
func conversationID(raw []byte) (id string, err error) {
	if json.Unmarshal(raw, &id) == nil && id != "" {
		return id, nil
	}
	item, err := readInputItem(raw)
	if err != nil || item.id == "" {
		return "", errors.Join(errors.New("conversation: neither an id nor an object with an id"), err)
	}
	return item.id, nil
}

// extendConversation adds the items of a request and its response to the conversation of
// the request.
func (x *exchange) extendConversation(ctx context.Context, response []byte) {
	if x.conversation.id == "" || response == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	native := x.up.dialect == dragoman.OpenAIResponses
	_, err := x.changeConversation(ctx, x.entry.key, x.conversation.id, func(c *conversation) error {
		for i, item := range x.input {
			c.Items = append(c.Items, conversationItem{Item: identified(item.listed(), x.id, i), Native: !item.stored})
		}
		for _, item := range itemsOf(response, "output") {
			c.Items = append(c.Items, conversationItem{Item: item, Native: native, Output: true})
		}
		return nil
	})
	if err != nil {
		x.warn(ctx, "a conversation could not be extended", err)
		x.entry.losses = append(x.entry.losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/conversation", Detail: "the items of this turn could not be added to the conversation"})
	}
}

// namesConversation reports whether to add the conversation of the request to the responses
// of a Responses upstream, which does not know it.
func (x *exchange) namesConversation() bool {
	return x.conversation.id != "" && x.up.dialect == dragoman.OpenAIResponses
}

// inConversation sets the conversation and the requested model name in a response object of
// an upstream.
func (x *exchange) inConversation(response []byte) []byte {
	id := fmt.Appendf(nil, `{"id":%q}`, x.conversation.id)
	model, _ := json.Marshal(x.asked.named) // a string always encodes
	return withField(withField(response, "model", model), "conversation", id)
}

// eventsInConversation does the same in each response object of whole events.
func (x *exchange) eventsInConversation(events []byte) []byte {
	return mapResponses(events, x.inConversation)
}

// unknownConversation is the error for a conversation that cannot be resolved.
func unknownConversation(id string) error {
	return &ownError{serving.OpenAIs(openairesponses.Codec{}, "", &dragoman.APIError{
		Class: dragoman.ErrorNotFound, Param: "conversation",
		Message: fmt.Sprintf("Conversation with id '%s' not found. It has expired, or was not created through this gateway with this key.", bounded(id)),
	})}
}

// handleConversations serves the API of conversations.
func (g *Gateway) handleConversations(mux *http.ServeMux) {
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
			key, err := g.visitor(r)
			if err == nil {
				err = serve(&conversationCall{Gateway: g, w: w, r: r, owner: key, key: key.Name, id: r.PathValue("id")})
			}
			if err != nil {
				refuse(w, r, err)
			}
		})
	}
}

// conversationCall is one request of the API of conversations.
type conversationCall struct {
	*Gateway
	w       http.ResponseWriter
	r       *http.Request
	owner   access.Key
	key, id string
}

// conversationBody holds the fields of such a request.
type conversationBody struct {
	Items    []json.RawMessage `json:"items"`
	Metadata map[string]string `json:"metadata"`
}

func (c *conversationCall) body() (body conversationBody, err error) {
	raw, err := serving.Body(c.w, c.r, maxAside)
	if err != nil {
		return body, err
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return body, nil
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return body, serving.Refuse(fmt.Errorf("the body is not valid: %w", err))
	}
	return body, nil
}

// newItems returns a client's items with ids.
func (c *conversationCall) newItems(items []json.RawMessage) (out []conversationItem, err error) {
	if len(items) > maxNewItems {
		return nil, serving.Refuse(fmt.Errorf("items: %d items, and at most %d can be added at once", len(items), maxNewItems))
	}
	seed := c.newID()
	for i, raw := range items {
		item, err := readInputItem(raw)
		switch {
		case err != nil:
			return nil, serving.Refuse(fmt.Errorf("items[%d]: %w", i, err))
		case item.ref:
			return nil, unknownItem(item.id)
		}
		if err := checkItem(&c.owner, raw); err != nil {
			return nil, err
		}
		out = append(out, conversationItem{Item: identified(raw, seed, i), Native: true})
	}
	return out, nil
}

func (c *conversationCall) create() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	conv := &conversation{Created: c.opts.Now().Unix(), Metadata: body.Metadata}
	if conv.Items, err = c.newItems(body.Items); err != nil {
		return err
	}
	c.id = "conv_" + strings.TrimPrefix(c.newID(), "req_")
	if err := c.saveConversation(c.r.Context(), c.key, c.id, conv); err != nil {
		return err
	}
	return c.write(conv)
}

// write writes a conversation object.
func (c *conversationCall) write(conv *conversation) error {
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

// load finds the conversation that the request names.
func (c *conversationCall) load() (*conversation, error) {
	conv, err := c.loadConversation(c.r.Context(), c.key, c.id)
	if err == nil && conv == nil {
		err = unknownConversation(c.id)
	}
	return conv, err
}

func (c *conversationCall) retrieve() error {
	conv, err := c.load()
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
	conv, err := c.changeConversation(c.r.Context(), c.key, c.id, func(conv *conversation) error {
		conv.Metadata = body.Metadata
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(conv)
}

func (c *conversationCall) remove() error {
	_, err := c.load()
	if err == nil {
		err = c.opts.Notes.Delete(c.r.Context(), conversationKey(c.key, c.id))
	}
	if err != nil {
		return err
	}
	serving.WriteJSON(c.w, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{c.id, "conversation.deleted", true})
	return nil
}

func (c *conversationCall) list() error {
	conv, err := c.load()
	if err != nil {
		return err
	}
	return c.listItems(c.w, c.r, c.key, listConversationItems(c.id, conv.Items))
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
		return serving.Refuse(errors.New("items: at least one item is needed"))
	}
	if _, err := c.changeConversation(c.r.Context(), c.key, c.id, func(conv *conversation) error {
		conv.Items = append(conv.Items, items...)
		return nil
	}); err != nil {
		return err
	}
	c.r.URL.RawQuery = fmt.Sprintf("order=asc&limit=%d", maxPage)
	return c.listItems(c.w, c.r, c.key, listConversationItems(c.id, items))
}

func (c *conversationCall) item() error {
	conv, err := c.load()
	if err != nil {
		return err
	}
	i := conv.find(c.r.PathValue("item"))
	if i < 0 {
		return unknownItem(c.r.PathValue("item"))
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(conv.Items[i].Item) // the client may be gone
	return nil
}

func (c *conversationCall) removeItem() error {
	conv, err := c.changeConversation(c.r.Context(), c.key, c.id, func(conv *conversation) error {
		i := conv.find(c.r.PathValue("item"))
		if i < 0 {
			return unknownItem(c.r.PathValue("item"))
		}
		conv.Items = slices.Delete(conv.Items, i, i+1)
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(conv)
}

// find returns the index of the item with an id, or -1.
func (c *conversation) find(id string) int {
	return slices.IndexFunc(c.Items, func(item conversationItem) bool { return idOf(item.Item) == id })
}

// listConversationItems returns the items of a conversation in the form in which they are listed.
func listConversationItems(id string, items []conversationItem) []listedItem {
	out := make([]listedItem, len(items))
	for i := range items {
		out[i] = listedItem{json: items[i].Item, of: id}
	}
	return out
}
