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

// OutputError reports that the structured output of a model is still invalid after the
// allowed corrections.
type OutputError struct {
	// Output is the last answer of the model. Problem is the correction that the model
	// got: the first line says what is wrong, and the rest repeats the requested format.
	Output  string
	Problem string
}

func (e *OutputError) Error() string {
	problem, _, _ := strings.Cut(e.Problem, "\n"+formatInstructions)
	return "agent: the structured output of the model is invalid after all corrections: " + problem
}

// Generate runs the agent and decodes the final answer into a T: a struct, a slice or a
// scalar. Strict APIs do not accept these types, in T or within it, so Generate refuses
// them:
//   - maps whose keys the model would choose: use a slice of structs that have a key
//   - values of any type, such as any and [json.RawMessage]
//   - types that contain themselves
//
// The request uses the API's structured output if it has one, and instructions in the
// prompt otherwise. Generate removes code fences and validates the answer. An invalid
// answer goes back to the model with the errors, up to Limits.Corrections times. A refusal
// is not corrected: the error is [ErrResponse] with the text of the refusal. The result of
// the run is returned also with an error.
//
// The schema is derived from T in the form that every API accepts: all properties are
// required, and those that are optional in T may be null. Its name is Settings.Output.Name,
// or the name of T, or "response".
//
// Use [ResumeGenerate] to continue a run that was interrupted.
func Generate[T any](ctx context.Context, a Agent, prompt string, opts ...Option) (T, *Result, error) {
	return generate[T](a, opts, func(opts []Option) (*Result, error) { return a.Run(ctx, prompt, opts...) })
}

// ResumeGenerate is [Agent.Resume] for a run that [Generate] began. The state does not
// contain T, so the caller gives it again. For a finished run, it decodes the stored answer.
func ResumeGenerate[T any](ctx context.Context, a Agent, state *State, opts ...Option) (T, *Result, error) {
	return generate[T](a, opts, func(opts []Option) (*Result, error) { return a.Resume(ctx, state, opts...) })
}

// generate runs an agent and decodes the answer into a T.
func generate[T any](a Agent, opts []Option, run func([]Option) (*Result, error)) (T, *Result, error) {
	var out, none T
	s, err := structuredOf(reflect.TypeFor[T](), a.Settings.Output)
	if err != nil {
		return none, &Result{Agent: a.name()}, err
	}
	checked := false
	check := func(answer string) string { checked = true; return s.read(answer, &out) }
	res, err := run(append(opts[:len(opts):len(opts)], optionFunc(func(o *options) { o.output, o.check = s, check })))
	if err == nil && !checked { // the run was already finished
		if wrong := check(res.Output); wrong != "" {
			err = &OutputError{Output: res.Output, Problem: wrong}
		}
	}
	if err != nil { // do not return a partially decoded answer
		return none, res, err
	}
	return out, res, nil
}

// structured is a requested output format.
type structured struct {
	format dragoman.OutputFormat
	// source is the schema of the type, which answers are validated against. Requests have
	// its strict form.
	source    json.RawMessage
	validator *schema.Validator
	// wrapped is set if the value is in the field "value", because it is not an object.
	wrapped bool
}

// structuredOf returns the output format of a type.
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
	if s.source == nil { // the type is not a JSON object; time.Time is a struct but a JSON string
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

// strictSubsets returns the strict profiles of all APIs: an output schema satisfies each.
func strictSubsets() []schema.Profile {
	return slices.DeleteFunc(all.Profiles(), func(p schema.Profile) bool { return !p.Strict() })
}

// typeName returns the name of a type in the characters that every API accepts.
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

// addFormat adds the output format to a request: as a field of the API, or in the instructions
// if the model is known not to support structured output.
func (s *structured) addFormat(ctx context.Context, m dragoman.Model, req *dragoman.Request) {
	if t, ok := m.(targeter); ok {
		if target, _, err := t.Target(ctx, req.Model); err == nil && target.Caps.NoStructuredOutput {
			req.Output = nil
			req.Instructions = append(slices.Clip(req.Instructions), &dragoman.Text{Text: s.instructions()})
			return
		}
	}
	req.Output = &s.format
}

// instructions returns the instructions that ask for the output.
func (s *structured) instructions() string {
	return formatInstructions + "\n" + string(s.format.Schema)
}

// formatInstructions precedes the schema in the instructions.
const formatInstructions = "Respond only with one JSON object, without a code fence, that matches this JSON Schema:"

// read decodes an answer into a value. problem is empty, or says what is wrong in words
// for the model.
func (s *structured) read(answer string, into any) (problem string) {
	raw := jsonOf(answer)
	if !json.Valid(raw) {
		return s.correction("is not valid JSON")
	}
	raw = s.validator.OmitNulls(raw) // the strict form makes the model write them
	raw, _ = s.validator.Complete(raw, false)
	if err := s.validator.Validate(raw); err != nil {
		return s.correction(fmt.Sprintf("does not match the schema: %v", err))
	}
	if s.wrapped {
		var w struct {
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return s.correction(fmt.Sprintf("cannot be read: %v", err))
		}
		raw = w.Value
	}
	// Clear fields that an earlier answer set.
	v := reflect.ValueOf(into).Elem()
	v.SetZero()
	if err := json.Unmarshal(raw, into); err != nil {
		return s.correction(fmt.Sprintf("cannot be read: %v", err))
	}
	return ""
}

// correction returns a correction for the model. It repeats the requested format, because the
// model may not have seen it: not every API passes it to the model.
func (s *structured) correction(problem string) string {
	return "Your answer " + problem + ".\n" + s.instructions()
}

// jsonOf returns the JSON of an answer: the whole answer, or the first complete object in it,
// because a model may add text and code fences around it (quirk F7). Text may have lists, such
// as the citation [1], which are returned only if there is no object.
func jsonOf(answer string) json.RawMessage {
	answer = strings.TrimSpace(answer)
	if json.Valid([]byte(answer)) {
		return json.RawMessage(answer)
	}
	list := json.RawMessage(answer)
	for at, last := 0, false; !last; {
		open := strings.IndexAny(answer[at:], "{[")
		if open < 0 {
			break
		}
		at += open
		last = at > maxPrelude
		var value json.RawMessage
		d := json.NewDecoder(strings.NewReader(answer[at:]))
		switch err := d.Decode(&value); {
		case err != nil:
			at++
		case value[0] == '{':
			return value
		default:
			if !json.Valid(list) {
				list = value
			}
			at += int(d.InputOffset())
		}
	}
	return list
}

// maxPrelude bounds how far into an answer jsonOf looks for JSON: each bracket before it
// costs an attempt to decode.
const maxPrelude = 4 << 10

// reasoningText returns the reasoning text of a response that has no other text: some servers
// put the JSON there (quirk F7).
func reasoningText(ms []dragoman.Message) string {
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
