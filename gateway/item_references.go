package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// Responses clients may refer to items of earlier responses by their ids instead of
// sending them again. The gateway puts the items that it stored itself in the place of
// their references, so that every upstream sees them. References to items that an
// upstream stored are passed through to it, for the key that the items belong to. All
// others are errors (decision 74).

// inputItem is an element of the input of a Responses request.
type inputItem struct {
	raw     []byte
	typ, id string
	// ref is set for a reference to a stored item: an item_reference, also one without
	// a type.
	ref bool
	// lookup is set for reasoning without content and for an image without data. OpenAI
	// looks them up by their ids, as if they were references; other upstreams take them as
	// they are.
	lookup bool
	// stored is set for an item, in the place of a reference, that no Responses upstream
	// made.
	stored bool
	// shown is the compaction item that its summary replaced; foreign is set for a
	// compaction item that the gateway did not make.
	shown   []byte
	foreign bool
}

// listed is an item as the client sent it.
func (i *inputItem) listed() []byte {
	if i.shown != nil {
		return i.shown
	}
	return i.raw
}

// readInput reads the elements of an input: a list of items, a text or null. It refuses
// anything else, so that an upstream never gets a reference that the gateway did not check.
func readInput(input []byte) (items []inputItem, err error) {
	if len(input) == 0 {
		return nil, nil
	}
	r := jsonwire.NewReader(input)
	switch r.Kind() {
	case '"':
		return []inputItem{{raw: userText(r.String()), typ: "message"}}, nil
	case '[':
	case 'n':
		return nil, nil
	default:
		return nil, fmt.Errorf("input: want a string or a list of items, got %s", kindName(byte(r.Kind())))
	}
	for i := range r.Array() {
		if kind := r.Kind(); kind != '{' && r.Err() == nil {
			return nil, fmt.Errorf("input[%d]: want an object, got %s", i, kindName(byte(kind)))
		}
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		item, err := readInputItem(raw)
		if err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		items = append(items, item)
	}
	return items, r.Err()
}

// kindName returns the name of a JSON type for the kind that a reader reports.
func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// identifying lists the fields that distinguish an item from a reference.
var identifying = []string{"type", "id", "role", "content", "encrypted_content", "result"}

// readInputItem reads the fields that identify an item. It refuses duplicates of these
// fields, in any case: the upstream could read a reference that the gateway did not
// check.
func readInputItem(raw []byte) (item inputItem, err error) {
	item.raw = raw
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return item, nil
	}
	var role, content bool
	seen := make([]string, 0, len(identifying))
	for key := range r.Object() {
		name := string(key)
		if i := slices.IndexFunc(identifying, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
			if name != identifying[i] || slices.Contains(seen, name) {
				return item, fmt.Errorf("duplicate field %.80q", name)
			}
			seen = append(seen, name)
		}
		switch {
		case name == "type" && r.Kind() == '"':
			item.typ = r.String()
		case name == "id" && r.Kind() == '"':
			item.id = r.String()
		case name == "role":
			role = r.Kind() != 'n'
			r.Skip()
		case name == "content" || name == "encrypted_content" || name == "result":
			content = hasValue(r.Raw()) || content
		default:
			r.Skip()
		}
	}
	item.ref = item.typ == "item_reference" || item.typ == "" && !role && item.id != ""
	item.lookup = (item.typ == "reasoning" || item.typ == "image_generation_call") && item.id != "" && !content
	return item, r.Err()
}

// hasValue reports whether a value is neither null nor empty.
func hasValue(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case 'n':
		return false
	case '"':
		return r.String() != ""
	case '[':
		for range r.Array() {
			return true
		}
		return false
	default:
		return true
	}
}

// userText is a text as an input item.
func userText(text string) []byte {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "message")
	w.StringField("role", string(dragoman.RoleUser))
	w.StringField("content", text)
	w.EndObject()
	return w.Buf
}

// resolve reads the input of a Responses request and replaces references with the stored
// items. A reference to anything but an item of this key is an error.
func (x *exchange) resolve(ctx context.Context) (err error) {
	if x.codec.Dialect() != dragoman.OpenAIResponses {
		return nil
	}
	if x.input, err = readInput(x.asked.input); err != nil {
		refusal := serving.Refuse(err)
		refusal.Param = "input"
		return refusal
	}
	changed := x.conversation.id != ""
	var open []string // references that the gateway has to look up
	for i := range x.input {
		item := &x.input[i]
		switch {
		case item.ref && item.id == "":
			return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "input", Message: fmt.Sprintf("input[%d]: an item_reference needs an id", i)}
		case item.ref || item.lookup:
			open = append(open, item.id)
		}
	}
	held, err := x.storedItems(ctx, x, x.entry.key, open)
	if err != nil {
		return err
	}
	if err := x.checkOwner(ctx, held); err != nil {
		return err
	}
	for i := range x.input {
		item := &x.input[i]
		stored, ok := held[item.id]
		if !ok || !item.ref && !item.lookup {
			continue
		}
		if *item, err = readInputItem(stored.json); err != nil {
			return err
		}
		item.ref, item.lookup, item.stored, changed = false, false, !stored.native, true
	}
	for _, items := range [][]inputItem{x.conversationItems, x.input} {
		opened, err := x.openCompaction(ctx, items)
		if err != nil {
			return err
		}
		changed = changed || opened
	}
	if !changed {
		return nil
	}
	if err := x.hold(2 * x.expandedSize()); err != nil { // before it is built, in two forms
		return err
	}
	x.expand()
	return nil
}

// expandedSize bounds the size of the request with items in the place of their
// references: a short request may refer to a long item many times.
func (x *exchange) expandedSize() int {
	size := len(x.body)
	for _, items := range [][]inputItem{x.conversationItems, x.input} {
		for i := range items {
			size += len(items[i].raw) + 1
		}
	}
	return size
}

// native reports whether the route has a Responses upstream, which may have stored items
// itself.
func (x *exchange) native() bool {
	return slices.ContainsFunc(x.route.chain.Links, func(l provider.Link) bool { return x.route.upstreams[l.Name].dialect == dragoman.OpenAIResponses })
}

// checkOwner refuses references that the gateway does not hold, unless an upstream of the
// route stored the item for this key. Without keys there is one user, who may refer to
// anything of the upstream's account.
func (x *exchange) checkOwner(ctx context.Context, held map[string]storedItem) error {
	native := x.native()
	var open []inputItem
	var notes []string
	for _, item := range slices.Concat(x.conversationItems, x.input) {
		if _, ok := held[item.id]; ok || !item.ref && (!item.lookup || !native) {
			continue
		}
		if !native {
			return unknownItem(item.id)
		}
		open, notes = append(open, item), append(notes, ownerKey(x.entry.key, item.id))
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
			return unknownItem(open[i].id)
		}
	}
	return nil
}

// expand rebuilds the request with the items that its references name. Upstreams of
// other dialects get the items that the client received. Responses upstreams get them
// without ids, because only the gateway knows those ids.
func (x *exchange) expand() {
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
		return withField(without(x.body, "conversation"), "input", input)
	}
	x.losses = nil
	x.bodies.native = write(func(i int, item *inputItem) []byte {
		if !item.stored {
			return item.raw
		}
		if item.typ == "reasoning" {
			x.losses = append(x.losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: fmt.Sprintf("/input/%d", i), Detail: "reasoning of another provider"})
			return nil
		}
		return without(item.raw, "id", "status")
	})
	x.bodies.translated = write(func(_ int, item *inputItem) []byte { return item.raw })
	x.bodies.expanded = true
}

// bodyFor returns the request in the form for an upstream.
func (x *exchange) bodyFor(up *upstream) []byte {
	switch {
	case !x.bodies.expanded:
		return x.body
	case up.dialect == dragoman.OpenAIResponses:
		return x.bodies.native
	default:
		return x.bodies.translated
	}
}

// unresolvedFor is the error for references that the upstream cannot resolve: another one
// of the route stored the items.
func (x *exchange) unresolvedFor(up *upstream) error {
	if up.dialect == dragoman.OpenAIResponses {
		return nil
	}
	if x.conversation.upstream != "" {
		return unknownConversation(x.conversation.upstream)
	}
	for _, item := range slices.Concat(x.conversationItems, x.input) {
		switch {
		case item.ref:
			return unknownItem(item.id)
		case item.foreign:
			return &ownError{&dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "input", Message: fmt.Sprintf("compaction item '%s': %v", bounded(item.id), errUnsealed)}}
		}
	}
	return nil
}

// unknownItem returns the error for a reference that cannot be resolved, in OpenAI's words.
func unknownItem(id string) error {
	return &ownError{serving.OpenAIs(openairesponses.Codec{}, "", &dragoman.APIError{
		Class: dragoman.ErrorNotFound, Param: "input",
		Message: fmt.Sprintf("Item with id '%s' not found. Items are stored unless `store` is false, and expire; send the item itself instead of a reference.", bounded(id)),
	})}
}

// without returns an object without some of its fields.
func without(object []byte, names ...string) []byte {
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	var w jsonwire.Writer
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		if value := r.Raw(); !slices.Contains(names, name) {
			w.RawField(name, value)
		}
	}
	w.EndObject()
	return w.Buf
}

// withField returns an object with one field set.
func withField(object []byte, name string, value []byte) []byte {
	return filled(within(object, name, func([]byte) []byte { return value }), missing{name, string(value)})
}
