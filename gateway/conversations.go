package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// Conversations of the Responses API are items that a server stores under one id. The
// gateway stores them itself, for every upstream: a request that names one is sent with
// its items, and the items of the request and of the response are added to it. One that
// the gateway does not hold is an error, unless the gateway has no keys and the upstream
// may hold it.

// conversation is a conversation that the gateway stores.
type conversation struct {
	V     int       `json:"v"`
	Until time.Time `json:"until"`
	responsesapi.Conversation
}

// conversationLocks keep two requests of one process from changing one conversation at
// once.
type conversationLocks [64]sync.Mutex

func (l *conversationLocks) lockFor(key, id string) *sync.Mutex {
	sum := sha256.Sum256([]byte(conversationKey(key, id)))
	return &l[int(sum[0])%len(l)]
}

// conversationKey returns the key under which the state holds a conversation.
func conversationKey(key, id string) string { return "conversation " + bodyKey(key, id) }

// loadConversation returns a conversation of a key, or nil if there is none.
func (g *Gateway) loadConversation(ctx context.Context, key, id string) (*conversation, error) {
	raw, found, err := g.opts.Notes.Get(ctx, conversationKey(key, id))
	if err != nil || !found {
		return nil, err
	}
	c := new(conversation)
	if json.Unmarshal(raw, c) != nil || c.V != storedVersion {
		return nil, fmt.Errorf("gateway: the stored conversation %.80q is damaged", id)
	}
	return c, nil
}

// saveConversation stores a conversation and renews its lifetime.
func (g *Gateway) saveConversation(ctx context.Context, key, id string, c *conversation) error {
	if c.Size() > responsesapi.MaxConversation {
		return &ownError{responsesapi.FullConversation()}
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
	lock := g.conversations.lockFor(key, id)
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

// resolveConversation finds the conversation that a request names.
func (x *exchange) resolveConversation(ctx context.Context) error {
	if !x.stateful() || len(x.head.conversation) == 0 || string(x.head.conversation) == "null" {
		return nil
	}
	id, err := responsesapi.ConversationID(x.head.conversation)
	if err != nil {
		return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "conversation", Message: err.Error()}
	}
	if x.head.previous != "" {
		return responsesapi.PreviousAndConversation()
	}
	c, err := x.loadConversation(ctx, x.entry.key, id)
	if err != nil {
		return err
	}
	if c == nil {
		if x.keys.Open() && x.hasStatefulUpstream() { // without keys there is one user, who may have created it at the upstream
			x.conversation.upstream = id
			return nil
		}
		return unknownConversation(id)
	}
	x.conversation.id = id
	for _, stored := range c.Items {
		item, err := responsesapi.ReadItem(stored.Item)
		if err != nil {
			return err
		}
		item.Reference = false
		item.Lookup = item.Lookup && stored.Native && !stored.Output // the client chose the id, and may have chosen any
		x.conversationItems = append(x.conversationItems, inputItem{Item: item, stored: !stored.Native})
	}
	return nil
}

// extendConversation adds the items of a request and its response to the conversation of
// the request.
func (x *exchange) extendConversation(ctx context.Context, response []byte) {
	if x.conversation.id == "" || response == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	native := x.up.stateful()
	_, err := x.changeConversation(ctx, x.entry.key, x.conversation.id, func(c *conversation) error {
		for i, item := range x.input {
			c.Items = append(c.Items, responsesapi.ConversationItem{Item: responsesapi.Identified(item.original(), x.id, i), Native: !item.stored})
		}
		for _, item := range responsesapi.ItemsOf(response, "output") {
			c.Items = append(c.Items, responsesapi.ConversationItem{Item: item, Native: native, Output: true})
		}
		return nil
	})
	if err != nil {
		x.warn(ctx, "a conversation could not be extended", err)
		x.entry.losses = append(x.entry.losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/conversation", Detail: "the items of this turn could not be added to the conversation"})
	}
}

// addsConversation reports whether to add the conversation of the request to the responses
// of a Responses upstream, which does not know it.
func (x *exchange) addsConversation() bool {
	return x.conversation.id != "" && x.up.stateful()
}

// withConversation sets the conversation and the requested model name in a response object of
// an upstream.
func (x *exchange) withConversation(response []byte) []byte {
	id := fmt.Appendf(nil, `{"id":%q}`, x.conversation.id)
	model, _ := json.Marshal(x.head.clientModel) // a string always encodes
	return jsonwire.With(jsonwire.With(response, "model", model), "conversation", id)
}

// eventsWithConversation does the same in each response object of whole events.
func (x *exchange) eventsWithConversation(events []byte) []byte {
	return editResponses(events, x.withConversation)
}

// unknownConversation returns the error for a conversation that cannot be resolved.
func unknownConversation(id string) error {
	return &ownError{responsesapi.UnknownConversation(id, "It expired, or was not created through this gateway with this key.")}
}

// handleConversations serves the API of conversations.
func (g *Gateway) handleConversations(mux *http.ServeMux) {
	responsesapi.HandleConversations(mux, maxAuxBody, func(r *http.Request) (responsesapi.ConversationStore, error) {
		key, err := g.admitStateRequest(r)
		return &conversationStore{Gateway: g, owner: key}, err
	}, func(w http.ResponseWriter, r *http.Request, err error) { writeAuxError(w, r, markOwn(err)) })
}

// conversationStore holds the conversations of one key.
type conversationStore struct {
	*Gateway
	owner access.Key
}

// NewID implements [responsesapi.ConversationStore].
func (s *conversationStore) NewID() string { return strings.TrimPrefix(s.newRequestID(), "req_") }

// Now implements [responsesapi.ConversationStore].
func (s *conversationStore) Now() int64 { return s.opts.Now().Unix() }

// Check implements [responsesapi.ConversationStore].
func (s *conversationStore) Check(item []byte) error { return checkItem(&s.owner, item) }

// UnknownItem implements [responsesapi.ConversationStore].
func (s *conversationStore) UnknownItem(id string) error { return unknownItem(id) }

// Load implements [responsesapi.ConversationStore].
func (s *conversationStore) Load(ctx context.Context, id string) (*responsesapi.Conversation, error) {
	c, err := s.loadConversation(ctx, s.owner.Name, id)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, unknownConversation(id)
	}
	return &c.Conversation, nil
}

// Create implements [responsesapi.ConversationStore].
func (s *conversationStore) Create(ctx context.Context, id string, c *responsesapi.Conversation) error {
	return s.saveConversation(ctx, s.owner.Name, id, &conversation{Conversation: *c})
}

// Change implements [responsesapi.ConversationStore].
func (s *conversationStore) Change(ctx context.Context, id string, change func(*responsesapi.Conversation) error) (*responsesapi.Conversation, error) {
	c, err := s.changeConversation(ctx, s.owner.Name, id, func(c *conversation) error { return change(&c.Conversation) })
	if err != nil {
		return nil, err
	}
	return &c.Conversation, nil
}

// Delete implements [responsesapi.ConversationStore].
func (s *conversationStore) Delete(ctx context.Context, id string) error {
	return s.opts.Notes.Delete(ctx, conversationKey(s.owner.Name, id))
}

// Listed implements [responsesapi.ConversationStore].
func (s *conversationStore) Listed(ctx context.Context, id string, items []json.RawMessage) error {
	return s.storeListedItems(ctx, s.owner.Name, listedItems(id, items))
}
