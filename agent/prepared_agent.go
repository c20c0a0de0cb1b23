package agent

import (
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// agentSet holds the agents of a run by name: the first one and all that can take over.
type agentSet struct {
	first  *preparedAgent
	byName map[string]*preparedAgent
	// policies are the policies of the agents and of the outer runs.
	policies []*policy.Policy
}

// preparedAgent is an agent that is ready to run.
type preparedAgent struct {
	*Agent
	box *tool.Box
	// handoffs holds the handoffs by the key of their tool.
	handoffs map[tool.Key]*Handoff
	// handoffNames are the names of the handoff tools, and targets the names of the agents
	// that they hand over to, for policies.
	handoffNames, targets []string
	// hidden are the deferred tools, in order. The provider's search (native) or our own
	// (finder) finds them.
	hidden     []dragoman.ToolSpec
	native     *dragoman.ToolSpec
	searchTool tool.Tool
	// contributions are the contributions of the tools to the interop registry.
	contributions []dragoman.Contribution
	// visible are the specs that every request has.
	visible []dragoman.ToolSpec
	// target is the target of the model; nil until it is looked up.
	target *targets.Target
	// spill stores long outputs, and tickets stores background work: those of the Runner
	// or else of the run's store; nil if neither has them.
	spill   tool.SpillStore
	tickets *tool.Tickets
	// storeTickets is set if tickets belongs to the run's store, which all agents share.
	storeTickets bool
	// outputReader is the tool that reads long outputs; nil if the agent brings its own or needs
	// none.
	outputReader tool.Tool
	// needsReader is set if tools of the run can spill, so that this agent must be able to read
	// the outputs.
	needsReader bool

	// static is the agent without the tools of its ToolSource, sourced is set once that was
	// called. fromSource are its tools as it returned them, and ordering the same in the order
	// in which they first appeared. removed has the names of those that are gone.
	static     *Agent
	sourced    bool
	fromSource []tool.Tool
	ordering   []tool.Tool
	removed    map[string]bool
}

// defaultStores are the stores that a run offers to agents whose Runner does not set them.
type defaultStores struct {
	spill   tool.SpillStore
	memory  *tool.MemorySpill // equal to spill; nil if spill is another store
	tickets tool.TicketStore
}

// maxMemorySpill bounds the outputs that a run without a store holds in memory, in bytes.
const maxMemorySpill = 16 << 20

// defaultStoresOf returns the stores that the run's store or the outer run offers. A run without
// a store for long outputs stores them in memory: in that of the state that it resumes, or
// in new memory.
func defaultStoresOf(o *options, memory *tool.MemorySpill) defaultStores {
	k := defaultStores{spill: o.spill, tickets: o.tickets}
	if s, ok := o.store.(spillProvider); ok {
		k.spill = s.Spill()
	}
	if k.spill == nil {
		if memory == nil {
			memory = &tool.MemorySpill{MaxBytes: maxMemorySpill}
		}
		k.spill, k.memory = memory, memory
	}
	if s, ok := o.store.(ticketProvider); ok {
		k.tickets = s.Tickets()
	}
	return k
}

// newAgentSet prepares the agents that a run may need. The error joins all problems of all
// agents. outer are the policies of the outer runs.
func newAgentSet(a *Agent, k defaultStores, outer []*policy.Policy) (*agentSet, error) {
	c := &agentSet{byName: map[string]*preparedAgent{}}
	spills := canSpill(a, map[*Agent]bool{})
	var errs []error
	var prepared []*preparedAgent
	var add func(a *Agent)
	add = func(a *Agent) {
		if known := c.byName[a.name()]; known != nil {
			if known.Agent != a && known.static != a {
				errs = append(errs, errorf("%w: two agents have the name %q; give each agent its own name", ErrAgent, a.name()))
			}
			return
		}
		p := &preparedAgent{Agent: a, handoffs: map[tool.Key]*Handoff{}, needsReader: spills}
		p.setStores(k)
		c.byName[a.name()] = p
		prepared = append(prepared, p)
		if c.first == nil {
			c.first = p
		}
		errs = append(errs, p.prepare())
		for _, h := range a.Handoffs {
			if h.To != nil {
				add(h.To)
			}
		}
	}
	add(a)
	errs = append(errs, checkPolicies(prepared, outer)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.policies = slices.Clone(outer)
	for _, p := range prepared {
		if rules := p.policy(); rules != nil {
			c.policies = append(c.policies, rules)
		}
	}
	return c, nil
}

// setStores gives the agent the stores of its Runner, or else those of the run.
func (p *preparedAgent) setStores(k defaultStores) {
	p.spill = k.spill
	if k.tickets != nil {
		p.tickets, p.storeTickets = &tool.Tickets{Store: k.tickets, Now: p.Now}, true
	}
	if p.Runner == nil {
		return
	}
	if p.Runner.Spill != nil {
		p.spill = p.Runner.Spill
	}
	if p.spill == tool.NoSpill {
		p.spill = nil
	}
	if p.Runner.Tickets != nil {
		p.tickets, p.storeTickets = p.Runner.Tickets, false
	}
}

// reader returns the tool that reads long outputs, or nil if the agent does not store
// them or already has the tool. Its name avoids those of the agent's tools (requirement
// I9).
func (p *preparedAgent) reader() tool.Tool {
	if p.spill == nil || !p.needsReader {
		return nil
	}
	for _, t := range p.Tools {
		if s, ok := t.(interface{ Settings() tool.Settings }); ok && s.Settings().ReadsOutput {
			return nil
		}
	}
	name := toolname.Free(toolname.ReadOutput, p.takenName)
	if name == toolname.ReadOutput {
		return tool.ReadOutput(p.spill)
	}
	return tool.ReadOutput(p.spill, tool.Describe(func(s *dragoman.ToolSpec) { s.Name = name }))
}

// canSpill reports whether a tool of the agent, or of an agent that can take over from it,
// has a bound on its output: all of them read the conversation that names the rest.
func canSpill(a *Agent, seen map[*Agent]bool) bool {
	if a == nil || seen[a] {
		return false
	}
	seen[a] = true
	if a.ToolSource != nil { // its tools are not known yet
		return true
	}
	for _, t := range a.Tools {
		l := tool.Limits{}
		if s, ok := t.(interface{ Settings() tool.Settings }); ok {
			l = s.Settings().Limits
		}
		chars, tokens, items := l.Chars, l.Tokens, l.Items
		if chars == 0 {
			chars = a.Toolbox.Limits.Chars
		}
		if tokens == 0 {
			tokens = a.Toolbox.Limits.Tokens
		}
		if items == 0 {
			items = a.Toolbox.Limits.Items
		}
		if a.Runner != nil && chars == 0 {
			chars = a.Runner.Limits.Chars
		}
		if a.Runner != nil && tokens == 0 {
			tokens = a.Runner.Limits.Tokens
		}
		if a.Runner != nil && items == 0 {
			items = a.Runner.Limits.Items
		}
		if t != nil && (chars >= 0 || tokens > 0 || items >= 0) {
			return true
		}
	}
	for i := range a.Handoffs {
		if canSpill(a.Handoffs[i].To, seen) {
			return true
		}
	}
	return false
}

// background reports whether tools of the agent may work in the background.
func (p *preparedAgent) background() bool { return p.tickets != nil && p.tickets.Store != nil }

// base returns the Runner of the agent with the stores of the run.
func (p *preparedAgent) base() tool.Runner {
	var base tool.Runner
	if p.Runner != nil {
		base = *p.Runner
	}
	base.Spill, base.Tickets = p.spill, p.tickets
	return base
}

// background reports whether tools of any agent may work in the background.
func (c *agentSet) background() bool {
	for _, p := range c.byName {
		if p.background() {
			return true
		}
	}
	return false
}

// invalid returns an error about the definition of the agent.
func (p *preparedAgent) invalid(format string, args ...any) error {
	return fmt.Errorf("agent: %w of %s: %s", ErrAgent, textkit.Token(p.name()), fmt.Sprintf(format, args...))
}

// prepare checks the agent and builds its toolbox.
func (p *preparedAgent) prepare() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, p.invalid(format, args...)) }
	if p.Model == nil {
		wrong("the field Model is not set")
	}
	if len(p.Name) > maxName {
		wrong("the name is longer than %d bytes", maxName)
	}
	if err := textkit.CheckName(p.Name); err != nil {
		wrong("the name is invalid: %v", err)
	}
	if err := textkit.CheckDescription(p.Description); err != nil {
		wrong("the description is invalid: %v", err)
	}
	if err := p.collectDeferred(); err != nil {
		wrong("%v", err)
	}
	if p.Runner != nil && !slices.Contains([]string{codes.FailureDefault, codes.FailureContinue, codes.FailureDegrade, codes.FailureFail}, p.Runner.Failure) {
		wrong("the Runner has the unknown failure policy %q; use continue, degrade or fail", p.Runner.Failure)
	}
	config := p.Toolbox
	config.Hooks = p.Guardrails.wrapHooks(config.Hooks)
	config.Recent = 1 // the toolbox is private, and the result has all records
	tools := slices.Clone(p.Tools)
	if p.outputReader = p.reader(); p.outputReader != nil {
		tools = append(tools, p.outputReader)
	}
	if p.searchTool != nil {
		tools = append(tools, p.searchTool)
	}
	for i := range p.Handoffs {
		t, err := p.handoffTool(i, tools)
		if err != nil {
			wrong("handoff %d: %v", i, err)
			continue
		}
		tools = append(tools, t)
		p.handoffs[tool.KeyOf(t.Spec())] = &p.Handoffs[i]
	}
	for _, t := range tools {
		if s, ok := t.(interface{ Settings() tool.Settings }); ok && s.Settings().Source == codes.FromHandoff {
			p.handoffNames = append(p.handoffNames, t.Spec().QualifiedName())
			p.targets = append(p.targets, s.Settings().HandoffTo)
		}
	}
	box, err := config.Box(tools...)
	if err != nil {
		wrong("%v", err)
		return errors.Join(errs...)
	}
	p.box, p.contributions = box, box.Contributions()
	p.setVisible()
	return errors.Join(errs...)
}

// policy returns the policy of the agent's Runner, or nil if that is not a [policy.Policy].
func (p *preparedAgent) policy() *policy.Policy {
	if p.Runner == nil {
		return nil
	}
	rules, _ := p.Runner.Policy.(*policy.Policy)
	return rules
}

// checkPolicies reports rules that can never apply: a rule on tool calls that names a
// handoff, and a rule on handoffs whose tool or target no handoff has. It checks agents
// that share a policy together, because a rule may be for one of them. It does not check
// targets in a policy that an outer run shares: the rule may be for the outer run.
func checkPolicies(prepared []*preparedAgent, outer []*policy.Policy) (errs []error) {
	var checked []*policy.Policy
	for i, first := range prepared {
		rules := first.policy()
		if rules == nil || slices.Contains(checked, rules) {
			continue
		}
		checked = append(checked, rules)
		host := policy.Host{Name: "the agent " + first.name(), Handoffs: []string{}, Targets: []string{}}
		for _, p := range prepared[i:] {
			if p.policy() == rules {
				host.Handoffs = append(host.Handoffs, p.handoffNames...)
				host.Targets = append(host.Targets, p.targets...)
			}
		}
		if slices.Contains(outer, rules) {
			host.Targets = nil
		}
		if _, err := rules.For(host); err != nil {
			errs = append(errs, first.invalid("%v", err))
		}
	}
	return errs
}

const maxName = 256

// collectDeferred collects the deferred tools and chooses the search that finds them.
func (p *preparedAgent) collectDeferred() (err error) {
	for _, t := range p.Tools {
		if t == nil {
			continue // the toolbox reports the error
		}
		if s := t.Spec(); s != nil && s.Deferred {
			if box, err := tool.NewBox(t); err == nil { // the box reads definitions in other formats
				p.hidden = append(p.hidden, box.Specs()...)
			}
		}
	}
	if len(p.hidden) == 0 || p.Model == nil {
		return nil
	}
	// The name of the provider's search is fixed; if a tool has it, use our search.
	if p.native = p.Search.native(p.Model, p.Settings.Model); p.native != nil && p.takenName(p.native.Name) {
		p.native = nil
	}
	if p.native == nil {
		p.searchTool, err = p.makeSearchTool()
	}
	return err
}

// setVisible sets the tools that every request has.
func (p *preparedAgent) setVisible() {
	for _, s := range p.box.Specs() {
		if p.outputReader != nil && s.QualifiedName() == p.outputReader.Spec().Name {
			s.Annotations = dragoman.Annotations{} // they are hints for policies, and would be a loss in every request
		}
		if !s.Deferred || p.native != nil {
			p.visible = append(p.visible, p.distinct(s))
		}
	}
	p.visible = append(p.visible, p.HostedTools...)
	if p.native != nil {
		p.visible = append(p.visible, *p.native)
	}
}
