package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// maxStored and maxStoredBytes limit the responses and conversations that a server stores. It
// drops the oldest first, but never the newest.
const (
	maxStored      = 256
	maxStoredBytes = 32 << 20
)

// storeAdvice ends the errors for unknown ids.
var storeAdvice = fmt.Sprintf("The simulator stores the last %d responses and conversations, unless `store` is false, until it exits.", maxStored)

// responseStore holds the responses and conversations of a server, as the Responses API
// stores them. The zero value is ready to use. It is safe for concurrent use.
type responseStore struct {
	seed string

	mu      sync.Mutex
	entries []*stored // the oldest first
	bytes   int
	count   int // number of ids that are not derived from content
}

// stored is a response or a conversation.
type stored struct {
	id string
	// body is the response object that the client received, input the items that the
	// model saw. Both are nil for a conversation.
	body  []byte
	input []json.RawMessage
	// conversation is nil for a response. Its items do not change in place.
	conversation *responsesapi.Conversation
	// items holds the items that references may name, by id. put sets it.
	items map[string]json.RawMessage
}

// all returns the items of a conversation, or the input and output of a response.
func (s *stored) all() []json.RawMessage {
	if s.conversation == nil {
		return slices.Concat(s.input, responsesapi.ItemsOf(s.body, "output"))
	}
	out := make([]json.RawMessage, len(s.conversation.Items))
	for i, item := range s.conversation.Items {
		out[i] = item.Item
	}
	return out
}

// size returns the bytes that count toward maxStoredBytes.
func (s *stored) size() int {
	if s.conversation != nil {
		return s.conversation.Size()
	}
	n := len(s.body)
	for _, item := range s.input {
		n += len(item)
	}
	return n
}

// find returns the index of the entry with an id, or -1. mu must be held.
func (s *responseStore) find(id string) int {
	return slices.IndexFunc(s.entries, func(e *stored) bool { return e.id == id })
}

// put stores a response or conversation as the newest one. mu must be held.
func (s *responseStore) put(e *stored) {
	s.remove(s.find(e.id))
	e.items = map[string]json.RawMessage{}
	for _, item := range e.all() {
		if id := responsesapi.IDOf(item); id != "" && e.items[id] == nil {
			e.items[id] = item
		}
	}
	s.entries = append(s.entries, e)
	s.bytes += e.size()
	for len(s.entries) > 1 && (len(s.entries) > maxStored || s.bytes > maxStoredBytes) {
		s.remove(0)
	}
}

// remove drops the entry at an index; -1 does nothing. mu must be held.
func (s *responseStore) remove(i int) {
	if i < 0 {
		return
	}
	s.bytes -= s.entries[i].size()
	s.entries = slices.Delete(s.entries, i, i+1)
}

// item returns the oldest stored item with an id, or nil: a client that sends another item
// with the same id does not replace it. mu must be held.
func (s *responseStore) item(id string) json.RawMessage {
	for _, e := range s.entries {
		if item := e.items[id]; item != nil {
			return item
		}
	}
	return nil
}

// response returns a stored response, or nil.
func (s *responseStore) response(id string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 && s.entries[i].conversation == nil {
		return s.entries[i]
	}
	return nil
}

// resolved is a Responses request whose references are resolved.
type resolved struct {
	// sent is the body that the client sent; in body, stored items replace references.
	sent, body []byte
	// context are the items of the previous response or of the conversation, and input
	// those of the request.
	context, input []json.RawMessage
	// conversation is the id of the conversation that the response extends; empty for none.
	conversation string
	// stores is false if the client set "store" to false.
	stores bool
}

// resolve resolves the references of a request. An unknown id is an error that names it.
func (s *responseStore) resolve(body []byte) (*resolved, error) {
	t := &resolved{sent: body, body: body, stores: true}
	var input, conversation []byte
	var previous string
	r := jsonwire.NewReader(body)
	for key := range r.Object() {
		switch name := string(key); {
		case name == "input":
			input = r.Raw()
		case name == "conversation":
			conversation = r.Raw()
		case name == "prompt":
			var prompt struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(r.Raw(), &prompt) == nil && prompt.ID != "" {
				return nil, responsesapi.UnknownPrompt(prompt.ID, "The simulator has no stored prompts. Send the instructions.")
			}
		case name == "previous_response_id" && r.Kind() == '"':
			previous = r.String()
		case name == "store":
			t.stores = r.Kind() != 'f'
			r.Skip()
		default:
			r.Skip()
		}
	}
	items, err := responsesapi.ReadInput(input)
	if err != nil {
		return nil, responsesapi.BadInput(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.addContext(t, previous, conversation, input); err != nil {
		return nil, err
	}
	shown, changed, err := s.resolveItems(t, items)
	if err != nil || !changed && len(t.context) == 0 && conversation == nil && previous == "" {
		return t, err
	}
	var w jsonwire.Writer
	w.BeginArray()
	for _, item := range shown {
		w.Raw(item)
	}
	w.EndArray()
	t.body = jsonwire.With(jsonwire.Without(body, "previous_response_id", "conversation"), "input", w.Buf)
	return t, w.Err()
}

// addContext adds the items of the previous response or of the conversation.
func (s *responseStore) addContext(t *resolved, previous string, conversation, input []byte) error {
	if len(conversation) > 0 && string(conversation) != "null" {
		id, err := responsesapi.ConversationID(conversation)
		if err != nil {
			return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "conversation", Message: err.Error()}
		}
		if previous != "" {
			return responsesapi.PreviousAndConversation()
		}
		i := s.find(id)
		if i < 0 || s.entries[i].conversation == nil {
			return responsesapi.UnknownConversation(id, storeAdvice)
		}
		if s.entries[i].size()+len(input) > responsesapi.MaxConversation {
			return responsesapi.FullConversation()
		}
		t.conversation, t.context = id, s.entries[i].all()
	}
	if previous != "" {
		i := s.find(previous)
		if i < 0 || s.entries[i].conversation != nil {
			return responsesapi.UnknownPrevious(previous, storeAdvice+" Send the whole conversation.")
		}
		t.context = s.entries[i].all()
	}
	return nil
}

// resolveItems replaces references with stored items. shown holds all items for the model, with
// summaries in place of compaction items.
//
// OpenAI refuses an item that is in the context twice. resolveItems does so only if one of the
// two was resolved from a reference: the simulator derives ids from content, so two
// conversations may have items with the same id.
func (s *responseStore) resolveItems(t *resolved, items []responsesapi.Item) (shown []json.RawMessage, changed bool, err error) {
	inContext, whole := map[string]bool{}, map[string]bool{}
	for _, item := range t.context {
		inContext[responsesapi.IDOf(item)] = true
	}
	for i := range items {
		item := &items[i]
		raw, refers := json.RawMessage(item.Raw), item.Reference || item.Lookup
		switch {
		case item.ID == "":
		case inContext[item.ID], refers && whole[item.ID]:
			return nil, false, responsesapi.DuplicateItem(item.ID)
		case !refers:
			whole[item.ID] = true
		case s.item(item.ID) == nil:
			return nil, false, responsesapi.UnknownItem(item.ID, "Items are not persisted when `store` is set to false. "+storeAdvice+" Send the item itself.")
		default:
			raw, changed, inContext[item.ID] = s.item(item.ID), true, true
		}
		t.input = append(t.input, raw)
	}
	for _, item := range slices.Concat(t.context, t.input) {
		opened, err := openCompaction(item)
		if err != nil {
			return nil, false, err
		}
		changed = changed || !bytes.Equal(opened, item)
		shown = append(shown, opened)
	}
	return shown, changed, nil
}

// extra returns the fields of the request that the response repeats, and the field "store".
func (t *resolved) extra() *dragoman.Extra {
	fields := responsesapi.Echo(t.sent)
	if t.conversation != "" {
		fields = append(fields, dragoman.Field{Path: "/conversation", Value: fmt.Appendf(nil, `{"id":%q}`, t.conversation)})
	}
	fields = append(fields, dragoman.Field{Path: "/store", Value: fmt.Appendf(nil, "%t", t.stores)})
	return &dragoman.Extra{Dialect: dialects.Stateful().Dialect(), Fields: fields}
}

// echoing is a model whose responses repeat fields of their request.
type echoing struct {
	dragoman.Model
	extra *dragoman.Extra
}

// Generate implements [dragoman.Model].
func (m echoing) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	resp, err := m.Model.Generate(ctx, req)
	if err == nil {
		resp.Extra = m.extra
	}
	return resp, err
}

// Stream implements [dragoman.Model].
func (m echoing) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		for ev, err := range m.Model.Stream(ctx, req) {
			if start, ok := ev.(*dragoman.ResponseStart); ok {
				start.Response.Extra = m.extra
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// fingerprint identifies the request, streamed or not. The ids of the response are derived
// from it, so that different requests have different ids.
func (t *resolved) fingerprint() string {
	sum := sha256.Sum256(jsonwire.Without(t.sent, "stream", "stream_options"))
	return hex.EncodeToString(sum[:])
}

// final returns the response object of the last event of a stream, or nil.
func final(events []byte) []byte {
	for line := range bytes.Lines(events) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		var e struct {
			Type     string          `json:"type"`
			Response json.RawMessage `json:"response"`
		}
		if json.Unmarshal(data, &e) == nil && slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, e.Type) {
			return e.Response
		}
	}
	return nil
}

// save stores the response to a request and extends the conversation of the request. Call it
// before the client has the whole response and may use its id. It ignores a nil body, which
// means that the response did not reach its end.
func (s *responseStore) save(t *resolved, body []byte) {
	var head struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	if json.Unmarshal(body, &head) != nil || head.ID == "" {
		return
	}
	input := make([]json.RawMessage, len(t.input))
	for i, item := range t.input {
		// A copy, because a slice of the request would keep all of it in memory.
		input[i] = bytes.Clone(responsesapi.Identified(item, head.ID, i))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(t.conversation); t.conversation != "" && i >= 0 && head.Status != "failed" {
		c := *s.entries[i].conversation
		c.Items = slices.Clip(c.Items)
		for _, item := range slices.Concat(input, responsesapi.ItemsOf(body, "output")) {
			c.Items = append(c.Items, responsesapi.ConversationItem{Item: item})
		}
		s.put(&stored{id: t.conversation, conversation: &c})
	}
	if t.stores {
		s.put(&stored{id: head.ID, body: bytes.Clone(body), input: slices.Concat(t.context, input)})
	}
}

// sealMark is the prefix of the content of compaction items that the simulator made.
const sealMark = "sim1_"

// maxSummary bounds the summary of a compacted conversation, in bytes.
const maxSummary = 4 << 10

// seal returns the content of a compaction item: a summary with its checksum.
func seal(summary string) string {
	sum := sha256.Sum256([]byte(sealMark + summary))
	return sealMark + base64.RawURLEncoding.EncodeToString(append(sum[:8], summary...))
}

// openCompaction converts a compaction item to the message that the model sees. Like OpenAI,
// it refuses one that the server did not make. Other items are returned unchanged.
func openCompaction(raw json.RawMessage) (json.RawMessage, error) {
	if jsonwire.TypeOf(raw) != "compaction" {
		return raw, nil
	}
	var item struct {
		ID      string `json:"id"`
		Content string `json:"encrypted_content"`
	}
	_ = json.Unmarshal(raw, &item) // content of another type is not from the simulator
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(item.Content, sealMark))
	if err != nil || len(sealed) < 8 || seal(string(sealed[8:])) != item.Content {
		return nil, serving.WithOpenAICode(dialects.Stateful(), "invalid_encrypted_content", &dragoman.APIError{
			Class: dragoman.ErrorBadRequest, Param: "input",
			Message: fmt.Sprintf("The encrypted content for item %.80s could not be verified: it was changed, or another server made it.", item.ID),
		})
	}
	// Not a user message: models of this package answer the last user message.
	return responsesapi.Message(dragoman.RoleAssistant, responsesapi.SummaryHead+string(sealed[8:])), nil
}

// compact replaces a conversation with a compaction item. The summary is the beginning of the
// transcript.
func (s *server) compact(w http.ResponseWriter, codec dialect.Codec, req *dragoman.Request, t *resolved) {
	_, err := parseName(req.Model)
	if err == nil && len(req.Messages) == 0 {
		err = &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "input", Message: "input: nothing to compact; send input or previous_response_id"}
	}
	var body []byte
	if err == nil {
		text, _ := responsesapi.Transcript(req)
		summary := head(text, maxSummary)
		settings := s.Settings
		settings.request = t.fingerprint()
		id := strings.TrimPrefix(settings.mint(req).id("compaction", 0), "compaction_")
		body, err = responsesapi.Compaction{
			ID: id, Created: created, Sealed: seal(summary),
			Usage: dragoman.Usage{Input: dragoman.Counted(serving.CountTokens(req)), Output: dragoman.Counted(serving.Tokens(len(summary)))},
		}.Encode(req, req.Model, id)
	}
	if err != nil {
		serving.WriteError(w, codec, err)
		return
	}
	serving.SetHeader(w.Header(), codec, "application/json", requestID(responsesapi.IDOf(body)))
	_, _ = w.Write(body) // the client may be gone
}

// handleStored serves stored responses and conversations.
func (s *server) handleStored(mux *http.ServeMux) {
	codec := dialects.Stateful()
	mux.HandleFunc("POST /v1/responses/compact", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, serving.Call{Call: wire.Call{Codec: codec}, Compact: true})
	})
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, *stored) error{
		"GET /v1/responses/{id}":             retrieve,
		"DELETE /v1/responses/{id}":          s.store.delete,
		"POST /v1/responses/{id}/cancel":     cancel,
		"GET /v1/responses/{id}/input_items": listInput,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			e := s.store.response(r.PathValue("id"))
			var err error
			if e == nil {
				err = responsesapi.UnknownResponse(r.PathValue("id"))
			} else {
				err = serve(w, r, e)
			}
			if err != nil {
				serving.WriteError(w, codec, err)
			}
		})
	}
	responsesapi.HandleConversations(mux, s.maxBytes(), func(*http.Request) (responsesapi.ConversationStore, error) { return &s.store, nil },
		func(w http.ResponseWriter, _ *http.Request, err error) { serving.WriteError(w, codec, err) })
}

func retrieve(w http.ResponseWriter, r *http.Request, e *stored) error {
	if v := r.URL.Query().Get("stream"); v != "" && v != "false" {
		return &dragoman.APIError{
			Class: dragoman.ErrorBadRequest, Param: "stream", Message: "stream: only background responses can be streamed again, which the simulator does not have; retrieve the response without stream",
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(e.body) // the client may be gone
	return nil
}

func (s *responseStore) delete(w http.ResponseWriter, _ *http.Request, e *stored) error {
	s.mu.Lock()
	s.remove(s.find(e.id))
	s.mu.Unlock()
	responsesapi.WriteDeleted(w, e.id, "response")
	return nil
}

// cancel serves the cancellation of a response, which is always complete.
func cancel(w http.ResponseWriter, r *http.Request, e *stored) error {
	var response struct {
		Background bool `json:"background"`
	}
	if json.Unmarshal(e.body, &response) != nil || !response.Background {
		return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "Cannot cancel a synchronous response."}
	}
	return retrieve(w, r, e)
}

func listInput(w http.ResponseWriter, r *http.Request, e *stored) error {
	_, list, err := responsesapi.Page(r.URL.Query(), e.input, func(item json.RawMessage) json.RawMessage { return item })
	if err != nil {
		return err
	}
	serving.WriteJSON(w, list)
	return nil
}

// NewID implements [responsesapi.ConversationStore].
func (s *responseStore) NewID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", s.seed, s.count))
	return hex.EncodeToString(sum[:16])
}

// Now implements [responsesapi.ConversationStore].
func (*responseStore) Now() int64 { return created }

// Check implements [responsesapi.ConversationStore].
func (*responseStore) Check(item []byte) error {
	_, err := openCompaction(item)
	return err
}

// UnknownItem implements [responsesapi.ConversationStore].
func (*responseStore) UnknownItem(id string) error {
	return responsesapi.UnknownItem(id, storeAdvice)
}

// Load implements [responsesapi.ConversationStore].
func (s *responseStore) Load(_ context.Context, id string) (*responsesapi.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i < 0 || s.entries[i].conversation == nil {
		return nil, responsesapi.UnknownConversation(id, storeAdvice)
	}
	c := *s.entries[i].conversation
	return &c, nil
}

// Create implements [responsesapi.ConversationStore].
func (s *responseStore) Create(_ context.Context, id string, c *responsesapi.Conversation) error {
	if c.Size() > responsesapi.MaxConversation {
		return responsesapi.FullConversation()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(&stored{id: id, conversation: c})
	return nil
}

// Change implements [responsesapi.ConversationStore].
func (s *responseStore) Change(_ context.Context, id string, change func(*responsesapi.Conversation) error) (*responsesapi.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i < 0 || s.entries[i].conversation == nil {
		return nil, responsesapi.UnknownConversation(id, storeAdvice)
	}
	c := *s.entries[i].conversation
	before := c.Size()
	if err := change(&c); err != nil {
		return nil, err
	}
	if n := c.Size(); n > before && n > responsesapi.MaxConversation {
		return nil, responsesapi.FullConversation()
	}
	s.put(&stored{id: id, conversation: &c})
	return &c, nil
}

// Delete implements [responsesapi.ConversationStore].
func (s *responseStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.find(id))
	return nil
}

// Listed implements [responsesapi.ConversationStore].
func (*responseStore) Listed(context.Context, string, []json.RawMessage) error { return nil }
