package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

// The exit codes of run, besides those of all commands.
const (
	// exitUnattended: the run ended, but calls were refused because no approver was
	// attached.
	exitUnattended = 4
	// exitInterrupted is the code that shells report for a program ended by SIGINT.
	exitInterrupted = 130
)

func newRun(sandbox *workspace.Sandbox) *cobra.Command {
	var o runFlags
	cmd := &cobra.Command{
		Use:   "run [PROMPT...]",
		Short: "Ask a model, and let it work with the files of this folder",
		Long: `Run sends a prompt to a model and lets it work in the current folder with the tools
that "dragoman tools list" shows. The model lists, reads and searches files without
asking. Before it writes a file, applies a patch or runs a command, you are asked.

Approval. Without a terminal, calls that need approval are refused, and the exit code is
4. To permit calls without a question, use --allow for a tool, --allow-command for
commands, or a rule of a policy (--policy). If standard input is a pipe or a file, you
are asked at the terminal that the command was started from.

--allow-command takes a pattern that is matched word by word: * matches one word that is
not a flag, "..." matches any further words, and "!--flag" refuses a flag, as in
"git log ... !--output". A pattern matches one program with its arguments, without shell
operators, redirections and variables. It does not match arguments that run other
programs. The command must run in the folder of --dir, not in a folder below it. You are
asked about all other commands.

A policy has rules for tool calls and model calls. Rules are tried by priority, highest
first, then by id. The first rule that matches decides: it denies the call, asks about it
even with --allow, or allows it without a question. "dragoman tools why" explains what
happens to a call.

Output. The model's response goes to standard output. Calls, their results and questions
go to standard error. With --json, every event is a line of JSON on standard output.

Model. The model is the first of these that is set:

  - --model, such as anthropic/claude-opus-5-5
  - the variable DRAGOMAN_MODEL
  - when a session is continued, the model that the session used last
  - the alias "default" in the file that DRAGOMAN_CONFIG names
  - a model of Anthropic, OpenAI or Google, the first whose API key is in the environment
  - the built-in simulator, which needs no network and no key; it is not a real model,
    but lets you try out this command

Instructions. The model gets --system, the files AGENTS.md from the root of the repository
down to the folder, and a list of the skills that it can load: folders with a file
SKILL.md in .agents/skills or .claude/skills of those folders and of your home folder, or
named by --skills. --bare leaves out all but --system and --skills. A skill permits
nothing: its scripts run with the approval that commands need.

MCP servers. --mcp names a file of MCP servers, such as .mcp.json. Its servers are started
or contacted, and their accepted tools are added. No file is used without the flag, because
its servers are programs that run on this machine. "dragoman mcp accept" accepts tools; a
tool that is new, or whose definition changed, is held until then. Calls of these tools are
asked about, except those that the file permits; --allow takes their names, too. A server
that fails is reported, and the run goes on without it. A server with a tool whose name
another tool has gets the prefix mcp_SERVER__ for its tools.

Sessions. Every run is stored in a session, in an SQLite file: --sessions, or
DRAGOMAN_SESSIONS, or dragoman/sessions.db in your state folder ($XDG_STATE_HOME or
~/.local/state; on macOS and Windows the configuration folder). --continue continues the
last session of this folder, --session the named one; the first four or more characters
of a generated name are enough. With a prompt, the conversation continues; without one,
an interrupted run is finished. Tool calls that have run do not run again. With --json,
the event run_start names the session. "dragoman sessions list" shows all sessions.

A session works in the folder in which it started. To continue it from another folder,
use --dir: with the session's folder to keep working there, or with another folder to
move the session to that folder.

Prompt. Several arguments are joined to one prompt. Piped input is added after the
prompt. If there is no prompt, or it is "-", the input is the prompt.`,
		Example: `  dragoman run "Which files are here?"
  dragoman run --model sim/echo --no-session "Say it again"
  cat error.log | dragoman run "What went wrong here?"
  dragoman run --continue "And how do I fix it?"
  dragoman run --session trip "Which files are here?"
  dragoman run --session trip --json "And which of them are large?"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, strings.Join(args, " "), sandbox)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.last, "continue", "c", false, "continue the last session of this folder")
	f.StringVar(&o.model, "model", "", `the model: "provider/model", an alias, or a comma-separated list`)
	f.StringVar(&o.session, "session", "", "the session to continue, or the name of a new session")
	o.addFile(cmd)
	f.BoolVar(&o.noSession, "no-session", false, "do not store this run in a session")
	f.BoolVar(&o.abandon, "abandon", false, "give up the session's unfinished calls and continue with the prompt")
	f.StringVar(&o.policy, "policy", "", "a policy file, with rules that decide about calls (\"dragoman tools why --help\" shows one)")
	f.StringToStringVar(&o.metadata, "metadata", nil, "metadata of the run for the policy, as name=value")
	f.StringSliceVar(&o.allow, "allow", nil, "run the calls of these tools without approval: write_file, apply_patch, shell, and tools of MCP servers")
	o.commands.add(f)
	o.mcp.add(cmd, "", "a file of MCP servers whose accepted tools the model may use, such as .mcp.json")
	f.StringVar(&o.dir, "dir", ".", "the folder in which the tools work")
	f.StringVar(&o.system, "system", "", "instructions for the model")
	f.StringArrayVar(&o.skills, "skills", nil, "a skill, or a folder of skills, to use in addition; may be repeated")
	f.BoolVar(&o.bare, "bare", false, "do not use AGENTS.md and skills of the folder and of your home folder")
	f.IntVar(&o.turns, "max-turns", 0, "the maximum number of model calls; 0 means the default (default 20)")
	f.BoolVar(&o.json, "json", false, "write every event as a line of JSON")
	f.BoolVar(&o.debug, "debug", false, "log requests and responses to standard error, without credentials")
	return cmd
}

type runFlags struct {
	storeFlags
	mcp mcpFlags
	// servers are those of --mcp; nil without it.
	servers                               *mcpServers
	model, session, policy, dir, system   string
	allow, skills                         []string
	bare                                  bool
	commands                              commandFlags
	metadata                              map[string]string
	turns                                 int
	last, noSession, abandon, json, debug bool
	// unattended are the ids of calls that needed approval while no approver was attached.
	unattended sync.Map
}

func (o *runFlags) run(cmd *cobra.Command, prompt string, sandbox *workspace.Sandbox) error {
	prompt, err := o.prompt(cmd, prompt)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program, even while it waits
	t := newPrinter(cmd, o.json)
	model, spec, err := o.openNamed(t)
	if err != nil {
		return err
	}
	k, err := o.find(ctx, prompt)
	if err != nil {
		return err
	}
	defer k.close()
	if model == nil {
		if model, spec, err = o.openFor(ctx, t, k); err != nil {
			return err
		}
	} else if err := o.checkSim(ctx, k, spec); err != nil {
		return err
	}
	if err := k.setFolder(o.dir, cmd.Flags().Changed("dir")); err != nil {
		return err
	}
	if err := o.checkPending(ctx, cmd, k, prompt); err != nil {
		return err
	}
	a, done, err := o.agent(ctx, cmd, t, model, sandbox)
	if err != nil {
		return err
	}
	defer done()
	if err := k.begin(ctx, t, prompt, spec); err != nil {
		return err
	}
	err = t.follow(o.stream(ctx, a, k.session, prompt))
	if err == nil && t.turns == 0 && !o.json {
		t.notef("The session has no unfinished run.")
	}
	switch {
	case k.session == nil || o.json:
	case takesPrompt(err):
		t.notef("Session %s. Continue with: %s \"…\"", k.session.ID(), k.continueCommand())
	default: // a new prompt would be refused; the error names the command that works
		t.notef("Session %s.", k.session.ID())
	}
	err = ended(ctx, err, k, model)
	if n := o.refused(t.result); err == nil && n > 0 {
		return &exitError{exitUnattended, fmt.Errorf("tool calls refused because no approver is attached: %d. %s", n, o.unattendedHelp(cmd))}
	}
	return err
}

// refused counts the calls that were refused because no approver was attached. It does not
// count calls that a killed process had started: their results describe their state.
func (o *runFlags) refused(res *agent.Result) (n int) {
	if res == nil {
		return 0
	}
	for i := range res.Records {
		rec := &res.Records[i]
		if _, asked := o.unattended.Load(rec.CallID); asked && rec.ErrorKind == tool.ErrorRejected {
			n++
		}
	}
	return n
}

// takesPrompt reports whether a session accepts a new prompt after a run that ended with
// err.
func takesPrompt(err error) bool {
	var limit *agent.LimitError
	return !errors.Is(err, agent.ErrInterrupted) && !errors.Is(err, agent.ErrUnfinished) && !errors.As(err, &limit)
}

// unattendedHelp explains why no approver is attached, and what to do.
func (o *runFlags) unattendedHelp(cmd *cobra.Command) string {
	const permit = "permit calls with --allow NAME, --allow-command PATTERN or a --policy rule"
	switch {
	case o.json:
		return "With --json there is no approval prompt: run without --json in a terminal, or " + permit
	case !isTerminal(cmd.InOrStdin()) && isPiped(cmd.InOrStdin()):
		return "Standard input is not a terminal: give its text as the prompt to be asked, or " + permit
	case !isTerminal(cmd.InOrStdin()):
		return "Standard input is not a terminal: run in a terminal to be asked, or " + permit
	default:
		return "Standard error is not a terminal: do not redirect it to be asked, or " + permit
	}
}

// prompt returns the prompt from the command line and standard input. It also checks the
// flags.
func (o *runFlags) prompt(cmd *cobra.Command, prompt string) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	prompt = strings.TrimSpace(prompt)
	dash := prompt == "-"
	if dash {
		prompt = ""
	}
	if dash || isPiped(cmd.InOrStdin()) {
		piped, err := readPiped(cmd)
		if err != nil {
			return "", err
		}
		prompt = joinPrompt(prompt, piped)
	}
	switch {
	case prompt == "" && o.session == "" && !o.last:
		return "", usageError(`missing prompt: dragoman run "Which files are here?"`)
	case prompt == "" && o.abandon:
		return "", usageError("--abandon needs a prompt to continue with")
	}
	return prompt, nil
}

// check refuses flags that contradict each other.
func (o *runFlags) check() error {
	switch {
	case o.noSession && o.session != "":
		return usageError("--no-session and --session cannot be used together")
	case o.noSession && o.last:
		return usageError("--no-session and --continue cannot be used together")
	case o.last && o.session != "":
		return usageError("--continue and --session cannot be used together")
	case o.turns < 0:
		return usageError("--max-turns %d: must not be negative; 0 means the default, 20", o.turns)
	}
	if err := o.commands.check(); err != nil {
		return err
	}
	if o.mcp.file == "" && o.mcp.lock != "" {
		return usageError("--lock needs --mcp")
	}
	var err error
	if o.mcp.file != "" {
		if o.servers, err = o.mcp.read(); err != nil {
			return err
		}
	}
	return allowed(o.allow, o.servers.names())
}

// allowed returns an error for names in --allow that are not known tools.
func allowed(names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return usageError("--allow: unknown tool %q: known tools are %s%s", name, textkit.Visible(strings.Join(known, ", ")), textkit.Suggest(name, known))
		}
	}
	return nil
}

// inWorkspace returns the names of tools of the workspace among names.
func inWorkspace(names []string) (out []string) {
	for _, name := range names {
		if slices.Contains(workspaceTools, name) {
			out = append(out, name)
		}
	}
	return out
}

// isPiped reports whether in is a pipe or a file, as opposed to a terminal or another
// device such as the null device.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// pipedNotice is the time for which readPiped waits for piped input before it prints a notice
// that the program is waiting.
const pipedNotice = 3 * time.Second

// readPiped reads standard input to its end.
func readPiped(cmd *cobra.Command) (string, error) {
	notice := time.AfterFunc(pipedNotice, func() {
		fmt.Fprintln(cmd.ErrOrStderr(), "Waiting for standard input to end. If there is nothing to read, run with </dev/null.")
	})
	defer notice.Stop()
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput+1))
	switch {
	case err != nil:
		return "", failed("reading standard input: %w", err)
	case len(b) > maxInput:
		return "", failed("standard input is longer than %d bytes: put it into a file in the folder, and name the file in the prompt", maxInput)
	case !utf8.Valid(b):
		return "", failed("standard input is not UTF-8 text: convert it first, or put it into a file in the folder")
	}
	return strings.TrimSpace(string(b)), nil
}

// joinPrompt adds piped input to a prompt.
func joinPrompt(prompt, piped string) string {
	switch {
	case piped == "":
		return prompt
	case prompt == "":
		return piped
	default:
		return prompt + "\n\nStandard input:\n\n" + piped
	}
}

// workspaceTools lists the tools that --allow accepts.
var workspaceTools = []string{
	toolname.ListFiles, toolname.ReadFile, toolname.SearchFiles, toolname.WriteFile, toolname.ApplyPatch, toolname.Shell,
}

// maxInput is the maximum size of standard input, in bytes.
const maxInput = 8 << 20

// stream starts a run, or continues the run of the session.
func (o *runFlags) stream(ctx context.Context, a *agent.Agent, s *session.Session, prompt string) agent.Stream {
	var opts []agent.Option
	if s != nil {
		opts = append(opts, agent.In(s))
	}
	if o.abandon {
		opts = append(opts, agent.Abandon())
	}
	if len(o.metadata) > 0 {
		opts = append(opts, agent.Metadata(o.metadata))
	}
	if prompt == "" {
		return a.ResumeStream(ctx, nil, opts...)
	}
	return a.Stream(ctx, prompt, opts...)
}

// ended returns the error for the end of a run, with what the user can do next.
func ended(ctx context.Context, err error, k *runSession, model dragoman.Model) error {
	var limit *agent.LimitError
	again := k.continueCommand()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agent.ErrInterrupted) && ctx.Err() != nil && again != "":
		return &exitError{exitInterrupted, fmt.Errorf("interrupted; calls wait for your approval; continue with: %s", again)}
	case (errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrInterrupted)) && ctx.Err() != nil:
		return &exitError{exitInterrupted, errors.New("interrupted; calls that had started have their results, and the session can be continued")}
	case errors.Is(err, agent.ErrInterrupted) && again != "":
		return failed("calls wait for your approval; continue with: %s", again)
	case errors.Is(err, agent.ErrUnfinished) && again != "":
		return failed("the previous run is not finished: finish it with %q, or give it up with --abandon", again)
	case errors.As(err, &limit) && again != "":
		k.flags.turns = 0 // the hint sets a new limit
		return failed("the run reached a limit: %s, %s; continue with: %s --max-turns N", limit.Limit, limit.Max, k.continueCommand())
	case errors.Is(err, session.ErrConflict):
		return failed("another dragoman process is using session %s; this one stopped and ran no further calls", k.session.ID())
	default:
		return failed("%w%s", err, suggestModel(err, model))
	}
}

// suggestModel returns a hint if the provider does not have the model, and a known model
// of its server has a similar name. For a chain, it looks up each model in turn.
func suggestModel(err error, model dragoman.Model) string {
	var api *dragoman.APIError
	if !errors.As(err, &api) || api.Class != dragoman.ErrorNotFound {
		return ""
	}
	switch m := model.(type) {
	case *provider.Client:
		return similarModel(m)
	case *provider.Chain:
		for _, l := range m.Links {
			if hint := suggestModel(err, l.Model); hint != "" {
				return hint
			}
		}
	}
	return ""
}

// similarModel returns a hint that names a known model with a similar name. It looks up
// models by the type of the provider, not by its name in the config.
func similarModel(c *provider.Client) string {
	table := c.Models
	if table == nil {
		table = models.Default()
	}
	var names []string
	for _, e := range table.Entries() {
		if e.Provider != c.Server {
			continue
		}
		for _, n := range slices.Concat(e.Match, e.Aliases) {
			if n == c.Model {
				return "" // it is spelled correctly
			}
			if !strings.Contains(n, "*") {
				names = append(names, n)
			}
		}
	}
	return textkit.Suggest(c.Model, names)
}

// openNamed opens the model of --model or DRAGOMAN_MODEL, or the default model if the
// run begins a session. It returns nil for a run that continues a session without either;
// openFor then opens the model of the session.
func (o *runFlags) openNamed(t *printer) (dragoman.Model, string, error) {
	named := o.model != "" || os.Getenv("DRAGOMAN_MODEL") != ""
	if !named && (o.session != "" || o.last) {
		return nil, "", nil
	}
	spec, why, err := pickModel(o.model, os.Getenv)
	if err != nil {
		return nil, "", failed("%w", err)
	}
	return o.open(t, spec, why)
}

// openFor opens the model that the session used last, or the default model if the
// session is new.
func (o *runFlags) openFor(ctx context.Context, t *printer, k *runSession) (dragoman.Model, string, error) {
	last, err := k.lastModel(ctx)
	if err != nil {
		return nil, "", failed("%w", err)
	}
	if last == "" {
		spec, why, err := pickModel("", os.Getenv)
		if err != nil {
			return nil, "", failed("%w", err)
		}
		return o.open(t, spec, why)
	}
	model, spec, err := o.open(t, last, fmt.Sprintf("Using %s, the last model of session %s. Use --model to choose another.", printable(last), k.session.ID()))
	if err != nil {
		return nil, "", failed("the last model of session %s: %w; choose another with --model", k.session.ID(), err)
	}
	return model, spec, nil
}

// checkSim refuses to continue a session of another model with the simulator, unless
// --model names it: the session would store simulated responses as real ones.
func (o *runFlags) checkSim(ctx context.Context, k *runSession, spec string) error {
	if o.model != "" || k.session == nil {
		return nil
	}
	last, err := k.lastModel(ctx)
	if err != nil {
		return failed("%w", err)
	}
	if last == "" || isSim(last) || !isSim(spec) {
		return nil
	}
	return failed("session %s used %s, but DRAGOMAN_MODEL is the simulator (%s): choose the model with --model", k.session.ID(), last, spec)
}

// isSim reports whether a spec names only models of the simulator.
func isSim(spec string) bool {
	config, err := provider.Default()
	if err != nil {
		return false // opening the model reports the error
	}
	specs, err := config.Resolve(spec)
	return err == nil && !slices.ContainsFunc(specs, func(s string) bool { return !strings.HasPrefix(s, "sim/") })
}

// open opens a model. It prints why the model was chosen, unless why is empty.
func (o *runFlags) open(t *printer, spec, why string) (model dragoman.Model, _ string, err error) {
	config, err := provider.Default()
	if err != nil {
		return nil, "", failed("%w", err)
	}
	if o.debug {
		config.Log = slog.New(wireLog{t: t})
	}
	if model, err = config.Open(spec); err != nil {
		return nil, "", failed("%w", err)
	}
	if why != "" {
		t.notef("%s", why)
	}
	return model, spec, nil
}

// agent returns an agent with the model and the tools of the folder. The caller must call
// the returned function when the run has ended.
func (o *runFlags) agent(ctx context.Context, cmd *cobra.Command, t *printer, model dragoman.Model, sandbox *workspace.Sandbox) (*agent.Agent, func(), error) {
	if _, err := os.Stat(o.dir); err != nil {
		return nil, nil, failed("%w", nameSource("--dir", err))
	}
	own, notices, err := readGuidance(o.dir, o.bare, o.skills)
	if err != nil {
		return nil, nil, failed("%w", nameSource("--skills", err))
	}
	ws, err := workspace.Open(o.dir, workspace.Options{NoApproval: inWorkspace(o.allow), Shell: &workspace.Shell{AllowAny: true, Scripts: true, Sandbox: sandbox, ReadPaths: own.readPaths()}})
	if err != nil {
		return nil, nil, failed("%w", nameSource("--dir", err))
	}
	for _, n := range append(notices, own.notice(o.dir)) {
		if n != "" {
			t.notef("%s", printable(n))
		}
	}
	tools := append(ws.Tools(), own.skills.Tools()...)
	approver, hangUp := o.approver(cmd)
	runner := &tool.Runner{Approver: approver}
	if o.noSession { // there is no session to store long outputs in
		runner.Spill = &tool.MemorySpill{}
	}
	if o.policy != "" {
		all := append(slices.Clone(tools), tool.ReadOutput(&tool.MemorySpill{})) // the agent adds ReadOutput
		p, err := loadPolicy(o.policy, append(all, o.servers.tools()...))
		if err != nil {
			hangUp()
			_ = ws.Close() // unused so far
			return nil, nil, err
		}
		runner.Policy = p
	}
	source, disconnect, err := o.servers.start(ctx, t, approver, o.attended(cmd))
	if err != nil {
		hangUp()
		_ = ws.Close() // unused so far
		return nil, nil, err
	}
	a := &agent.Agent{
		Name: agentName, Model: model, Instructions: own.prompt(o.system), Runner: runner,
		Tools: tools, ToolSource: source,
		Limits: agent.Limits{Turns: o.turns},
	}
	return a, func() { hangUp(); disconnect(); _ = ws.Close() }, nil
}

// known lists the providers whose API keys pickModel looks for, in order, each with its
// default model.
var known = []struct{ variable, model string }{
	{"ANTHROPIC_API_KEY", "anthropic/claude-opus-5-5"},
	{"OPENAI_API_KEY", "openai/gpt-5.1"},
	{"GEMINI_API_KEY", "gemini/gemini-3-pro"},
	{"GOOGLE_API_KEY", "gemini/gemini-3-pro"},
}

// pickModel returns the model to use, and a notice that explains a choice that the user did
// not make.
func pickModel(given string, getenv func(string) string) (spec, why string, err error) {
	if given != "" {
		return given, "", nil
	}
	if m := getenv("DRAGOMAN_MODEL"); m != "" {
		return m, "", nil
	}
	if file := getenv("DRAGOMAN_CONFIG"); file != "" {
		c, err := provider.Load(file)
		if err != nil {
			return "", "", nameSource("DRAGOMAN_CONFIG", err)
		}
		if c.Aliases["default"] != "" {
			return "default", "", nil
		}
	}
	for _, k := range known {
		if getenv(k.variable) != "" {
			return k.model, fmt.Sprintf("Using %s, because %s is set. Use --model to choose another.", k.model, k.variable), nil
		}
	}
	return "sim/planner", "No model is configured: the built-in simulator answers; it is not a real model. Choose a model with --model or DRAGOMAN_MODEL.", nil
}

// checkPending refuses to continue a session whose calls wait for approval if no
// approver is attached, or if there is a new prompt.
func (o *runFlags) checkPending(ctx context.Context, cmd *cobra.Command, k *runSession, prompt string) error {
	if k.session == nil || o.abandon {
		return nil
	}
	state, err := agent.LoadState(ctx, k.session)
	if err != nil {
		return failed("%w", err)
	}
	if state == nil || len(state.Pending()) == 0 {
		return nil
	}
	var names, blocked []string
	for _, p := range state.Pending() {
		names = append(names, p.Tool())
		if !slices.Contains(o.allow, p.Tool()) {
			blocked = append(blocked, p.Tool())
		}
	}
	attended := o.attended(cmd)
	if prompt == "" && (attended || len(blocked) == 0) {
		return nil
	}
	return &exitError{exitUnattended, errors.New(pendingHelp(k.continueCommand(), prompt, names, attended))}
}

// pendingHelp lists the calls of a session that wait for approval, and the commands that
// continue it.
func pendingHelp(again, prompt string, names []string, attended bool) string {
	slices.Sort(names)
	names = slices.Compact(names)
	list := strings.Join(names, ", ")
	var b strings.Builder
	fmt.Fprintf(&b, "calls of this session wait for approval: %s", list)
	if !attended {
		b.WriteString("; no approver is attached")
	}
	b.WriteString(". Continue with one of:\n")
	fmt.Fprintf(&b, "  %s    in a terminal, to be asked about them\n", again)
	fmt.Fprintf(&b, "  %s --allow %s    to run them without being asked\n", again, strings.Join(names, ","))
	if prompt == "" {
		prompt = "…"
	}
	fmt.Fprintf(&b, "  %s --abandon %s    to give them up", again, quoteArg(title(prompt)))
	return b.String()
}

// attended reports whether a person can be asked at the terminal.
func (o *runFlags) attended(cmd *cobra.Command) bool {
	answers, done := o.openTerminal(cmd)
	done()
	return answers != nil
}

// openTerminal opens the terminal for answers to approval questions: standard input, or the
// controlling terminal if standard input is a pipe or a file. It returns nil without a terminal,
// with --json, and if standard error, where questions are printed, is not a terminal.
func (o *runFlags) openTerminal(cmd *cobra.Command) (in *os.File, done func()) {
	none := func() {}
	switch in := cmd.InOrStdin(); {
	case o.json || !isTerminal(cmd.ErrOrStderr()):
		return nil, none
	case isTerminal(in):
		return in.(*os.File), none
	case !isPiped(in):
		return nil, none
	}
	tty, err := os.Open(controllingTerminal)
	if err != nil {
		return nil, none
	}
	if !isTerminal(tty) {
		_ = tty.Close()
		return nil, none
	}
	return tty, func() { _ = tty.Close() }
}

// approver returns an approver that asks at the terminal. If there is no terminal, the approver
// rejects calls. The returned function closes the terminal.
func (o *runFlags) approver(cmd *cobra.Command) (tool.Approver, func()) {
	allowed := policy.First(allowList(o.allow), policy.ApproverFunc(o.commands.approve))
	answers, done := o.openTerminal(cmd)
	if answers == nil {
		return policy.First(allowed, policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
			o.unattended.Store(req.Binding.CallID, true)
			return tool.Answer{Verdict: tool.Rejected, NoApprover: true}, nil
		})), done
	}
	ledger := &policy.Ledger{}
	prompt := policy.NewPrompt(answers, cmd.ErrOrStderr())
	prompt.Ledger = ledger
	return policy.First(allowed, ledger, prompt), done
}

// allowList approves calls of the tools that --allow names, unless the policy or a server asks
// about them.
type allowList []string

// Approve implements tool.Approver.
func (l allowList) Approve(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if !asksHuman(req) && slices.Contains(l, req.Binding.Key.QualifiedName()) {
		return tool.Answer{Verdict: tool.Approved}, nil
	}
	return tool.Answer{}, nil
}

// controllingTerminal is the path of the controlling terminal.
var controllingTerminal = map[bool]string{true: "CONIN$", false: "/dev/tty"}[runtime.GOOS == "windows"]

// isTerminal reports whether f is a terminal.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// title returns the first line of a prompt for lists, with unprintable characters replaced
// by spaces and shortened to 80 characters.
func title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	printed := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(line, "�"))
	runes := []rune(strings.TrimSpace(printed))
	if len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return string(runes)
}

// printer prints the events of a run.
type printer struct {
	// mu guards the output: servers report events while the run prints.
	mu       sync.Mutex
	out, err io.Writer
	json     bool
	// bare is true if standard output is not a terminal. The response is then written
	// unchanged.
	bare bool
	// open is true if the last line of the response is not terminated yet.
	open bool
	// turns counts the turns that started.
	turns int
	// result is the result of the run. It is nil until the run has ended.
	result *agent.Result
	// called maps the ids of printed calls without a printed result to tool names.
	called map[string]string
}

func newPrinter(cmd *cobra.Command, asJSON bool) *printer {
	t := &printer{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), json: asJSON, bare: true}
	t.bare = !isTerminal(t.out)
	return t
}

// notef prints a line about the run to standard error.
func (t *printer) notef(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breakLine()
	fmt.Fprintf(t.err, format+"\n", args...)
}

// endLine ends an open line of the response, before a line of other output.
func (t *printer) endLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breakLine()
}

// breakLine is endLine for callers that hold mu.
func (t *printer) breakLine() {
	if t.open {
		fmt.Fprintln(t.out)
		t.open = false
	}
}

// follow prints the events of a run until it ends.
func (t *printer) follow(stream agent.Stream) error {
	var failure error
	for ev, err := range stream {
		if err != nil {
			failure = err
		}
		switch ev := ev.(type) {
		case *agent.TurnStart:
			t.turns++
		case *agent.RunEnd:
			t.result = ev.Result
		}
		if t.json {
			b, bad := agent.MarshalEvent(ev, err)
			if bad == nil {
				_, bad = t.out.Write(append(b, '\n'))
			}
			if bad != nil {
				return bad
			}
			continue
		}
		if bad := t.show(ev); bad != nil {
			return bad
		}
	}
	t.endLine()
	return failure
}

// show prints one event as text.
func (t *printer) show(ev agent.Event) error {
	switch ev := ev.(type) {
	case *agent.ModelEvent:
		return t.write(ev.Text())
	case *agent.ToolCalled:
		t.notef("→ %s %s", textkit.Visible(ev.Call.QualifiedName()), short(ev.Call.Arguments))
		if t.called == nil {
			t.called = map[string]string{}
		}
		t.called[ev.Call.ID] = ev.Call.QualifiedName()
	case *agent.ToolEvent:
		if end, ok := ev.Event.(tool.CallEnded); ok {
			delete(t.called, end.CallRef.CallID)
			t.ended(&end.Record)
		}
	case *agent.ToolReturned: // the call ended before a tool ran
		if name, ok := t.called[ev.Result.CallID]; ok {
			delete(t.called, ev.Result.CallID)
			t.notef("← %s failed: %s", textkit.Visible(name), short(ev.Result.Text()))
		}
	case *agent.Notice:
		t.notef("(%s)", textkit.Visible(ev.Text))
	case *agent.TurnEnd:
		t.endLine()
	}
	return nil
}

// write writes text of the response to standard output.
func (t *printer) write(text string) error {
	if !t.bare {
		text = printable(text)
	}
	if text == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(t.out, text)
	return err
}

// printable makes a text safe for a terminal. It keeps lines and tabs, and makes control
// sequences visible that would move the cursor or change colors.
func printable(text string) string {
	var b strings.Builder
	for part := range strings.SplitAfterSeq(text, "\n") {
		line, end := strings.CutSuffix(part, "\n")
		for k, cell := range strings.Split(line, "\t") {
			if k > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(textkit.Visible(cell))
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// ended prints the result of a call.
func (t *printer) ended(r *tool.Record) {
	if !r.OK {
		t.notef("← %s failed: %s", textkit.Visible(r.Tool), short(r.Error))
		return
	}
	text := strings.TrimRight(r.Plain, "\n")
	lines := strings.Split(text, "\n")
	switch {
	case text == "":
		t.notef("← %s: done", textkit.Visible(r.Tool))
	case len(lines) == 1:
		t.notef("← %s: %s", textkit.Visible(r.Tool), short(text))
	default:
		t.notef("← %s: %s … (%d lines)", textkit.Visible(r.Tool), short(lines[0]), len(lines))
	}
}

// short returns the beginning of a text as one line that is safe for a terminal.
func short(s string) string {
	const most = 200
	runes := []rune(strings.ToValidUTF8(s, "�"))
	if len(runes) > most {
		return textkit.Visible(string(runes[:most])) + "…"
	}
	return textkit.Visible(string(runes))
}
