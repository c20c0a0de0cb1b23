package dragoman

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MarshalJSON writes the tool as stored JSON, with its version.
func (s ToolSpec) MarshalJSON() ([]byte, error) {
	return store("tool", func(out *storer) {
		out.top()
		s.members(out)
		out.w.EndObject()
	})
}

// UnmarshalJSON reads a stored tool.
func (s *ToolSpec) UnmarshalJSON(b []byte) error { return loadTop(b, "tool", s, loadToolSpec) }

func (s *ToolSpec) store(out *storer) {
	out.w.BeginObject()
	s.members(out)
	out.w.EndObject()
}

func (s *ToolSpec) members(out *storer) {
	out.str("kind", string(s.Kind))
	out.str("name", s.Name)
	out.str("namespace", s.Namespace)
	out.str("namespace_description", s.NamespaceDescription)
	out.str("description", s.Description)
	out.bytes("parameters", s.Parameters)
	storeOpt(out, "grammar", s.Grammar, (*Grammar).store)
	out.str("strict", string(s.Strict))
	out.flag("deferred", s.Deferred)
	out.bytes("output_schema", s.OutputSchema)
	storeList(out, "examples", s.Examples, storeNative)
	if s.Annotations != (Annotations{}) {
		out.w.Key("annotations")
		s.Annotations.store(out)
	}
	storeOpt(out, "cache", s.Cache, (*CacheHint).store)
	storeOpt(out, "source", s.Source, (*ToolSource).store)
	storeOpt(out, "extra", s.Extra, (*Extra).store)
	storeOpt(out, "namespace_extra", s.NamespaceExtra, (*Extra).store)
}

func loadToolSpec(r *jsonwire.Reader) (s ToolSpec) {
	for key := range r.Object() {
		switch string(key) {
		case "kind":
			s.Kind = loadWord[ToolKind](r)
		case "name":
			s.Name = r.String()
		case "namespace":
			s.Namespace = r.String()
		case "namespace_description":
			s.NamespaceDescription = r.String()
		case "description":
			s.Description = r.String()
		case "parameters":
			s.Parameters = loadNative[json.RawMessage](r)
		case "grammar":
			s.Grammar = loadOpt(r, loadGrammar)
		case "strict":
			s.Strict = loadWord[Strictness](r)
		case "deferred":
			s.Deferred = r.Bool()
		case "output_schema":
			s.OutputSchema = loadNative[json.RawMessage](r)
		case "examples":
			s.Examples = loadList(r, loadNative[json.RawMessage])
		case "annotations":
			s.Annotations = loadAnnotations(r)
		case "cache":
			s.Cache = loadOpt(r, loadCacheHint)
		case "source":
			s.Source = loadOpt(r, loadToolSource)
		case "extra":
			s.Extra = loadOpt(r, loadExtra)
		case "namespace_extra":
			s.NamespaceExtra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return s
}

// MarshalJSON writes the source, its bytes exact.
func (s ToolSource) MarshalJSON() ([]byte, error) { return store("tool source", s.store) }

// UnmarshalJSON reads a stored source.
func (s *ToolSource) UnmarshalJSON(b []byte) error { return load(b, "tool source", s, loadToolSource) }

func (s *ToolSource) store(out *storer) {
	out.w.BeginObject()
	out.str("format", string(s.Format))
	out.bytes("json", s.JSON)
	out.mirror(s.Mirror)
	out.w.EndObject()
}

func loadToolSource(r *jsonwire.Reader) (s ToolSource) {
	for key := range r.Object() {
		switch string(key) {
		case "format":
			s.Format = loadWord[Format](r)
		case "json":
			s.JSON = loadNative[json.RawMessage](r)
		case "mirror":
			s.Mirror = loadMirror(r)
		default:
			r.Skip()
		}
	}
	return s
}

// MarshalJSON writes the grammar.
func (g Grammar) MarshalJSON() ([]byte, error) { return store("grammar", g.store) }

// UnmarshalJSON reads a stored grammar.
func (g *Grammar) UnmarshalJSON(b []byte) error { return load(b, "grammar", g, loadGrammar) }

func (g *Grammar) store(out *storer) {
	out.w.BeginObject()
	out.str("syntax", g.Syntax)
	out.str("definition", g.Definition)
	out.w.EndObject()
}

func loadGrammar(r *jsonwire.Reader) (g Grammar) {
	for key := range r.Object() {
		switch string(key) {
		case "syntax":
			g.Syntax = r.String()
		case "definition":
			g.Definition = r.String()
		default:
			r.Skip()
		}
	}
	return g
}

// MarshalJSON writes the annotations; an unknown hint is left out.
func (a Annotations) MarshalJSON() ([]byte, error) { return store("annotations", a.store) }

// UnmarshalJSON reads stored annotations.
func (a *Annotations) UnmarshalJSON(b []byte) error {
	return load(b, "annotations", a, loadAnnotations)
}

func (a *Annotations) store(out *storer) {
	out.w.BeginObject()
	out.str("title", a.Title)
	out.optBool("read_only", a.ReadOnly)
	out.optBool("destructive", a.Destructive)
	out.optBool("idempotent", a.Idempotent)
	out.optBool("open_world", a.OpenWorld)
	out.w.EndObject()
}

func loadAnnotations(r *jsonwire.Reader) (a Annotations) {
	for key := range r.Object() {
		switch string(key) {
		case "title":
			a.Title = r.String()
		case "read_only":
			a.ReadOnly = loadOpt(r, (*jsonwire.Reader).Bool)
		case "destructive":
			a.Destructive = loadOpt(r, (*jsonwire.Reader).Bool)
		case "idempotent":
			a.Idempotent = loadOpt(r, (*jsonwire.Reader).Bool)
		case "open_world":
			a.OpenWorld = loadOpt(r, (*jsonwire.Reader).Bool)
		default:
			r.Skip()
		}
	}
	return a
}

// MarshalJSON writes the choice.
func (c ToolChoice) MarshalJSON() ([]byte, error) { return store("tool choice", c.store) }

// UnmarshalJSON reads a stored choice.
func (c *ToolChoice) UnmarshalJSON(b []byte) error { return load(b, "tool choice", c, loadToolChoice) }

func (c *ToolChoice) store(out *storer) {
	out.w.BeginObject()
	out.str("mode", string(c.Mode))
	storeList(out, "tools", c.Tools, (*ToolRef).store)
	storeOpt(out, "native", c.Native, (*Native).store)
	storeOpt(out, "extra", c.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadToolChoice(r *jsonwire.Reader) (c ToolChoice) {
	for key := range r.Object() {
		switch string(key) {
		case "mode":
			c.Mode = loadWord[ChoiceMode](r)
		case "tools":
			c.Tools = loadList(r, loadToolRef)
		case "native":
			c.Native = loadOpt(r, loadNativeObject)
		case "extra":
			c.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return c
}

// MarshalJSON writes the reference.
func (t ToolRef) MarshalJSON() ([]byte, error) { return store("tool reference", t.store) }

// UnmarshalJSON reads a stored reference.
func (t *ToolRef) UnmarshalJSON(b []byte) error { return load(b, "tool reference", t, loadToolRef) }

func (t *ToolRef) store(out *storer) {
	out.w.BeginObject()
	out.str("namespace", t.Namespace)
	out.str("name", t.Name)
	out.str("kind", string(t.Kind))
	storeOpt(out, "native", t.Native, (*Native).store)
	storeOpt(out, "extra", t.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadToolRef(r *jsonwire.Reader) (t ToolRef) {
	for key := range r.Object() {
		switch string(key) {
		case "namespace":
			t.Namespace = r.String()
		case "name":
			t.Name = r.String()
		case "kind":
			t.Kind = loadWord[ToolKind](r)
		case "native":
			t.Native = loadOpt(r, loadNativeObject)
		case "extra":
			t.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return t
}
