package tool

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/lark"
	"github.com/dragoman-go/dragoman/schema"
)

// Config holds the settings that the tools of a toolbox share. The zero value is safe.
type Config struct {
	// Hooks wrap the hooks of the tools.
	Hooks Hooks
	// Limits bound the outputs of tools that set no limits; a zero field means the runner's
	// limit.
	Limits Limits
	// Timeout is the default timeout of a call, if neither the turn nor the tool sets one; zero
	// means the runner's timeout. A tool may set a longer one.
	Timeout time.Duration
	// Collisions controls tools from different sources with the same name. Empty makes them an
	// error. With "win", a handoff wins over a local tool, and a local tool over an MCP tool;
	// [Box.Shadowed] lists the tools that were removed.
	Collisions string
	// Recent is the number of call records that the toolbox stores; zero means 100.
	Recent int
}

// The values of Config.Collisions.
const (
	collisionsFail = ""
	// collisionsWin keeps one tool per name: a handoff wins over a local tool, and a local tool
	// over an MCP tool. [Box.Shadowed] lists the others.
	collisionsWin = "win"
)

// Box is an ordered, immutable set of tools, each with a unique key. It is safe for concurrent
// use.
type Box struct {
	config  Config
	entries []*entry
	byKey   map[Key]*entry
	lost    []string

	mu     sync.Mutex
	recent []Record
	next   int
}

// entry is a tool with everything that is prepared once.
type entry struct {
	tool        Tool
	spec        *dragoman.ToolSpec
	settings    Settings
	key         Key
	fingerprint dragoman.Fingerprint
	validator   *schema.Validator
	output      *schema.Validator
	grammar     *regexp.Regexp
	lark        *lark.Grammar
	breaker     *breaker

	contribution dragoman.Contribution

	pinOnce sync.Once
	pinned  pinned
}

// NewBox returns a toolbox with the default configuration. See [Config.Box].
func NewBox(tools ...Tool) (*Box, error) { return Config{}.Box(tools...) }

// Box returns a toolbox. The error lists every problem with the definitions, schemas and names
// of the tools.
func (c Config) Box(tools ...Tool) (*Box, error) {
	return (&Box{config: c}).With(tools...)
}

// With returns a toolbox with additional tools, such as for a single run. It does not change b.
// If b is nil, the result has only the new tools.
func (b *Box) With(tools ...Tool) (*Box, error) {
	if b == nil {
		b = &Box{}
	}
	out := &Box{config: b.config, entries: slices.Clone(b.entries), lost: slices.Clone(b.lost)}
	var errs []error
	for i, t := range tools {
		e, err := newEntry(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %d: %w", i, err))
			continue
		}
		out.entries = append(out.entries, e)
	}
	if c := b.config.Collisions; c != collisionsFail && c != collisionsWin {
		errs = append(errs, fmt.Errorf("%w: unknown collision policy %q; leave it empty or use win", ErrDefinition, c))
	}
	if b.config.Collisions == collisionsWin {
		stay, lost := winners(out.identities())
		kept := make([]*entry, len(stay))
		for i, at := range stay {
			kept[i] = out.entries[at]
		}
		out.entries, out.lost = kept, append(out.lost, lost...)
	}
	errs = append(errs, checkNames(out.identities()))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out.byKey = dispatchMap(out.entries)
	return out, nil
}

func (b *Box) identities() []toolIdentity {
	out := make([]toolIdentity, len(b.entries))
	for i, e := range b.entries {
		out[i] = toolIdentity{e.spec, e.settings.Source}
	}
	return out
}

// newEntry prepares a tool. It refuses a tool whose methods panic.
func newEntry(t Tool) (e *entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			e, err = nil, fmt.Errorf("%w: its methods panic: %v", ErrDefinition, v)
		}
	}()
	if m, ok := t.(interface {
		prepared(prepare func() (*entry, error)) (*entry, error)
	}); ok {
		return m.prepared(func() (*entry, error) { return prepareEntry(t) })
	}
	return prepareEntry(t)
}

func prepareEntry(t Tool) (*entry, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", ErrDefinition)
	}
	if f, ok := t.(interface{ Err() error }); ok && f.Err() != nil {
		return nil, f.Err()
	}
	spec := t.Spec()
	if spec == nil {
		return nil, fmt.Errorf("%w: Spec returned nil", ErrDefinition)
	}
	contribution := contributionOf(t)
	read, err := readSource(*spec, &contribution)
	if err == nil {
		err = checkAccepts(&contribution)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDefinition, cmp.Or(spec.QualifiedName(), "a tool without a name"), err)
	}
	if spec.Source != nil {
		spec = &read
	}
	if err := checkTexts(spec); err != nil {
		return nil, err
	}
	e := &entry{tool: t, spec: spec, settings: settingsOf(t), key: KeyOf(spec), fingerprint: spec.Fingerprint(), contribution: contribution}
	if e.contribution.Source == "" {
		e.contribution.Source = "tool " + e.key.QualifiedName()
	}
	wrong := func(what string, err error) (*entry, error) {
		return nil, fmt.Errorf("%w: %s: %s: %w", ErrDefinition, e.key.QualifiedName(), what, err)
	}
	switch {
	case spec.Kind == codes.ToolHosted:
		return nil, fmt.Errorf("%w: %s: the provider runs this tool: add it to the request (Agent.HostedTools), not to a toolbox", ErrDefinition, e.key.QualifiedName())
	case spec.Kind == codes.ToolFreeform:
		if err = e.compileGrammar(spec.Grammar); err != nil {
			return wrong("its grammar", err)
		}
	case spec.Kind == codes.ToolFunction:
		var opts []schema.Option
		if _, own := t.(binder); own { // others use format loosely
			opts = append(opts, schema.AssertFormats())
		}
		if m, ok := t.(interface{ compiled() *schema.Validator }); ok {
			e.validator = m.compiled()
		}
		if e.validator != nil {
			break
		}
		if e.validator, err = schema.Compile(spec.Parameters, opts...); err != nil {
			return wrong("the schema of its arguments", err)
		}
	}
	if e.settings.Structured {
		if len(spec.OutputSchema) == 0 {
			return nil, fmt.Errorf("%w: %s: structured output needs an output schema: tool.New derives one, and the spec of tool.Remote can have one", ErrDefinition, e.key.QualifiedName())
		}
		if e.output, err = schema.Compile(spec.OutputSchema); err != nil {
			return wrong("the schema of its output", err)
		}
	}
	if err := checkFailure(e.settings.Failure); err != nil {
		return nil, fmt.Errorf("%s: %w", e.key.QualifiedName(), err)
	}
	e.breaker = newBreaker(e.settings.Breaker)
	return e, nil
}

func (e *entry) compileGrammar(g *dragoman.Grammar) (err error) {
	switch {
	case g == nil, e.settings.SelfParsing:
	case g.Syntax == "regex":
		if _, err = regexp.Compile(g.Definition); err == nil { // whole by itself: a)|(b is not
			e.grammar, err = regexp.Compile(`\A(?:` + g.Definition + `)\z`)
		}
	case g.Syntax == "lark":
		e.lark, err = lark.Compile(g.Definition)
	default:
		err = fmt.Errorf("unknown grammar syntax %q: use regex or lark", g.Syntax)
	}
	return err
}

// matches checks the input of a freeform tool.
func (e *entry) matches(text string) error {
	if e.grammar != nil && !e.grammar.MatchString(text) {
		return errors.New("the input does not match the tool's grammar")
	}
	if e.lark != nil {
		return e.lark.Match(text)
	}
	return nil
}

// Specs returns the definitions of all tools, in order, for a request.
func (b *Box) Specs() []dragoman.ToolSpec {
	if b == nil {
		return nil
	}
	out := make([]dragoman.ToolSpec, len(b.entries))
	for i, e := range b.entries {
		out[i] = *e.spec
	}
	return out
}

// Tools returns all tools, in order.
func (b *Box) Tools() []Tool {
	if b == nil {
		return nil
	}
	out := make([]Tool, len(b.entries))
	for i, e := range b.entries {
		out[i] = e.tool
	}
	return out
}

// Find returns the tool with the key k.
func (b *Box) Find(k Key) (Tool, bool) {
	if e := b.find(k); e != nil {
		return e.tool, true
	}
	return nil, false
}

func (b *Box) find(k Key) *entry {
	if b == nil {
		return nil
	}
	return b.byKey[k]
}

// outputReader returns the name of the tool that reads spilled outputs, or "" if the box has
// none.
func (b *Box) outputReader() string {
	if b != nil {
		for _, e := range b.entries {
			if e.settings.ReadsOutput {
				return e.key.QualifiedName()
			}
		}
	}
	return ""
}

// Shadowed describes the tools that were removed because another tool has the same name; see
// [Config].
func (b *Box) Shadowed() []string {
	if b == nil {
		return nil
	}
	return slices.Clone(b.lost)
}

// ApprovalKeys returns the keys under which decisions on a tool of this box may be stored, the
// canonical one first.
func (b *Box) ApprovalKeys(k Key) []string {
	// A tool in a namespace may have the dotted name of a deferred tool as its own key.
	return k.ApprovalKeys(b != nil && slices.ContainsFunc(b.entries, func(e *entry) bool { return e.key.ApprovalKey() == k.Name }))
}

// Listing describes a tool for a list of tools.
type Listing struct {
	Name        string               `json:"name"`
	Key         Key                  `json:"key"`
	Kind        string               `json:"kind,omitempty"`
	Description string               `json:"description,omitempty"`
	Annotations dragoman.Annotations `json:"annotations,omitzero"`
	Deferred    bool                 `json:"deferred,omitempty"`
	Tags        []string             `json:"tags,omitempty"`
	Source      string               `json:"source,omitempty"`
	Timeout     time.Duration        `json:"timeout,omitempty"`
	Limits      Limits               `json:"limits,omitzero"`
	// Approval is "always", "by arguments", or empty.
	Approval  string `json:"approval,omitempty"`
	Exclusive bool   `json:"exclusive,omitempty"`
	Trusted   bool   `json:"trusted,omitempty"`
	Failure   string `json:"failure,omitempty"`
	// Fingerprint changes if the definition changes.
	Fingerprint dragoman.Fingerprint `json:"fingerprint"`
}

// List describes all tools, in order, with the effective settings in this toolbox.
func (b *Box) List() []Listing {
	if b == nil {
		return nil
	}
	out := make([]Listing, len(b.entries))
	for i, e := range b.entries {
		s := &e.settings
		out[i] = Listing{
			Name: e.key.QualifiedName(), Key: e.key, Kind: e.spec.Kind, Description: e.spec.Description,
			Annotations: e.spec.Annotations, Deferred: e.spec.Deferred, Tags: s.Tags, Source: s.Source,
			Timeout: e.timeout(b), Limits: s.Limits.withWider(b.config.Limits), Exclusive: s.Exclusive, Trusted: s.Trusted,
			Failure: s.Failure, Fingerprint: e.fingerprint, Approval: s.Approval,
		}
		if s.ApprovalFor != nil {
			out[i].Approval = "by arguments"
		}
	}
	return out
}

func (e *entry) timeout(b *Box) time.Duration {
	if e.settings.Timeout > 0 {
		return e.settings.Timeout
	}
	return b.config.Timeout
}

const defaultRecent = 100

// Recent returns the records of the most recent calls, oldest first.
func (b *Box) Recent() []Record {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(slices.Clone(b.recent[b.next:]), b.recent[:b.next]...)
}

func (b *Box) addRecord(r Record) {
	most := b.config.Recent
	if most <= 0 {
		most = defaultRecent
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.recent) < most {
		b.recent = append(b.recent, r)
		return
	}
	b.recent[b.next] = r
	b.next = (b.next + 1) % most
}

// unknown returns the failure for an unknown tool. Its text lists the available tools.
func (b *Box) unknown(asked Key) *failure {
	var keys []Key
	if b != nil {
		for _, e := range b.entries {
			if e.key.Kind != kindDeferred {
				keys = append(keys, e.key)
			}
		}
	}
	const most = 5
	var msg strings.Builder
	fmt.Fprintf(&msg, "There is no tool named %q.", asked.QualifiedName())
	if near := nearest(asked, keys, most); len(near) > 0 {
		msg.WriteString(" Did you mean " + strings.Join(near, " or ") + "?")
	}
	if len(keys) == 0 {
		msg.WriteString(" There are no tools.")
	} else {
		msg.WriteString(" There are:")
		for i, k := range keys {
			if i == 4*most {
				fmt.Fprintf(&msg, " and %d more", len(keys)-i)
				break
			}
			if i > 0 {
				msg.WriteByte(',')
			}
			msg.WriteString(" " + k.QualifiedName())
		}
		msg.WriteByte('.')
	}
	return &failure{kind: ErrorUnknownTool, message: msg.String()}
}
