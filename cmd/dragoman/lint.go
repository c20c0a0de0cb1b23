package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/sniff"
	"github.com/dragoman-go/dragoman/schema"
)

func newLint() *cobra.Command {
	var target, from, report string
	var fail []string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "lint --for LANGUAGE [FILE]",
		Short: "Say which tools a target would reject or weaken, why, and what it would get",
		Long: `Lint reads tools in any of the wire languages, or as MCP servers list them: one
tool, a list, or a whole request. For each it prints a verdict: ok, repaired
(sent, but changed) or dropped (the target cannot take it), the reasons, and how
the schema that is sent differs from the one that was written.

Targets:` + helpLanguages() + `

or one of the surfaces that take schemas: ` + strings.Join(surfaces(), ", ") + `.`,
		Example: `  dragoman lint --for gemini tools.json
  dragoman lint --for openai.strict --fail-on dropped < tools.json
  dragoman lint --for anthropic --report json request.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			judge, err := judgeFor(target)
			if err != nil {
				return err
			}
			if from != "" && from != string(sniff.MCP) {
				l, err := languageNamed(from)
				if err != nil {
					return err
				}
				from = string(l.Dialect())
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
			specs, rep, err := lintInput(in, dragoman.Dialect(from))
			if err != nil {
				return err
			}
			verdicts := make([]verdict, len(specs))
			losses := rep.Losses
			for i := range specs {
				if verdicts[i], err = judge(&specs[i]); err != nil {
					return failed("%w", err)
				}
				losses = append(losses, verdicts[i].Losses...)
				if verdicts[i].Status == schema.Dropped {
					losses = append(losses, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Serious, Detail: verdicts[i].Why})
				}
			}
			out := cmd.OutOrStdout()
			if asJSON {
				err = writeVerdictsJSON(out, target, verdicts)
			} else {
				err = writeVerdicts(out, target, verdicts, quiet)
			}
			if err != nil {
				return failed("%w", err)
			}
			return forbidden.check(losses)
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "for", "", "the wire language, or schema surface, to judge for")
	f.StringVar(&from, "from", "", "the wire language of the input, or mcp (default: guessed)")
	f.StringVar(&report, "report", "text", "how to report: text or json")
	f.StringSliceVar(&fail, "fail-on", nil, "exit with 3 after such losses: dropped, lowered, renamed, synthesised, moved, info, warn, serious")
	f.BoolVar(&quiet, "quiet", false, "leave out tools that are ok")
	return cmd
}

// lintInput reads the tools of whatever came.
func lintInput(in io.Reader, from dragoman.Dialect) ([]dragoman.ToolSpec, dragoman.Report, error) {
	data, err := io.ReadAll(io.LimitReader(in, dialect.DefaultMaxBytes+1))
	if err != nil {
		return nil, dragoman.Report{}, failed("%w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, dragoman.Report{}, failed("the input is empty")
	}
	elements, err := toolList(data)
	if err != nil {
		return nil, dragoman.Report{}, failed("the input is no JSON: %w", err)
	}
	if len(elements) == 0 {
		return nil, dragoman.Report{}, failed("the input holds no tools")
	}
	if from == "" {
		for _, el := range elements {
			if g, err := sniff.Of(el, sniff.Tools, ""); err == nil {
				from = g.Dialect
				break
			}
		}
		if from == "" {
			return nil, dragoman.Report{}, failed("cannot tell in which language these tools are written; say it with --from")
		}
	}
	specs, rep, err := readTools(data, from)
	if err != nil {
		return nil, rep, failed("%w", err)
	}
	return specs, rep, nil
}

// verdict is what becomes of one tool at a target.
type verdict struct {
	Tool   string          `json:"tool"`
	Status schema.Status   `json:"status"`
	Losses []dragoman.Loss `json:"losses"`
	Why    string          `json:"why,omitempty"`
	// Schema is the one that was written, Sent the one the target gets.
	Schema json.RawMessage `json:"schema,omitempty"`
	Sent   json.RawMessage `json:"sent,omitempty"`
}

// judgeFor returns what judges a tool for a target: a whole language, which
// also has rules for names and kinds, or a schema surface.
func judgeFor(target string) (func(*dragoman.ToolSpec) (verdict, error), error) {
	if target == "" {
		return nil, misused("lint needs --for, the target to judge for:%s\n  or one of %s", helpLanguages(), strings.Join(surfaces(), ", "))
	}
	l, unknown := languageNamed(target)
	if unknown == nil {
		return func(s *dragoman.ToolSpec) (verdict, error) { return judgeByWire(l, s) }, nil
	}
	p, ok := schema.Named(target)
	if !ok {
		return nil, misused("%w, nor one of the schema surfaces: %s", unknown, strings.Join(surfaces(), ", "))
	}
	return func(s *dragoman.ToolSpec) (verdict, error) {
		v := schema.Lint(*s, p)
		out := verdict{Tool: s.QualifiedName(), Status: v.Status, Losses: v.Report.Losses, Schema: s.Parameters, Sent: v.Schema}
		if v.Err != nil {
			out.Why = v.Err.Error()
		}
		return out, nil
	}, nil
}

// judgeByWire writes a request with the one tool and looks at what is in it.
func judgeByWire(l language, s *dragoman.ToolSpec) (verdict, error) {
	v := verdict{Tool: s.QualifiedName(), Status: schema.OK, Schema: s.Parameters}
	list, rep, err := writeTools(l, []dragoman.ToolSpec{*s})
	v.Losses = rep.Losses
	for i := range v.Losses {
		v.Losses[i].Path = strings.TrimPrefix(v.Losses[i].Path, "/tools/0")
	}
	if err != nil {
		v.Status, v.Why = schema.Dropped, err.Error()
		return v, nil //nolint:nilerr // the error is the verdict
	}
	sent, _, err := readTools(list, l.Dialect())
	switch {
	case err != nil:
		return v, err
	case len(sent) == 0:
		v.Status = schema.Dropped
	default:
		v.Sent = sent[0].Parameters
		if len(v.Losses) > 0 || !sameJSON(v.Schema, v.Sent) {
			v.Status = schema.Repaired
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

func writeVerdictsJSON(w io.Writer, target string, verdicts []verdict) error {
	for i := range verdicts {
		if verdicts[i].Losses == nil {
			verdicts[i].Losses = []dragoman.Loss{}
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		For   string    `json:"for"`
		Tools []verdict `json:"tools"`
	}{target, verdicts})
}

func writeVerdicts(w io.Writer, target string, verdicts []verdict, quiet bool) error {
	var b strings.Builder
	counts := map[schema.Status]int{}
	for _, v := range verdicts {
		counts[v.Status]++
		if quiet && v.Status == schema.OK {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", v.Tool, v.Status)
		if v.Why != "" {
			fmt.Fprintf(&b, "  %s\n", v.Why)
		}
		writeLosses(&b, v.Losses, "  ")
		if v.Status == schema.Repaired && !sameJSON(v.Schema, v.Sent) {
			b.Write(diff.Diff(v.Tool+" as written", indented(v.Schema), v.Tool+" for "+target, indented(v.Sent)))
		}
	}
	fmt.Fprintf(&b, "%s for %s: %d ok, %d repaired, %d dropped.\n",
		plural(len(verdicts), "tool", "tools"), target, counts[schema.OK], counts[schema.Repaired], counts[schema.Dropped])
	_, err := io.WriteString(w, b.String())
	return err
}

// surfaces are the names of the schema surfaces.
func surfaces() []string {
	var names []string
	for _, p := range schema.Profiles() {
		names = append(names, p.Name())
	}
	return names
}
