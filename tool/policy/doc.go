// Package policy decides on tool calls, handoffs and model calls by rules, stores the decisions
// of humans, and logs both. It implements the interfaces that package tool declares: a
// [tool.Policy], several [tool.Approver]s, and an observer that writes an audit log.
//
//	p, err := policy.Load("policy.yaml")
//	ledger := &policy.Ledger{}
//	runner := &tool.Runner{Policy: p, Approver: ledger, Observe: audit.Observe}
//
// # Rules
//
// A rule has an effect (allow, deny, ask, input) and conditions. It applies if all its
// conditions hold; a rule without conditions always applies. Rules are tried by priority, high
// first, then by id. The first that matches decides, and all that match are reported. If none
// matches, the default decides: allow, unless the policy sets another one.
//
// The order of rules in a file does not matter.
//
// # The file
//
// A policy file is YAML or JSON (a file whose first character is { is read as JSON). Errors
// name the line and the column. Unknown fields and duplicate keys are errors. Anchors, aliases,
// tags and merge keys are not allowed. Editors can use the JSON Schema in
// docs/policy.schema.json; many read it from a first line
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/dragoman-go/dragoman/main/docs/policy.schema.json
//
// The fields of a file:
//
//	version: 1                    # required
//	default: ask_destructive      # allow (default), deny, ask, ask_destructive
//	cost_limit: 10000             # of one expression; default as in [Config]
//	rules:
//	  - id: no-force-push         # required, unique
//	    effect: deny              # required: allow, deny, ask, input
//	    priority: 100             # high first; default 0
//	    enabled: true             # false turns the rule off
//	    subjects: [tool_call]     # tool_call, model_call, handoff, any (default)
//	    reason: Do not rewrite history.   # shown to the model, or to the human
//	    when:
//	      tool: "git.*"           # a glob, or a list of which one must match
//	      namespace: git          # or a list
//	      annotations:            # read_only, destructive, idempotent, open_world
//	        destructive: true
//	      tags: [vcs, remote]     # one of them
//	      agent: "main/*"         # a glob, or a list of which one must match
//	      metadata:               # all of them
//	        tenant: acme
//	      expression: has(args.force) && args.force == true
//	  - id: ticket
//	    effect: input
//	    input:                    # only with the effect input
//	      argument: ticket        # gets the value from the human
//	      prompt: Which ticket is this for?
//	    edits:                    # arguments to set; not with deny
//	      dry_run: true
//	  - id: one-provider
//	    effect: deny
//	    subjects: [model_call]
//	    when:
//	      model: ["openai/*"]     # a glob, or a list of which one must match
//	  - id: no-refunds
//	    effect: deny
//	    subjects: [handoff]
//	    when:
//	      target: refunds         # the agent; a glob, or a list of which one must match
//
// # Subjects
//
// A rule covers three kinds of calls:
//
//   - tool_call: a call of a tool. It has a tool, arguments and an agent.
//   - handoff: one agent hands the conversation to another. It has the tool of the
//     handoff, without arguments, an agent, and a target.
//   - model_call: a request to a model. It has a model and, in an agent, an agent. An
//     agent decides on it before each request, and once for each model of a chain: a
//     denied model is skipped, and when no model is left, the run fails with
//     [tool.DeniedError]. The gateway does the same and answers 403.
//
// A rule without subjects covers each kind that its effect and its conditions can
// apply to. It does not cover model calls if it asks (no human can answer during a
// model call), edits arguments, or refers to the tool or its arguments. If an expression
// also reads subject, it is evaluated for each kind.
//
// A rule that can never apply is an error, with its line: it names a subject that
// lacks what a condition refers to, such as model_call with a tool, it asks about a
// model call, or its expression is false. [Policy.For] also finds rules that cannot
// apply in one program: rules on tools or agents that do not exist there, and questions
// without a human to answer them.
//
// The default covers tool calls and handoffs. A default of deny covers model calls
// too if a rule names model_call in its subjects, and always in a gateway. Otherwise a
// policy that lists allowed tools would have to list models as well.
//
// # When a human is asked
//
// Rules are tried by priority, high first, then by id. The first that matches decides:
//
//   - It denies, or its expression fails: the call does not run. No flag and no
//     approval overrides it.
//   - It asks: a human must approve, even if the tool needs no approval (dragoman run
//     --allow).
//   - It allows: the call runs, and no human is asked, even if the tool needs approval
//     by itself, and even if a later rule denies the call. Give a rule that must win a
//     higher priority.
//
// If no rule matches, the first of these that applies decides:
//
//  1. A default of deny or ask.
//  2. The tool: [tool.NeedsApproval], its function of the arguments, the changing
//     tools of a workspace. A default of allow does not waive that; NoApproval of a
//     workspace (dragoman run --allow) does.
//
// A human who approves or rejects a tool for the rest of the run answers the later
// questions about it, whether a rule, the default or the tool asks. Such an answer does
// not override a rule or a default that denies.
//
// # Patterns
//
// A glob is matched against the whole qualified name of a tool, "namespace.name" or only the
// name; * matches any characters, ? matches one. A deferred tool has the qualified name of its
// bare sibling, so a rule on a name covers both.
//
// An annotation that a tool does not have matches neither true nor false. The annotations of an
// MCP server are only its own claims; see "ask_destructive".
//
// An agent glob without a slash is matched against the name of the agent that
// calls, one with a slash against the whole path of agents, outermost first,
// joined by slashes; a slash in a name is written %2F there.
//
// # Expressions
//
// An expression is CEL (https://cel.dev) and must be of type bool. It sees
//
//	args       map     the arguments; {} for a freeform tool
//	text       string  the input of a freeform tool
//	tool       string  the qualified name, as globs see it
//	ns         string  the namespace ("namespace" is reserved in CEL), or empty
//	subject    string  tool_call, model_call or handoff
//	source     string  local, mcp or handoff
//	tags       list    of strings
//	agent      string  the agent that calls
//	agents     list    the path of agents, outermost first
//	model      string  the model of a model call, as provider/model
//	target     string  the target agent of a handoff
//	run        string  the id of the run
//	turn       int
//	metadata   map     of strings: data of the host about the run
//
// and, in addition to the standard functions, those on strings (lowerAscii, split, trim, …),
// sets (sets.contains, …), optional values (args.?path.orValue("")), cel.bind(name, value,
// expression), and shell(string), which describes what Bash or another sh would do, if that can
// be known without running it:
//
//	text         string  the command as written
//	programs     list    the names of all programs that it runs, those in pipelines and
//	                     substitutions, and those that env, xargs, sh -c and the like run
//	simple       bool    it is one program with fixed arguments and needs no shell
//	args         list    the arguments of a simple command, unquoted
//	redirects    list    the files that it reads or writes by operators
//	writes       list    the files among them that it may write
//	parse_error  string  why it could not be parsed; empty if it could
//
// A program that is called by a path is listed as written and by its base name, and one in
// capitals also in lower case: a rule that allows ls does not allow ./ls, and one that denies
// rm denies /bin/rm. "?" represents a program that is known only at run time:
//
//	cel.bind(c, shell(args.command), c.simple && c.programs.all(p, p in ["ls", "cat"]))
//
// An expression that fails (a missing key, a value of another type, a cost above the limit, a
// timeout) fails the decision, and the call is denied, because the result of the rule is
// unknown. Guard optional values with has(args.path), or args.?path. A failure in a rule with
// lower priority than the deciding one changes nothing.
//
// Numbers compare by their value, whichever form the model and the rule use: args.n > 1.5,
// args.n == 2 and args.n in [1, 2] hold for 2 and for 2.0. Arithmetic needs two values of one
// type (int(args.n) + 1). Values of different types are unequal, without an error: args.n ==
// "2" is never true for a number.
//
// Integers are exact: int within 64 bits, uint above. A larger integer, and a number too large
// or too small for a double, fail every expression that reads their argument; they never become
// another number. Other decimals are the nearest double.
//
// # Approvals
//
// A [Ledger] stores the decisions of humans, per call and, for the rest of a run, per tool.
// [Prompt] asks at a terminal, [ApproverFunc] calls a function, [Ledger.Wait] waits for a
// decision from elsewhere, and [First] tries several approvers in order. A [Signer] turns
// decisions into tokens, for hosts that store no state between the question and the decision.
package policy
