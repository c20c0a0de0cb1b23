package gateway

import (
	"context"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
	"github.com/dragoman-go/dragoman/provider"
)

// Responses clients may refer to items of earlier responses by id instead of sending them again.
// The gateway replaces references to items that it stored itself with the items, so that every
// upstream gets them. References to items that an upstream stores are passed through to it, for
// the key that owns the items. All others are errors (decision 74).

// inputItem is an element of the input of a Responses request.
type inputItem struct {
	responsesapi.Item
	// stored reports that the item replaced a reference and was not made by a Responses upstream.
	stored bool
	// compaction is the compaction item that its summary replaced. foreign is set for a compaction
	// item that the gateway did not make.
	compaction []byte
	foreign    bool
}

// original returns the item as the client sent it.
func (i *inputItem) original() []byte {
	if i.compaction != nil {
		return i.compaction
	}
	return i.Raw
}

// resolveReferences reads the input of a Responses request and replaces references with the stored
// items. A reference to anything but an item of this key is an error.
func (x *exchange) resolveReferences(ctx context.Context) (err error) {
	if !x.stateful() {
		return nil
	}
	input, err := responsesapi.ReadInput(x.head.input)
	if err != nil {
		return responsesapi.BadInput(err)
	}
	x.input = make([]inputItem, len(input))
	for i := range input {
		x.input[i].Item = input[i]
	}
	changed := x.conversation.id != ""
	var open []string // references that the gateway has to look up
	for i := range x.input {
		if item := &x.input[i]; item.Reference || item.Lookup {
			open = append(open, item.ID)
		}
	}
	held, err := x.storedItems(ctx, x, x.entry.key, open)
	if err != nil {
		return err
	}
	if err := x.checkOwner(ctx, held); err != nil {
		return err
	}
	if err := x.checkDuplicates(ctx, held); err != nil {
		return err
	}
	for i := range x.input {
		item := &x.input[i]
		stored, ok := held[item.ID]
		if !ok || !item.Reference && !item.Lookup {
			continue
		}
		if item.Item, err = responsesapi.ReadItem(stored.json); err != nil {
			return err
		}
		item.Reference, item.Lookup, item.stored, changed = false, false, !stored.native, true
	}
	for _, items := range [][]inputItem{x.conversationItems, x.input} {
		opened, err := x.expandCompactions(ctx, items)
		if err != nil {
			return err
		}
		changed = changed || opened
	}
	if !changed {
		return nil
	}
	if err := x.hold(2 * x.expandedSize()); err != nil { // reserve memory for both forms of the expanded request
		return err
	}
	x.expandReferences()
	return nil
}

// checkDuplicates refuses a reference to an item that the model would see twice, as OpenAI does:
// one of two equal calls would have no result.
func (x *exchange) checkDuplicates(ctx context.Context, held map[string]storedItem) error {
	if len(held) == 0 {
		return nil
	}
	seen, err := x.earlierItems(ctx)
	if err != nil {
		return err
	}
	for i := range x.input {
		if item := &x.input[i]; !item.Reference {
			seen[item.ID] = true
		}
	}
	for i := range x.input {
		item := &x.input[i]
		switch {
		case !item.Reference || item.ID == "":
		case seen[item.ID]:
			return &ownError{responsesapi.DuplicateItem(item.ID)}
		default:
			seen[item.ID] = true
		}
	}
	return nil
}

// earlierItems returns the ids of the items that the request continues: those of its
// conversation, or of the stored responses before it.
func (x *exchange) earlierItems(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for i := range x.conversationItems {
		ids[x.conversationItems[i].ID] = true
	}
	for id, n := x.head.previous, 0; id != "" && n < maxInputChain; n++ {
		s, err := x.storedResponse(ctx, x.entry.key, id)
		if err != nil {
			return nil, err
		}
		if s == nil {
			break
		}
		if err := x.hold(s.size()); err != nil {
			return nil, err
		}
		for _, item := range slices.Concat(s.Input, responsesapi.ItemsOf(s.Body, "output")) {
			ids[responsesapi.IDOf(item)] = true
		}
		x.release(s.size())
		id = s.Parent
	}
	return ids, nil
}

// expandedSize returns a bound on the size of the expanded request: a short request may refer to
// many long items.
func (x *exchange) expandedSize() int {
	size := len(x.body)
	for _, items := range [][]inputItem{x.conversationItems, x.input} {
		for i := range items {
			size += len(items[i].Raw) + 1
		}
	}
	return size
}

// hasStatefulUpstream reports whether the route has a Responses upstream, which may have stored items
// itself.
func (x *exchange) hasStatefulUpstream() bool {
	return slices.ContainsFunc(x.route.chain.Links, func(l provider.Link) bool { return x.route.upstreams[l.Name].stateful() })
}

// checkOwner refuses references that the gateway does not hold, unless an upstream of the
// route stored the item for this key. Without keys there is one user, who may refer to
// anything of the upstream's account.
func (x *exchange) checkOwner(ctx context.Context, held map[string]storedItem) error {
	native := x.hasStatefulUpstream()
	var open []inputItem
	var notes []string
	for _, item := range slices.Concat(x.conversationItems, x.input) {
		if _, ok := held[item.ID]; ok || !item.Reference && (!item.Lookup || !native) {
			continue
		}
		if !native {
			return unknownItem(item.ID)
		}
		open, notes = append(open, item), append(notes, ownerKey(x.entry.key, item.ID))
	}
	if len(open) == 0 || x.keys.Open() {
		return nil
	}
	owned, err := x.opts.Notes.GetAll(ctx, notes)
	if err != nil {
		return err
	}
	for i := range open {
		if owned[i] == nil {
			return unknownItem(open[i].ID)
		}
	}
	return nil
}

// expandReferences rebuilds the request with the items that its references name. Upstreams of
// other dialects get the items that the client received. Responses upstreams get them
// without ids, because only the gateway knows those ids.
func (x *exchange) expandReferences() {
	all := slices.Concat(x.conversationItems, x.input)
	write := func(form func(i int, item *inputItem) []byte) []byte {
		input := []byte{'['}
		for i := range all {
			if raw := form(i, &all[i]); raw != nil {
				if len(input) > 1 {
					input = append(input, ',')
				}
				input = append(input, raw...)
			}
		}
		input = append(input, ']')
		return jsonwire.With(jsonwire.Without(x.body, "conversation"), "input", input)
	}
	x.expandLosses = nil
	x.bodies.hasStatefulUpstream = write(func(i int, item *inputItem) []byte {
		if !item.stored {
			return item.Raw
		}
		if item.Type == "reasoning" {
			x.expandLosses = append(x.expandLosses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: fmt.Sprintf("/input/%d", i), Detail: "reasoning of another provider"})
			return nil
		}
		return jsonwire.Without(item.Raw, "id", "status")
	})
	x.bodies.translated = write(func(_ int, item *inputItem) []byte { return item.Raw })
	x.bodies.expanded = true
}

// bodyFor returns the request in the form for an upstream.
func (x *exchange) bodyFor(up *upstream) []byte {
	switch {
	case !x.bodies.expanded:
		return x.body
	case up.stateful():
		return x.bodies.hasStatefulUpstream
	default:
		return x.bodies.translated
	}
}

// checkResolved returns an error for references that the upstream cannot resolve, because another
// one of the route stores the items.
func (x *exchange) checkResolved(up *upstream) error {
	if up.stateful() {
		return nil
	}
	if x.conversation.upstream != "" {
		return unknownConversation(x.conversation.upstream)
	}
	for _, items := range [][]inputItem{x.conversationItems, x.input} {
		for i := range items {
			switch item := &items[i]; {
			case item.Reference:
				return unknownItem(item.ID)
			case item.foreign:
				return &ownError{refusedCompaction(i, item)}
			}
		}
	}
	return nil
}

// unknownItem returns the error for a reference that cannot be resolved.
func unknownItem(id string) error {
	return &ownError{responsesapi.UnknownItem(id, "Items are stored unless `store` is false, and expire; send the item itself instead of a reference.")}
}
