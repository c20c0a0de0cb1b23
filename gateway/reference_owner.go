package gateway

import (
	"context"
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
)

// limitToOwner sets the models of the route that may be called. If the request refers to something
// that an upstream stores, these are the models of that upstream's account. Others cannot resolve
// the reference, and their error would hide why the owner did not respond.
func (x *exchange) limitToOwner(ctx context.Context) error {
	x.chain = x.route.chain
	ids, refers := x.upstreamReferences()
	if !refers {
		return nil
	}
	holds := func(up *upstream) bool { return up.dialect == x.codec.Dialect() }
	for _, id := range ids {
		holder, err := x.ownerOf(ctx, id)
		if err != nil {
			return err
		}
		if holder == nil {
			continue
		}
		account := holder.account(ctx)
		holds = func(up *upstream) bool { return up.account(ctx) == account }
		break
	}
	all := x.route.chain
	links := slices.DeleteFunc(slices.Clone(all.Links), func(l provider.Link) bool { return !holds(x.route.upstreams[l.Name]) })
	if len(links) > 0 { // otherwise the first model refuses the reference
		x.chain = &provider.Chain{Links: links, Health: all.Health, AlwaysContinue: all.AlwaysContinue, Log: all.Log}
	}
	return nil
}

// upstreamReferences returns the ids of responses and items that the request refers to and
// an upstream stores, and whether it refers to anything there.
func (x *exchange) upstreamReferences() (ids []string, refers bool) {
	if x.head.previous != "" && x.history == nil {
		ids = append(ids, x.head.previous)
	}
	for _, item := range slices.Concat(x.conversationItems, x.input) {
		if item.Reference {
			ids = append(ids, item.ID)
		}
		refers = refers || item.foreign
	}
	return ids, refers || len(ids) > 0 || x.conversation.upstream != ""
}

// ownerOf returns the upstream of the route that returned a response or an item to the key; nil if
// that is unknown.
func (x *exchange) ownerOf(ctx context.Context, id string) (*upstream, error) {
	b, found, err := x.opts.Notes.Get(ctx, ownerKey(x.entry.key, id))
	var from responseSource
	if err != nil || !found || json.Unmarshal(b, &from) != nil {
		return nil, err
	}
	return x.route.upstreams[from.Link], nil
}

// account identifies what an upstream stores for the gateway: endpoint and credential.
func (up *upstream) account(ctx context.Context) dragoman.Origin {
	if up.client == nil {
		return dragoman.Origin{Dialect: up.dialect}
	}
	target, _, err := up.client.Target(ctx, "")
	if err != nil || target.Origin().Scope == "" {
		return dragoman.Origin{Dialect: up.dialect, Provider: up.client.Name}
	}
	return dragoman.Origin{Dialect: up.dialect, Scope: target.Origin().Scope}
}
