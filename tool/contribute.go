package tool

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/interop"
)

// contributor is a [Tool] that brings its own interop formats, such as the format in
// which its definition is written. An agent passes the contributions of its tools with
// every request; those of the configuration, the provider and its extensions come
// first. The contribution must not change once the tool is in a toolbox.
type contributor interface {
	Contribution() dragoman.Contribution
}

// Contribute adds to the interop registry of the requests that carry the tool. With it a
// tool may be defined in a format of its own:
//
//	tool.Remote(dragoman.ToolSpec{Source: &dragoman.ToolSource{Format: "acme.tool", JSON: definition}},
//		call, tool.Contribute(dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{acme{}}}))
//
// A provider that accepts the format gets the definition byte for byte. A contributed
// adapter converts directly to the formats that it writes. All other providers get what the accessor
// reads from the definition. Which formats are accepted is up to providers and
// extensions: a toolbox refuses a tool whose contribution has Accepts.
func Contribute(c dragoman.Contribution) Option {
	return func(d *definition) {
		d.contribution.Source = c.Source
		d.contribution.Schemas = append(d.contribution.Schemas, c.Schemas...)
		d.contribution.Calls = append(d.contribution.Calls, c.Calls...)
		d.contribution.Results = append(d.contribution.Results, c.Results...)
		d.contribution.Adapters = append(d.contribution.Adapters, c.Adapters...)
		d.contribution.Accepts = append(d.contribution.Accepts, c.Accepts...)
	}
}

// contributionOf returns the contribution of a tool, if it has one.
func contributionOf(t Tool) dragoman.Contribution {
	if c, ok := t.(contributor); ok {
		return c.Contribution()
	}
	return dragoman.Contribution{}
}

func isEmpty(c *dragoman.Contribution) bool {
	return len(c.Schemas)+len(c.Calls)+len(c.Results)+len(c.Adapters) == 0
}

// checkAccepts refuses a tool that claims that providers accept a format: they would
// get definitions that they do not understand (requirement R4).
func checkAccepts(c *dragoman.Contribution) error {
	if len(c.Accepts) == 0 {
		return nil
	}
	return fmt.Errorf("its contribution accepts the format %q: only providers and extensions accept formats; set Accepts in the Contributions of the provider's client", c.Accepts[0])
}

// Contributions returns the contributions of all tools, in order, for a request. A
// contribution without a source gets the name of its tool as source.
func (b *Box) Contributions() []dragoman.Contribution {
	if b == nil {
		return nil
	}
	var out []dragoman.Contribution
	for _, e := range b.entries {
		if !isEmpty(&e.contribution) {
			out = append(out, e.contribution)
		}
	}
	return out
}

// readSource reads the definition of a tool from its source, once all options are
// known.
func (d *definition) readSource() (err error) {
	if d.spec.Source == nil {
		return nil
	}
	d.spec, err = readSource(d.spec, &d.contribution)
	if d.settings.remote && d.spec.Kind == codes.ToolFunction && len(d.spec.Parameters) == 0 {
		d.settings.Unvalidated = true
	}
	return err
}

// readSource fills in the name, the description and the arguments from the source of a
// spec, unless the spec sets them. A source in an unknown format is an error, because a
// tool without its schema would seem to take no arguments.
func readSource(s dragoman.ToolSpec, c *dragoman.Contribution) (dragoman.ToolSpec, error) {
	if s.Source == nil || s.Kind == codes.ToolHosted || s.Source.Mirror != (dragoman.Fingerprint{}) ||
		s.Name != "" && (s.Kind != codes.ToolFunction || len(s.Parameters) > 0) {
		return s, nil
	}
	reg := all.Registry(interop.Options{Contributions: []dragoman.Contribution{*c}})
	if !reg.ReadsSchema(s.Source.Format) {
		return s, fmt.Errorf("its definition has the unknown format %q: contribute a SchemaAccessor with tool.Contribute", s.Source.Format)
	}
	read, _, err := reg.InspectSchema(dragoman.Native{Format: s.Source.Format, JSON: s.Source.JSON})
	switch {
	case err != nil:
		return s, fmt.Errorf("its definition in the format %q: %w", s.Source.Format, err)
	case len(read) != 1:
		return s, fmt.Errorf("its definition in the format %q defines %d tools: want one", s.Source.Format, len(read))
	}
	out := read[0]
	source := dragoman.ToolSource{Format: s.Source.Format, JSON: s.Source.JSON, Mirror: out.Fingerprint()}
	if s.Name != "" {
		out.Name = s.Name
	}
	if s.Description != "" {
		out.Description = s.Description
	}
	if s.Namespace != "" {
		out.Namespace, out.NamespaceDescription = s.Namespace, s.NamespaceDescription
	}
	if s.OutputSchema != nil {
		out.OutputSchema = s.OutputSchema
	}
	if s.Strict != codes.StrictOff {
		out.Strict = s.Strict
	}
	if s.Annotations != (dragoman.Annotations{}) {
		out.Annotations = s.Annotations
	}
	out.Deferred = out.Deferred || s.Deferred
	out.Examples = append(out.Examples, s.Examples...)
	if s.Cache != nil {
		out.Cache = s.Cache
	}
	out.Source = &source
	return out, nil
}
