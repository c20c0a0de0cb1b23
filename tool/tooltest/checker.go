package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

const (
	defaultWithin = 10 * time.Second
	// blockedFor is the time that a blocking call runs before it is interrupted.
	blockedFor = 100 * time.Millisecond
	// hookTimeout bounds what the hooks of the suite add to a call.
	hookTimeout = 5 * time.Second
)

type rule struct {
	name string
	// check adds findings. It returns why there was nothing to check, or "".
	check func(c *checker) (skip string)
}

func rules() []rule {
	return []rule{
		{ruleSpec, (*checker).spec},
		{ruleTargets, (*checker).targets},
		{ruleExamples, (*checker).examples},
		{ruleArguments, (*checker).arguments},
		{ruleCases, (*checker).cases},
		{rulePanic, (*checker).panics},
		{ruleOutput, (*checker).output},
		{ruleLimits, (*checker).limits},
		{ruleReadOnly, (*checker).readOnly},
		{ruleIdempotent, (*checker).idempotent},
		{ruleConcurrent, (*checker).concurrent},
		{ruleCancel, (*checker).cancel},
		{ruleTimeout, (*checker).timeout},
		{ruleStable, (*checker).stable},
	}
}

// checker checks one suite. It is used by one goroutine.
type checker struct {
	Suite
	ctx    context.Context
	runner *tool.Runner

	// These are of the tool once it is in a toolbox: see open.
	opened   bool
	broken   error
	def      dragoman.ToolSpec
	key      tool.Key
	settings tool.Settings
	stored   string // the definition as JSON, before any call

	// made are the calls of each case, which several rules look at.
	made  []*casePair
	calls int
	// hung has the cases whose call did not return when it was canceled.
	hung map[int]bool

	// These belong to the rule that is being checked.
	rule  string
	found []*Finding
}

func newChecker(ctx context.Context, s Suite) *checker {
	c := &checker{Suite: s, ctx: ctx, runner: &tool.Runner{}, hung: map[int]bool{}}
	if s.Runner != nil {
		*c.runner = *s.Runner
	}
	c.runner.RaiseOnError = false
	if c.runner.Approver == nil {
		c.runner.Approver = approveAll{}
	}
	if c.runner.Log == nil {
		c.runner.Log = slog.New(slog.DiscardHandler)
	}
	if c.Within <= 0 {
		c.Within = defaultWithin
	}
	return c
}

// approveAll approves every call. It reads the preview first, as a prompt does.
type approveAll struct{}

func (approveAll) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if req.Preview != nil {
		_, _ = req.Preview(ctx) // the tool of a failing call may have no preview
	}
	return tool.Answer{Verdict: tool.Approved}, nil
}

func (c *checker) check(r rule) (found []*Finding, skip string) {
	c.rule, c.found = r.name, nil
	if why, out := c.Without[r.name]; out {
		return nil, "left out: " + why
	}
	if r.name != ruleSpec && c.open() != nil {
		return nil, "the definition is invalid"
	}
	if err := c.ctx.Err(); err != nil {
		c.addf("", "not checked: %v", err)
		return c.found, ""
	}
	skip = r.check(c)
	return c.found, skip
}

func (c *checker) addf(name, format string, args ...any) {
	f := &Finding{Rule: c.rule, Tool: c.key.QualifiedName(), Case: name, Text: fmt.Sprintf(format, args...)}
	c.found = append(c.found, f)
}

// open puts the tool into a toolbox, once.
func (c *checker) open() error {
	if c.opened {
		return c.broken
	}
	c.opened = true
	box, err := tool.NewBox(c.Tool)
	if err == nil {
		c.def = box.Specs()[0]
		c.key = tool.KeyOf(&c.def)
		c.settings = settingsOf(c.Tool)
		c.stored, err = describe(c.Tool)
	}
	c.broken = err
	return err
}

func settingsOf(t tool.Tool) tool.Settings {
	if s, ok := t.(interface{ Settings() tool.Settings }); ok {
		return s.Settings()
	}
	return tool.Settings{}
}

// describe returns the definition as it is now. A panic is an error.
func describe(t tool.Tool) (text string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the method Spec panicked: %v", v)
		}
	}()
	spec := t.Spec()
	if spec == nil {
		return "", errors.New("the method Spec returned nil")
	}
	b, err := json.Marshal(*spec)
	return string(b) + " fingerprint " + spec.Fingerprint().String(), err
}

// call is one call of the tool.
type call struct {
	record tool.Record
	// output is the output before it was bounded and fenced; content is its text form,
	// to compare calls.
	output  tool.Output
	content string
	// reached says that the call came to the tool and its middleware.
	reached bool
	err     error
}

// panicked returns the panic of the call, or nil.
func (k *call) panicked() *tool.PanicError {
	var p *tool.PanicError
	if errors.As(k.record.Cause, &p) {
		return p
	}
	return nil
}

// endedAs reports whether the call ended as the case says.
func (k *call) endedAs(want *Case) bool {
	return k.err == nil && k.record.OK != want.Fails && !k.record.Pending && k.record.ErrorKind != tool.ErrorArguments &&
		k.panicked() == nil && k.record.ErrorKind != tool.ErrorOutput && strings.Contains(k.text(), want.Want)
}

// text returns the text that the model reads, without a fence.
func (k *call) text() string {
	if k.record.Plain != "" {
		return k.record.Plain
	}
	return k.record.Error
}

// stage changes how calls are made. The zero value calls the tool of the suite.
type stage struct {
	// tool replaces the tool; nil means the suite's.
	tool tool.Tool
	// dry ends each call where the tool would run.
	dry bool
	// together starts the tool only when all calls have come to it.
	together bool
	timeout  time.Duration
}

// run makes calls in one turn.
func (c *checker) run(ctx context.Context, st stage, arguments ...string) []call {
	out := make([]call, len(arguments))
	calls := make([]*dragoman.ToolCall, len(arguments))
	at := map[string]int{}
	payload := codes.PayloadObject
	if c.def.Kind == codes.ToolFreeform {
		payload = codes.PayloadText
	}
	for i, a := range arguments {
		c.calls++
		k := c.key.Call(dragoman.ToolCall{ID: "tooltest-" + strconv.Itoa(c.calls), Payload: payload, Arguments: a}, false)
		calls[i], at[k.ID] = &k, i
	}
	var mu sync.Mutex
	of := func(ctx context.Context) *call {
		info, _ := tool.InfoFrom(ctx)
		return &out[at[info.CallID]]
	}
	var waiting atomic.Int32
	all := make(chan struct{})
	start := sync.OnceFunc(func() { close(all) })
	if st.together { // do not wait long for calls that never arrive
		defer time.AfterFunc(hookTimeout/5, start).Stop()
	}
	use := func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, in tool.Input) (tool.Output, error) {
			mu.Lock()
			of(ctx).reached = true
			mu.Unlock()
			if st.dry {
				return tool.Output{}, nil
			}
			if st.together {
				if int(waiting.Add(1)) == len(arguments) {
					start()
				}
				<-all
			}
			return next(ctx, in)
		}
	}
	post := func(ctx context.Context, _ tool.Input, o tool.Output) (tool.Output, error) {
		mu.Lock()
		of(ctx).output = o
		mu.Unlock()
		return o, nil
	}
	t := c.Tool
	if st.tool != nil {
		t = st.tool
	}
	runner := *c.runner
	runner.Parallel = max(len(arguments), 1)
	batch := &tool.Batch{}
	box, err := tool.Config{Hooks: tool.Hooks{Use: []tool.Middleware{use}, Post: []tool.PostHook{post}, Timeout: hookTimeout}}.Box(t)
	if err == nil {
		turn := tool.Turn{Number: 1, Calls: calls, Timeout: st.timeout}
		if turn.Timeout == 0 && (c.settings.Timeout <= 0 || c.settings.Timeout > c.Within) {
			turn.Timeout = c.Within
		}
		batch, err = runner.Start("tooltest").Do(ctx, box, turn)
		var failed *tool.CallError
		if errors.As(err, &failed) { // the failure setting of the tool
			err = nil
		}
	}
	mu.Lock()
	defer mu.Unlock()
	made := slices.Clone(out) // an abandoned call may still write into the other
	for i := range made {
		if made[i].err = err; err != nil || i >= len(batch.Records) {
			continue
		}
		made[i].record = batch.Records[i]
		made[i].content = made[i].contentOf()
	}
	return made
}

// contentOf is the outcome as text: media included, and without a fence.
func (k *call) contentOf() string {
	if !k.reached || k.output.Content == nil {
		return fmt.Sprintf("%v %s", k.record.OK, k.text())
	}
	b, err := json.Marshal(dragoman.ToolResult{Content: k.output.Content})
	if err != nil {
		return fmt.Sprintf("%v %s", k.record.OK, k.text())
	}
	return fmt.Sprintf("%v %s", k.record.OK, b)
}

// casePair holds two calls of a case, the second without a reset between.
type casePair struct {
	*Case
	first, second call
	// before, after and again are the states before and after the calls.
	before, after, again string
	// err is an error of Reset or State.
	err error
}

// results makes two calls of each case, once for all rules.
func (c *checker) results() []*casePair {
	if c.made != nil {
		return c.made
	}
	c.made = []*casePair{}
	for i := range c.Cases {
		p := &casePair{Case: &c.Cases[i]}
		if p.Blocks {
			continue
		}
		c.made = append(c.made, p)
		if p.err = c.reset(); p.err != nil {
			continue
		}
		p.before = c.state(p)
		p.first = c.run(c.ctx, stage{}, p.Arguments)[0]
		p.after = c.state(p)
		p.second = c.run(c.ctx, stage{}, p.Arguments)[0]
		p.again = c.state(p)
	}
	return c.made
}

func (c *checker) reset() error {
	if c.Reset == nil {
		return nil
	}
	if err := c.Reset(c.ctx); err != nil {
		return fmt.Errorf("the function Reset failed: %w", err)
	}
	return nil
}

func (c *checker) state(p *casePair) string {
	if c.State == nil || p.err != nil {
		return ""
	}
	s, err := c.State(c.ctx)
	if err != nil {
		p.err = fmt.Errorf("the function State failed: %w", err)
	}
	return s
}

// shortened bounds a text in a finding.
func shortened(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}
