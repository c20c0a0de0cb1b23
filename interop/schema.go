package interop

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// WriteTools writes the definitions as elements of the array that w is writing, and returns the
// number of elements written.
//
//   - A tool already in an accepted format passes through byte for byte: its author wrote it
//     for this API, and lint reports problems.
//   - A tool that the target would reject is dropped and reported, without affecting the others
//     (quirk A45).
func (r *Registry) WriteTools(w *jsonwire.Writer, tools []dragoman.ToolSpec, rep *dragoman.Report) (int, error) {
	f, err := r.wire()
	if err != nil {
		return 0, err
	}
	marker, marks := r.ownCodec.(toolwire.ToolMarker)
	tools = r.expand(tools, rep)
	if name := r.target.Caps.ToolSchema; name != "" && len(tools) > 0 {
		if r.subset() == nil {
			rep.Addf(dragoman.Lowered, dragoman.Warn, "/tools", "unknown schema subset %.60q; the default of the dialect is used", name)
		}
	}
	written := 0
	seen := make(map[toolID]*dragoman.ToolSpec, len(tools))
	all, sub := rep, dragoman.Report{}
	rep = &sub
	var few tally
	defer func() { few.finish(all, &sub) }()
	for i := 0; i < len(tools); i++ {
		s := &tools[i]
		at := extra.Elem("/tools", i)
		few.move(all, &sub)
		if s.Kind != codes.ToolHosted && (s.Name != "" || s.Source == nil) {
			id := toolID{s.Namespace, s.Name}
			if first, dup := seen[id]; dup {
				if first.Fingerprint() != s.Fingerprint() {
					rep.Addf(dragoman.Dropped, dragoman.Warn, at.String(), "tool %q is declared twice; the first declaration is used", s.QualifiedName())
				} else {
					rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "tool %q is declared twice identically; one is sent", s.QualifiedName())
				}
				continue
			}
			seen[id] = s
		}
		if s.Namespace != "" && f.Namespace != "" && !r.names.flatten {
			n := namespaceRun(tools[i:])
			if r.writeNamespace(w, tools[i:i+n], i, seen, rep) {
				written++
			}
			i += n - 1
			continue
		}
		ok, err := r.writeTool(w, f, s, at, rep)
		if err != nil {
			return written, err
		}
		if ok {
			written++
			if marks {
				marker.MarkTool(view{r}, w, s, at, rep)
			}
		}
	}
	return written, nil
}

// expand reads the tools of which only the source is known, so that they have names and schemas
// like any other. It skips those whose source is sent unchanged, or through an adapter of its
// own.
func (r *Registry) expand(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec {
	var out []dragoman.ToolSpec
	for i := range tools {
		s := &tools[i]
		contributed := r.readsHosted(s)
		if !contributed && !onlySource(s) || r.direct(s.Source.Format) || !r.ReadsSchema(s.Source.Format) {
			if out != nil {
				out = append(out, *s)
			}
			continue
		}
		if out == nil {
			out = append(make([]dragoman.ToolSpec, 0, len(tools)), tools[:i]...)
		}
		at := extra.Elem("/tools", i)
		specs, err := r.readToolAs(s.Source.Format, s.Source.JSON, at, rep)
		if err == nil && len(specs) == 0 {
			err = errEmptyResult
		}
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a tool of format %s could not be read: %v", s.Source.Format, err)
			continue
		}
		if s.Name != "" && len(specs) == 1 && !contributed {
			specs = []dragoman.ToolSpec{completed(s, &specs[0])}
		}
		out = append(out, specs...)
	}
	if out == nil {
		return tools
	}
	return out
}

// readsHosted reports whether a tool that another API would run is read by a contributed
// accessor: the type is that of a plugin, and only decoded as one of the provider.
func (r *Registry) readsHosted(s *dragoman.ToolSpec) bool {
	if s.Kind != codes.ToolHosted || s.Source == nil || r.ownCodec == nil || r.ownCodec.Traits().Hosts(s.Source.Format) {
		return false
	}
	_, ok := r.schemas[s.Source.Format]
	return ok && (s.Source.Mirror == dragoman.Fingerprint{} || s.Source.Mirror == s.Fingerprint())
}

// completed returns a named tool with the fields of its source that the tool itself leaves out.
// The name and the namespace are the tool's own.
func completed(s, read *dragoman.ToolSpec) dragoman.ToolSpec {
	out := *read
	out.Name, out.Namespace, out.NamespaceDescription, out.NamespaceExtra = s.Name, s.Namespace, s.NamespaceDescription, s.NamespaceExtra
	if s.Description != "" {
		out.Description = s.Description
	}
	if s.Strict != codes.StrictOff {
		out.Strict = s.Strict
	}
	out.Deferred = out.Deferred || s.Deferred
	if s.OutputSchema != nil {
		out.OutputSchema = s.OutputSchema
	}
	out.Examples = slices.Concat(read.Examples, s.Examples)
	if s.Annotations != (dragoman.Annotations{}) {
		out.Annotations = s.Annotations
	}
	if s.Cache != nil {
		out.Cache = s.Cache
	}
	if s.Extra != nil {
		out.Extra = s.Extra
	}
	return out
}

// direct reports whether a source of format f reaches the target without the canonical form.
func (r *Registry) direct(f dragoman.Format) bool {
	if slices.Contains(r.accepts, f) {
		return true
	}
	for _, to := range r.accepts {
		if _, ok := r.adapters[adapterKey{codes.SchemaObject, f, to}]; ok {
			return true
		}
	}
	return false
}

// namespaceRun counts the leading tools of one namespace object.
func namespaceRun(tools []dragoman.ToolSpec) int {
	n := 1
	for n < len(tools) && tools[n].Namespace == tools[0].Namespace &&
		tools[n].NamespaceDescription == tools[0].NamespaceDescription && tools[n].NamespaceExtra == tools[0].NamespaceExtra {
		n++
	}
	return n
}

func (r *Registry) writeNamespace(w *jsonwire.Writer, tools []dragoman.ToolSpec, first int, seen map[toolID]*dragoman.ToolSpec, rep *dragoman.Report) bool {
	nw, ok := r.ownCodec.(toolwire.NamespaceWriter)
	if !ok {
		return false
	}
	start := len(w.Buf)
	nw.BeginNamespace(w, tools)
	members := 0
	for i := range tools {
		s := &tools[i]
		id := toolID{s.Namespace, s.Name}
		if other, dup := seen[id]; dup && other != s {
			rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tools", first+i).String(), "tool %q is declared twice; the first declaration is used", s.QualifiedName())
			continue
		}
		seen[id] = s
		if ok, err := r.writeTool(w, r.ownCodec.Traits(), s, extra.Elem("/tools", first+i), rep); err == nil && ok {
			members++
		}
	}
	nw.EndNamespace(w, tools)
	if members == 0 {
		w.Buf = w.Buf[:start]
		return false
	}
	return true
}

// writeTool writes a tool for the target, and records how its arguments are translated.
func (r *Registry) writeTool(w *jsonwire.Writer, f *toolwire.Traits, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	r.lowering = nil
	ok, err := r.writeToolFor(w, f, s, at, rep)
	r.storeLowered(s, r.lowering)
	return ok, err
}

func (r *Registry) writeToolFor(w *jsonwire.Writer, f *toolwire.Traits, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	if src := s.Source; src != nil {
		unedited := src.Mirror == dragoman.Fingerprint{} || src.Mirror == s.Fingerprint()
		if slices.Contains(r.accepts, src.Format) && unedited && (s.Kind == codes.ToolHosted || r.passes(src, s)) {
			w.Raw(src.JSON)
			return true, nil
		}
		adapts := s.Kind == codes.ToolHosted || unedited && (s.Name == "" || r.names.wireName(s.Namespace, s.Name) == s.Name)
		if obj, done, err := r.adaptSource(adapts, src, at, rep); done || err != nil {
			if err != nil {
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
				return false, nil
			}
			w.Raw(obj)
			return true, nil
		}
		if s.Kind == codes.ToolHosted {
			if f.Hosts(src.Format) {
				w.Raw(src.JSON)
				return true, nil
			}
			why := noAccessor(src.Format)
			switch host := r.hostCodec(src.Format); {
			case host != nil && host.Traits().NoHosted:
				why = fmt.Sprintf("tool %q (%s) has a type that its dialect does not define, so it cannot be converted to %s", s.Name, src.Format, r.target.Dialect)
			case r.builtIn(src.Format), len(r.codecs) == 1 && src.Mirror != dragoman.Fingerprint{}: // decoded by a dialect that is not in the list
				why = fmt.Sprintf("tool %q (%s) is %s; %s has no such tool", s.Name, src.Format, r.notSendable(src.Format), r.target.Dialect)
			}
			rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why)
			return false, nil
		}
	}
	if s.Kind == codes.ToolHosted {
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q is run by a provider, but its provider definition is missing", s.Name)
		return false, nil
	}
	format := f.Function
	if s.Kind == codes.ToolFreeform && f.Freeform != "" && !r.target.Caps.NoCustomTools {
		format = f.Freeform
	}
	return r.writeToolAs(w, format, s, at, rep)
}

// adaptSource converts the source of a tool directly to the target with an adapter, unless the
// tool was edited or renamed: the adapter knows only the source.
func (r *Registry) adaptSource(adapts bool, src *dragoman.ToolSource, at extra.Path, rep *dragoman.Report) (json.RawMessage, bool, error) {
	if !adapts {
		return nil, false, nil
	}
	return r.adaptDirectly(codes.SchemaObject, src.Format, r.accepts, src.JSON, at, rep)
}

// noAccessor returns the error text for a tool of a format without an accessor.
func noAccessor(f dragoman.Format) string {
	return fmt.Sprintf("no schema accessor for the format %.80q; contribute one, or pass the codecs of package dialect/all if the format is a dialect", string(f))
}

// passes reports whether an authored tool can be sent unchanged: under its own name, with flags
// that the target accepts.
func (r *Registry) passes(src *dragoman.ToolSource, s *dragoman.ToolSpec) bool {
	c := r.target.Caps
	// A tool without a name is defined by its source alone.
	return (s.Name == "" || r.names.wireName(s.Namespace, s.Name) == s.Name) &&
		!(c.NoStrict && s.Strict == codes.StrictOn) &&
		!(c.NoCustomTools && s.Kind == codes.ToolFreeform) &&
		!(c.NoDeferred && s.Deferred) &&
		r.subsetFits(s) &&
		(r.ownCodec == nil || !r.ownCodec.Traits().NeedsParameters(s, &r.target.Caps)) &&
		r.sourcePasses(src.Format, s)
}

// sourcePasses reports whether a definition in a format means the same to the
// target as to the format's own dialect.
func (r *Registry) sourcePasses(f dragoman.Format, s *dragoman.ToolSpec) bool {
	codec := r.toolCodec(f)
	if codec == nil {
		return true
	}
	t := codec.Traits()
	cached := s.Cache != nil && t.CacheInTool && r.target.Caps.NoCacheBreakpoints
	byDefault := s.Strict == codes.StrictUnset && t.StrictByDefault && f == t.Function && codec != r.ownCodec
	return !cached && !byDefault
}

// subset returns the server's own subset of JSON Schema, or nil if it has no subset or one
// that no codec knows.
func (r *Registry) subset() *schema.Profile {
	name := r.target.Caps.ToolSchema
	if name == "" || r.toolSchema != nil {
		return r.toolSchema
	}
	for _, c := range r.codecs {
		profiles := c.Profiles()
		for i := range profiles {
			if profiles[i].Name() == name {
				r.toolSchema = &profiles[i]
				return r.toolSchema
			}
		}
	}
	return nil
}

// subsetFits reports whether the schema of a tool satisfies the server's own subset.
func (r *Registry) subsetFits(s *dragoman.ToolSpec) bool {
	p := r.subset()
	return p == nil || s.Kind != codes.ToolFunction || len(s.Parameters) == 0 || len(schema.Check(s.Parameters, *p)) == 0
}

// surfaces returns the rules for the schema of a function, without and with the strict flag.
func (r *Registry) surfaces(c toolwire.Codec) (loose, strict *schema.Profile) {
	loose, strict = c.Surfaces(&r.target.Caps)
	if p := r.subset(); p != nil {
		loose = p
	}
	return loose, strict
}

func (r *Registry) writeToolAs(w *jsonwire.Writer, format dragoman.Format, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	if a, ok := r.adapters[adapterKey{codes.SchemaObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Schema: s})
		rep.Merge(at.String(), sub)
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
			return false, nil
		}
		w.Raw(obj)
		return true, nil
	}
	if s.Name != "" && onlySource(s) && !r.ReadsSchema(s.Source.Format) {
		// Without its schema the model would see a tool that takes no arguments.
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %s", s.QualifiedName(), noAccessor(s.Source.Format))
		return false, nil
	}
	if s.Name == "" {
		why := "a tool without a name"
		if s.Source != nil && !r.builtIn(s.Source.Format) {
			why = noAccessor(s.Source.Format)
		}
		rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why)
		return false, nil
	}
	name := r.names.wireName(s.Namespace, s.Name)
	if name != s.Name {
		rep.AddRename(dragoman.Info, at.String(), "tool", s.QualifiedName(), name)
	}
	if s.Namespace != "" && r.names.flatten && s.NamespaceDescription != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "description of namespace %q", s.Namespace)
	}
	if format == toolformat.MCPTool {
		return writeMCPTool(w, s, name, at, rep), nil
	}
	codec := r.toolCodec(format)
	if codec == nil || format == codec.Traits().Namespace || format == codec.Traits().ToolList {
		return false, errNoAdapter("schema", format)
	}
	return codec.WriteTool(view{r}, w, format, s, name, at, rep), nil
}

// lower makes the parameters valid for the target. It sets the strict flag only if the author
// asked for it, and drops the flag with a report if the schema cannot be made to fit.
func (r *Registry) lower(codec toolwire.Codec, s *dragoman.ToolSpec, want string, at extra.Path, rep *dragoman.Report) (toolwire.Lowered, bool) {
	loose, strict := r.surfaces(codec)
	src := s.Parameters
	if s.Kind == codes.ToolFreeform {
		src = freeformSchema(s)
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), freeformLoss(s))
		rep = new(dragoman.Report) // the schema is ours: there is nothing to lose
	}
	if src == nil {
		src = noArguments
	}
	wantStrict := want == codes.StrictOn || (want == codes.StrictAuto && strict.Fits(src))
	if why := r.refusesStrict(codec.Traits()); wantStrict && why != "" {
		wantStrict = false
		rep.Add(dragoman.Dropped, dragoman.Warn, strictAt(want, at), why)
	}
	if wantStrict {
		low, err := r.lowered.adapt(src, *strict)
		why := ""
		if err == nil {
			why = r.takeStrict(codec.Traits().StrictLimits, low.Schema)
		} else {
			why = err.Error()
		}
		if why == "" {
			return r.fitted(s, low, true, at, rep), true
		}
		rep.Add(dragoman.Lowered, dragoman.Warn, strictAt(want, at), "not strict: "+why)
	}
	low, err := r.lowered.adapt(src, *loose)
	if err != nil {
		rep.Merge(at.String()+"/parameters", low.Report)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
		return toolwire.Lowered{}, false
	}
	return r.fitted(s, low, false, at, rep), true
}

// refusesStrict returns why no strict flag is sent; empty if one may be.
func (r *Registry) refusesStrict(t *toolwire.Traits) string {
	switch c := r.target.Caps; {
	case c.NoStrict:
		return "the target rejects a strict flag"
	case t.StrictOptIn && !c.StrictTools:
		return "some models of this API reject a strict flag, and this one is not known to accept it"
	default:
		return ""
	}
}

// strictAt returns the path of the strict field, or of the tool itself if the field is not set.
func strictAt(want string, at extra.Path) string {
	if want == codes.StrictAuto {
		return at.String()
	}
	return at.String() + "/strict"
}

func (r *Registry) fitted(s *dragoman.ToolSpec, low *schema.Lowered, strict bool, at extra.Path, rep *dragoman.Report) toolwire.Lowered {
	if len(low.Report.Losses) > 0 {
		rep.Merge(at.String()+"/parameters", low.Report)
	}
	r.lowering = low
	out := toolwire.Lowered{Lowered: low, Description: s.Description, Strict: strict}
	switch {
	case low.Note == "":
	case out.Description == "":
		out.Description = low.Note
	default:
		out.Description += "\n\n" + low.Note
	}
	return out
}

// noArguments is the schema of a tool without arguments. Writing it for an absent schema is not
// a loss.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

func freeformLoss(s *dragoman.ToolSpec) string {
	if s.Grammar == nil {
		return `freeform tool written as a function with one string argument "input"`
	}
	return `freeform tool written as a function with one string argument "input"; its grammar is moved to the description and not enforced`
}

// freeformSchema returns the schema of the function that replaces a freeform tool (quirk A43).
func freeformSchema(s *dragoman.ToolSpec) json.RawMessage {
	description := "The whole input of the tool, as plain text."
	if s.Grammar != nil {
		description += " It must match this " + s.Grammar.Syntax + " grammar:\n" + s.Grammar.Definition
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "object")
	w.Key("properties")
	w.BeginObject()
	w.Key("input")
	w.BeginObject()
	w.StringField("type", "string")
	w.StringField("description", description)
	w.EndObject()
	w.EndObject()
	w.Key("required")
	w.BeginArray()
	w.String("input")
	w.EndArray()
	w.BoolField("additionalProperties", false)
	w.EndObject()
	return w.Buf
}

func writeMCPTool(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	params := s.Parameters
	if s.Kind == codes.ToolFreeform {
		params = freeformSchema(s)
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), freeformLoss(s))
	}
	if params == nil {
		params = noArguments
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{Annotations: true, OutputSchema: true}, at, rep)
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", s.Description)
	w.RawField("inputSchema", params)
	if s.OutputSchema != nil {
		w.RawField("outputSchema", s.OutputSchema)
	}
	if a := s.Annotations; a != (dragoman.Annotations{}) {
		w.Key("annotations")
		w.BeginObject()
		w.StringFieldIf("title", a.Title)
		for _, h := range []struct {
			name string
			v    *bool
		}{{"readOnlyHint", a.ReadOnly}, {"destructiveHint", a.Destructive}, {"idempotentHint", a.Idempotent}, {"openWorldHint", a.OpenWorld}} {
			if h.v != nil {
				w.BoolField(h.name, *h.v)
			}
		}
		w.EndObject()
	}
	w.EndObject()
	extra.Report(rep, s.Extra, "", at)
	return true
}
