package schema

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// OmitNulls removes the nulls that mean "not set": properties that the schema declares as
// optional and that do not accept null. Strict targets make models write them (quirk A26). It returns args itself
// if there are none, or if args are invalid; validation reports that.
func (v *Validator) OmitNulls(args json.RawMessage) json.RawMessage {
	if v == nil {
		return args
	}
	return omitNulls(v.src, args)
}

func omitNulls(src, args json.RawMessage) json.RawMessage {
	root, _, err := parse(src, maxSchemaNodes)
	if err != nil || len(args) > maxArgumentBytes || jsonwire.Check(args) != nil {
		return args
	}
	l := newLowerer(&Profile{})
	l.root = root
	l.bind()
	if l.err != nil {
		return args
	}
	o := omitter{r: jsonwire.NewReader(args)}
	o.value([]*node{root}, 0)
	if o.dropped == 0 || o.r.End() != nil {
		return args
	}
	return o.w.Buf
}

type omitter struct {
	r       *jsonwire.Reader
	w       jsonwire.Writer
	dropped int
}

// value copies one value to which all of the schemas apply.
func (o *omitter) value(schemas []*node, depth int) {
	schemas = applicable(schemas)
	k := o.r.Kind()
	switch {
	case len(schemas) == 0 || depth > maxArgumentDepth || k != '{' && k != '[':
		o.w.Raw(o.r.Raw())
	case k == '[':
		o.w.BeginArray()
		for range o.r.Array() {
			var below []*node
			for _, s := range schemas {
				s.forItem(func(n *node) { below = append(below, n) })
			}
			o.value(below, depth+1)
		}
		o.w.EndArray()
	default:
		o.w.BeginObject()
		for key := range o.r.Object() {
			name := string(key)
			below, required := declared(schemas, name)
			if o.r.Kind() == 'n' && len(below) > 0 && !required && !slices.ContainsFunc(below, func(n *node) bool { return nullable(n, 0) }) {
				o.r.Skip()
				o.dropped++
				continue
			}
			o.w.QuotedKey(name)
			o.value(below, depth+1)
		}
		o.w.EndObject()
	}
}

// applicable adds the schemas that apply to the same value.
func applicable(schemas []*node) []*node {
	var out []*node
	for _, s := range schemas {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for i := 0; i < len(out) && len(out) < 256; i++ {
		out[i].inPlace(func(n *node) {
			if n.kind == isSchema && !slices.Contains(out, n) {
				out = append(out, n)
			}
		})
	}
	return out
}

// declared returns the schemas of a property, and whether the property is required.
func declared(schemas []*node, name string) (below []*node, required bool) {
	for _, s := range schemas {
		if p := s.get(kwProperties); p != nil && p.kind == isMap {
			if v := p.name(name); v != nil && v.kind == isSchema {
				below = append(below, v)
			}
		}
		required = required || slices.Contains(s.required(), name)
	}
	return below, required
}
