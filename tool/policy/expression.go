package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// expressions compiles the conditions of one policy.
type expressions struct {
	env   *cel.Env
	limit uint64
}

func newExpressions(limit uint64) (*expressions, error) {
	env, err := cel.NewEnv(
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("text", cel.StringType),
		cel.Variable("tool", cel.StringType),
		cel.Variable("ns", cel.StringType),
		cel.Variable("subject", cel.StringType),
		cel.Variable("source", cel.StringType),
		cel.Variable("tags", cel.ListType(cel.StringType)),
		cel.Variable("agent", cel.StringType),
		cel.Variable("agents", cel.ListType(cel.StringType)),
		cel.Variable("model", cel.StringType),
		cel.Variable("target", cel.StringType),
		cel.Variable("run", cel.StringType),
		cel.Variable("turn", cel.IntType),
		cel.Variable("metadata", cel.MapType(cel.StringType, cel.StringType)),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(10_000),
		ext.Strings(), ext.Sets(), ext.Bindings(),
		shellTypes(),
	)
	if err == nil {
		env, err = env.Extend(shellFunction(env))
	}
	if err != nil {
		return nil, fmt.Errorf("policy: starting the expression engine: %w", err)
	}
	return &expressions{env: env, limit: limit}, nil
}

// checkEvery is the number of steps of a comprehension between checks of the context.
const checkEvery = 100

func (x *expressions) options() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(x.limit),
		cel.CostTrackerOptions(cost.OverloadTracker(shellOverload, shellCost)),
		cel.InterruptCheckFrequency(checkEvery),
	}
}

// program is a compiled expression.
type program struct {
	cel.Program
	// loops reports that it iterates over lists or maps, so that it may need to be interrupted.
	// Other expressions are short, and interruptible evaluation in CEL costs as much as many of
	// them do.
	loops bool
	// reads are the variables that it reads, sorted.
	reads []string
}

// compile checks and compiles an expression. Its errors name the position in the expression.
func (x *expressions) compile(source string) (*program, error) {
	ast, issues := x.env.Compile(source)
	if issues.Err() != nil {
		var all []string
		for _, e := range issues.Errors() {
			all = append(all, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
		}
		return nil, errors.New(strings.Join(all, "; "))
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		hint := ""
		if ast.OutputType().IsExactType(cel.DynType) {
			hint = "; compare it, as in args.force == true"
		}
		return nil, fmt.Errorf("the expression has the type %s, want bool%s", ast.OutputType(), hint)
	}
	if err := checkNumbers(ast.NativeRep()); err != nil {
		return nil, err
	}
	if e := ast.NativeRep().Expr(); e.Kind() == celast.LiteralKind && e.AsLiteral() == types.False {
		return nil, errors.New("the expression is never true, so the rule can never apply; to turn a rule off, use enabled: false")
	}
	p, err := x.env.Program(ast, x.options()...)
	if err != nil {
		return nil, err
	}
	return &program{Program: p, loops: hasLoops(ast.NativeRep().Expr()), reads: variables(ast.NativeRep().Expr())}, nil
}

// checkNumbers refuses doubles that would round the integers they are compared
// with: 10000000000000001 would not be greater than 1e16.
func checkNumbers(ast *celast.AST) error {
	var errs []string
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.LiteralKind {
			return
		}
		if d, ok := e.AsLiteral().(types.Double); ok && roundsIntegers(float64(d)) {
			at := ast.SourceInfo().GetStartLocation(e.ID())
			errs = append(errs, fmt.Sprintf("%d:%d: %g is beyond the integers that a double holds exactly; write it without a point and an exponent, as %.0f",
				at.Line(), at.Column()+1, float64(d), float64(d)))
		}
	}))
	if errs != nil {
		return errors.New(strings.Join(errs, "; "))
	}
	return nil
}

// hasLoops reports whether an expression iterates over lists or maps.
func hasLoops(e celast.Expr) bool {
	found := false
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		found = found || e.Kind() == celast.ComprehensionKind
	}))
	return found
}

// variables returns the variables that an expression reads, sorted. A variable of a
// comprehension that hides one of them counts as it.
func variables(e celast.Expr) []string {
	var out []string
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.IdentKind {
			out = append(out, e.AsIdent())
		}
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

// evaluate runs an expression. Any outcome other than true or false is an error.
func evaluate(ctx context.Context, p *program, f *facts) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	var v ref.Val
	var err error
	f.unreadable = nil
	if p.loops {
		v, _, err = p.ContextEval(polledContext{ctx}, f)
	} else {
		v, _, err = p.Eval(f)
	}
	switch {
	case f.unreadable != nil: // whatever the rest of it came to
		return false, f.unreadable
	case err != nil:
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the expression returned %s, want bool", v.Type().TypeName())
	}
	return bool(b), nil
}

// polledContext is a context that CEL only polls. CEL derives its own context from it, for
// asynchronous functions, of which there are none here. With a plain context, registering for
// cancellation costs more than many expressions.
type polledContext struct{ context.Context }

// Value hides the inner context from contexts derived from it.
func (polledContext) Value(any) any { return nil }

// AfterFunc ignores the registration of a derived context: loops poll Done.
func (polledContext) AfterFunc(func()) (stop func() bool) { return alreadyStopped }

func alreadyStopped() bool { return true }

// facts holds the variables of the expressions of one decision. Each is read once, on first
// use.
type facts struct {
	q    *tool.Question
	args ref.Val
	// unreadable is the error of a variable that the current expression read.
	unreadable error
}

// Parent implements cel.Activation. There is no parent.
func (f *facts) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	q := f.q
	switch name {
	case "args":
		return f.arguments(), true
	case "text":
		return types.String(q.Input.Text), true
	case "tool":
		return types.String(q.Key.QualifiedName()), true
	case "ns": // namespace is a word that CEL keeps for itself
		return types.String(q.Key.Namespace), true
	case "subject":
		return types.String(q.Subject), true
	case "source":
		return types.String(sourceOf(q)), true
	case "tags":
		return types.NewStringList(types.DefaultTypeAdapter, tagsOf(q)), true
	case "agent":
		return types.String(agentOf(q)), true
	case "agents":
		return types.NewStringList(types.DefaultTypeAdapter, q.Agent), true
	case "model":
		return types.String(q.Model), true
	case "target":
		return types.String(q.Target), true
	case "run":
		return types.String(q.Run), true
	case "turn":
		return types.Int(q.Turn), true
	case "metadata":
		return types.NewStringStringMap(types.DefaultTypeAdapter, q.Metadata), true
	default:
		return nil, false
	}
}

func sourceOf(q *tool.Question) string {
	if q.Settings == nil || q.Settings.Source == codes.FromLocal {
		return "local"
	}
	return q.Settings.Source
}

func tagsOf(q *tool.Question) []string {
	if q.Settings == nil {
		return nil
	}
	return q.Settings.Tags
}

// agentOf returns the calling agent, the innermost.
func agentOf(q *tool.Question) string {
	if len(q.Agent) == 0 {
		return ""
	}
	return q.Agent[len(q.Agent)-1]
}
