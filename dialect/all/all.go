// Package all lists the dialects of this module. A registry of package interop recognizes the
// tool objects of the dialects it is given. Most programs want all of them:
//
//	reg := all.Registry(interop.Options{Target: target, Limits: codec.Limits(), Tools: req.Tools})
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Registry: reg})
//
// A codec that is used without a registry composes one that knows only its own tool
// objects. That is enough for requests that another codec decoded.
package all

import (
	"slices"

	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
)

// Codecs returns the tool codec of every dialect.
func Codecs() []toolwire.Codec {
	var out []toolwire.Codec
	for _, c := range dialects.All() {
		if t, ok := c.(interface{ ToolCodec() toolwire.Codec }); ok {
			out = append(out, t.ToolCodec())
		}
	}
	return out
}

// Profiles returns the schema rules of every surface of every dialect. Each name occurs once.
func Profiles() []schema.Profile {
	var out []schema.Profile
	for _, c := range Codecs() {
		for _, p := range c.Profiles() {
			if !slices.ContainsFunc(out, func(q schema.Profile) bool { return q.Name() == p.Name() }) {
				out = append(out, p)
			}
		}
	}
	return out
}

// Profile returns the schema rules with the given name, such as "openai.strict". Names come from
// the limits of a dialect and the capabilities of a target.
func Profile(name string) (schema.Profile, bool) {
	for _, p := range Profiles() {
		if p.Name() == name {
			return p, true
		}
	}
	return schema.Profile{}, false
}

// Registry composes a registry that knows the tool objects of every dialect. With zero
// options it belongs to no request, for utilities: it has no aliases, and nothing is
// contributed.
func Registry(o interop.Options) *interop.Registry {
	o.Codecs = Codecs()
	return interop.New(o)
}
