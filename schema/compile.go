package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	dragoman "github.com/dragoman-go/dragoman"
)

// Option changes how a schema is compiled.
type Option func(*options)

type options struct {
	formats bool
}

// AssertFormats makes format a constraint. By default format is only a hint, in every draft,
// because authors of tools that they do not run use it loosely.
func AssertFormats() Option { return func(o *options) { o.formats = true } }

// Validator validates arguments against one schema. It is safe for concurrent use.
type Validator struct {
	src      json.RawMessage
	maxBytes int
	cost     *cost
	// root is the schema with its references resolved; defaults reports whether it has
	// defaults.
	root     *node
	defaults bool
	// fixed serves every call if no pattern needs its own clock. Otherwise each call takes a
	// program from idle, or builds another one.
	fixed *program
	mu    sync.Mutex
	idle  []*program
	build func() (*program, error)
}

// maxIdle bounds the programs kept for reuse.
const maxIdle = 16

// program is a compiled schema with the clock of its patterns.
type program struct {
	schema *jsonschema.Schema
	clock  *clock
}

// Compile compiles src for validation. The draft is JSON Schema 2020-12 unless $schema names an
// older one. A nil src accepts any object.
//
// Nothing is fetched: a $ref that leads out of src is an error. So are a reference that leads
// back to itself, a pattern that is not a valid regular expression, and a schema that exceeds
// the package's limits. The error is an [*Error].
func Compile(src json.RawMessage, opts ...Option) (*Validator, error) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	if len(src) == 0 {
		src = json.RawMessage(`{"type":"object"}`)
	}
	root, c, patterns, err := examine(src)
	if err != nil {
		return nil, err
	}
	doc, err := decode(src, maxSchemaDepth, true)
	if err != nil {
		kind := ErrInvalid
		if errors.Is(err, dragoman.ErrTooLarge) {
			kind = dragoman.ErrTooLarge
		}
		return nil, &Error{Reason: err.Error(), Err: kind}
	}
	v := &Validator{src: src, maxBytes: maxArgumentBytes, cost: c, root: root, defaults: hasDefaults(root)}
	v.build = func() (*program, error) { return build(doc, o.formats) }
	first, err := v.build()
	if err != nil {
		return nil, err
	}
	if patterns {
		v.idle = append(v.idle, first)
	} else {
		v.fixed = first
	}
	return v, nil
}

// examine checks the limits of a schema before the validator sees it.
func examine(src []byte) (root *node, c *cost, patterns bool, err error) {
	root, _, err = parse(src, maxCompileNodes)
	if err != nil {
		return nil, nil, false, err
	}
	if root.kind == isData {
		return nil, nil, false, &Error{Reason: "a schema is an object or a boolean", Err: ErrInvalid}
	}
	res := newResolver(root)
	refs, tangled := 0, false
	anchors := map[string]bool{}
	reach(root, func(n *node) {
		if n.kind != isSchema {
			return
		}
		patterns = patterns || n.has(kwPattern) || n.has(kwPatternProperties) || n.has(kwFormat)
		if name, ok := n.get(kwDynamicAnchor).str(); ok {
			tangled = tangled || anchors[name]
			anchors[name] = true
		}
		here := 0
		for _, k := range [...]keyword{kwRef, kwDynamicRef, kwRecursiveRef} {
			if text, ok := n.get(k).str(); ok {
				here++
				n.ref = res.resolve(n, text)
			}
		}
		tangled = tangled || here > 1
		refs += here
	})
	switch {
	case refs > maxRefs:
		return nil, nil, false, &Error{Reason: fmt.Sprintf("%d references, more than %d", refs, maxRefs), Err: dragoman.ErrTooLarge}
	case tangled:
		return nil, nil, false, &Error{Reason: "dynamic references with more than one meaning are not followed", Err: ErrInvalid}
	}
	if n := referenceLoop(root); n != nil {
		return nil, nil, false, &Error{Pointer: n.pointer(), Reason: "a reference refers to itself", Err: ErrInvalid}
	}
	c, err = newCost(root)
	return root, c, patterns, err
}

// denied refuses to load anything.
type denied struct{}

func (denied) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not followed: %s", cut(url, 200))
}

// build compiles a decoded schema. It recovers from panics of the library on hostile input.
func build(doc any, formats bool) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, &Error{Reason: fmt.Sprintf("the schema compiler failed: %v", r), Err: ErrInvalid}
		}
	}()
	p = &program{clock: &clock{}}
	c := jsonschema.NewCompiler()
	c.UseLoader(denied{})
	c.UseRegexpEngine(engine(p.clock))
	if formats {
		c.AssertFormat()
	} else {
		for _, name := range looseFormats {
			c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
		}
	}
	if err := c.AddResource(rootBase, doc); err != nil {
		return nil, compileError(err)
	}
	if p.schema, err = c.Compile(rootBase); err != nil {
		return nil, compileError(err)
	}
	return p, nil
}

// looseFormats are the formats that drafts before 2019-09 would assert.
var looseFormats = []string{
	"date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri",
	"iri-reference", "json-pointer", "period", "relative-json-pointer", "semver", "time", "uri", "uri-reference",
	"uri-template", "uuid",
}

func compileError(err error) error {
	e := &Error{Err: ErrInvalid}
	var bad *jsonschema.SchemaValidationError
	var tree *jsonschema.ValidationError
	if errors.As(err, &bad) && errors.As(bad.Err, &tree) {
		list := flatten(tree)
		e.Pointer = list[0].Pointer
		e.Reason = "not valid JSON Schema: " + (&ValidationError{list}).Error()
		return e
	}
	e.Reason = cut(strings.ReplaceAll(err.Error(), rootBase, ""), 500)
	return e
}
