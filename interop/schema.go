package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// WriteTools writes the definitions as elements of the array that w is
// writing. A tool already in an accepted format passes byte for byte: who wrote
// it for this very API knows what it takes, and lint tells. A tool that the
// target would reject is dropped and reported; it never takes the others down
// (quirk A45). It returns how many elements were written.
func (r *Registry) WriteTools(w *jsonwire.Writer, tools []dragoman.ToolSpec, rep *dragoman.Report) (int, error) {
	f, err := wireOf(r.target.Dialect)
	if err != nil {
		return 0, err
	}
	tools = r.expand(tools, rep)
	if name := r.target.Caps.ToolSchema; name != "" && len(tools) > 0 {
		if _, ok := r.subset(); !ok {
			rep.Addf(dragoman.Lowered, dragoman.Warn, "/tools", "nothing is known of the subset of JSON Schema %.60q; the dialect's own is taken", name)
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
		if s.Kind != dragoman.ToolHosted && (s.Name != "" || s.Source == nil) {
			id := toolID{s.Namespace, s.Name}
			if first, dup := seen[id]; dup {
				if first.Fingerprint() != s.Fingerprint() {
					rep.Addf(dragoman.Dropped, dragoman.Warn, at.String(), "tool %q is declared twice; the first declaration stands", s.QualifiedName())
				} else {
					rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "tool %q is declared twice in the same words; one is sent", s.QualifiedName())
				}
				continue
			}
			seen[id] = s
		}
		if s.Namespace != "" && f.namespace != "" && !r.names.flatten {
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
			r.markTool(w, s, at, rep)
		}
	}
	return written, nil
}

// expand reads the tools of which only the source is known, so that they have names
// and schemas like any other. Those whose source goes to the target unchanged, or
// through an adapter of its own, are left alone.
func (r *Registry) expand(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec {
	var out []dragoman.ToolSpec
	for i := range tools {
		s := &tools[i]
		if !unreadSpec(s) || r.direct(s.Source.Format) || !r.ReadsSchema(s.Source.Format) {
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
			err = errNothing
		}
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a tool of format %s could not be read: %v", s.Source.Format, err)
			continue
		}
		if s.Name != "" && len(specs) == 1 {
			specs = []dragoman.ToolSpec{completed(s, &specs[0])}
		}
		out = append(out, specs...)
	}
	if out == nil {
		return tools
	}
	return out
}

// completed returns a named tool with everything that its source says and the tool itself
// leaves out. The name and the namespace are the tool's own.
func completed(s, read *dragoman.ToolSpec) dragoman.ToolSpec {
	out := *read
	out.Name, out.Namespace, out.NamespaceDescription, out.NamespaceExtra = s.Name, s.Namespace, s.NamespaceDescription, s.NamespaceExtra
	if s.Description != "" {
		out.Description = s.Description
	}
	if s.Strict != dragoman.StrictOff {
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

// direct reports whether a source of format f reaches the target without the
// canonical view.
func (r *Registry) direct(f dragoman.Format) bool {
	if slices.Contains(r.accepts, f) {
		return true
	}
	for _, to := range r.accepts {
		if _, ok := r.adapters[adapterKey{dragoman.SchemaObject, f, to}]; ok {
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
	start := len(w.Buf)
	w.BeginObject()
	w.StringField("type", "namespace")
	w.StringField("name", tools[0].Namespace)
	description := tools[0].NamespaceDescription
	if description == "" {
		description = tools[0].Namespace // the wire demands one
	}
	w.StringField("description", description)
	w.Key("tools")
	w.BeginArray()
	members := 0
	for i := range tools {
		s := &tools[i]
		id := toolID{s.Namespace, s.Name}
		if other, dup := seen[id]; dup && other != s {
			rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tools", first+i).String(), "tool %q is declared twice; the first declaration stands", s.QualifiedName())
			continue
		}
		seen[id] = s
		f, _ := wireOf(r.target.Dialect)
		if ok, err := r.writeTool(w, f, s, extra.Elem("/tools", first+i), rep); err == nil && ok {
			members++
		}
	}
	w.EndArray()
	extra.Write(w, tools[0].NamespaceExtra, r.target.Dialect, "")
	w.EndObject()
	if members == 0 {
		w.Buf = w.Buf[:start]
		return false
	}
	return true
}

// writeTool writes a tool for the target, and remembers what its arguments
// have to be told about that.
func (r *Registry) writeTool(w *jsonwire.Writer, f wire, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	r.lowering = nil
	ok, err := r.writeToolFor(w, f, s, at, rep)
	r.remember(s, r.lowering)
	return ok, err
}

func (r *Registry) writeToolFor(w *jsonwire.Writer, f wire, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	if src := s.Source; src != nil {
		unedited := src.Mirror == dragoman.Fingerprint{} || src.Mirror == s.Fingerprint()
		if slices.Contains(r.accepts, src.Format) && unedited && (s.Kind == dragoman.ToolHosted || r.passes(src, s)) {
			w.Raw(src.JSON)
			return true, nil
		}
		adapts := s.Kind == dragoman.ToolHosted || unedited && (s.Name == "" || r.names.wireName(s.Namespace, s.Name) == s.Name)
		if obj, done, err := r.adaptSource(adapts, src, at, rep); done || err != nil {
			if err != nil {
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
				return false, nil
			}
			w.Raw(obj)
			return true, nil
		}
		if s.Kind == dragoman.ToolHosted {
			if hostedBy(src.Format, r.target.Dialect) {
				w.Raw(src.JSON)
				return true, nil
			}
			why := unread(src.Format)
			switch {
			case hostedBy(src.Format, dragoman.OpenAIChat), hostedBy(src.Format, dragoman.Ollama): // these dialects have no hosted tools
				why = fmt.Sprintf("tool %q (%s) is of a type that its dialect does not define, so it cannot be written for %s", s.Name, src.Format, r.target.Dialect)
			case builtIn(src.Format):
				why = fmt.Sprintf("tool %q (%s) is %s; %s has no such tool", s.Name, src.Format, whose(src.Format), r.target.Dialect)
			}
			rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why)
			return false, nil
		}
	}
	if s.Kind == dragoman.ToolHosted {
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q is run by a provider, but nothing says how that defines it", s.Name)
		return false, nil
	}
	format := f.function
	if s.Kind == dragoman.ToolFreeform && f.freeform != "" && !r.target.Caps.NoCustomTools {
		format = f.freeform
	}
	return r.writeToolAs(w, format, s, at, rep)
}

// adaptSource takes the direct way to the target with an adapter for the source of a
// tool, unless the tool was edited or has another name there: the adapter knows only the
// source.
func (r *Registry) adaptSource(adapts bool, src *dragoman.ToolSource, at extra.Path, rep *dragoman.Report) (json.RawMessage, bool, error) {
	if !adapts {
		return nil, false, nil
	}
	return r.adaptDirectly(dragoman.SchemaObject, src.Format, r.accepts, src.JSON, at, rep)
}

// builtIn reports whether a format belongs to a dialect, or is one of ours:
// then a tool of it that nothing reads is the provider's own.
func builtIn(f dragoman.Format) bool {
	return f == dragoman.FormatMCPTool || hostedBy(f, dragoman.OpenAIChat) || hostedBy(f, dragoman.OpenAIResponses) || hostedBy(f, dragoman.Anthropic) || hostedBy(f, dragoman.Gemini) || hostedBy(f, dragoman.Ollama) || hostedBy(f, dragoman.Bedrock)
}

// unread says what is missing for a tool of a format that nobody contributed.
func unread(f dragoman.Format) string {
	return fmt.Sprintf("nothing here reads the format %.80q; contribute a SchemaAccessor", string(f))
}

// clientRun are the tools of providers that their clients run: the provider
// knows their schemas, and the model calls them like any other. The versions of
// Anthropic's are in their types, behind the last of these letters.
var clientRun = []string{
	"anthropic.messages.bash_", "anthropic.messages.text_editor_", "anthropic.messages.memory_",
	"anthropic.messages.computer_", "anthropic.messages.browser_toolset_",
	"openai.responses.local_shell", "openai.responses.apply_patch", "openai.responses.computer",
}

// whose says why a provider's tool goes nowhere else.
func whose(f dragoman.Format) string {
	for _, prefix := range clientRun {
		if strings.HasPrefix(string(f), prefix) {
			return "run by the client, but defined by its own provider alone"
		}
	}
	return "run by its own provider"
}

// hostedBy reports whether a provider's tool belongs to dialect d.
func hostedBy(f dragoman.Format, d dragoman.Dialect) bool {
	return len(f) > len(d) && string(f[:len(d)]) == string(d) && f[len(d)] == '.'
}

// passes reports whether an authored tool can go to the target as it is: under
// its own name, with the flags the target takes.
func (r *Registry) passes(src *dragoman.ToolSource, s *dragoman.ToolSpec) bool {
	c := r.target.Caps
	// Without a name of its own the tool is all in its source.
	return (s.Name == "" || r.names.wireName(s.Namespace, s.Name) == s.Name) &&
		!(c.NoStrict && s.Strict == dragoman.StrictOn) &&
		!(c.NoCustomTools && s.Kind == dragoman.ToolFreeform) &&
		!(c.NoDeferred && s.Deferred) &&
		r.subsetFits(s) &&
		!r.needsParameters(s) &&
		!(c.NoCacheBreakpoints && s.Cache != nil && src.Format == dragoman.FormatAnthropicTool) && // stands in it
		// Responses reads an absent flag as a wish for strictness.
		(src.Format != dragoman.FormatResponsesFunction || s.Strict != dragoman.StrictUnset || r.target.Dialect == dragoman.OpenAIResponses)
}

// needsParameters reports whether a tool has no parameters where the server wants them:
// OpenAI takes a function without, compatible servers do not (quirk A20).
func (r *Registry) needsParameters(s *dragoman.ToolSpec) bool {
	return s.Kind == dragoman.ToolFunction && s.Parameters == nil && s.Name != "" &&
		r.target.Dialect == dragoman.OpenAIChat && r.target.Caps.NoCustomTools
}

// subset is the server's own subset of JSON Schema, where it has one.
func (r *Registry) subset() (schema.Profile, bool) {
	if r.target.Caps.ToolSchema == "" {
		return schema.Profile{}, false
	}
	return schema.Named(r.target.Caps.ToolSchema)
}

// subsetFits reports whether the schema of a tool lies in the server's own subset.
func (r *Registry) subsetFits(s *dragoman.ToolSpec) bool {
	p, own := r.subset()
	return !own || s.Kind != dragoman.ToolFunction || len(s.Parameters) == 0 || len(schema.Check(s.Parameters, p)) == 0
}

// surfaces are the rules for the schema of a function in one format, without
// the strict flag and with it; nil for a format that is not built in.
func (r *Registry) surfaces(f dragoman.Format) (loose, strict func() schema.Profile) {
	loose, strict = r.dialectSurfaces(f)
	if p, own := r.subset(); own && loose != nil {
		subset := p // a copy, so that p is not allocated if there is no subset
		loose = func() schema.Profile { return subset }
	}
	return loose, strict
}

func (r *Registry) dialectSurfaces(f dragoman.Format) (loose, strict func() schema.Profile) {
	closed := r.target.Caps.ClosedSchemas
	switch f {
	case dragoman.FormatChatFunction, dragoman.FormatResponsesFunction:
		return schema.OpenAITool, schema.OpenAIStrict
	case dragoman.FormatAnthropicTool:
		return schema.AnthropicTool, schema.AnthropicStrict
	case dragoman.FormatGeminiFunction:
		if closed { // quirk A2
			return schema.GeminiParameters, schema.GeminiParameters
		}
		return schema.GeminiJSONSchema, schema.GeminiJSONSchema
	case dragoman.FormatOllamaFunction:
		return schema.OllamaTool, schema.OllamaTool
	case dragoman.FormatBedrockTool:
		if closed {
			return schema.BedrockNova, schema.BedrockStrict
		}
		return schema.BedrockTool, schema.BedrockStrict
	default:
		return nil, nil
	}
}

func (r *Registry) writeToolAs(w *jsonwire.Writer, format dragoman.Format, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) (bool, error) {
	if a, ok := r.adapters[adapterKey{dragoman.SchemaObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Schema: s})
		rep.Merge(at.String(), sub)
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
			return false, nil
		}
		w.Raw(obj)
		return true, nil
	}
	if s.Name != "" && unreadSpec(s) && !r.ReadsSchema(s.Source.Format) {
		// Without its schema the model would see a tool that takes no arguments.
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %s", s.QualifiedName(), unread(s.Source.Format))
		return false, nil
	}
	if s.Name == "" {
		why := "a tool without a name"
		if s.Source != nil && !builtIn(s.Source.Format) {
			why = unread(s.Source.Format)
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
	switch format {
	case dragoman.FormatChatFunction:
		return r.writeChatFunction(w, s, name, at, rep), nil
	case dragoman.FormatChatCustom:
		r.writeChatCustom(w, s, name, at, rep)
	case dragoman.FormatResponsesFunction:
		return r.writeResponsesFunction(w, s, name, at, rep), nil
	case dragoman.FormatResponsesCustom:
		r.writeResponsesCustom(w, s, name, at, rep)
	case dragoman.FormatAnthropicTool:
		return r.writeAnthropicTool(w, s, name, at, rep), nil
	case dragoman.FormatGeminiFunction:
		return r.writeGeminiFunction(w, s, name, at, rep), nil
	case dragoman.FormatOllamaFunction:
		return r.writeOllamaFunction(w, s, name, at, rep), nil
	case dragoman.FormatMCPTool:
		return writeMCPTool(w, s, at, rep), nil
	case dragoman.FormatBedrockTool:
		return r.writeBedrockTool(w, s, name, at, rep), nil
	default:
		return false, fmt.Errorf("interop: no adapter writes tools as %s; contribute one", format)
	}
	return true, nil
}

// lowered is a function for one target: its parameters, and its description
// with what has no place in them.
type lowered struct {
	*schema.Lowered
	description string
	strict      bool
}

// lower makes the parameters legal for the target. Strictness is asked for
// only where the author did, and given up with a report where the schema
// cannot be made to fit.
func (r *Registry) lower(s *dragoman.ToolSpec, to dragoman.Format, at extra.Path, rep *dragoman.Report) (lowered, bool) {
	loose, strict := r.surfaces(to)
	src := s.Parameters
	if s.Kind == dragoman.ToolFreeform {
		src = freeformSchema(s)
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), freeformLoss(s))
		rep = new(dragoman.Report) // the schema is ours: nothing of its author's can get lost
	}
	if src == nil {
		src = noArguments
	}
	wantStrict := s.Strict == dragoman.StrictOn || (s.Strict == dragoman.StrictAuto && schema.StrictFits(src, strict()))
	if why := r.refusesStrict(to); wantStrict && why != "" {
		wantStrict = false
		rep.Add(dragoman.Dropped, dragoman.Warn, strictAt(s, at), why)
	}
	if wantStrict {
		low, err := r.lowered.adapt(src, strict())
		why := ""
		if err == nil {
			why = r.takeStrict(to, low.Schema)
		} else {
			why = err.Error()
		}
		if why == "" {
			return r.fitted(s, low, true, at, rep), true
		}
		rep.Add(dragoman.Lowered, dragoman.Warn, strictAt(s, at), "not strict: "+why)
	}
	low, err := r.lowered.adapt(src, loose())
	if err != nil {
		rep.Merge(at.String()+"/parameters", low.Report)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q: %v", s.Name, err)
		return lowered{}, false
	}
	return r.fitted(s, low, false, at, rep), true
}

// refusesStrict says why no strict flag is sent; empty where one may be. Of the
// models behind Bedrock some refuse it, so that it takes a capability to send
// one there (quirk A31).
func (r *Registry) refusesStrict(to dragoman.Format) string {
	switch c := r.target.Caps; {
	case c.NoStrict:
		return "the target rejects a strict flag"
	case to == dragoman.FormatBedrockTool && !c.StrictTools:
		return "some models behind this API reject a strict flag, and this one is not known to take it"
	default:
		return ""
	}
}

// strictAt is the place of the wish for strictness: the tool itself where nobody
// wrote the wish down.
func strictAt(s *dragoman.ToolSpec, at extra.Path) string {
	if s.Strict == dragoman.StrictAuto {
		return at.String()
	}
	return at.String() + "/strict"
}

func (r *Registry) fitted(s *dragoman.ToolSpec, low *schema.Lowered, strict bool, at extra.Path, rep *dragoman.Report) lowered {
	if len(low.Report.Losses) > 0 {
		rep.Merge(at.String()+"/parameters", low.Report)
	}
	r.lowering = low
	out := lowered{low, s.Description, strict}
	switch {
	case low.Note == "":
	case out.description == "":
		out.description = low.Note
	default:
		out.description += "\n\n" + low.Note
	}
	return out
}

// noArguments is the schema of a tool without any: what the absence of one
// means is not lost by being written out.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

func freeformLoss(s *dragoman.ToolSpec) string {
	if s.Grammar == nil {
		return `freeform tool written as a function with one string argument "input"`
	}
	return `freeform tool written as a function with one string argument "input"; its grammar is told in the description, not enforced`
}

// freeformSchema is the function that stands in for a freeform tool (quirk
// A43).
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

// unsaid reports the parts of a spec that a format has no member for.
func unsaid(s *dragoman.ToolSpec, format dragoman.Format, at extra.Path, rep *dragoman.Report) {
	if s.Deferred && (format == dragoman.FormatChatFunction || format == dragoman.FormatChatCustom || format == dragoman.FormatGeminiFunction || format == dragoman.FormatOllamaFunction || format == dragoman.FormatBedrockTool || format == dragoman.FormatMCPTool) {
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "deferred tool sent from the start")
	}
	if len(s.Examples) > 0 && format != dragoman.FormatAnthropicTool {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "input examples")
	}
	if s.Annotations != (dragoman.Annotations{}) && format != dragoman.FormatMCPTool {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "annotations: they are hints for who runs the tool")
	}
	if s.OutputSchema != nil && format != dragoman.FormatResponsesFunction && format != dragoman.FormatGeminiFunction && format != dragoman.FormatMCPTool {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "output schema")
	}
	if s.Cache != nil && format != dragoman.FormatAnthropicTool && format != dragoman.FormatBedrockTool {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a tool: the target caches by itself")
	}
}

func (r *Registry) writeChatFunction(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.OpenAIChat
	low, ok := r.lower(s, dragoman.FormatChatFunction, at, rep)
	if !ok {
		return false
	}
	unsaid(s, dragoman.FormatChatFunction, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.Key("function")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.description)
	own := s.Source != nil && s.Source.Format == dragoman.FormatChatFunction
	if s.Parameters != nil || s.Kind == dragoman.ToolFreeform || !own || r.needsParameters(s) {
		w.RawField("parameters", low.Schema)
	}
	if low.strict {
		w.BoolField("strict", true)
	}
	extra.Write(w, s.Extra, d, "/function")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
	return true
}

func (r *Registry) writeChatCustom(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.OpenAIChat
	unsaid(s, dragoman.FormatChatCustom, at, rep)
	w.BeginObject()
	w.StringField("type", "custom")
	w.Key("custom")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", s.Description)
	if s.Grammar != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "grammar")
		w.Key("grammar")
		w.BeginObject()
		w.StringField("syntax", s.Grammar.Syntax)
		w.StringField("definition", s.Grammar.Definition)
		extra.Write(w, s.Extra, d, "/custom/format/grammar")
		w.EndObject()
		extra.Write(w, s.Extra, d, "/custom/format")
		w.EndObject()
	}
	extra.Write(w, s.Extra, d, "/custom")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
}

func (r *Registry) writeResponsesFunction(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.OpenAIResponses
	low, ok := r.lower(s, dragoman.FormatResponsesFunction, at, rep)
	if !ok {
		return false
	}
	unsaid(s, dragoman.FormatResponsesFunction, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.StringField("name", name)
	w.StringFieldIf("description", low.description)
	w.RawField("parameters", low.Schema)
	if s.Strict != dragoman.StrictUnset && !r.target.Caps.NoStrict {
		// Explicit, because this wire's default is not false.
		w.BoolField("strict", low.strict)
	}
	r.writeDeferred(w, s, at, rep)
	if s.OutputSchema != nil {
		w.RawField("output_schema", s.OutputSchema)
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

func (r *Registry) writeDeferred(w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	switch {
	case !s.Deferred:
	case r.target.Caps.NoDeferred:
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "deferred tool sent from the start")
	default:
		w.BoolField("defer_loading", true)
	}
}

func (r *Registry) writeResponsesCustom(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.OpenAIResponses
	unsaid(s, dragoman.FormatResponsesCustom, at, rep)
	w.BeginObject()
	w.StringField("type", "custom")
	w.StringField("name", name)
	w.StringFieldIf("description", s.Description)
	if s.Grammar != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "grammar")
		w.StringField("syntax", s.Grammar.Syntax)
		w.StringField("definition", s.Grammar.Definition)
		extra.Write(w, s.Extra, d, "/format")
		w.EndObject()
	}
	r.writeDeferred(w, s, at, rep)
	extra.End(w, s.Extra, d, at, rep)
}

func (r *Registry) writeAnthropicTool(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.Anthropic
	low, ok := r.lower(s, dragoman.FormatAnthropicTool, at, rep)
	if !ok {
		return false
	}
	unsaid(s, dragoman.FormatAnthropicTool, at, rep)
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.description)
	w.RawField("input_schema", low.Schema)
	if low.strict {
		w.BoolField("strict", true)
	}
	r.writeDeferred(w, s, at, rep)
	r.writeExamples(w, s, low, at, rep)
	if s.Cache != nil {
		if s.Deferred {
			rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint on a deferred tool") // quirk D31
		} else if !r.refusesCache(at, rep) {
			WriteCacheControl(w, s.Cache, at, rep)
		}
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// writeExamples writes arguments that fit the schema as it is written.
func (r *Registry) writeExamples(w *jsonwire.Writer, s *dragoman.ToolSpec, low lowered, at extra.Path, rep *dragoman.Report) {
	if len(s.Examples) == 0 {
		return
	}
	w.Key("input_examples")
	w.BeginArray()
	for _, e := range s.Examples {
		wire, err := low.ToWire(e)
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "an input example: %v", err)
			continue
		}
		w.Raw(wire)
	}
	w.EndArray()
}

func writeMCPTool(w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) bool {
	params := s.Parameters
	if s.Kind == dragoman.ToolFreeform {
		params = freeformSchema(s)
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), freeformLoss(s))
	}
	if params == nil {
		params = noArguments
	}
	unsaid(s, dragoman.FormatMCPTool, at, rep)
	w.BeginObject()
	w.StringField("name", s.Name)
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
