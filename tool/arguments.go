package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Step is a change on the way from the payload of a call to the input that runs, or the check
// that failed.
type Step struct {
	// Name is "parse", "repair", "unwrap", "complete", "validate", "policy" (an argument
	// that the policy set), "hook", "edit" (a change by a human), "answer" (to a question of
	// the tool) or "grammar".
	Name   string `json:"step"`
	Detail string `json:"detail,omitempty"`
}

// The steps, in order. A check that passes adds none.
const (
	// stepParse is a payload that cannot be read, or was cut off.
	stepParse    = "parse"
	stepRepair   = "repair"
	stepUnwrap   = "unwrap"
	stepComplete = "complete"
	stepValidate = "validate"
	// stepPolicy is an argument that the policy set, stepHook a change by hooks,
	// stepEdit one by a human, and stepAnswer the answer to a question of the tool.
	stepPolicy = "policy"
	stepHook   = "hook"
	stepEdit   = "edit"
	stepAnswer = "answer"
	// stepGrammar is a text that does not match the grammar of its tool.
	stepGrammar = "grammar"
)

// failure ends a call before its tool is reached, or describes how its run failed. The message
// is for the model.
type failure struct {
	kind    ErrorKind
	message string
	// ran reports that the tool was reached, if the kind does not imply it.
	ran bool
	// tripped reports that the breaker of the tool is open: this counts as one more failure for
	// the turn, though the tool did not run.
	tripped bool
	// err is for the log and [Record.Cause]. Of invalid arguments it is what is wrong with them.
	err error
	// internal reports that code of the host failed, not the tool.
	internal bool
}

func failf(kind ErrorKind, format string, args ...any) *failure {
	return &failure{kind: kind, message: fmt.Sprintf(format, args...)}
}

// read converts the payload of a call to the input of its tool: parsed, repaired if that cannot
// change its meaning, completed and validated. The steps list every change.
func (x *execution) read(ctx context.Context) (Input, []Step, *failure) {
	e, c := x.entry, x.call
	if p := c.Problem; p != nil && p.Code != codes.ProblemInvalidJSON && p.Code != codes.ProblemNotObject {
		return Input{}, []Step{{stepParse, p.Code}}, notRun(e, p)
	}
	if e.spec.Kind == codes.ToolFreeform {
		return x.readText(ctx)
	}
	// Validation parses as strictly, so valid arguments need no other check.
	in, steps, f := x.readObject(ctx, c.Arguments, nil)
	if f == nil && in.Arguments[0] == '{' {
		return in, steps, nil
	}
	p := dragoman.CheckArguments(c.Arguments)
	if p == nil {
		return in, steps, f
	}
	mended, how, what := repairArguments(c.Arguments, p)
	if how == "" {
		return Input{}, []Step{{stepParse, p.Message}}, e.badArguments(p.Message)
	}
	steps = nil
	for _, w := range what {
		steps = append(steps, Step{how, w})
	}
	return x.readObject(ctx, mended, steps)
}

// readObject completes and validates arguments.
func (x *execution) readObject(ctx context.Context, text string, steps []Step) (Input, []Step, *failure) {
	e := x.entry
	args := json.RawMessage(strings.Trim(text, " \t\r\n"))
	switch strings.TrimSpace(text) {
	case "", "null", `""`:
		args = json.RawMessage("{}")
	}
	if e.settings.Coerce {
		if inner := e.unwrap(args); inner != nil {
			args = inner
			steps = append(steps, Step{stepUnwrap, "the arguments were nested in a single field; unwrapped"})
		}
	}
	in := Input{Arguments: args}
	f := x.completeAndCheck(ctx, &in, &steps)
	return in, steps, f
}

// recheck completes and checks the input after it was changed by a policy, a hook or a human.
func (x *execution) recheck(ctx context.Context, by string) *failure {
	f := x.completeAndCheck(ctx, &x.input, &x.steps)
	if f != nil && f.kind == ErrorArguments { // the model cannot correct what it did not write
		f.message = strings.TrimSuffix(f.message, correctArguments) + "\nYour arguments were valid: " + by + " changed them."
	}
	return f
}

// correctArguments ends the message about arguments that the model wrote.
const correctArguments = "\nCorrect the arguments and call the tool again."

func (x *execution) completeAndCheck(ctx context.Context, in *Input, steps *[]Step) *failure {
	if x.entry.spec.Kind != codes.ToolFreeform {
		if len(bytes.TrimSpace(in.Arguments)) == 0 { // empty arguments from a hook or a human mean {}
			in.Arguments = json.RawMessage("{}")
		}
		args, told := x.entry.complete(in.Arguments)
		for _, t := range told {
			*steps = append(*steps, Step{stepComplete, t})
		}
		in.Arguments = args
	}
	return x.check(ctx, in, steps)
}

// complete removes null values that mean "not set", fills in defaults, and coerces if the tool
// allows it. It returns its changes.
func (e *entry) complete(args json.RawMessage) (completed json.RawMessage, told []string) {
	// A server of another system is not asked whether null means "not set".
	if e.spec.Strict == codes.StrictOn || e.spec.Strict == codes.StrictAuto || e.settings.remote && bytes.Contains(args, []byte("null")) {
		if omitted := e.validator.OmitNulls(args); len(omitted) != len(args) {
			args = omitted
			told = append(told, "null removed from optional fields")
		}
	}
	args, more := e.validator.Complete(args, e.settings.Coerce)
	return args, append(told, more...)
}

// fits reports whether arguments are valid once they are completed.
func (e *entry) fits(args json.RawMessage) bool {
	completed, _ := e.complete(args)
	return e.validator.Validate(completed) == nil
}

// repairArguments repairs invalid arguments if that cannot change their meaning. An empty step means that
// it cannot.
func repairArguments(text string, p *dragoman.CallProblem) (repaired string, step string, what []string) {
	switch p.Code {
	case codes.ProblemNotObject:
		// Encoded twice: unwrapped once.
		r := jsonwire.NewReader([]byte(text))
		if r.Kind() == '"' {
			if inner := r.String(); r.End() == nil && dragoman.CheckArguments(inner) == nil {
				return inner, stepUnwrap, []string{"the arguments were a JSON string; decoded"}
			}
		}
	case codes.ProblemInvalidJSON:
		if repaired, what, ok := repairJSON(text); ok {
			return repaired, stepRepair, what
		}
	}
	return "", "", nil
}

// unwrap returns the arguments inside a single field, as in {"arguments": {…}}, if the tool has
// no such argument and accepts the inner ones, with coercion on both sides.
func (e *entry) unwrap(args json.RawMessage) json.RawMessage {
	r := jsonwire.NewReader(args)
	var inner json.RawMessage
	n := 0
	for key := range r.Object() {
		n++
		switch string(key) {
		case "arguments", "parameters", "input", "args", "params":
			if r.Kind() == '{' {
				inner = r.Raw()
				continue
			}
		}
		r.Skip()
	}
	if r.End() != nil || n != 1 || inner == nil || e.fits(args) || !e.fits(inner) {
		return nil
	}
	return inner
}

// readText reads the input of a freeform tool.
func (x *execution) readText(ctx context.Context) (Input, []Step, *failure) {
	e, c := x.entry, x.call
	in := Input{Text: c.Arguments}
	var steps []Step
	if c.Payload != codes.PayloadText {
		// A target without freeform tools sends {"input": "…"}.
		text, ok := wrappedText(c.Arguments)
		if !ok {
			const want = `the tool takes text: {"input": "…"}`
			return in, []Step{{stepParse, want}}, e.badArguments(want)
		}
		in.Text = text
		steps = append(steps, Step{stepUnwrap, "the text was in an object; extracted"})
	}
	f := x.check(ctx, &in, &steps)
	return in, steps, f
}

func wrappedText(args string) (string, bool) {
	var wrapped struct {
		Input *string `json:"input"`
	}
	if dragoman.CheckArguments(args) != nil || json.Unmarshal([]byte(args), &wrapped) != nil || wrapped.Input == nil {
		return "", false
	}
	return *wrapped.Input, true
}

// check validates an input and decodes it into the tool's own type. Every change of an input
// goes through it again.
func (x *execution) check(ctx context.Context, in *Input, steps *[]Step) *failure {
	e := x.entry
	in.bound = nil
	if e.spec.Kind == codes.ToolFreeform {
		if in.Arguments != nil {
			return failf(ErrorArguments, "%s takes text, not arguments", e.key.QualifiedName())
		}
		if err := e.matches(in.Text); err != nil {
			*steps = append(*steps, Step{stepGrammar, err.Error()})
			return e.badArguments(err.Error())
		}
	} else if err := e.validate(in); err != nil {
		*steps = append(*steps, Step{stepValidate, firstLine(err.Error())})
		return e.badArguments(err.Error())
	}
	if b, ok := e.tool.(binder); ok {
		bound, err := x.bind(ctx, b, *in)
		switch {
		case err != nil && ctx.Err() != nil:
			return x.canceled(ctx)
		case err != nil:
			*steps = append(*steps, Step{stepValidate, firstLine(err.Error())})
			return e.badArguments(err.Error())
		}
		in.bound = bound
	}
	return nil
}

var errNotObject = errors.New("(root): must be object")

// validate validates arguments against the tool's schema. They must be an object, whatever the
// schema says.
func (e *entry) validate(in *Input) error {
	err := e.validator.Validate(in.Arguments)
	if err == nil && !bytes.HasPrefix(bytes.TrimLeft(in.Arguments, " \t\r\n"), []byte("{")) {
		return errNotObject
	}
	return err
}

// bind decodes an input. Custom decoding of the tool's types may fail in every way that code
// can.
func (x *execution) bind(ctx context.Context, b binder, in Input) (bound any, err error) {
	if b.decodesItself() {
		bound, err = guard(ctx, x.runner, x.timeout(), nil, func(context.Context) (any, error) {
			bound, err := b.bind(in.clone())
			return bound, snapshot(err)
		})
	} else {
		bound, err = withoutPanic(func() (any, error) { return b.bind(in) })
	}
	if err == nil {
		return bound, nil
	}
	var panicked *PanicError
	if errors.As(err, &panicked) || errors.Is(err, errTimeout) || errors.Is(err, errEnded) {
		x.logFailure("arguments could not be decoded", err)
		err = errors.New("the arguments cannot be decoded into the types of the tool")
	}
	return bound, err
}

// binder is a tool that decodes its input into its own type.
type binder interface {
	bind(in Input) (any, error)
	// decodesItself reports whether the type has custom decoding.
	decodesItself() bool
}

// maxExpected limits the schema in an error, in bytes.
const maxExpected = 1200

// badArguments returns the failure for invalid arguments, with the arguments that the tool
// takes.
func (e *entry) badArguments(what string) *failure {
	var b strings.Builder
	fmt.Fprintf(&b, "The arguments of %s are invalid, so it did not run:\n%s", e.key.QualifiedName(), what)
	switch {
	case e.spec.Kind == codes.ToolFreeform && e.spec.Grammar != nil:
		fmt.Fprintf(&b, "\nThe input must match this %s grammar: %s", e.spec.Grammar.Syntax, cutAt(e.spec.Grammar.Definition, maxExpected))
	case e.spec.Kind != codes.ToolFreeform && len(e.spec.Parameters) > 0:
		fmt.Fprintf(&b, "\nExpected a JSON object that matches this schema: %s", e.expected())
	}
	b.WriteString(correctArguments)
	return &failure{kind: ErrorArguments, message: b.String(), err: errors.New(what)}
}

// expected returns the helpful part of the tool's schema.
func (e *entry) expected() string {
	s := string(e.spec.Parameters)
	var short bytes.Buffer
	if json.Compact(&short, e.spec.Parameters) == nil {
		s = short.String()
	}
	if len(s) > maxExpected {
		s = cutAt(s, maxExpected) + " …"
	}
	return s
}

// notRun returns the failure for a call that must not run, whatever its arguments are.
func notRun(e *entry, p *dragoman.CallProblem) *failure {
	return &failure{
		kind:    ErrorNotRun,
		message: fmt.Sprintf("%s did not run: %s", e.key.QualifiedName(), p.Message),
		err:     p,
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
