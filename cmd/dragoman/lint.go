package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/internal/text/words"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

func newLint() *cobra.Command {
	var target, from, report string
	var fail []string
	var quiet bool
	var known modelFlags
	cmd := &cobra.Command{
		Use:   "lint --for LANGUAGE [FILE]",
		Short: "Say which tools a target would reject or weaken, why, and what it would get",
		Long: `Lint reads tools in any of the wire languages, or as MCP servers list them: one
tool, a list, or a whole request. For each it prints a verdict to standard output:
ok, repaired (sent, but changed) or dropped (the target cannot take it), the
reasons, and how the schema that is sent differs from the one that was written.
Places are those of the tool in the canonical form, where every tool has its
schema in /parameters. With --report json the verdicts are one JSON document, and
so is what goes wrong, on standard error (docs/command.md has the fields).

Tools that are written in the target's own form are judged like any other, by what
the target promises to take; a request that is converted into its own language
keeps them as they are.

Targets:` + helpLanguages() + `

or one of the surfaces that take schemas, where names are judged as in the language
of the tools: ` + strings.Join(surfaces(), ", ") + `.

--model and --capability say for which model of the target, as convert --help
tells; without the first it is the one that a request names.`,
		Example: `  dragoman lint --for gemini tools.json
  dragoman lint --for openai.strict --fail-on dropped < tools.json
  dragoman lint --for anthropic --report json request.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := judgeFor(target, known, nil); err != nil {
				return err
			}
			source, err := sourceNamed(from, convertibleNamed)
			if err != nil {
				return err
			}
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			forbidden, err := parseFailOn(fail)
			if err != nil {
				return err
			}
			in, done, err := input(cmd, args)
			if err != nil {
				return err
			}
			defer done()
			r := reader(in)
			if head, _ := r.Peek(sniff.HeadSize); sniff.IsStream(head) {
				return noTools("a stream, or several documents one after the other")
			}
			data, err := readDocument(r)
			if err != nil {
				return err
			}
			specs, rep, err := lintInput(data, source)
			if err != nil {
				return err
			}
			judge, caps, err := judgeFor(target, known, data)
			if err != nil {
				return err
			}
			l := linted{For: target, Reading: plainly(rep.Losses)}
			if l.Tools, err = judgeAll(specs, judge); err != nil {
				return failed("%w", err)
			}
			if caps.NoMixedTools {
				unmix(l.Tools, specs)
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), l)
			} else {
				err = l.writeText(cmd.OutOrStdout(), quiet)
			}
			if err != nil {
				return failed("%w", err)
			}
			return forbidden.check(l.losses())
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "for", "", "the wire language, or schema surface, to judge for")
	f.StringVar(&from, "from", "", "the wire language of the input, or mcp (default: guessed)")
	f.StringVar(&known.model, "model", "", "judge for this model of the target")
	f.StringVar(&known.facts, "model-file", "", "a file that adds facts about models, or changes them (default: the variable DRAGOMAN_MODELS)")
	f.StringSliceVar(&known.capabilities, "capability", nil, "what the model or server can or cannot do: name, name=false or name=value")
	f.StringVar(&report, "report", "text", "how to report: text or json")
	f.StringSliceVar(&fail, "fail-on", nil, "exit with 3 after such losses: dropped, lowered, renamed, synthesized, moved, info, warn, serious")
	f.BoolVar(&quiet, "quiet", false, "leave out tools that are ok")
	return cmd
}

// modelFlags say for which model of a target.
type modelFlags struct {
	model        string
	facts        string
	capabilities []string
}

// target is the one to judge for; data is the request that may name a model.
func (m modelFlags) target(l language, data []byte) (targets.Target, error) {
	model := m.model
	if model == "" {
		var body struct{ Model, ModelID string }
		_ = json.Unmarshal(data, &body) // a list of tools names none
		model = cmp.Or(body.Model, body.ModelID)
	}
	return l.target(model, m.facts, m.capabilities)
}

// lintInput reads the tools of whatever came.
func lintInput(data []byte, from dragoman.Dialect) ([]dragoman.ToolSpec, dragoman.Report, error) {
	none := dragoman.Report{}
	if g, err := sniff.Of(data, sniff.Request, ""); err == nil && g.Dialect == sniff.Canonical && (from == "" || from == g.Dialect) {
		req, _, err := canonical{}.DecodeRequest(data, dialect.DecodeOptions{})
		if err != nil {
			return nil, none, failed("%w", err)
		}
		if len(req.Tools) == 0 {
			return nil, none, noTools("a stored request without tools")
		}
		return req.Tools, none, nil
	}
	elements, err := toolList(data)
	if err != nil {
		return nil, none, failed("%w", err)
	}
	if what := toolless(data, elements, from); what != "" {
		return nil, none, noTools(what)
	}
	if from == "" {
		if from = cmp.Or(toolLanguage(elements), requestLanguage(data)); from == "" {
			return nil, none, failed("cannot tell in which language these tools are written; %s", settles(sniff.Tools, ""))
		}
	}
	specs, rep, err := readTools(data, from)
	if err != nil {
		return nil, rep, failed("%w", err)
	}
	for i, el := range elements {
		if other := meantFor(el, from); other != "" {
			rep.Addf(dragoman.Lowered, dragoman.Warn, fmt.Sprintf("/tools/%d", i), "this is no tool of %s, but one of %s, which --from %[2]s reads", languageWord(from), languageWord(other))
		}
	}
	return specs, rep, nil
}

// meantFor is the language of a tool that is read as one of from, and says less so
// than in its own; empty for none.
func meantFor(el json.RawMessage, from dragoman.Dialect) dragoman.Dialect {
	g, err := sniff.Of(el, sniff.Tools, "")
	if err != nil || g.Dialect == from || g.Dialect == sniff.Canonical || saysAll(el, from) || !saysAll(el, g.Dialect) {
		return ""
	}
	return g.Dialect
}

// saysAll reports whether a tool is a function of a language, with a name and what
// it takes.
func saysAll(el json.RawMessage, from dragoman.Dialect) bool {
	specs, _, err := readTools(slices.Concat([]byte{'['}, el, []byte{']'}), from)
	return err == nil && len(specs) > 0 && !slices.ContainsFunc(specs, func(s dragoman.ToolSpec) bool {
		return s.Kind == codes.ToolHosted || s.Name == "" || s.Kind == codes.ToolFunction && len(s.Parameters) == 0
	})
}

// toolLanguage is the language of the first tool that shows one.
func toolLanguage(elements []json.RawMessage) dragoman.Dialect {
	for _, el := range elements {
		if g, err := sniff.Of(el, sniff.Tools, ""); err == nil {
			return g.Dialect
		}
	}
	return ""
}

// requestLanguage is the language of a request, where there is no doubt: its tools
// may all be the provider's own, which show none.
func requestLanguage(data []byte) dragoman.Dialect {
	if g, err := sniff.Of(data, "", ""); err == nil && g.Kind == sniff.Request && len(g.Or) == 0 {
		return g.Dialect
	}
	return ""
}

// noTools says what came, and what lint takes.
func noTools(what string) error {
	return failed("this looks like %s; there is no tool in it to judge: lint takes one tool, a list of them, or a request that has some", what)
}

// toolless says in words what a document is in which there is no tool; empty
// where there may be one.
func toolless(data []byte, elements []json.RawMessage, from dragoman.Dialect) string {
	if toolLanguage(elements) != "" || len(elements) > 0 && from != "" && saysAll(elements[0], from) {
		return ""
	}
	standsAlone := len(elements) == 1 && bytes.Equal(elements[0], bytes.TrimSpace(data))
	g, err := sniff.Of(data, "", "")
	switch {
	case err == nil && g.Kind == sniff.Request && (standsAlone || len(elements) == 0):
		return fmt.Sprintf("a request of %s without tools", g.Dialect)
	case err == nil && g.Kind == sniff.Response:
		return fmt.Sprintf("a response of %s", g.Dialect)
	case err == nil && g.Kind == sniff.Messages:
		return fmt.Sprintf("messages of %s", g.Dialect)
	case len(elements) == 0:
		return "an empty list of tools"
	case isSchema(elements[0]):
		return `a JSON Schema without a tool around it, as in {"name": "some_tool", "inputSchema": …}`
	default:
		return ""
	}
}

// isSchema reports whether something is a JSON Schema, and no tool; a type of its
// own has a tool that a provider runs, too.
func isSchema(el json.RawMessage) bool {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(el, &m)
	if m["name"] != nil || m["function"] != nil {
		return false
	}
	if typ := m["type"]; len(typ) > 0 {
		return typ[0] == '[' || slices.Contains([]string{`"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`}, string(typ))
	}
	return slices.ContainsFunc([]string{"properties", "$schema", "anyOf", "oneOf", "allOf", "$ref"},
		func(keyword string) bool { return m[keyword] != nil })
}

// linted is the outcome of a run of lint as JSON. docs/command.md describes it.
type linted struct {
	For string `json:"for"`
	// Reading is what was lost before there was a tool to judge.
	Reading []dragoman.Loss `json:"reading,omitempty"`
	Tools   []verdict       `json:"tools"`
}

// losses are all that --fail-on counts.
func (l linted) losses() []dragoman.Loss {
	all := slices.Clone(l.Reading)
	for _, v := range l.Tools {
		all = append(all, v.Losses...)
	}
	return all
}

// verdict is what becomes of one tool at a target.
type verdict struct {
	Tool   string `json:"tool"`
	Status string `json:"status"`
	// Losses have the reason for dropping the tool, too.
	Losses []dragoman.Loss `json:"losses"`
	Why    string          `json:"why,omitempty"`
	// Schema is the one that was written, Sent the one the target gets.
	Schema json.RawMessage `json:"schema,omitempty"`
	Sent   json.RawMessage `json:"sent,omitempty"`
}

// drop makes the verdict that a tool is not sent.
func (v *verdict) drop(severity dragoman.Severity, why string) {
	v.Status, v.Why, v.Sent = codes.LintDropped, why, nil
	v.Losses = append(v.Losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: severity, Detail: why})
}

// judgeAll judges each tool by itself, but for names that stand twice.
func judgeAll(specs []dragoman.ToolSpec, judge func(dragoman.ToolSpec) (verdict, error)) ([]verdict, error) {
	verdicts := make([]verdict, len(specs))
	first := make(map[string]*dragoman.ToolSpec, len(specs))
	for i := range specs {
		s := &specs[i]
		v, err := judge(unsourced(*s))
		if err != nil {
			return nil, err
		}
		if s.Kind != codes.ToolHosted {
			other := first[s.QualifiedName()]
			switch {
			case other == nil:
				first[s.QualifiedName()] = s
			case other.Fingerprint() == s.Fingerprint():
				v.drop(dragoman.Info, "it stands twice; one is sent")
			default:
				v.drop(dragoman.Warn, "its name is declared twice; the first declaration stands")
			}
		}
		v.Losses, v.Why = plainly(v.Losses), plain(v.Why)
		if v.Losses == nil {
			v.Losses = []dragoman.Loss{} // a script counts them
		}
		verdicts[i] = v
	}
	return verdicts, nil
}

// unsourced is a tool without the form it came in, so that the target's rules are
// applied to it even where that form is the target's own.
func unsourced(s dragoman.ToolSpec) dragoman.ToolSpec {
	if s.Kind != codes.ToolHosted {
		s.Source = nil
	}
	return s
}

// judgeFor returns what judges a tool for a target: a whole language, which
// also has rules for names and kinds, or a schema surface.
func judgeFor(target string, known modelFlags, data []byte) (judge func(dragoman.ToolSpec) (verdict, error), caps targets.Capabilities, err error) {
	if target == "" {
		return nil, caps, misused("lint needs --for, the target to judge for:%s\n  or one of %s", helpLanguages(), strings.Join(surfaces(), ", "))
	}
	l, unknown := languageNamed(target)
	if unknown == nil {
		t, err := known.target(l, data)
		return func(s dragoman.ToolSpec) (verdict, error) { return judgeByWire(l, t, s) }, t.Caps, err
	}
	p, ok := all.Profile(target)
	if !ok {
		known, names := languageNames(languages())
		return nil, caps, misused("unknown target %q: wire languages are %s; schema surfaces are %s%s", target, known,
			strings.Join(surfaces(), ", "), words.Meant(target, append(names, surfaces()...)))
	}
	if known.model != "" || known.capabilities != nil {
		return nil, caps, misused("--model and --capability are for a wire language, and %s is a schema surface", target)
	}
	return func(s dragoman.ToolSpec) (verdict, error) {
		l, takesTools := wireOf(p.Name())
		if takesTools && s.Kind == codes.ToolHosted { // its language takes it or not; it has no schema
			return judgeByWire(l, targets.Target{}, s)
		}
		v := judgeBySchema(p, s)
		if takesTools {
			err := judgeName(&v, l, s)
			return v, err
		}
		return v, nil
	}, caps, nil
}

// unmix drops the provider's own tools beside functions (quirk A44), which no
// tool shows that is judged by itself.
func unmix(verdicts []verdict, specs []dragoman.ToolSpec) {
	function := func(i int) bool { return specs[i].Kind != codes.ToolHosted }
	for i := range verdicts {
		if function(i) && verdicts[i].Status != codes.LintDropped {
			for j := range verdicts {
				if v := &verdicts[j]; !function(j) && v.Status != codes.LintDropped {
					v.drop(dragoman.Serious, "the model takes it only without functions, which are kept")
				}
			}
			return
		}
	}
}

// wireOf is the language whose names the tools of a schema surface have. The
// surfaces of answers take no tools.
func wireOf(surface string) (l language, ok bool) {
	vendor, of, _ := strings.Cut(surface, ".")
	switch of {
	case "output", "format", "response_schema", "response_json_schema":
		return language{}, false
	}
	if l, err := languageNamed(vendor); err == nil {
		return l, true
	}
	return languageOf(dialects.Default().Dialect()), true // compatible servers
}

// judgeName adds to a verdict what becomes of the name of a tool in a language:
// a surface takes the schemas of that language's tools, not nameless ones.
func judgeName(v *verdict, l language, s dragoman.ToolSpec) error {
	bare := dragoman.ToolSpec{Name: s.Name, Namespace: s.Namespace, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	named, err := judgeByWire(l, targets.Target{}, bare)
	if err != nil {
		return err
	}
	for _, loss := range named.Losses {
		switch {
		case loss.Path != "":
		case named.Status == codes.LintDropped && v.Status != codes.LintDropped:
			v.drop(loss.Severity, loss.Detail)
		case loss.Kind == dragoman.Renamed:
			v.Losses = append(v.Losses, loss)
			if v.Status == codes.LintOK {
				v.Status = codes.LintRepaired
			}
		}
	}
	return nil
}

// judgeBySchema looks at nothing but the schema.
func judgeBySchema(p schema.Profile, s dragoman.ToolSpec) verdict {
	v := verdict{Tool: s.QualifiedName(), Status: codes.LintOK, Schema: s.Parameters}
	if s.Kind != codes.ToolFunction {
		return v // it has no schema
	}
	low, err := schema.Lower(s.Parameters, p)
	var rep dragoman.Report
	rep.Merge("/parameters", low.Report)
	v.Losses, v.Sent = rep.Losses, low.Schema
	switch {
	case err != nil:
		v.drop(dragoman.Serious, err.Error())
	case len(v.Losses) > 0:
		v.Status = codes.LintRepaired
	}
	return v
}

// judgeByWire writes a request with the one tool and looks at what is in it.
func judgeByWire(l language, target targets.Target, s dragoman.ToolSpec) (verdict, error) {
	v := verdict{Tool: s.QualifiedName(), Status: codes.LintOK, Schema: s.Parameters}
	list, rep, err := writeTools(l, target, []dragoman.ToolSpec{s})
	v.Losses = rep.Losses
	for i := range v.Losses {
		v.Losses[i].Path = strings.TrimPrefix(v.Losses[i].Path, "/tools/0")
		v.Losses[i].Detail = strings.TrimPrefix(v.Losses[i].Detail, fmt.Sprintf("tool %q: ", s.Name)) // which the verdict says
	}
	if err != nil {
		v.drop(dragoman.Serious, err.Error())
		return v, nil // the error is the verdict
	}
	sent, _, err := readTools(list, l.Dialect())
	switch {
	case err != nil:
		return v, err
	case len(sent) == 0:
		v.Status = codes.LintDropped
		for _, loss := range v.Losses {
			if loss.Kind == dragoman.Dropped && loss.Path == "" {
				v.Why = loss.Detail
			}
		}
	case s.Kind == codes.ToolHosted && l.toolTypes != "":
		v.drop(dragoman.Serious, fmt.Sprintf("%s has only tools of the type %s; a server that does not add %q refuses the request", l.Dialect(), l.toolTypes, s.Name))
	default:
		v.Sent = sent[0].Parameters
		if len(v.Losses) > 0 { // without one, it only says the same in other words
			v.Status = codes.LintRepaired
		}
	}
	return v, nil
}

func indented(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(indented(a), indented(b)) }

func (l linted) writeText(w io.Writer, quiet bool) error {
	var b strings.Builder
	if len(l.Reading) > 0 {
		b.WriteString(steps[0].title)
		writeLosses(&b, l.Reading, "  ")
	}
	counts := map[string]int{}
	for _, v := range l.Tools {
		counts[v.Status]++
		if quiet && v.Status == codes.LintOK {
			continue
		}
		name := cmp.Or(v.Tool, "(no name)")
		fmt.Fprintf(&b, "%s: %s\n", name, v.Status)
		writeLosses(&b, v.Losses, "  ")
		if v.Status == codes.LintRepaired && !sameJSON(v.Schema, v.Sent) {
			b.Write(diff.Diff(name+" as written", indented(v.Schema), name+" for "+l.For, indented(v.Sent)))
		}
	}
	fmt.Fprintf(&b, "%s for %s: %d ok, %d repaired, %d dropped.\n",
		plural(len(l.Tools), "tool", "tools"), l.For, counts[codes.LintOK], counts[codes.LintRepaired], counts[codes.LintDropped])
	_, err := io.WriteString(w, b.String())
	return err
}

// surfaces are the names of the schema surfaces.
func surfaces() []string {
	var names []string
	for _, p := range all.Profiles() {
		names = append(names, p.Name())
	}
	return names
}

// languageWord is what --from calls a language.
func languageWord(d dragoman.Dialect) string {
	for _, l := range languages() {
		if l.Dialect() == d {
			return l.short[0]
		}
	}
	return string(d) // mcp
}
