package interop

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Options are the options of [New].
type Options struct {
	// Target is the target that the request is encoded for; its Dialect selects the formats.
	Target targets.Target
	// Limits are the limits of the target's dialect; Target.Caps overrides them.
	Limits targets.Limits
	// Tools are the tools of the request; their wire names are made valid and unique.
	Tools []dragoman.ToolSpec
	// Contributions are in order of precedence: config, provider, extensions, tools. The
	// built-in formats come last.
	Contributions []dragoman.Contribution
	// Codecs are the codecs of tool objects that the registry knows. Package
	// dialect/all has all of them; the codec of Target.Dialect must be among
	// them. Objects of a dialect that is not in the list can be neither read nor
	// written: conversions fail, and encoders report such a tool as dropped.
	Codecs []toolwire.Codec
	// Schemas caches lowered schemas between requests; nil lowers them each time.
	Schemas *SchemaCache
}

// Registry reads and writes the tool objects of one request. It stores the aliases it made, so
// it belongs to that request and is not safe for concurrent use.
type Registry struct {
	target targets.Target
	// codecs are the known codecs. ownCodec is the codec of the target's dialect; nil if unknown.
	codecs   []toolwire.Codec
	ownCodec toolwire.Codec
	names    *names
	ids      ids

	// breakpoints is the number of cache breakpoints that the wire allows, surplus the number
	// still to be left out.
	breakpoints, surplus int
	// forResponse reports that calls are written for a client to run, not as history.
	forResponse bool
	// checked is the request that passed the checks of an encoder, or nil.
	checked *dragoman.Request
	// received holds arguments with repeated keys that the target wrote itself.
	received map[string]bool
	// rewritten counts the calls that differ from their wire form.
	rewritten int
	// strict counts the strict schemas that were written.
	strict strictUse
	// wrapped: the response is wrapped in a property of an object.
	wrapped bool
	// allowed holds the tools that a response may call; nil means all.
	allowed map[toolID]bool
	// valid holds the last arguments that were found valid.
	valid [4]string
	found int

	// flattened holds the names for conversions to formats without namespaces, if the target has
	// namespaces; nil until needed.
	flattened *names

	accepts  []dragoman.Format
	schemas  map[dragoman.Format]schemaGuard
	calls    map[dragoman.Format]callGuard
	results  map[dragoman.Format]resultGuard
	adapters map[adapterKey]adapterGuard
	// listing holds the contributions, and owners which of them serves each format; the
	// built-in formats come last.
	listing []Entry
	owners  map[Entry]string
	lowered *SchemaCache
	// toolSchema caches the profile that the target's capabilities name.
	toolSchema *schema.Profile

	// lowering is the lowered schema of the current tool, forms those of all tools written so
	// far.
	lowering     *schema.Lowered
	translations translations
	scratch      scratch
}

type adapterKey struct {
	kind     string
	from, to dragoman.Format
}

// Entry is one entry of a registry's listing.
type Entry struct {
	Source string
	// What is "schema", "call" or "result" for an accessor, and
	// "schema adapter" and so on for an adapter.
	What     string
	From, To dragoman.Format
	// Shadowed is the contributor that takes precedence over this entry; empty if the entry is
	// in use.
	Shadowed string
}

func (e Entry) String() string {
	s := e.Source + ": " + e.What
	if e.From != "" {
		s += " " + string(e.From)
	}
	if e.To != "" {
		s += " to " + string(e.To)
	}
	if e.Shadowed != "" {
		s += " (shadowed by " + e.Shadowed + ")"
	}
	return s
}

// key returns the part of the entry that is unique among entries in use.
func (e Entry) key() Entry { return Entry{What: e.What, From: e.From, To: e.To} }

// builtIn is the source name of the built-in formats in a listing.
const builtIn = "built-in"

// New returns a registry. Contributions are additive. If two contributors serve the same
// format, the earlier one wins, and the listing shows it.
func New(o Options) *Registry {
	rule := o.Limits.Name
	if o.Target.Caps.Name != nil {
		rule = *o.Target.Caps.Name
	}
	idRule := o.Limits.ID
	if o.Target.Caps.ID != nil {
		idRule = *o.Target.Caps.ID
	}
	r := &Registry{
		target:      o.Target,
		codecs:      o.Codecs,
		ids:         ids{rule: idRule},
		breakpoints: o.Limits.MaxCacheBreakpoints,
		accepts:     slices.Clone(o.Limits.SchemaFormats),
		lowered:     o.Schemas,
	}
	for _, c := range r.codecs {
		if c.Traits().Dialect == o.Target.Dialect {
			r.ownCodec = c
		}
	}
	flatten := r.ownCodec == nil || r.ownCodec.Traits().Namespace == "" || o.Target.Caps.NoNamespaces
	claim := func(e Entry) bool {
		first, taken := r.owners[e.key()]
		e.Shadowed = first
		r.listing = append(r.listing, e)
		if !taken {
			put(&r.owners, e.key(), e.Source)
		}
		return !taken
	}
	for _, c := range o.Contributions {
		r.accepts = append(r.accepts, c.Accepts...)
		for _, a := range c.Schemas {
			if claim(Entry{Source: c.Source, What: "schema", From: a.Format()}) {
				put(&r.schemas, a.Format(), schemaGuard{guard{c.Source, a.Format()}, a})
			}
		}
		for _, a := range c.Calls {
			if claim(Entry{Source: c.Source, What: "call", From: a.Format()}) {
				put(&r.calls, a.Format(), callGuard{guard{c.Source, a.Format()}, a})
			}
		}
		for _, a := range c.Results {
			if claim(Entry{Source: c.Source, What: "result", From: a.Format()}) {
				put(&r.results, a.Format(), resultGuard{guard{c.Source, a.Format()}, a})
			}
		}
		for _, a := range c.Adapters {
			if claim(Entry{Source: c.Source, What: a.Kind() + " adapter", From: a.From(), To: a.To()}) {
				put(&r.adapters, adapterKey{a.Kind(), a.From(), a.To()}, adapterGuard{guard{c.Source, a.From()}, a.Kind(), a.To(), a})
			}
		}
	}
	// Ignore losses here: writing the tools reports them.
	r.names = newNames(rule, flatten, r.expand(o.Tools, new(dragoman.Report)))
	return r
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// Target returns the target of the registry.
func (r *Registry) Target() targets.Target { return r.target }

// Accepts returns the schema formats that pass to the target unchanged.
func (r *Registry) Accepts() []dragoman.Format { return slices.Clone(r.accepts) }

// Listing returns all accessors and adapters in order of precedence, including those that an
// earlier one shadows.
func (r *Registry) Listing() []Entry {
	out := slices.Clone(r.listing)
	for _, b := range r.builtIns() {
		b.Source, b.Shadowed = builtIn, r.owners[b.key()]
		out = append(out, b)
	}
	return out
}

// WireName returns the name to write for a tool.
func (r *Registry) WireName(namespace, name string) string {
	return r.names.wireName(namespace, name)
}

// PublicName returns the identity behind a wire name, and the tool's spec if the request
// declared it.
func (r *Registry) PublicName(namespace, wire string) (ns, name string, spec *dragoman.ToolSpec) {
	id, spec := r.names.resolve(namespace, wire)
	return id.namespace, id.name, spec
}

// WireID returns the call id to write.
func (r *Registry) WireID(id string) string { return r.ids.alias(id) }

// KeepID records that the target generated a call id itself: it is sent back unchanged,
// whatever the rule says (quirk B14).
func (r *Registry) KeepID(id string) { r.ids.mark(id, ownID) }

// MayCreateID reports whether the target can have generated an id for a call of a tool. A server
// with its own rule generates no ids that break the rule. Kimi numbers calls, with or without
// the prefix "functions.".
func (r *Registry) MayCreateID(id, name string) bool {
	rule := r.target.Caps.ID
	if rule == nil {
		return true
	}
	if !rule.Numbered {
		return rule.Allows(id)
	}
	rest, ok := strings.CutPrefix(strings.TrimPrefix(id, "functions."), name)
	if !ok || len(rest) < 2 || rest[0] != ':' && rest[0] != '_' {
		return false
	}
	return strings.Trim(rest[1:], "0123456789") == ""
}

// AnnounceID records that a call id occurs in the request, so that no alias of another id
// equals it. An encoder that writes some messages without the registry must announce all ids
// before it writes the first.
func (r *Registry) AnnounceID(id string) {
	if id != "" {
		r.ids.mark(id, inRequest)
	}
}

// Rewritten returns the number of calls that differ from their wire form: an alias was
// reversed, a decoration removed, or arguments were translated. Passing the original bytes
// through would show the client tools that it does not have.
func (r *Registry) Rewritten() int { return r.rewritten }

// WrapOutput records whether the request asks for its response in an object with one property,
// because its schema does not describe an object and the API requires one (quirk F6).
func (r *Registry) WrapOutput(wrapped bool) { r.wrapped = wrapped }

// OutputWrapped reports whether the response is wrapped in the object that [schema.Wrap] made
// of its output schema. Decoding leaves the text unchanged, streamed or complete;
// [schema.Unwrap] extracts the value.
func (r *Registry) OutputWrapped() bool { return r.wrapped }

// NumberID records that a call id belongs to the next call in a conversation, to the tool with
// this name. If the wire uses numbers as ids, the call gets its number, unless the target
// generated the id: that id is kept (quirk B14). Call it for all calls of a conversation, in
// order, before writing any of them.
func (r *Registry) NumberID(id, namespace, name string) {
	if r.ids.rule.Numbered && id != "" {
		r.ids.number(id, r.WireName(namespace, name))
	}
}

// AnnounceName records that a response calls a tool of this name without a namespace, so that
// no tool of a namespace is written under it.
func (r *Registry) AnnounceName(name string) { r.names.reserve(name) }

// flattenFor writes namespaces as parts of names until the returned function is called, if the
// target supports namespaces and the format of a conversion does not.
func (r *Registry) flattenFor(c toolwire.Codec) (restore func()) {
	if r.names.flatten || c != nil && c.Traits().Namespace != "" {
		return func() {}
	}
	if r.flattened == nil {
		r.flattened = r.names.flattened()
	}
	kept := r.names
	r.names = r.flattened
	return func() { r.names = kept }
}

// ForResponse returns the registry for writing a response. A client runs the calls it gets and
// sends the ids back, so names, ids and valid arguments are unchanged: the client knows no
// aliases and could not reverse one. Arguments that must not run are never replaced by ones
// that would.
func (r *Registry) ForResponse() *Registry {
	a := *r
	a.ids = ids{}
	a.names = r.names.forClient()
	a.forResponse = true
	return &a
}

// LimitBreakpoints records that a request has n cache breakpoints. If the wire allows fewer,
// the first ones are left out and reported, because a later breakpoint covers everything before
// it.
func (r *Registry) LimitBreakpoints(n int) {
	r.surplus = max(n-r.breakpoints, 0)
}

// PublicID returns the call id behind an id on the wire.
func (r *Registry) PublicID(wire string) string { return r.ids.restore(wire) }
