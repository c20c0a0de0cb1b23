package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ValidationError lists everything that is wrong with arguments, by position. Its text is short
// enough to send to a model.
type ValidationError struct {
	Violations []Violation
}

const (
	maxLines    = 10
	maxLineText = 240
)

func (e *ValidationError) Error() string {
	var b strings.Builder
	for i, v := range e.Violations {
		if i == maxLines {
			fmt.Fprintf(&b, "\nand %d more", len(e.Violations)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(cut(v.String(), maxLineText))
	}
	return b.String()
}

// Validate checks args, the text of one JSON value; empty text means {}. The error is a
// [*ValidationError] that lists every violation. Text that is not JSON, repeats a name, or
// exceeds the limits is a violation too. A nil validator rejects everything.
func (v *Validator) Validate(args json.RawMessage) error {
	if v == nil {
		return single("", "schema", "the schema is not compiled")
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if len(args) > v.maxBytes {
		return single("", "size", fmt.Sprintf("the arguments have %d bytes; at most %d are allowed", len(args), v.maxBytes))
	}
	d := decoder{r: jsonwire.NewReader(args), max: maxArgumentDepth, exact: true}
	value, err := d.all(args)
	if err != nil {
		var at *jsonwire.Error
		if errors.As(err, &at) {
			return single(at.Pointer, "json", at.Err.Error()+" (byte "+strconv.FormatInt(at.Offset, 10)+")")
		}
		return single("", "json", err.Error())
	}
	if !v.cost.allows(value, d.values) {
		return single("", "size", "the arguments are nested too deeply, or are too many, for this schema")
	}
	p, err := v.take()
	if err != nil {
		return single("", "schema", err.Error())
	}
	defer v.put(p)
	return p.run(value)
}

func single(ptr, rule, detail string) error {
	return &ValidationError{[]Violation{{ptr, rule, detail}}}
}

func (v *Validator) take() (*program, error) {
	if v.fixed != nil {
		return v.fixed, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.idle); n > 0 {
		p := v.idle[n-1]
		v.idle = v.idle[:n-1]
		return p, nil
	}
	return v.build()
}

func (v *Validator) put(p *program) {
	if v.fixed != nil {
		return
	}
	*p.clock = clock{}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.idle) < maxIdle {
		v.idle = append(v.idle, p)
	}
}

func (p *program) run(value any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = single("", "schema", fmt.Sprintf("validation failed: %v", r))
		}
	}()
	bad := p.schema.Validate(value)
	if p.clock.over {
		return single("", "pattern", "matching the schema's patterns took too long; give shorter text")
	}
	var tree *jsonschema.ValidationError
	switch {
	case bad == nil:
		return nil
	case errors.As(bad, &tree):
		return &ValidationError{flatten(tree)}
	default:
		return single("", "schema", bad.Error())
	}
}

// flatten turns the validator's tree into a list by position. For a union that failed, it
// reports the branch that came closest.
func flatten(tree *jsonschema.ValidationError) []Violation {
	list := leaves(tree)
	slices.SortStableFunc(list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.Compact(list)
}

func leaves(e *jsonschema.ValidationError) []Violation {
	ptr := pointerOf(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return union(e, ptr)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return union(e, ptr)
		}
		return []Violation{{ptr, "oneOf", fmt.Sprintf("must match exactly one of the allowed forms, and matches forms %d and %d", k.Subschemas[0]+1, k.Subschemas[1]+1)}}
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.Not:
		return []Violation{{ptr, keywordOf(e), message(e)}}
	case *kind.PropertyNames:
		detail := fmt.Sprintf("the property name %s is not allowed", show(k.Property))
		if len(e.Causes) > 0 {
			if sub := leaves(e.Causes[0]); len(sub) > 0 {
				detail += ": " + sub[0].Detail
			}
		}
		return []Violation{{ptr, "propertyNames", detail}}
	}
	if len(e.Causes) == 0 {
		return []Violation{{ptr, keywordOf(e), message(e)}}
	}
	var out []Violation
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

// union reports why no branch matches: the accepted types, if only the type is wrong; otherwise
// the violations of the closest branch.
func union(e *jsonschema.ValidationError, ptr string) []Violation {
	var wants []string
	var best []Violation
	got, onlyTypes := "", len(e.Causes) > 0
	for _, c := range e.Causes {
		if k, ok := c.ErrorKind.(*kind.Type); ok && pointerOf(c.InstanceLocation) == ptr {
			got = k.Got
			for _, w := range k.Want {
				if !slices.Contains(wants, w) {
					wants = append(wants, w)
				}
			}
			continue
		}
		onlyTypes = false
		if sub := leaves(c); best == nil || closer(sub, best) {
			best = sub
		}
	}
	if onlyTypes {
		return []Violation{{ptr, "type", fmt.Sprintf("must be %s, is %s", strings.Join(wants, " or "), got)}}
	}
	head := Violation{ptr, keywordOf(e), fmt.Sprintf("matches none of the %d allowed forms", len(e.Causes))}
	if len(e.Causes) > 1 {
		head.Detail += "; errors of the closest one follow"
	}
	return append([]Violation{head}, best...)
}

// closer reports whether a is the better branch: it has fewer violations, or as many but deeper
// ones.
func closer(a, b []Violation) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	depth := func(list []Violation) (n int) {
		for _, v := range list {
			n += strings.Count(v.Pointer, "/")
		}
		return n
	}
	return depth(a) > depth(b)
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escapeToken(t))
	}
	return b.String()
}

func keywordOf(e *jsonschema.ValidationError) string {
	if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	switch e.ErrorKind.(type) {
	case *kind.Not:
		return "not"
	case *kind.FalseSchema:
		return "false"
	default:
		return "schema"
	}
}

// properties names properties: property "a", or properties "a", "b".
func properties(list []string) string {
	if len(list) == 1 {
		return "property " + names(list)
	}
	return "properties " + names(list)
}

// message returns what was expected.
func message(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, is %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return "missing " + properties(k.Missing)
	case *kind.AdditionalProperties:
		return "unknown " + properties(k.Properties)
	case *kind.Enum:
		return "must be one of " + values(k.Want) + ", is " + show(k.Got)
	case *kind.Const:
		return "must be " + show(k.Want) + ", is " + show(k.Got)
	case *kind.Format:
		return "must be a valid " + k.Want + ", is " + show(k.Got)
	case *kind.Pattern:
		return "must match the pattern " + cut(k.Want, 100) + ", is " + show(k.Got)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat items; items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		return "must be at least " + number(k.Want) + ", is " + number(k.Got)
	case *kind.Maximum:
		return "must be at most " + number(k.Want) + ", is " + number(k.Got)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want) + ", is " + number(k.Got)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want) + ", is " + number(k.Got)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want) + ", is " + number(k.Got)
	case *kind.Contains:
		return "has no item of the required form"
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %d items of the required form, has %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %d items of the required form, has %d", k.Want, len(k.Got))
	case *kind.Not:
		return "matches a form that the schema excludes"
	case *kind.FalseSchema:
		return "must not be present"
	case *kind.Dependency:
		return fmt.Sprintf("missing %s, required with %s", properties(k.Missing), show(k.Prop))
	case *kind.DependentRequired:
		return fmt.Sprintf("missing %s, required with %s", properties(k.Missing), show(k.Prop))
	case *kind.RefCycle:
		return "the schema refers to itself here without an end"
	default:
		return "breaks " + keywordOf(e)
	}
}

func names(list []string) string {
	list = slices.Sorted(slices.Values(list))
	out := make([]string, 0, len(list))
	for i, n := range list {
		if i == 8 {
			out = append(out, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		out = append(out, show(n))
	}
	return strings.Join(out, ", ")
}

func values(list []any) string {
	out := make([]string, 0, len(list))
	for i, v := range list {
		if i == 12 {
			out = append(out, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		out = append(out, show(v))
	}
	return strings.Join(out, ", ")
}

// show returns a value as JSON, shortened.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return cut(string(b), 60)
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return cut(r.Num().String(), 60)
	}
	if f, exact := r.Float64(); exact {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strings.TrimRight(r.FloatString(12), "0")
}
