package tooltest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

func (c *checker) spec() string {
	if err := c.open(); err != nil {
		c.addf("", "%v", err)
	}
	return ""
}

// targets encodes a request with the tool in every dialect, and lowers its schema for
// the servers that take another subset of it.
func (c *checker) targets() string {
	box, err := tool.NewBox(c.Tool)
	if err != nil {
		c.addf("", "%v", err)
		return ""
	}
	var reasons []string
	targets := map[string][]string{} // by reason
	drop := func(target, reason string) {
		if targets[reason] == nil {
			reasons = append(reasons, reason)
		}
		targets[reason] = append(targets[reason], target)
	}
	for _, codec := range dialects.All() {
		if err := checkEncoded(codec, box); err != nil {
			drop(string(codec.Dialect()), err.Error())
		}
	}
	for _, p := range otherSurfaces() {
		if c.def.Kind != codes.ToolFunction {
			break // a tool without a schema
		}
		if _, err := schema.Lower(c.def.Parameters, p); err != nil {
			drop(p.Name(), fmt.Sprintf("tool %q: %v", c.def.Name, err))
		}
	}
	for _, reason := range reasons {
		c.addf("", "dropped for %s: %s", strings.Join(targets[reason], ", "), reason)
	}
	return ""
}

// servers are the schema surfaces of servers that speak the dialect of another vendor.
var servers = []string{"xai.tool", "moonshot.tool", "fireworks.tool", "llamacpp.tool", "compat.tool"}

// otherSurfaces returns the schema surfaces of tools that a plain request does not use: the
// closed subsets of dialects, and those of servers.
func otherSurfaces() (out []schema.Profile) {
	for _, c := range all.Codecs() {
		plain, _ := c.Surfaces(&targets.Capabilities{})
		closed, _ := c.Surfaces(&targets.Capabilities{ClosedSchemas: true})
		if closed.Name() != plain.Name() {
			out = append(out, *closed)
		}
	}
	for _, name := range servers {
		p, _ := all.Profile(name)
		out = append(out, p)
	}
	return out
}

// checkEncoded encodes a request with the tools of a box, and returns why one is missing.
func checkEncoded(codec dialect.Codec, box *tool.Box) error {
	req := &dragoman.Request{
		Model: "tooltest", Tools: box.Specs(), Contributions: box.Contributions(),
		Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Hello."}}}},
	}
	encoded, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return err
	}
	back, _, err := codec.DecodeRequest(encoded.Body, dialect.DecodeOptions{})
	if err != nil || len(back.Tools) == len(req.Tools) {
		return err
	}
	for _, l := range encoded.Report.Losses {
		if l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious && l.Path == "/tools/0" {
			return errors.New(l.Detail)
		}
	}
	return errors.New("the request has no such tool")
}

func (c *checker) examples() string {
	if len(c.def.Examples) == 0 || c.def.Kind == codes.ToolFreeform {
		return "the definition has no examples"
	}
	for i, e := range c.def.Examples {
		if k := c.run(c.ctx, stage{dry: true}, string(e))[0]; !k.reached {
			c.addf("", "example %d is not accepted: %s", i, k.failure())
		}
	}
	return ""
}

// failure returns the reason why a call failed, or "".
func (k *call) failure() string {
	if k.err != nil {
		return k.err.Error()
	}
	if p := k.panicked(); p != nil {
		return fmt.Sprintf("%v\n%s", p, p.Stack)
	}
	return shortened(k.text())
}

func (c *checker) arguments() string {
	for _, a := range c.Invalid {
		c.refused(a, "a call with invalid arguments reached the tool: make the schema stricter, so that %s does not fit", "is not refused as invalid arguments")
	}
	for _, a := range c.invalidArguments() {
		c.refused(a, "a call with arguments that do not fit the schema reached the tool: %s", "does not fit the schema, and is not refused as invalid arguments")
	}
	return ""
}

func (c *checker) refused(arguments, reached, other string) {
	k := c.run(c.ctx, stage{dry: true}, arguments)[0]
	switch {
	case k.err != nil:
		c.addf("", "%s: %v", shortened(arguments), k.err)
	case k.reached:
		c.addf("", reached, shortened(arguments))
	case k.record.ErrorKind != tool.ErrorArguments:
		c.addf("", "%s %s: %s: %s", shortened(arguments), other, k.record.ErrorKind, k.failure())
	}
}

// invalidArguments returns arguments that do not fit the schema, derived from valid ones.
func (c *checker) invalidArguments() []string {
	if c.def.Kind == codes.ToolFreeform || c.settings.Unvalidated {
		return nil
	}
	validator, err := schema.Compile(c.def.Parameters)
	if err != nil {
		return nil // a definition in another format
	}
	fits := func(args string) bool {
		completed, _ := validator.Complete(validator.OmitNulls(json.RawMessage(args)), c.settings.Coerce)
		return validator.Validate(completed) == nil
	}
	out := []string{`[]`, `7`}
	try := func(fields map[string]json.RawMessage) bool {
		b, err := json.Marshal(fields)
		if err != nil || fits(string(b)) {
			return false
		}
		out = append(out, string(b))
		return true
	}
	base := map[string]json.RawMessage{}
	for i := range c.Cases {
		var fields map[string]json.RawMessage
		if a := c.Cases[i].Arguments; json.Unmarshal([]byte(a), &fields) == nil && fields != nil && fits(a) {
			base = fields
			break
		}
	}
	try(map[string]json.RawMessage{})
	names := make([]string, 0, len(base))
	for name := range base {
		names = append(names, name)
	}
	slices.Sort(names)
	with := func(name string, value string) map[string]json.RawMessage {
		fields := map[string]json.RawMessage{}
		for k, v := range base {
			fields[k] = v
		}
		if delete(fields, name); value != "" {
			fields[name] = json.RawMessage(value)
		}
		return fields
	}
	for _, name := range names {
		try(with(name, ""))
		for _, value := range []string{`{"tooltest":[]}`, `[[{}]]`, `"tooltest"`, `-1.5`, `true`} {
			if try(with(name, value)) {
				break
			}
		}
	}
	try(with("tooltest_unknown", `"x"`))
	return slices.Compact(out)
}

func (c *checker) cases() string {
	if len(c.Cases) == 0 {
		return "the suite has no cases"
	}
	for _, p := range c.results() {
		if p.err != nil {
			c.addf(p.name(), "%v", p.err)
			continue
		}
		k := &p.first
		r := &k.record
		switch {
		case k.err != nil:
			c.addf(p.name(), "%v", k.err)
		case k.panicked() != nil, r.ErrorKind == tool.ErrorOutput: // see panics and output
		case r.ErrorKind == tool.ErrorArguments && p.Fails:
			c.addf(p.name(), "the arguments do not fit the schema, so the tool is not called: list them in Suite.Invalid: %s", k.failure())
		case r.ErrorKind == tool.ErrorArguments:
			c.addf(p.name(), "the arguments are refused: %s", k.failure())
		case r.Pending:
			c.addf(p.name(), "the call is pending: give the suite a Runner whose Approver answers")
		case r.ErrorKind == tool.ErrorTimeout:
			c.addf(p.name(), "the call took too long: %s", k.failure())
		case r.ErrorKind == tool.ErrorUnavailable:
			c.addf(p.name(), "the tool is unavailable: give the suite the tool without its circuit breaker")
		case r.OK && p.Fails:
			c.addf(p.name(), "the call succeeds, want an error: %s", k.failure())
		case !r.OK && !p.Fails:
			c.addf(p.name(), "the call fails (%s): %s", r.ErrorKind, k.failure())
		case !strings.Contains(k.text(), p.Want):
			c.addf(p.name(), "the output does not contain %q: %s", p.Want, k.failure())
		}
	}
	return ""
}

func (c *checker) panics() string {
	if len(c.Cases) == 0 {
		return "the suite has no cases"
	}
	for _, p := range c.results() {
		for _, k := range [...]*call{&p.first, &p.second} {
			if k.panicked() != nil {
				c.addf(p.name(), "%s", k.failure())
				break
			}
		}
	}
	return ""
}

func (c *checker) output() string {
	if len(c.Cases) == 0 {
		return "the suite has no cases"
	}
	var validator *schema.Validator
	if len(c.def.OutputSchema) > 0 && !c.settings.Structured { // otherwise the runner checks it
		v, err := schema.Compile(c.def.OutputSchema)
		if err != nil {
			c.addf("", "the output schema: %v", err)
			return ""
		}
		validator = v
	}
	for _, p := range c.results() {
		for _, k := range [...]*call{&p.first, &p.second} {
			why := ""
			switch {
			case k.record.ErrorKind == tool.ErrorOutput:
				why = k.failure()
			case validator != nil && k.record.OK && k.reached && k.output.Ticket == nil:
				if err := validator.Validate(jsonOf(k.output)); err != nil {
					why = fmt.Sprintf("the output does not fit the declared output schema: %v: %s", err, k.failure())
				}
			}
			if why != "" {
				c.addf(p.name(), "%s", why)
				break
			}
		}
	}
	return ""
}

// jsonOf returns the data of an output, or its text. MCP servers send both.
func jsonOf(o tool.Output) json.RawMessage {
	var text strings.Builder
	for _, p := range o.Content {
		switch p := p.(type) {
		case *dragoman.Data:
			return p.JSON
		case *dragoman.Text:
			text.WriteString(p.Text)
		}
	}
	return json.RawMessage(text.String())
}

// The defaults of [tool.Limits].
const (
	defaultChars  = 50_000
	defaultBinary = 10 << 20
	defaultItems  = 100
)

func (c *checker) limits() string {
	if len(c.Cases) == 0 {
		return "the suite has no cases"
	}
	limit := func(of func(tool.Limits) int, byDefault int) int {
		for _, l := range [...]tool.Limits{c.settings.Limits, c.runner.Limits} {
			if n := of(l); n != 0 {
				return n
			}
		}
		return byDefault
	}
	chars := limit(func(l tool.Limits) int { return l.Chars }, defaultChars)
	tokens := limit(func(l tool.Limits) int { return l.Tokens }, -1)
	binary := limit(func(l tool.Limits) int { return l.Binary }, defaultBinary)
	items := limit(func(l tool.Limits) int { return l.Items }, defaultItems)
	for _, p := range c.results() {
		if p.Long || !p.first.reached {
			continue
		}
		size := measure(p.first.output, c.runner.Count)
		over := func(what string, n, most int) bool {
			if most < 0 || n <= most {
				return false
			}
			c.addf(p.name(), "the output has %d %s and the limit is %d, so it is cut: return less, let models page, or set Case.Long", n, what, most)
			return true
		}
		_ = over("characters", size.chars, chars) || over("tokens", size.tokens, tokens) || over("bytes of media", size.binary, binary) || over("parts", size.items, items)
	}
	return ""
}

type size struct{ chars, tokens, binary, items int }

func measure(o tool.Output, count func(string) int) size {
	if count == nil {
		count = func(s string) int { return len(s) / 4 }
	}
	s := size{items: len(o.Content)}
	for _, p := range o.Content {
		switch p := p.(type) {
		case *dragoman.Text:
			s.chars += utf8.RuneCountInString(p.Text)
			s.tokens += count(p.Text)
		case *dragoman.Data:
			s.chars += utf8.RuneCount(p.JSON)
			s.tokens += count(string(p.JSON))
		case *dragoman.Media:
			s.binary += base64.StdEncoding.DecodedLen(len(p.Base64))
		}
	}
	return s
}

func isSet(hint *bool) bool { return hint != nil && *hint }

func (c *checker) readOnly() string {
	a := c.def.Annotations
	if !isSet(a.ReadOnly) {
		return "the tool is not annotated as read-only"
	}
	if isSet(a.Destructive) {
		c.addf("", "the tool is annotated as read-only and as destructive")
	}
	if c.State == nil {
		return "the suite has no State to compare"
	}
	for _, p := range c.results() {
		if p.err == nil && p.before != p.after {
			c.addf(p.name(), "the call changed the state:\n was %s\n is  %s", shortened(p.before), shortened(p.after))
		}
	}
	return ""
}

func (c *checker) idempotent() string {
	if !isSet(c.def.Annotations.Idempotent) {
		return "the tool is not annotated as idempotent"
	}
	for _, p := range c.results() {
		switch {
		case p.err != nil, p.first.panicked() != nil, p.second.panicked() != nil:
		case !p.Varies && p.first.content != p.second.content:
			c.addf(p.name(), "a second call has another output (set Case.Varies if it may):\n was %s\n is  %s", shortened(p.first.content), shortened(p.second.content))
		case p.Varies && p.first.record.OK != p.second.record.OK:
			c.addf(p.name(), "a second call ends differently: %s", p.second.failure())
		case p.after != p.again:
			c.addf(p.name(), "a second call changed the state again:\n was %s\n is  %s", shortened(p.after), shortened(p.again))
		}
	}
	return ""
}

// copies is the number of concurrent calls of each case.
const copies = 4

func (c *checker) concurrent() string {
	if c.settings.Exclusive {
		return "the tool is exclusive: its calls run one at a time"
	}
	var arguments []string
	var of []*casePair
	for _, p := range c.results() {
		// A call that works only once in a state cannot be made concurrently either.
		if p.err == nil && p.first.reached && p.first.endedAs(p.Case) && p.second.endedAs(p.Case) {
			for range copies {
				arguments, of = append(arguments, p.Arguments), append(of, p)
			}
		}
	}
	if len(of) == 0 {
		return "no case can be called twice"
	}
	if err := c.reset(); err != nil {
		c.addf("", "%v", err)
		return ""
	}
	var reported []*casePair
	for i, k := range c.run(c.ctx, stage{together: true}, arguments...) {
		p := of[i]
		if slices.Contains(reported, p) {
			continue
		}
		switch {
		case !k.endedAs(p.Case):
			c.addf(p.name(), "a concurrent call ends differently (make the tool safe for concurrent use, or exclusive): %s", k.failure())
		case !p.Varies && p.first.content == p.second.content && k.content != p.first.content:
			c.addf(p.name(), "a concurrent call has another output:\n was %s\n is  %s", shortened(p.first.content), shortened(k.content))
		default:
			continue
		}
		reported = append(reported, p)
	}
	return ""
}

func (c *checker) stable() string {
	same := func(when string) bool {
		text, err := describe(c.Tool)
		switch {
		case err != nil:
			c.addf("", "%s: %v", when, err)
		case text != c.stored:
			c.addf("", "%s, Spec returns another definition:\n was %s\n is  %s", when, shortened(c.stored), shortened(text))
		default:
			return true
		}
		return false
	}
	if !same("later") || !same("called again") {
		return ""
	}
	texts, errs := make([]string, 2*copies), make([]error, 2*copies)
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() { texts[i], errs[i] = describe(c.Tool) })
	}
	wg.Wait()
	for i, text := range texts {
		if errs[i] != nil || text != c.stored {
			c.addf("", "called concurrently, Spec returns another definition:\n was %s\n is  %s %v", shortened(c.stored), shortened(text), errs[i])
			break
		}
	}
	return ""
}
