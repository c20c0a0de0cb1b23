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

// stores reports whether clients can continue from the response by its id, and the gateway must
// store it because the upstream does not.
func (x *exchange) stores() bool {
	if x.threads() {
		return true
	}
	return x.stateful() && !x.up.stateful() && (x.req.Store == nil || *x.req.Store)
}

// keeps reports whether any of the response is stored.
func (x *exchange) keeps() bool { return !x.route.NoRecall || x.stores() }

// told returns a response for the client: with an id of the gateway if the client can continue
// from it, in the form of the client's dialect, and with a time.
//
// ended reports that the response is complete; otherwise it begins.
func (x *exchange) told(resp dragoman.Response, ended bool) dragoman.Response {
	if resp.Created.IsZero() {
		resp.Created = x.entry.made
	}
	x.entry.made = resp.Created // the end repeats it, though some models do not
	if x.stateful() && !x.up.stateful() {
		if x.said.echo == nil {
			x.said.echo = x.echo()
		}
		if resp.Extra = x.said.echo; ended {
			resp.Extra = x.completedNow(resp.Extra)
		}
	}
	if x.summarises() {
		resp.Output = summarised(resp.Output)
	}
	if x.searches {
		resp.Output = tellSearches(resp.Output)
	}
	if x.stores() {
		resp.ID = x.responseID()
	}
	return resp
}

// completedNow adds the time at which a response was completed to its echo.
func (x *exchange) completedNow(echo *dragoman.Extra) *dragoman.Extra {
	if x.said.completed.IsZero() {
		x.said.completed = x.opts.Now()
	}
	at := max(x.said.completed.Unix(), x.entry.made.Unix()) // an upstream's clock may be ahead of ours
	return &dragoman.Extra{Dialect: echo.Dialect, Fields: append(slices.Clone(echo.Fields), dragoman.Field{
		Path: "/completed_at", Value: strconv.AppendInt(nil, at, 10),
	})}
}

// responseID returns the id of a stored response.
func (x *exchange) responseID() string {
	return wire.Of(x.codec).State.IDPrefix + strings.TrimPrefix(x.id, "req_")
}

// keepTime limits the time for storing.
const keepTime = 5 * time.Second

// keep stores state that the client may drop: the opaque parts of a response, and the
// conversation that it belongs to.
//
// body is the response object for a Responses client.
func (x *exchange) keep(ctx context.Context, resp *dragoman.Response, body []byte) {
	// A client that disconnected may come back with the whole conversation.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	if !x.route.NoRecall {
		err := x.recall.Keep(ctx, x.scope(), x.req, resp)
		if x.remembers = err == nil; err != nil {
			x.warn(ctx, "reasoning could not be stored", err)
		}
	}
	if x.stores() {
		if err := x.store(ctx, resp, body); err != nil {
			x.warn(ctx, "a response could not be stored", err)
			x.unstored(err)
		}
	}
}

// lost returns the real losses of a response: opaque state that the client cannot represent is
// not lost if the gateway stores it (quirk B17). If it is missing later, the loss is reported
// then.
func (x *exchange) lost(of []dragoman.Loss) []dragoman.Loss {
	if !x.remembers {
		return of
	}
	return slices.DeleteFunc(slices.Clone(of), func(l dragoman.Loss) bool { return extra.IsOpaque(&l) })
}

// unstored records that a response is not stored. The response reports it, if there is still
// time.
func (x *exchange) unstored(err error) {
	x.unkept, x.said.echo = true, nil
	detail := "the response could not be stored"
	if errors.Is(err, recall.ErrTooLarge) {
		detail = "the response is too large to be stored"
	}
	path := "/store"
	if x.threads() {
		path = "/thread"
	}
	x.entry.losses = append(x.entry.losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: path, Detail: detail})
}

// store stores a response and the conversation that it belongs to.
func (x *exchange) store(ctx context.Context, resp *dragoman.Response, body []byte) error {
	parent := ""
	if x.before != nil {
		parent = x.asked.previous
	}
	if err := x.recall.Save(ctx, x.entry.key, x.responseID(), parent, slices.Concat(x.said.messages, resp.Output)); err != nil {
		return err
	}
	if x.threads() {
		return x.saveThread(ctx)
	}
	if err := x.saveResponse(ctx, x.responseID(), parent, body, false); err != nil {
		return errors.Join(err, x.recall.Delete(ctx, x.entry.key, x.responseID())) // store all of it or nothing
	}
	return nil
}

// bodyKey returns the key of the stored body of a response. Virtual keys do not see each
// other's responses.
func bodyKey(key, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(key), key, id))
	return "body " + hex.EncodeToString(sum[:])
}

// recallConversation loads the conversation that a request continues, if the gateway has it, or
// otherwise finds the models whose upstreams may have it.
func (x *exchange) recallConversation(ctx context.Context) error {
	if err := x.loadBefore(ctx); err != nil {
		return err
	}
	return x.findHolders(ctx)
}

func (x *exchange) loadBefore(ctx context.Context) error {
	if err := x.joinConversation(ctx); err != nil {
		return err
	}
	if err := x.resolve(ctx); err != nil {
		return err
	}
	if x.asked.previous == "" {
		return nil
	}
	var err error
	if x.before, err = x.recall.Load(ctx, x.entry.key, x.asked.previous); errors.Is(err, recall.ErrNotFound) {
		return x.disowned(ctx)
	}
	if err == nil && x.asked.thread.Asked {
		return x.loadThread(ctx)
	}
	return err
}

// owned reports whether the gateway must check which key owns a response that the upstream
// stores: all keys share the upstream's account, which would accept any of them.
func (x *exchange) owned() bool {
	return !x.keys.Open() && (x.stateful() || x.asked.thread.Asked)
}

// disowned refuses a request that continues a response not known to belong to its key.
func (x *exchange) disowned(ctx context.Context) error {
	if !x.owned() {
		return nil
	}
	_, found, err := x.opts.Notes.Get(ctx, ownerKey(x.entry.key, x.asked.previous))
	switch {
	case err != nil || found:
		return err
	case x.asked.thread.Asked:
		return wire.Of(x.codec).State.Threads.Unknown(x.asked.previous)
	default:
		return unknownResponse(x.asked.previous)
	}
}

// goOn puts the stored conversation before the messages of the request.
func (x *exchange) goOn(req *dragoman.Request) {
	x.said.messages = req.Messages
	if x.before != nil {
		req.Messages = slices.Concat(x.before, req.Messages)
		req.PreviousResponseID, req.Native = "", nil
	}
	if x.setting != nil {
		req.Instructions, req.Tools = x.setting.Instructions, x.setting.Tools
		withoutThread(req, wire.Of(x.codec).State.Threads.Field)
	}
}

// unknownResponse returns the error for an unknown previous_response_id.
func unknownResponse(id string) error {
	return responsesapi.UnknownPrevious(id, "It expired or was not stored; send the whole conversation.")
}
