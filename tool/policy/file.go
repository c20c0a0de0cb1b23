package policy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/tool"
)

// maxFile is the maximum length of a policy file, in bytes.
const maxFile = 8 << 20

// Load reads a policy from a file. The package comment describes the format. The error lists
// every problem with its line and column, in file order.
func Load(name string) (*Policy, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	config, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	return New(config)
}

// FileError reports an error in a policy file, with its position.
type FileError struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Unwrap lets errors.Is find [ErrRule].
func (e *FileError) Unwrap() error { return ErrRule }

// Parse reads a policy file. name is used in messages. The error lists every problem in file
// order, each a [*FileError], or a [*RuleError] for a rule that is readable but invalid. If the
// whole file is readable, [New] reports the errors of rules, with the same positions.
func Parse(name string, data []byte) (Config, error) {
	if len(data) > maxFile {
		return Config{}, &FileError{File: name, Line: 1, Column: 1, Reason: fmt.Sprintf("the file is longer than %d bytes", maxFile)}
	}
	root, errs := configfile.Read(data)
	r := reader{file: name, Reader: configfile.Reader{Errs: errs}}
	if root == nil {
		return Config{}, errors.Join(r.wrong()...)
	}
	config := r.config(root)
	if len(r.Errs) > 0 {
		return Config{}, errors.Join(r.withRules(config)...)
	}
	return config, nil
}

// withRules adds the errors of the rules that could be read, so that all errors of a file are
// reported at once. It skips errors at a position that already has one, because they follow
// from it.
func (r *reader) withRules(config Config) []error {
	all := r.wrong()
	said := make(map[linePlace]bool, len(all))
	for _, err := range all {
		said[placeOf(err)] = true
	}
	_, wrong := build(config)
	for _, err := range wrong {
		if !said[placeOf(err)] {
			all = append(all, err)
		}
	}
	sortByPlace(all)
	return all
}

// sortByPlace sorts errors by their position in the file.
func sortByPlace(all []error) {
	slices.SortStableFunc(all, func(a, b error) int {
		x, y := placeOf(a), placeOf(b)
		return cmp.Or(cmp.Compare(x.line, y.line), cmp.Compare(x.column, y.column))
	})
}

// joinInOrder joins errors in the order of the file.
func joinInOrder(all []error) error {
	sortByPlace(all)
	return errors.Join(all...)
}

// defaultError is an error about the default.
func (p *Policy) defaultError(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if at := p.defaultAt; at != nil {
		return &FileError{File: at.file, Line: at.line, Column: at.column, Reason: reason}
	}
	return fmt.Errorf("%w: %s", ErrRule, reason)
}

type linePlace struct{ line, column int }

// placeOf returns the position of an error in the file, or zero.
func placeOf(err error) linePlace {
	var f *FileError
	var r *RuleError
	switch {
	case errors.As(err, &f):
		return linePlace{f.Line, f.Column}
	case errors.As(err, &r):
		return linePlace{r.Line, r.Column}
	default:
		return linePlace{}
	}
}

type node = configfile.Node

// place holds the positions of the fields of a rule.
type place struct {
	file   string
	line   int
	column int
	fields map[string]*node
}

// of returns the position of a field, or of the rule.
func (p *place) of(field string) (file string, line, column int) {
	if n := p.fields[field]; n != nil {
		return p.file, n.Line, n.Column
	}
	return p.file, p.line, p.column
}

// reader converts a tree to a config, and collects errors.
type reader struct {
	configfile.Reader
	file string
}

// wrong returns the errors, with the name of the file.
func (r *reader) wrong() []error {
	errs := make([]error, len(r.Errs))
	for i, e := range r.Errs {
		errs[i] = &FileError{File: r.file, Line: e.Line, Column: e.Column, Reason: e.Reason}
	}
	return errs
}

func (r *reader) config(root *node) Config {
	var c Config
	version := false
	r.Fields(root, "policy", map[string]func(*node){
		"version": func(n *node) {
			version = true
			if n.Kind != configfile.Number || n.Text != "1" {
				r.Bad(n, "version: this program supports only version 1")
			}
		},
		"default": func(n *node) {
			c.Default = r.fallback(n)
			c.defaultAt = &place{file: r.file, line: n.Line, column: n.Column}
		},
		"cost_limit": func(n *node) { c.CostLimit = r.limit(n) },
		"rules": func(n *node) {
			if !r.Want(n, configfile.List, "rules") {
				return
			}
			for _, item := range n.Items {
				c.Rules = append(c.Rules, r.rule(item))
			}
		},
	})
	if root.Kind == configfile.Map && !version {
		r.Bad(root, "policy: the field version is missing; write version: 1")
	}
	return c
}

func (r *reader) fallback(n *node) string {
	switch d := r.String(n, "default"); d {
	case "allow":
		return defaultAllow
	case defaultDeny, defaultAsk, defaultAskDestructive:
		return d
	default:
		if n.Kind == configfile.String {
			r.Bad(n, "default: unknown default %q: want allow, deny, ask or ask_destructive", d)
		}
		return defaultDeny
	}
}

func (r *reader) limit(n *node) uint64 {
	if !r.Want(n, configfile.Number, "cost_limit") {
		return 0
	}
	v, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil || v == 0 {
		r.Bad(n, "cost_limit: want a whole number above zero, have %s", clip(n.Text))
	}
	return v
}

func (r *reader) rule(n *node) Rule {
	at := &place{file: r.file, line: n.Line, column: n.Column, fields: map[string]*node{}}
	rule := Rule{at: at}
	mark := func(name string, set func(*node)) func(*node) {
		return func(n *node) {
			at.fields[name] = n
			set(n)
		}
	}
	r.Fields(n, "rule", map[string]func(*node){
		"id":       mark("id", func(n *node) { rule.ID = r.String(n, "id") }),
		"effect":   mark("effect", func(n *node) { rule.Effect = tool.Effect(r.String(n, "effect")) }),
		"priority": mark("priority", func(n *node) { rule.Priority = r.integer(n, "priority") }),
		"enabled":  mark("enabled", func(n *node) { rule.Disabled = !r.boolean(n, "enabled") }),
		"subjects": mark("subjects", func(n *node) { rule.Subjects = r.texts(n, "subjects") }),
		"reason":   mark("reason", func(n *node) { rule.Reason = r.String(n, "reason") }),
		"when":     mark("when", func(n *node) { r.readWhen(n, &rule.When, mark) }),
		"edits":    mark("edits", func(n *node) { rule.Edits = r.edits(n) }),
		"input":    mark("input", func(n *node) { rule.Input = r.input(n) }),
	})
	return rule
}

func (r *reader) readWhen(n *node, w *When, mark func(string, func(*node)) func(*node)) {
	texts := func(name string, to *[]string) func(*node) {
		return mark("when."+name, func(n *node) { *to = r.texts(n, name) })
	}
	r.notEmpty(n, "when")
	r.Fields(n, "when", map[string]func(*node){
		"tool":        texts("tool", &w.Tools),
		"namespace":   texts("namespace", &w.Namespaces),
		"tags":        texts("tags", &w.Tags),
		"agent":       texts("agent", &w.Agents),
		"model":       texts("model", &w.Models),
		"target":      texts("target", &w.Targets),
		"annotations": mark("when.annotations", func(n *node) { r.annotations(n, w) }),
		"metadata":    mark("when.metadata", func(n *node) { w.Metadata = r.metadata(n) }),
		"expression": mark("when.expression", func(n *node) {
			w.Expression = r.String(n, "expression")
			if n.Kind == configfile.String && strings.TrimSpace(w.Expression) == "" {
				r.Bad(n, "expression: the expression is empty")
			}
		}),
	})
}

func (r *reader) annotations(n *node, w *When) {
	hint := func(name string, to **bool) func(*node) {
		return func(n *node) { *to = new(r.boolean(n, name)) }
	}
	r.notEmpty(n, "annotations")
	r.Fields(n, "annotations", map[string]func(*node){
		"read_only":   hint("read_only", &w.ReadOnly),
		"destructive": hint("destructive", &w.Destructive),
		"idempotent":  hint("idempotent", &w.Idempotent),
		"open_world":  hint("open_world", &w.OpenWorld),
	})
}

func (r *reader) metadata(n *node) map[string]string {
	out := map[string]string{}
	r.notEmpty(n, "metadata")
	r.Each(n, "metadata", func(key, value *node) { out[key.Text] = r.String(value, "metadata") })
	return out
}

func (r *reader) edits(n *node) []tool.Edit {
	var out []tool.Edit
	r.Each(n, "edits", func(key, value *node) {
		out = append(out, tool.Edit{Argument: key.Text, Value: r.JSON(value, "edits")})
	})
	return out
}

func (r *reader) input(n *node) *tool.InputRequest {
	in := &tool.InputRequest{}
	r.Fields(n, "input", map[string]func(*node){
		"argument": func(n *node) { in.Argument = r.String(n, "argument") },
		"prompt":   func(n *node) { in.Prompt = r.String(n, "prompt") },
	})
	return in
}

// texts returns a list of texts, or a single one. An empty list is an error, because it would
// look like a condition without being one.
func (r *reader) texts(n *node, what string) []string {
	if n.Kind == configfile.List && len(n.Items) == 0 {
		r.Bad(n, "%s: the list is empty; leave the field out", what)
	}
	return r.Strings(n, what)
}

// notEmpty refuses an empty mapping of conditions, for the same reason.
func (r *reader) notEmpty(n *node, what string) {
	if n.Kind == configfile.Map && len(n.Items) == 0 {
		r.Bad(n, "%s: the mapping is empty; leave the field out", what)
	}
}

func (r *reader) integer(n *node, what string) int {
	if !r.Want(n, configfile.Number, what) {
		return 0
	}
	v, err := strconv.ParseInt(n.Text, 10, 32)
	if err != nil {
		r.Bad(n, "%s: want a whole number of 32 bits, have %s", what, clip(n.Text))
	}
	return int(v)
}

func (r *reader) boolean(n *node, what string) bool {
	return r.Want(n, configfile.Bool, what) && n.Text == "true"
}
