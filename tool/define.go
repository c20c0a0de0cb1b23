package tool

import (
	"cmp"
	"context"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/schema"
)

// ErrDefinition is wrapped by every error about the definition of a tool.
var ErrDefinition = errors.New("tool: invalid definition")

// Option configures a tool when it is defined.
type Option func(*definition)

type definition struct {
	spec     dragoman.ToolSpec
	settings Settings
	output   reflect.Type
	err      error

	contribution dragoman.Contribution
}

// New makes a tool from a function. The input type is a struct, or a map with string keys. The
// schema for models is derived from it: from json names and from doc and jsonschema tags, which
// [schema.FromType] lists. struct{} takes no arguments, and [Text] makes a freeform tool.
//
//	type Query struct {
//		City string `json:"city" doc:"the city's name, in English"`
//		Unit string `json:"unit" jsonschema:"enum=celsius,enum=fahrenheit"`
//		Days int    `json:"days,omitempty" jsonschema:"minimum=1,default=1"` // may be left out
//	}
//
// The result of the function is sent as JSON, except for a string, [Text], parts, a whole
// result, an [Output] or a [*Ticket], which are sent as such. An error becomes an error result
// with its text.
//
// An object of the type "provider_native_tool_result" is a provider-native result:
//
//	{"type": "provider_native_tool_result", "format": "anthropic.messages", "content": […]}
//
// The format is the name of a dialect, and the content is the result as that dialect writes
// it. It keeps its structure for a target of that dialect. Every other target gets the field
// "text", or without one the text of the content. Other fields are dropped.
//
// A toolbox reports errors in the definition when the tool is added to it, before any model is
// called. [Make] returns them at once.
func New[In, Out any](name, description string, f func(context.Context, In) (Out, error), opts ...Option) Tool {
	t, err := Make(name, description, f, opts...)
	if err != nil {
		return &invalidTool{spec: dragoman.ToolSpec{Name: name, Description: description}, err: err}
	}
	return t
}

// Make is like [New] but returns an error if the definition is invalid.
func Make[In, Out any](name, description string, f func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	in := reflect.TypeFor[In]()
	d := definition{spec: dragoman.ToolSpec{Name: name, Description: description}, output: reflect.TypeFor[Out]()}
	t := &typedTool[In, Out]{f: f}
	switch {
	case f == nil:
		d.fail(errors.New("the function is nil"))
	case in == reflect.TypeFor[Text]():
		t.freeform = true
		d.spec.Kind = codes.ToolFreeform
	case !isArguments(in):
		d.fail(fmt.Errorf("%s cannot be the arguments of a call: use a struct, a map with string keys, or tool.Text", in))
	default:
		params, err := schema.FromType(in)
		d.spec.Parameters = params
		d.fail(err)
	}
	if err := d.apply(opts); err != nil {
		return nil, err
	}
	t.definedTool = definedTool{spec: d.spec, settings: d.settings, contribution: d.contribution}
	t.custom = decodesItself(in, map[reflect.Type]bool{})
	return t, nil
}

// isArguments reports whether values of a type are JSON objects.
func isArguments(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// Raw makes a tool from a JSON schema and a function of bytes. A nil schema accepts any object.
// The result of the function is sent as described for [New]. To declare an output schema, use
// [Remote] and its spec.
func Raw(name, description string, parameters stdjson.RawMessage, f func(context.Context, stdjson.RawMessage) (any, error), opts ...Option) Tool {
	return fromSpec(dragoman.ToolSpec{Name: name, Description: description, Parameters: parameters}, func(ctx context.Context, in Input) (any, error) {
		return f(ctx, in.Arguments)
	}, f == nil, opts)
}

// Freeform makes a tool that takes text. The grammar is a regular expression or a Lark grammar;
// nil accepts any text. Text that does not match is not run: the model gets the grammar and,
// for Lark, the position of the mismatch. Calls carry the text as a text payload, or as
// {"input": "…"} from models that only support functions.
func Freeform(name, description string, grammar *dragoman.Grammar, f func(context.Context, string) (any, error), opts ...Option) Tool {
	spec := dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: name, Description: description, Grammar: grammar}
	return fromSpec(spec, func(ctx context.Context, in Input) (any, error) { return f(ctx, in.Text) }, f == nil, opts)
}

// Remote makes a tool from a definition of another system, such as an MCP server. Without a
// schema the arguments cannot be validated here, and calls need approval. A definition in
// another format is the Source of the spec: fields that the spec does not set are read from it,
// see [Contribute].
//
// Its output cannot be a provider-native result (see [New]), unless the tool
// is [Settings.Trusted]: such a result is not fenced, and the tool's server could write it.
func Remote(spec dragoman.ToolSpec, call Handler, opts ...Option) Tool {
	unchecked := spec.Kind == codes.ToolFunction && len(spec.Parameters) == 0 && spec.Source == nil
	opts = append([]Option{func(d *definition) { d.settings.Unvalidated, d.settings.remote = unchecked, true }}, opts...)
	return fromSpec(spec, func(ctx context.Context, in Input) (any, error) { return call(ctx, in) }, call == nil, opts)
}

func fromSpec(spec dragoman.ToolSpec, f func(context.Context, Input) (any, error), none bool, opts []Option) Tool {
	d := definition{spec: spec}
	if none {
		d.fail(errors.New("the function is nil"))
	}
	opts = append(slices.Clone(opts), func(d *definition) { d.fail(d.readSource()) })
	if err := d.apply(opts); err != nil {
		return &invalidTool{spec: spec, err: err}
	}
	return &rawTool{definedTool: definedTool{spec: d.spec, settings: d.settings, contribution: d.contribution}, f: f}
}

func (d *definition) fail(err error) {
	if d.err == nil && err != nil {
		d.err = err
	}
}

// apply applies the options and returns all errors of the definition.
func (d *definition) apply(opts []Option) error {
	for _, o := range opts {
		if o != nil {
			o(d)
		}
	}
	if d.settings.Structured && d.spec.OutputSchema == nil && d.output != nil {
		out, err := schema.FromType(d.output)
		d.spec.OutputSchema = out
		d.fail(err)
	}
	if d.spec.Name == "" {
		d.fail(errors.New("it has no name"))
	}
	if err := checkTexts(&d.spec); err != nil {
		return err
	}
	if d.err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDefinition, cmp.Or(d.spec.QualifiedName(), "a tool without a name"), d.err)
	}
	return nil
}

// checkTexts refuses invisible characters in names and descriptions, which could forge
// lines in prompts and logs.
func checkTexts(s *dragoman.ToolSpec) error {
	for _, text := range [...]struct {
		what, text string
		check      func(string) error
	}{
		{"name", s.Name, textkit.CheckName},
		{"namespace", s.Namespace, textkit.CheckName},
		{"description", s.Description, textkit.CheckDescription},
		{"description of its namespace", s.NamespaceDescription, textkit.CheckDescription},
	} {
		if err := text.check(text.text); err != nil {
			return fmt.Errorf("%w: %q: its %s is invalid: %w", ErrDefinition, s.QualifiedName(), text.what, err)
		}
	}
	for _, schema := range [...]struct {
		what string
		json []byte
	}{{"arguments", s.Parameters}, {"output", s.OutputSchema}} {
		if len(schema.json) == 0 {
			continue
		}
		if at, err := checkSchemaTexts(jsonwire.NewReader(schema.json), false); err != nil {
			return fmt.Errorf("%w: %q: %s in the schema of its %s is invalid: %w", ErrDefinition, s.QualifiedName(), at, schema.what, err)
		}
	}
	return nil
}

// checkSchemaTexts checks the titles, descriptions and names of a schema, which models
// read too, and returns the place of one that cannot be used. named says that r is at an
// object of schemas by name. Values of default, const, enum and examples are data. What
// is not JSON is left to the compiler of the schema.
func checkSchemaTexts(r *jsonwire.Reader, named bool) (at string, err error) {
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			name := string(key)
			if err == nil && named {
				if err = textkit.CheckDescription(name); err != nil {
					at = "the name of a property"
				}
			}
			switch {
			case err != nil:
				r.Skip()
			case named:
				at, err = checkSchemaTexts(r, false)
			case name == "default" || name == "const" || name == "enum" || name == "examples":
				r.Skip()
			case (name == "description" || name == "title") && r.Kind() == '"':
				if err = textkit.CheckDescription(r.String()); err != nil {
					at = r.Pointer()
				}
			default:
				at, err = checkSchemaTexts(r, name == "properties" || name == "$defs" || name == "definitions")
			}
		}
	case '[':
		for range r.Array() {
			if err != nil {
				r.Skip()
				continue
			}
			at, err = checkSchemaTexts(r, false)
		}
	default:
		r.Skip()
	}
	return at, err
}

// definedTool is the part that all tools of this package share.
type definedTool struct {
	spec     dragoman.ToolSpec
	settings Settings

	contribution dragoman.Contribution
	// validator is the compiled schema of the arguments, or nil if it is not compiled yet.
	validator *schema.Validator

	// ready is the prepared toolbox entry, made once.
	once  sync.Once
	ready *entry
	err   error
}

// prepared returns the toolbox entry. Schemas are compiled once for all toolboxes that contain
// the tool, and the tool has the same breaker in all of them.
func (m *definedTool) prepared(prepare func() (*entry, error)) (*entry, error) {
	m.once.Do(func() { m.ready, m.err = prepare() })
	return m.ready, m.err
}

// compiled returns the compiled schema of the arguments, or nil.
func (m *definedTool) compiled() *schema.Validator { return m.validator }

// Spec returns the definition that models get.
func (m *definedTool) Spec() *dragoman.ToolSpec { return &m.spec }

// Settings returns the settings of the tool.
func (m *definedTool) Settings() Settings { return m.settings }

// Contribution holds the tool's additions to the interop registry.
func (m *definedTool) Contribution() dragoman.Contribution { return m.contribution }

// typedTool is a tool made from a function with Go types.
type typedTool[In, Out any] struct {
	definedTool
	f        func(context.Context, In) (Out, error)
	freeform bool
	// custom reports that types within In have custom decoding.
	custom bool
}

// strictNames decodes like encoding/json, with two differences. Field names match
// case-sensitively, so that a field that a policy reads as another argument does not become
// this one. The error names the place of the first value that does not fit, so that a model can
// correct it.
var strictNames = json.JoinOptions(
	jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false), jsonv1.ReportErrorsWithLegacySemantics(false),
	json.WithUnmarshalers(json.UnmarshalFunc(decodeNumber)),
)

// decodeNumber decodes a number of encoding/json, which the decoder takes for a string.
func decodeNumber(raw []byte, n *stdjson.Number) error {
	if err := stdjson.Unmarshal(raw, n); err != nil {
		return errNotANumber
	}
	return nil
}

var errNotANumber = errors.New("want a number")

func (t *typedTool[In, Out]) bind(in Input) (any, error) {
	value := new(In)
	if t.freeform {
		reflect.ValueOf(value).Elem().SetString(in.Text)
		return value, nil
	}
	args := in.Arguments
	if len(args) == 0 {
		args = stdjson.RawMessage("{}")
	}
	if err := json.Unmarshal(args, value, strictNames); err != nil {
		return nil, fmt.Errorf("the arguments do not match the types of the tool: %w", err)
	}
	return value, nil
}

func (t *typedTool[In, Out]) decodesItself() bool { return t.custom }

// decodesItself reports whether a type, or a type within it, has custom decoding. The standard
// library's is trusted to terminate.
func decodesItself(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	for _, own := range [...]reflect.Type{
		reflect.TypeFor[stdjson.Unmarshaler](), reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(own) && !isStandard(t) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return decodesItself(t.Elem(), seen)
	case reflect.Map:
		return decodesItself(t.Key(), seen) || decodesItself(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if decodesItself(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

func isStandard(t reflect.Type) bool {
	switch t.PkgPath() {
	case "time", "math/big", "net", "net/netip", "net/url", "encoding/json":
		return true
	default:
		return false
	}
}

// Call runs the function.
func (t *typedTool[In, Out]) Call(ctx context.Context, in Input) (Output, error) {
	value, ok := in.bound.(*In)
	if !ok {
		bound, err := t.bind(in)
		if err != nil {
			return Output{}, err
		}
		value = bound.(*In)
	}
	out, err := t.f(ctx, *value)
	if err != nil {
		return Output{}, err
	}
	return outputOf(out, &t.settings)
}

// rawTool is a tool made from a function of bytes or text.
type rawTool struct {
	definedTool
	f func(context.Context, Input) (any, error)
}

// Call runs the function.
func (p *rawTool) Call(ctx context.Context, in Input) (Output, error) {
	out, err := p.f(ctx, in)
	if err != nil {
		return Output{}, err
	}
	return outputOf(out, &p.settings)
}

// invalidTool is a tool with an invalid definition. A toolbox refuses it.
type invalidTool struct {
	spec dragoman.ToolSpec
	err  error
}

func (b *invalidTool) Spec() *dragoman.ToolSpec                    { return &b.spec }
func (b *invalidTool) Call(context.Context, Input) (Output, error) { return Output{}, b.err }

// Err returns what is wrong with the definition.
func (b *invalidTool) Err() error { return b.err }

// ReadOnly marks the tool as one that changes nothing.
func ReadOnly() Option { return annotate(func(a *dragoman.Annotations) { a.ReadOnly = new(true) }) }

// Destructive marks the tool as one that may delete or overwrite data.
func Destructive() Option {
	return annotate(func(a *dragoman.Annotations) { a.Destructive = new(true); a.ReadOnly = new(false) })
}

// Idempotent marks the tool as one whose repeated call has no further effect. Only idempotent
// tools run again after a crash.
func Idempotent() Option {
	return annotate(func(a *dragoman.Annotations) { a.Idempotent = new(true) })
}

func annotate(f func(*dragoman.Annotations)) Option {
	return func(d *definition) { f(&d.spec.Annotations) }
}

// InNamespace puts the tool into a namespace. All tools of the namespace must give it the same
// description.
func InNamespace(namespace, description string) Option {
	return func(d *definition) { d.spec.Namespace, d.spec.NamespaceDescription = namespace, description }
}

// Deferred hides the tool until a tool search finds it.
func Deferred() Option { return func(d *definition) { d.spec.Deferred = true } }

// Timeout limits each call of the tool.
func Timeout(d time.Duration) Option { return func(def *definition) { def.settings.Timeout = d } }

// NeedsApproval makes every call of the tool wait for a human, unless a rule of the [Runner]'s
// policy allows or denies the call. A policy default of allow does not waive the approval.
func NeedsApproval() Option { return func(d *definition) { d.settings.Approval = approvalAlways } }

// Describe changes parts of the definition that have no option, such as examples, the title or
// Strict.
func Describe(f func(*dragoman.ToolSpec)) Option { return func(d *definition) { f(&d.spec) } }

// Set changes the settings that have no option of their own.
func Set(f func(*Settings)) Option { return func(d *definition) { f(&d.settings) } }
