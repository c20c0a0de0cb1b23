package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// storesResponse reports whether the gateway must store the response: the client can continue it
// by its id, and the upstream does not store it.
func (x *exchange) storesResponse() bool {
	if x.storesThread() {
		return true
	}
	return x.stateful() && !x.up.stateful() && (x.req.Store == nil || *x.req.Store)
}

// storesAnything reports whether the response, or state of it, is stored.
func (x *exchange) storesAnything() bool { return !x.route.NoStoredReasoning || x.storesResponse() }

// clientResponse returns the response that the client gets: with an id of the gateway if the
// gateway stores it, in the form of the client's dialect, and with a time. ended reports that the
// response is complete; otherwise it begins.
func (x *exchange) clientResponse(resp dragoman.Response, ended bool) dragoman.Response {
	if resp.Created.IsZero() {
		resp.Created = x.entry.created
	}
	x.entry.created = resp.Created // the end repeats it, though some models do not
	if x.stateful() && !x.up.stateful() {
		if x.own.echoFields == nil {
			x.own.echoFields = x.echoFields()
		}
		if resp.Extra = x.own.echoFields; ended {
			resp.Extra = x.withCompletedAt(resp.Extra)
		}
	}
	if x.sendsSummaries() {
		resp.Output = withSummaries(resp.Output)
	}
	if x.hasToolSearch {
		resp.Output = restoreSearches(resp.Output)
	}
	if x.storesResponse() {
		resp.ID = x.responseID()
	}
	return resp
}

// withCompletedAt adds the time at which a response was completed to its echo.
func (x *exchange) withCompletedAt(echo *dragoman.Extra) *dragoman.Extra {
	if x.own.completed.IsZero() {
		x.own.completed = x.opts.Now()
	}
	at := max(x.own.completed.Unix(), x.entry.created.Unix()) // the upstream's clock may be ahead
	return &dragoman.Extra{Dialect: echo.Dialect, Fields: append(slices.Clone(echo.Fields), dragoman.Field{
		Path: "/completed_at", Value: strconv.AppendInt(nil, at, 10),
	})}
}

// responseID returns the id of a stored response.
func (x *exchange) responseID() string {
	return wire.Of(x.codec).State.IDPrefix + strings.TrimPrefix(x.id, "req_")
}

// storeTimeout limits the time for storing.
const storeTimeout = 5 * time.Second

// storeState stores state that the client may drop: the opaque parts of a response, and the
// conversation that it belongs to. body is the response object for a Responses client. Errors are
// logged and reported as losses.
func (x *exchange) storeState(ctx context.Context, resp *dragoman.Response, body []byte) {
	// A client that disconnected may come back with the whole conversation.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if !x.route.NoStoredReasoning {
		err := x.recall.StoreState(ctx, x.recallScope(), x.req, resp)
		if x.stateStored = err == nil; err != nil {
			x.warn(ctx, "reasoning could not be stored", err)
		}
	}
	if x.storesResponse() {
		if err := x.storeResponse(ctx, resp, body); err != nil {
			x.warn(ctx, "a response could not be stored", err)
			x.noteNotStored(err)
		}
	}
}

// realLosses removes the losses of opaque state that the client's dialect cannot represent but the
// gateway stores (quirk B17). If the state is missing later, the loss is reported then.
func (x *exchange) realLosses(of []dragoman.Loss) []dragoman.Loss {
	if !x.stateStored {
		return of
	}
	return slices.DeleteFunc(slices.Clone(of), func(l dragoman.Loss) bool { return extra.IsOpaque(&l) })
}

// noteNotStored records that a response is not stored. The response reports it, if there is still
// time.
func (x *exchange) noteNotStored(err error) {
	x.notStored, x.own.echoFields = true, nil
	detail := "the response could not be stored"
	if errors.Is(err, recall.ErrTooLarge) {
		detail = "the response is too large to be stored"
	}
	path := "/store"
	if x.storesThread() {
		path = "/thread"
	}
	x.entry.losses = append(x.entry.losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: path, Detail: detail})
}

// storeResponse stores a response and the conversation that it belongs to.
func (x *exchange) storeResponse(ctx context.Context, resp *dragoman.Response, body []byte) error {
	parent := ""
	if x.history != nil {
		parent = x.head.previous
	}
	if err := x.recall.SaveResponse(ctx, x.entry.key, x.responseID(), parent, slices.Concat(x.own.messages, resp.Output)); err != nil {
		return err
	}
	if x.storesThread() {
		return x.saveThread(ctx)
	}
	if err := x.saveResponse(ctx, x.responseID(), parent, body, false); err != nil {
		return errors.Join(err, x.recall.DeleteResponse(ctx, x.entry.key, x.responseID())) // store all of it or nothing
	}
	return nil
}

// bodyKey returns the key of the stored body of a response. Virtual keys do not see each
// other's responses.
func bodyKey(key, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(key), key, id))
	return "body " + hex.EncodeToString(sum[:])
}

// loadHistory loads the conversation that a request continues, if the gateway has it, or
// otherwise finds the models whose upstreams may have it.
func (x *exchange) loadHistory(ctx context.Context) error {
	if err := x.loadPrevious(ctx); err != nil {
		return err
	}
	return x.limitToOwner(ctx)
}

func (x *exchange) loadPrevious(ctx context.Context) error {
	if err := x.resolveConversation(ctx); err != nil {
		return err
	}
	if err := x.resolveReferences(ctx); err != nil {
		return err
	}
	if x.head.previous == "" {
		return nil
	}
	var err error
	if x.history, err = x.recall.LoadResponse(ctx, x.entry.key, x.head.previous); errors.Is(err, recall.ErrNotFound) {
		return x.checkPreviousOwner(ctx)
	}
	if err == nil && x.head.thread.Requested {
		return x.loadThread(ctx)
	}
	return err
}

// checksOwner reports whether the gateway must check which key owns a response that the upstream
// stores: all keys share the upstream's account, which would accept any of them.
func (x *exchange) checksOwner() bool {
	return !x.keys.Open() && (x.stateful() || x.head.thread.Requested)
}

// checkPreviousOwner refuses a request that continues a response not known to belong to its key.
func (x *exchange) checkPreviousOwner(ctx context.Context) error {
	if !x.checksOwner() {
		return nil
	}
	_, found, err := x.opts.Notes.Get(ctx, ownerKey(x.entry.key, x.head.previous))
	switch {
	case err != nil || found:
		return err
	case x.head.thread.Requested:
		return wire.Of(x.codec).State.Threads.Unknown(x.head.previous)
	default:
		return unknownResponse(x.head.previous)
	}
}

// prependHistory puts the stored conversation before the messages of the request.
func (x *exchange) prependHistory(req *dragoman.Request) {
	x.own.messages = req.Messages
	if x.history != nil {
		req.Messages = slices.Concat(x.history, req.Messages)
		req.PreviousResponseID, req.Native = "", nil
	}
	if x.threadSetting != nil {
		req.Instructions, req.Tools = x.threadSetting.Instructions, x.threadSetting.Tools
		removeThread(req, wire.Of(x.codec).State.Threads.Field)
	}
}

// unknownResponse returns the error for an unknown previous_response_id.
func unknownResponse(id string) error {
	return responsesapi.UnknownPrevious(id, "It expired or was not stored; send the whole conversation.")
}
