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
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

func newLint() *cobra.Command {
	var target, from, report string
	var fail []string
	var quiet bool
	var known modelFlags
	cmd := &cobra.Command{
		Use:   "lint --for TARGET [FILE]",
		Short: "Check which tools a model API would reject or change, and why",
		Long: `Lint reads tools in any dialect, or in the format that MCP servers list them in:
one tool, a list of tools, or a whole request. For each tool it prints a verdict to
standard output:

  ok         the target accepts the tool unchanged
  repaired   the tool is sent, but changed
  dropped    the target cannot accept the tool

After the verdict, lint prints the reasons and how the schema that is sent differs from
the original. Paths point into the canonical form of the tool, which has the schema in
/parameters. With --report json, the verdicts are one JSON document on standard output,
and an error is one JSON document on standard error; docs/command.md describes the
fields.

Tools in the target's own format are judged like all others, by what the target promises
to accept. A request that is converted to its own dialect keeps them unchanged.

Targets:` + helpDialects() + `

or a schema surface, which is one place of an API that accepts schemas. Names are then
judged by the dialect of the surface. The surfaces are:` + helpNames(surfaces()) + `.

--model and --capability describe the model, as in "dragoman convert --help". The default
model is the one that the request names.`,
		Example: `  dragoman lint --for gemini tools.json
  dragoman lint --for openai.strict --fail-on dropped < tools.json
  dragoman lint --for anthropic --report json request.json`,
		Args: atMost(1),
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
				return noTools("a stream, or several JSON documents")
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
			l := lintReport{For: target, Reading: plainLosses(rep.Losses)}
			if l.Tools, err = judgeAll(specs, judge); err != nil {
				return failed("%w", err)
			}
			if caps.NoMixedTools {
				dropMixedHosted(l.Tools, specs)
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
	f.StringVar(&target, "for", "", "the target: a dialect or a schema surface")
	f.StringVar(&from, "from", "", "the dialect of the input, or mcp (default: detected)")
	f.StringVar(&known.model, "model", "", "judge for this model of the target (default: the model that the request names)")
	f.StringVar(&known.facts, "model-file", "", "a file that adds or changes facts about models (default: the variable DRAGOMAN_MODELS)")
	f.StringSliceVar(&known.capabilities, "capability", nil, "a capability of the model or server: name, name=false or name=value")
	f.StringVar(&report, "report", "text", "report format: text or json")
	f.StringSliceVar(&fail, "fail-on", nil, "exit with code 3 if there are losses of these kinds or severities: dropped, lowered, renamed, synthesized, moved, info, warn, serious")
	f.BoolVar(&quiet, "quiet", false, "do not print tools that are ok")
	return cmd
}

// modelFlags holds the flags that describe the model of a target.
type modelFlags struct {
	model        string
	facts        string
	capabilities []string
}

// target returns the target to judge for. Without --model, it reads the model from data,
// which may be a request.
func (m modelFlags) target(l namedDialect, data []byte) (targets.Target, error) {
	model := m.model
	if model == "" {
		var body struct{ Model, ModelID string }
		_ = json.Unmarshal(data, &body) // a list of tools has no model
		model = cmp.Or(body.Model, body.ModelID)
	}
	return l.target(model, m.facts, m.capabilities)
}

// lintInput reads the tools of a tool, a list of tools, or a request.
func lintInput(data []byte, from dragoman.Dialect) ([]dragoman.ToolSpec, dragoman.Report, error) {
	none := dragoman.Report{}
	if g, err := sniff.Of(data, sniff.Request, ""); err == nil && g.Dialect == sniff.Canonical && (from == "" || from == g.Dialect) {
		req, _, err := canonical{}.DecodeRequest(data, dialect.DecodeOptions{})
		if err != nil {
			return nil, none, failed("%w", err)
		}
		if len(req.Tools) == 0 {
			return nil, none, noTools("a request in canonical form without tools")
		}
		return req.Tools, none, nil
	}
	elements, err := toolList(data)
	if err != nil {
		return nil, none, failed("%w", err)
	}
	if what := describeToolless(data, elements, from); what != "" {
		return nil, none, noTools(what)
	}
	if from == "" {
		if from = cmp.Or(toolDialect(elements), requestDialect(data)); from == "" {
			return nil, none, failed("cannot detect the dialect of these tools; %s", flagHint(sniff.Tools, ""))
		}
	}
	specs, rep, err := readTools(data, from)
	if err != nil {
		return nil, rep, failed("%w", err)
	}
	for i, el := range elements {
		if other := likelyDialect(el, from); other != "" {
			rep.Addf(dragoman.Lowered, dragoman.Warn, fmt.Sprintf("/tools/%d", i), "this is a tool of %[2]s, not of %[1]s; read it with --from %[2]s", dialectWord(from), dialectWord(other))
		}
	}
	return specs, rep, nil
}

// likelyDialect returns the dialect of a tool that is complete in that dialect, but
// incomplete if it is read as from. It returns "" if there is no such dialect.
func likelyDialect(el json.RawMessage, from dragoman.Dialect) dragoman.Dialect {
	g, err := sniff.Of(el, sniff.Tools, "")
	if err != nil || g.Dialect == from || g.Dialect == sniff.Canonical || isCompleteTool(el, from) || !isCompleteTool(el, g.Dialect) {
		return ""
	}
	return g.Dialect
}

// isCompleteTool reports whether el, read in the dialect from, is a function with a name and
// parameters.
func isCompleteTool(el json.RawMessage, from dragoman.Dialect) bool {
	specs, _, err := readTools(slices.Concat([]byte{'['}, el, []byte{']'}), from)
	return err == nil && len(specs) > 0 && !slices.ContainsFunc(specs, func(s dragoman.ToolSpec) bool {
		return s.Kind == codes.ToolHosted || s.Name == "" || s.Kind == codes.ToolFunction && len(s.Parameters) == 0
	})
}

// toolDialect returns the dialect of the first tool whose dialect can be detected.
func toolDialect(elements []json.RawMessage) dragoman.Dialect {
	for _, el := range elements {
		if g, err := sniff.Of(el, sniff.Tools, ""); err == nil {
			return g.Dialect
		}
	}
	return ""
}

// requestDialect returns the dialect of a request if it is unambiguous. It is used if
// the tools do not show their dialect, as hosted tools do not.
func requestDialect(data []byte) dragoman.Dialect {
	if g, err := sniff.Of(data, "", ""); err == nil && g.Kind == sniff.Request && len(g.Or) == 0 {
		return g.Dialect
	}
	return ""
}

// noTools returns the error for an input that has no tools; what describes the input.
func noTools(what string) error {
	return failed("no tools to check: the input looks like %s; give a tool, a list of tools, or a request with tools", what)
}

// describeToolless describes a document that has no tools. It returns "" if the document may have
// tools.
func describeToolless(data []byte, elements []json.RawMessage, from dragoman.Dialect) string {
	if toolDialect(elements) != "" || len(elements) > 0 && from != "" && isCompleteTool(elements[0], from) {
		return ""
	}
	single := len(elements) == 1 && bytes.Equal(elements[0], bytes.TrimSpace(data))
	g, err := sniff.Of(data, "", "")
	switch {
	case err == nil && g.Kind == sniff.Request && (single || len(elements) == 0):
		return fmt.Sprintf("a request of %s without tools", g.Dialect)
	case err == nil && g.Kind == sniff.Response:
		return fmt.Sprintf("a response of %s", g.Dialect)
	case err == nil && g.Kind == sniff.Messages:
		return fmt.Sprintf("messages of %s", g.Dialect)
	case len(elements) == 0:
		return "an empty list of tools"
	case isSchema(elements[0]):
		return `a JSON Schema without a tool; wrap it, as in {"name": "some_tool", "inputSchema": …}`
	default:
		return ""
	}
}

// isSchema reports whether el is a JSON Schema and not a tool. A hosted tool also has a
// "type", but not one of the types of JSON Schema.
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

// lintReport is the outcome of a run of lint as JSON. docs/command.md describes it.
type lintReport struct {
	For string `json:"for"`
	// Reading holds the losses that occurred while the tools were read.
	Reading []dragoman.Loss `json:"reading,omitempty"`
	Tools   []verdict       `json:"tools"`
}

// losses returns all losses that --fail-on checks.
func (l lintReport) losses() []dragoman.Loss {
	all := slices.Clone(l.Reading)
	for _, v := range l.Tools {
		all = append(all, v.Losses...)
	}
	return all
}

// verdict is the outcome for one tool.
type verdict struct {
	Tool   string `json:"tool"`
	Status string `json:"status"`
	// Losses includes the reason for dropping the tool.
	Losses []dragoman.Loss `json:"losses"`
	Why    string          `json:"why,omitempty"`
	// Schema is the original schema, Sent the one that the target gets.
	Schema json.RawMessage `json:"schema,omitempty"`
	Sent   json.RawMessage `json:"sent,omitempty"`
}

// drop sets the verdict to dropped.
func (v *verdict) drop(severity dragoman.Severity, why string) {
	v.Status, v.Why, v.Sent = codes.LintDropped, why, nil
	v.Losses = append(v.Losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: severity, Detail: why})
}

// judgeAll judges each tool separately, and then drops duplicate names.
func judgeAll(specs []dragoman.ToolSpec, judge func(dragoman.ToolSpec) (verdict, error)) ([]verdict, error) {
	verdicts := make([]verdict, len(specs))
	first := make(map[string]*dragoman.ToolSpec, len(specs))
	for i := range specs {
		s := &specs[i]
		v, err := judge(withoutSource(*s))
		if err != nil {
			return nil, err
		}
		if s.Kind != codes.ToolHosted {
			other := first[s.QualifiedName()]
			switch {
			case other == nil:
				first[s.QualifiedName()] = s
			case other.Fingerprint() == s.Fingerprint():
				v.drop(dragoman.Info, "duplicate of an identical tool; only one is sent")
			default:
				v.drop(dragoman.Warn, "duplicate name; only the first tool with this name is sent")
			}
		}
		v.Losses, v.Why = plainLosses(v.Losses), plain(v.Why)
		if v.Losses == nil {
			v.Losses = []dragoman.Loss{} // scripts expect a list, not null
		}
		verdicts[i] = v
	}
	return verdicts, nil
}

// withoutSource returns a tool without its original JSON, so that the target's rules apply even
// if that JSON is in the target's own format.
func withoutSource(s dragoman.ToolSpec) dragoman.ToolSpec {
	if s.Kind != codes.ToolHosted {
		s.Source = nil
	}
	return s
}

// judgeFor returns a function that judges a tool for a target. The target is a wire
// dialect, which also has rules for names and kinds of tools, or a schema surface.
func judgeFor(target string, known modelFlags, data []byte) (judge func(dragoman.ToolSpec) (verdict, error), caps targets.Capabilities, err error) {
	if target == "" {
		return nil, caps, usageError("missing --for, the target to check the tools for:%s\n  or one of %s", helpDialects(), strings.Join(surfaces(), ", "))
	}
	l, unknown := dialectNamed(target)
	if unknown == nil {
		t, err := known.target(l, data)
		return func(s dragoman.ToolSpec) (verdict, error) { return judgeByWire(l, t, s) }, t.Caps, err
	}
	p, ok := all.Profile(target)
	if !ok {
		known, names := dialectNames(allDialects())
		return nil, caps, usageError("unknown target %q: dialects are %s; schema surfaces are %s%s", target, known,
			strings.Join(surfaces(), ", "), textkit.Suggest(target, append(names, surfaces()...)))
	}
	if known.model != "" || known.capabilities != nil {
		return nil, caps, usageError("--model and --capability need a dialect as target, but %s is a schema surface", target)
	}
	return func(s dragoman.ToolSpec) (verdict, error) {
		l, takesTools := wireOf(p.Name())
		if takesTools && s.Kind == codes.ToolHosted { // a hosted tool has no schema: only the dialect decides
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

// dropMixedHosted drops hosted tools if there are functions too (quirk A44). The verdicts of single
// tools cannot show this.
func dropMixedHosted(verdicts []verdict, specs []dragoman.ToolSpec) {
	function := func(i int) bool { return specs[i].Kind != codes.ToolHosted }
	for i := range verdicts {
		if function(i) && verdicts[i].Status != codes.LintDropped {
			for j := range verdicts {
				if v := &verdicts[j]; !function(j) && v.Status != codes.LintDropped {
					v.drop(dragoman.Serious, "the model does not accept hosted tools together with functions; the functions are kept")
				}
			}
			return
		}
	}
}

// wireOf returns the dialect of a schema surface, whose rules for names apply. ok is
// false for surfaces of response formats, which take no tools.
func wireOf(surface string) (l namedDialect, ok bool) {
	vendor, of, _ := strings.Cut(surface, ".")
	switch of {
	case "output", "format", "response_schema", "response_json_schema":
		return namedDialect{}, false
	}
	if l, err := dialectNamed(vendor); err == nil {
		return l, true
	}
	return dialectOf(dialects.Default().Dialect()), true // compatible servers
}

// judgeName adds the verdict on the tool's name in dialect l: a schema surface takes the
// schemas of that dialect's tools, so their names matter too.
func judgeName(v *verdict, l namedDialect, s dragoman.ToolSpec) error {
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

// judgeBySchema judges only the schema.
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

// judgeByWire encodes a request with this tool only, and judges the result.
func judgeByWire(l namedDialect, target targets.Target, s dragoman.ToolSpec) (verdict, error) {
	v := verdict{Tool: s.QualifiedName(), Status: codes.LintOK, Schema: s.Parameters}
	list, rep, err := writeTools(l, target, []dragoman.ToolSpec{s})
	v.Losses = rep.Losses
	for i := range v.Losses {
		v.Losses[i].Path = strings.TrimPrefix(v.Losses[i].Path, "/tools/0")
		v.Losses[i].Detail = strings.TrimPrefix(v.Losses[i].Detail, fmt.Sprintf("tool %q: ", s.Name)) // the verdict already names the tool
	}
	if err != nil {
		v.drop(dragoman.Serious, err.Error())
		return v, nil // the verdict holds the error
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
		v.drop(dragoman.Serious, fmt.Sprintf("%s has only tools of type %s; servers that do not know %q refuse the request", l.Dialect(), l.toolTypes, s.Name))
	default:
		v.Sent = sent[0].Parameters
		if len(v.Losses) > 0 { // without a loss, only the formatting differs
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

func (l lintReport) writeText(w io.Writer, quiet bool) error {
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

// surfaces returns the names of the schema surfaces.
func surfaces() []string {
	var names []string
	for _, p := range all.Profiles() {
		names = append(names, p.Name())
	}
	return names
}

// dialectWord returns the name of a dialect as --from accepts it.
func dialectWord(d dragoman.Dialect) string {
	for _, l := range allDialects() {
		if l.Dialect() == d {
			return l.short[0]
		}
	}
	return string(d) // mcp
}
