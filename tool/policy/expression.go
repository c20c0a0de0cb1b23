package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
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
		return nil, fmt.Errorf("policy: the expression engine: %w", err)
	}
	return &expressions{env: env, limit: limit}, nil
}

// checkEvery is how many steps of a comprehension may pass between looks at the
// context.
const checkEvery = 100

func (x *expressions) options() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(x.limit),
		cel.CostTrackerOptions(cost.OverloadTracker(shellOverload, shellCost)),
		cel.InterruptCheckFrequency(checkEvery),
	}
}

// program is an expression that is ready.
type program struct {
	cel.Program
	// loops says that it goes over lists or maps, so that it may take long enough
	// to be interrupted. The others end by themselves, and CEL's way of being
	// interruptible costs as much as many of them do.
	loops bool
}

// compile checks and prepares an expression. Its errors say where in the
// expression.
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
		return nil, fmt.Errorf("it is of type %s, want bool%s", ast.OutputType(), hint)
	}
	p, err := x.env.Program(ast, x.options()...)
	if err != nil {
		return nil, err
	}
	return &program{Program: p, loops: loops(ast.NativeRep().Expr())}, nil
}

// loops reports whether an expression goes over lists or maps.
func loops(e celast.Expr) bool {
	found := false
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		found = found || e.Kind() == celast.ComprehensionKind
	}))
	return found
}

// evaluate runs an expression. Every way in which it may not come to a yes or no
// is an error.
func evaluate(ctx context.Context, p *program, f *facts) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	var v ref.Val
	var err error
	if p.loops {
		v, _, err = p.ContextEval(ctx, f)
	} else {
		v, _, err = p.Eval(f)
	}
	if err != nil {
		if f.unreadable != nil {
			return false, f.unreadable
		}
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it came to %s, which is no yes or no", v.Type().TypeName())
	}
	return bool(b), nil
}

// facts are what the expressions of one decision see. The arguments are read when
// the first expression asks for them, and once.
type facts struct {
	q          *tool.Question
	args       ref.Val
	unreadable error
}

// Parent is part of CEL's interface: there is nothing above.
func (f *facts) Parent() cel.Activation { return nil }

// ResolveName gives expressions their variables.
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
	if q.Settings == nil || q.Settings.Source == tool.FromLocal {
		return "local"
	}
	return string(q.Settings.Source)
}

func tagsOf(q *tool.Question) []string {
	if q.Settings == nil {
		return nil
	}
	return q.Settings.Tags
}

// agentOf is the agent that calls, the innermost.
func agentOf(q *tool.Question) string {
	if len(q.Agent) == 0 {
		return ""
	}
	return q.Agent[len(q.Agent)-1]
}

// arguments are the call's, as CEL values.
func (f *facts) arguments() ref.Val {
	if f.args != nil {
		return f.args
	}
	f.args, f.unreadable = readArguments(f.q.Input.Arguments)
	if f.unreadable != nil {
		f.args = types.WrapErr(f.unreadable)
	}
	return f.args
}

func readArguments(raw []byte) (ref.Val, error) {
	if len(raw) == 0 {
		return types.NewMap(types.DefaultTypeAdapter, map[string]ref.Val(nil)), nil
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the arguments are not UTF-8")
	}
	r := jsonwire.NewReader(raw)
	v := celValue(r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	return v, nil
}

// celValue reads the next value. Errors are the reader's.
func celValue(r *jsonwire.Reader) ref.Val {
	switch r.Kind() {
	case '{':
		m := map[string]ref.Val{}
		for key := range r.Object() {
			name := string(key)
			if _, twice := m[name]; twice {
				r.Fail(fmt.Errorf("%q is there twice", name))
			}
			m[name] = celValue(r)
		}
		return types.NewMap(types.DefaultTypeAdapter, m)
	case '[':
		var list []ref.Val
		for range r.Array() {
			list = append(list, celValue(r))
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case '"':
		return types.String(r.String())
	case 't', 'f':
		return types.Bool(r.Bool())
	case 'n':
		r.Skip()
		return types.NullValue
	case '0':
		v, err := celNumber(r.Number())
		if err != nil {
			r.Fail(err)
		}
		return v
	default:
		r.Fail(errors.New("no JSON value"))
		return types.NullValue
	}
}

// exactBelow is where integers stop being exact in a double.
const exactBelow = 1 << 53

// celNumber reads a JSON number as the CEL number of the same value, or fails.
func celNumber(s string) (ref.Val, error) {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return types.Int(n), nil
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return types.Uint(n), nil
		}
		return types.NullValue, fmt.Errorf("%s is beyond 64 bits, so no expression can look at it", clip(s))
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return types.NullValue, fmt.Errorf("%s is beyond a double, so no expression can look at it", clip(s))
	case f == 0 && strings.ContainsAny(mantissa(s), "123456789"):
		return types.NullValue, fmt.Errorf("%s is too small for a double, so no expression can look at it", clip(s))
	case math.Abs(f) >= exactBelow && !isExactly(s, f):
		return types.NullValue, fmt.Errorf("%s has no exact double, so no expression can look at it", clip(s))
	default:
		return types.Double(f), nil
	}
}

func mantissa(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

// isExactly reports whether a number that a double can hold the size of is the
// double's value.
func isExactly(s string, f float64) bool {
	r, ok := new(big.Rat).SetString(s)
	return ok && r.Cmp(new(big.Rat).SetFloat64(f)) == 0
}

// clip shortens a number for a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
