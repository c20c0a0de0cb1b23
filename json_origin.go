package dragoman

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Stored JSON of what stands beside the content: origins, sidecars, extras,
// native objects, cache hints.

// MarshalJSON writes the sidecar, its bytes exact.
func (s Sidecar) MarshalJSON() ([]byte, error) { return store("sidecar", s.store) }

// UnmarshalJSON reads a stored sidecar.
func (s *Sidecar) UnmarshalJSON(b []byte) error { return load(b, "sidecar", s, loadSidecar) }

func (s *Sidecar) store(out *storer) {
	out.w.BeginObject()
	out.str("dialect", string(s.Dialect))
	out.bytes("raw", s.Raw)
	out.mirror(s.Mirror)
	out.w.EndObject()
}

func loadSidecar(r *jsonwire.Reader) (c Sidecar) {
	for key := range r.Object() {
		switch string(key) {
		case "dialect":
			c.Dialect = loadWord[Dialect](r)
		case "raw":
			c.Raw = loadNative[json.RawMessage](r)
		case "mirror":
			c.Mirror = loadMirror(r)
		default:
			r.Skip()
		}
	}
	return c
}

// MarshalJSON writes the extras in order, their values exact.
func (e Extra) MarshalJSON() ([]byte, error) { return store("extra", e.store) }

// UnmarshalJSON reads stored extras.
func (e *Extra) UnmarshalJSON(b []byte) error { return load(b, "extra", e, loadExtra) }

func (e *Extra) store(out *storer) {
	out.w.BeginObject()
	out.str("dialect", string(e.Dialect))
	storeList(out, "fields", e.Fields, (*Field).store)
	out.w.EndObject()
}

func loadExtra(r *jsonwire.Reader) (e Extra) {
	for key := range r.Object() {
		switch string(key) {
		case "dialect":
			e.Dialect = loadWord[Dialect](r)
		case "fields":
			e.Fields = loadList(r, loadField)
		default:
			r.Skip()
		}
	}
	return e
}

// MarshalJSON writes the field, its value exact.
func (f Field) MarshalJSON() ([]byte, error) { return store("field", f.store) }

// UnmarshalJSON reads a stored field.
func (f *Field) UnmarshalJSON(b []byte) error { return load(b, "field", f, loadField) }

func (f *Field) store(out *storer) {
	out.w.BeginObject()
	out.str("path", f.Path)
	out.bytes("value", f.Value)
	out.w.EndObject()
}

func loadField(r *jsonwire.Reader) (f Field) {
	for key := range r.Object() {
		switch string(key) {
		case "path":
			f.Path = r.String()
		case "value":
			f.Value = loadNative[json.RawMessage](r)
		default:
			r.Skip()
		}
	}
	return f
}

// MarshalJSON writes the native object, its bytes exact.
func (n Native) MarshalJSON() ([]byte, error) { return store("native object", n.store) }

// UnmarshalJSON reads a stored native object.
func (n *Native) UnmarshalJSON(b []byte) error { return load(b, "native object", n, loadNativeObject) }

func (n *Native) store(out *storer) {
	out.w.BeginObject()
	out.str("format", string(n.Format))
	out.bytes("json", n.JSON)
	out.w.EndObject()
}

func loadNativeObject(r *jsonwire.Reader) (n Native) {
	for key := range r.Object() {
		switch string(key) {
		case "format":
			n.Format = loadWord[Format](r)
		case "json":
			n.JSON = loadNative[json.RawMessage](r)
		default:
			r.Skip()
		}
	}
	return n
}

// MarshalJSON writes the origin.
func (o Origin) MarshalJSON() ([]byte, error) { return store("origin", o.store) }

// UnmarshalJSON reads a stored origin.
func (o *Origin) UnmarshalJSON(b []byte) error { return load(b, "origin", o, loadOrigin) }

func (o *Origin) store(out *storer) {
	out.w.BeginObject()
	out.str("dialect", string(o.Dialect))
	out.str("provider", o.Provider)
	out.str("scope", o.Scope)
	out.str("model", o.Model)
	out.w.EndObject()
}

func loadOrigin(r *jsonwire.Reader) (o Origin) {
	for key := range r.Object() {
		switch string(key) {
		case "dialect":
			o.Dialect = loadWord[Dialect](r)
		case "provider":
			o.Provider = r.String()
		case "scope":
			o.Scope = r.String()
		case "model":
			o.Model = r.String()
		default:
			r.Skip()
		}
	}
	return o
}

// MarshalJSON writes the hint.
func (c CacheHint) MarshalJSON() ([]byte, error) { return store("cache hint", c.store) }

// UnmarshalJSON reads a stored hint.
func (c *CacheHint) UnmarshalJSON(b []byte) error { return load(b, "cache hint", c, loadCacheHint) }

func (c *CacheHint) store(out *storer) {
	out.w.BeginObject()
	out.str("ttl", c.TTL)
	out.w.EndObject()
}

func loadCacheHint(r *jsonwire.Reader) (c CacheHint) {
	for key := range r.Object() {
		switch string(key) {
		case "ttl":
			c.TTL = r.String()
		default:
			r.Skip()
		}
	}
	return c
}
