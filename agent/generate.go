package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/schema"
)

// OutputError says that a model's structured output stayed invalid.
type OutputError struct {
	// Answer is what the model said last, Problem what is wrong with it, as the
	// model was told: its first line says what, and the rest what was asked for.
	Answer  string
	Problem string
}

func (e *OutputError) Error() string {
	problem, _, _ := strings.Cut(e.Problem, "\n"+askedInWords)
	return "agent: the model's structured output stayed invalid: " + problem
}

// Generate runs the agent for an answer of type T: a struct, a slice, a scalar. A
// map with keys of the model's choice is refused, in T or within it, because strict
// APIs take none: use a slice of structs, each with its key. So are values of any type,
// such as any and [json.RawMessage], and a type that contains itself. It is asked for in the API's own way where there is one, and in words
// elsewhere; code fences around it are taken off; it is validated, and goes back
// to the model, with what is wrong, as often as Limits.Corrections says. A refusal is
// not corrected: the error is [ErrAnswer] and has the text of the refusal. The
// result of the run is there also beside an error.
//
// The schema is that of T, as every API takes it: all properties are required, and
// what is optional in T may be null. Its name is Settings.Output.Name, or the
// name of T, or "response".
//
// A run that was interrupted goes on with [ResumeGenerate].
func Generate[T any](ctx context.Context, a Agent, prompt string, opts ...Option) (T, *Result, error) {
	return generate[T](a, opts, func(opts []Option) (*Result, error) { return a.Run(ctx, prompt, opts...) })
}

// ResumeGenerate is [Agent.Resume] for a run that [Generate] began: what T is, is not
// in the state. A run that is over is read again.
func ResumeGenerate[T any](ctx context.Context, a Agent, state *State, opts ...Option) (T, *Result, error) {
	return generate[T](a, opts, func(opts []Option) (*Result, error) { return a.Resume(ctx, state, opts...) })
}

// generate has a run answer with a T.
func generate[T any](a Agent, opts []Option, run func([]Option) (*Result, error)) (T, *Result, error) {
	var out, none T
	s, err := structuredOf(reflect.TypeFor[T](), a.Settings.Output)
	if err != nil {
		return none, &Result{Agent: a.name()}, err
	}
	checked := false
	check := func(answer string) string { checked = true; return s.read(answer, &out) }
	res, err := run(append(opts[:len(opts):len(opts)], optionFunc(func(o *options) { o.output, o.check = s, check })))
	if err == nil && !checked { // it was over before
		if wrong := check(res.Output); wrong != "" {
			err = &OutputError{Answer: res.Output, Problem: wrong}
		}
	}
	if err != nil { // an answer that was refused is not half there
		return none, res, err
	}
	return out, res, nil
}

// structured is an output that is asked for.
type structured struct {
	format dragoman.OutputFormat
	// source is the schema of the type, and what answers are held to; what is sent
	// is its strict form.
	source    json.RawMessage
	validator *schema.Validator
	// wrapped says that the value is under "value", because it is no object.
	wrapped bool
}

// structuredOf prepares the output of a type.
func structuredOf(t reflect.Type, given *dragoman.OutputFormat) (*structured, error) {
	s := &structured{}
	root := t
	for root.Kind() == reflect.Pointer {
		root = root.Elem()
	}
	wrong := func(err error) error { return errorf("the output type %v: %w", t, err) }
	var err error
	if root.Kind() == reflect.Struct || root.Kind() == reflect.Map {
		s.source, err = schema.FromType(root)
	}
	if s.source == nil { // JSON has no object for the type; time.Time is a struct and a text
		wrapper := reflect.StructOf([]reflect.StructField{{Name: "Value", Type: t, Tag: `json:"value"`}})
		source, failed := schema.FromType(wrapper)
		if failed != nil {
			return nil, wrong(cmp.Or(err, failed))
		}
		s.source, s.wrapped = source, true
	}
	if s.validator, err = schema.Compile(s.source); err != nil {
		return nil, wrong(err)
	}
	strict := s.source
	for _, p := range strictSubsets() {
		low, err := schema.Lower(strict, p)
		if err != nil {
			return nil, wrong(fmt.Errorf("structured output is always strict, so use structs and slices instead of maps, values of any type and types that contain themselves: %w", err))
		}
		strict = low.Schema
	}
	if given != nil {
		s.format = *given
	}
	s.format.Kind, s.format.Schema, s.format.Dialect = codes.OutputSchema, strict, ""
	if s.format.Name == "" {
		s.format.Name = typeName(t)
	}
	return s, nil
}

// strictSubsets are those of all APIs: an output schema satisfies each.
func strictSubsets() []schema.Profile {
	return slices.DeleteFunc(all.Profiles(), func(p schema.Profile) bool { return !p.Strict() })
}

// typeName names a schema after its type, in the letters that every API takes.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		default:
			return -1
		}
	}, t.Name())
	if name == "" || t.PkgPath() == "" || len(name) > 64 {
		return "response"
	}
	return name
}

// shape asks for the output in a request: in the API's own way, or in words where
// the model is known to have none.
func (s *structured) shape(ctx context.Context, m dragoman.Model, req *dragoman.Request) {
	if t, ok := m.(targeter); ok {
		if target, _, err := t.Target(ctx, req.Model); err == nil && target.Caps.NoStructuredOutput {
			req.Output = nil
			req.Instructions = append(slices.Clip(req.Instructions), &dragoman.Text{Text: s.words()})
			return
		}
	}
	req.Output = &s.format
}

// words ask for the output.
func (s *structured) words() string {
	return askedInWords + "\n" + string(s.format.Schema)
}

// askedInWords is what stands before the schema.
const askedInWords = "Answer with nothing but one JSON object, without a code fence, that fits this JSON Schema:"

// read reads an answer into a value; problem says what is wrong with it, in words
// for the model.
func (s *structured) read(answer string, into any) (problem string) {
	raw := jsonOf(answer)
	if !json.Valid(raw) {
		return s.again("is no JSON")
	}
	raw = s.validator.OmitNulls(raw) // what the strict form made the model write
	raw, _ = s.validator.Complete(raw, false)
	if err := s.validator.Validate(raw); err != nil {
		return s.again(fmt.Sprintf("does not fit the schema: %v", err))
	}
	if s.wrapped {
		var w struct {
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return s.again(fmt.Sprintf("cannot be read: %v", err))
		}
		raw = w.Value
	}
	// A value of an earlier try must not shine through.
	v := reflect.ValueOf(into).Elem()
	v.SetZero()
	if err := json.Unmarshal(raw, into); err != nil {
		return s.again(fmt.Sprintf("cannot be read: %v", err))
	}
	return ""
}

// again says what is wrong with an answer, and what was asked for: a model that has no
// way of its own for that may never have read it.
func (s *structured) again(problem string) string {
	return "Your answer " + problem + ".\n" + s.words()
}

// jsonOf is the JSON of an answer: all of it, or the first whole value in it, behind
// which and around which a model may have put words and code fences (quirk F7).
func jsonOf(answer string) json.RawMessage {
	answer = strings.TrimSpace(answer)
	if json.Valid([]byte(answer)) {
		return json.RawMessage(answer)
	}
	for at := 0; at < len(answer); at++ {
		open := strings.IndexAny(answer[at:], "{[")
		if open < 0 {
			break
		}
		at += open
		var value json.RawMessage
		if json.NewDecoder(strings.NewReader(answer[at:])).Decode(&value) == nil {
			return value
		}
		if at > maxPrelude {
			break
		}
	}
	return json.RawMessage(answer)
}

// maxPrelude is how far into an answer the JSON is looked for: each bracket before
// it costs a try.
const maxPrelude = 4 << 10

// thoughtsOf is what an answer that says nothing else has thought: some servers put
// the JSON there (quirk F7).
func thoughtsOf(ms []dragoman.Message) string {
	var b strings.Builder
	for i := range ms {
		for _, p := range ms[i].Parts {
			if r, ok := p.(*dragoman.Reasoning); ok {
				b.WriteString(r.Text)
			}
		}
	}
	return b.String()
}
