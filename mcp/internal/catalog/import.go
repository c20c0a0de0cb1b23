package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/schema"
)

// Import turns the tool objects of a server into definitions for models. It never fails as a
// whole: a tool that cannot be used is dropped with a diagnostic, and the rest is imported. It
// does not change raw, and the result shares its bytes.
func Import(label string, raw []json.RawMessage, o Options) Result {
	o.MaxTools = cmp.Or(o.MaxTools, defaultMaxTools)
	o.MaxToolBytes = cmp.Or(o.MaxToolBytes, defaultMaxToolBytes)
	o.MaxTotalBytes = cmp.Or(o.MaxTotalBytes, defaultMaxTotalBytes)
	o.MaxDescription = cmp.Or(o.MaxDescription, defaultMaxDescription)

	im := importer{label: label, o: &o, budget: scanBudget}
	list := im.reporter(-1, "")
	if len(raw) > o.MaxTools {
		list.addf(Dropped, "", "the server has %d tools, more than %d; the last %d are not used", len(raw), o.MaxTools, len(raw)-o.MaxTools)
		raw = raw[:o.MaxTools]
	}
	total := 0
	matched := map[string]bool{}
	for i, object := range raw {
		total += len(object)
		if total > o.MaxTotalBytes {
			list.addf(Dropped, "", "the definitions are larger than %d bytes; tools from number %d on are not used", o.MaxTotalBytes, i+1)
			break
		}
		im.add(i, object, matched)
	}
	for _, p := range slices.Concat(o.Include, o.Exclude) {
		if !matched[p] {
			list.addf(Unmatched, "", "the pattern %q matches no tool", p)
		}
	}
	im.dropDuplicates()
	im.name()
	return im.result(list)
}

// Arguments returns what a call sends to the server for arguments that a model wrote.
func (t *Tool) Arguments(args json.RawMessage) (json.RawMessage, error) {
	if !t.Wrapped {
		return args, nil
	}
	return schema.Unwrap(args)
}

type importer struct {
	label string
	o     *Options
	// candidates are the tools that are usable by themselves, and reports the diagnostics of
	// each object, in the order of the server.
	candidates []candidate
	reports    []*reporter
	budget     int // of the scanner
}

type candidate struct {
	Tool
	report *reporter
}

// reporter collects the diagnostics of one tool object.
type reporter struct {
	server, tool string
	index        int
	list         []Diagnostic
}

func (im *importer) reporter(index int, tool string) *reporter {
	return &reporter{server: im.label, index: index, tool: tool}
}

// maxReasons bounds the diagnostics of one tool.
const maxReasons = 20

func (r *reporter) addf(kind, field, format string, args ...any) {
	if len(r.list) < maxReasons {
		r.list = append(r.list, Diagnostic{Kind: kind, Server: r.server, Index: r.index, Tool: r.tool, Field: field, Reason: fmt.Sprintf(format, args...)})
	}
}

// add imports one object, or reports why not.
func (im *importer) add(i int, object json.RawMessage, matched map[string]bool) {
	rep := im.reporter(i, "")
	im.reports = append(im.reports, rep)
	if len(object) > im.o.MaxToolBytes {
		rep.addf(Dropped, "", "the definition has %d bytes, more than %d", len(object), im.o.MaxToolBytes)
		return
	}
	if err := jsonwire.Check(object); err != nil {
		rep.addf(Dropped, "", "the definition is not usable JSON: %s", textkit.Visible(clip(err.Error())))
		return
	}
	fields, ok := fieldsOf(object)
	if !ok {
		rep.addf(Dropped, "", "the definition is not a JSON object")
		return
	}
	name, isText := textOf(fields["name"])
	switch {
	case !isText:
		rep.addf(Dropped, "name", "the tool has no name")
		return
	case name == "":
		rep.addf(Dropped, "name", "the name is empty")
		return
	case len(name) > maxOriginal:
		rep.addf(Dropped, "name", "the name has %d bytes, more than %d", len(name), maxOriginal)
		return
	}
	rep.tool = name
	for _, p := range slices.Concat(im.o.Include, im.o.Exclude) {
		matched[p] = matched[p] || textkit.MatchStars(p, name)
	}
	if !im.o.selected(name) {
		return
	}
	t := Tool{Server: im.label, Name: name}
	if err := t.read(object, fields, im.o, rep, &im.budget); err != nil {
		rep.addf(Dropped, err.field, "%s", err.reason)
		return
	}
	im.candidates = append(im.candidates, candidate{t, rep})
}

// unusable is the reason why a tool is dropped.
type unusable struct{ field, reason string }

func unusablef(field, format string, args ...any) *unusable {
	return &unusable{field, fmt.Sprintf(format, args...)}
}

// read reads the fields of a tool object.
func (t *Tool) read(object json.RawMessage, fields map[string]json.RawMessage, o *Options, rep *reporter, budget *int) *unusable {
	var err error
	if t.Definition, err = define(t.Server, fields); err != nil {
		return unusablef("", "the definition has no canonical form: %v", err)
	}
	t.Icons, t.Meta, t.Execution = notNull(fields["icons"]), notNull(fields["_meta"]), notNull(fields["execution"])
	t.AppOnly = appOnly(t.Meta)
	if t.AppOnly {
		rep.addf(Hidden, "_meta", "only the user interface of the server calls this tool")
	}

	original := dragoman.ToolSpec{Name: t.Name}
	if original.Description, err = optionalText(fields["description"]); err != nil {
		rep.addf(Dropped, "description", "%v", err)
	}
	if t.Title, err = optionalText(fields["title"]); err != nil {
		rep.addf(Dropped, "title", "%v", err)
	}
	original.Annotations = readAnnotations(fields["annotations"], rep)
	if t.Title == "" {
		t.Title = original.Annotations.Title
	}
	original.Annotations.Title = t.Title
	original.Parameters = notNull(fields["inputSchema"])
	original.OutputSchema = notNull(fields["outputSchema"])

	spec := original
	spec.Source = &dragoman.ToolSource{Format: toolformat.MCPTool, JSON: object, Mirror: original.Fingerprint()}
	spec.Namespace, spec.Deferred = o.Namespace, o.Deferred
	spec.Description = plainText(original.Description, o.MaxDescription, "description", rep)
	t.Title = plainText(t.Title, maxTitle, "title", rep)
	spec.Annotations.Title = t.Title

	in, bad := readInput(fields["inputSchema"], rep)
	if bad != nil {
		return bad
	}
	if spec.Parameters, bad = plainSchema(in.params, "inputSchema", rep); bad != nil {
		return bad
	}
	t.InputSchema, t.Wrapped = in.original, in.wrapped
	if t.InputSchema == nil {
		t.InputSchema = spec.Parameters
	}
	spec.OutputSchema = readOutput(fields["outputSchema"], rep)
	t.OutputSchema = spec.OutputSchema
	if spec.OutputSchema, bad = plainSchema(spec.OutputSchema, "outputSchema", rep); bad != nil {
		rep.addf(Dropped, bad.field, "%s", bad.reason)
		spec.OutputSchema = nil
	}

	headers, err := headerParams(in.tree)
	switch {
	case err == nil:
		t.Headers = headers
	case o.HTTP:
		return unusablef("inputSchema", "%v", err)
	default:
		rep.addf(Ignored, "inputSchema", "%v", err)
	}
	t.NeedsApproval = o.needsApproval(t.Name, spec.Annotations.ReadOnly)
	t.Spec = spec
	t.Findings = scanTool(t, fields, budget)
	return nil
}

// dropDuplicates removes tools with the same name. Of equal definitions one stays. Of
// different ones none does, because it is not known which of them a call would run.
func (im *importer) dropDuplicates() {
	first := map[string]int{}
	ambiguous := map[string]bool{}
	for i, c := range im.candidates {
		f, seen := first[c.Name]
		if !seen {
			first[c.Name] = i
		} else if !bytes.Equal(im.candidates[f].Definition, c.Definition) {
			ambiguous[c.Name] = true
		}
	}
	kept := im.candidates[:0]
	for i, c := range im.candidates {
		switch {
		case ambiguous[c.Name]:
			c.report.addf(Dropped, "name", "the server has several different tools with this name")
		case first[c.Name] != i:
			c.report.addf(Dropped, "name", "the server lists this tool more than once")
		default:
			kept = append(kept, c)
		}
	}
	im.candidates = kept
}

// name sets the public names. A name that needs no hash is never changed; hashed names that
// are taken get a longer hash.
func (im *importer) name() {
	used := map[string]int{}
	for i := range im.candidates {
		c := &im.candidates[i]
		c.Public = PublicName(im.label, c.Name, im.o.Prefix)
		used[c.Public]++
	}
	kept := im.candidates[:0]
	final := map[string]bool{}
	for _, c := range im.candidates {
		if used[c.Public] > 1 && !im.natural(&c.Tool) {
			c.Public = hashedName(c.Public, im.label, c.Name, 2*hashDigits)
		}
		if final[c.Public] {
			c.report.addf(Dropped, "name", "no free name for models")
			continue
		}
		final[c.Public] = true
		if c.Public != c.Name && !im.natural(&c.Tool) {
			c.report.addf(Renamed, "name", "models get the name %s, because not every provider accepts the original", c.Public)
		}
		c.Spec.Name = c.Public
		kept = append(kept, c)
	}
	im.candidates = kept
}

// natural reports whether the public name has no hash.
func (im *importer) natural(t *Tool) bool {
	return t.Public == t.Name || im.o.Prefix && t.Public == "mcp_"+im.label+"__"+t.Name
}

func (im *importer) result(list *reporter) Result {
	res := Result{Label: im.label, Diagnostics: list.list}
	for _, rep := range im.reports {
		res.Diagnostics = append(res.Diagnostics, rep.list...)
	}
	if n := len(res.Diagnostics); n > maxDiagnostics {
		more := Diagnostic{Kind: Dropped, Server: im.label, Index: -1, Reason: fmt.Sprintf("%d more problems are not listed", n-maxDiagnostics)}
		res.Diagnostics = append(res.Diagnostics[:maxDiagnostics:maxDiagnostics], more)
	}
	for _, c := range im.candidates {
		c.Diagnostics = c.report.list
		res.Tools = append(res.Tools, c.Tool)
	}
	return res
}

// fieldsOf returns the fields of an object.
func fieldsOf(object json.RawMessage) (map[string]json.RawMessage, bool) {
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return nil, false
	}
	fields := map[string]json.RawMessage{}
	for key := range r.Object() {
		name := string(key)
		fields[name] = r.Raw()
	}
	return fields, r.Err() == nil
}

// kindOf returns the first character of a value, or 0 if there is none.
func kindOf(raw json.RawMessage) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

func notNull(raw json.RawMessage) json.RawMessage {
	if kindOf(raw) == 'n' {
		return nil
	}
	return raw
}

func textOf(raw json.RawMessage) (string, bool) {
	if kindOf(raw) != '"' {
		return "", false
	}
	return jsonwire.Unquote(raw), true
}

// optionalText reads a field that is a text or absent.
func optionalText(raw json.RawMessage) (string, error) {
	if notNull(raw) == nil {
		return "", nil
	}
	s, ok := textOf(raw)
	if !ok {
		return "", fmt.Errorf("want a text, have %s", nounOf(raw))
	}
	return s, nil
}

func nounOf(raw json.RawMessage) string {
	switch kindOf(raw) {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case 0:
		return "nothing"
	}
	return "a number"
}

// readAnnotations reads the hints. An absent hint stays unknown: it is not false (pitfall K32).
func readAnnotations(raw json.RawMessage, rep *reporter) (a dragoman.Annotations) {
	if notNull(raw) == nil {
		return a
	}
	fields, ok := fieldsOf(raw)
	if !ok {
		rep.addf(Dropped, "annotations", "want an object, have %s", nounOf(raw))
		return a
	}
	a.Title, _ = textOf(fields["title"])
	for _, hint := range hints {
		switch v := fields[hint.wire]; kindOf(v) {
		case 't', 'f':
			is := kindOf(v) == 't'
			*hint.field(&a) = &is
		case 0, 'n':
		default:
			rep.addf(Dropped, "annotations", "%s: want true or false, have %s", hint.wire, nounOf(v))
		}
	}
	return a
}

// hints are the annotations that are booleans.
var hints = []struct {
	wire, word string
	field      func(*dragoman.Annotations) **bool
}{
	{"readOnlyHint", "read-only", func(a *dragoman.Annotations) **bool { return &a.ReadOnly }},
	{"destructiveHint", "destructive", func(a *dragoman.Annotations) **bool { return &a.Destructive }},
	{"idempotentHint", "idempotent", func(a *dragoman.Annotations) **bool { return &a.Idempotent }},
	{"openWorldHint", "open-world", func(a *dragoman.Annotations) **bool { return &a.OpenWorld }},
}

// appOnly reports whether _meta.ui.visibility excludes models.
func appOnly(meta json.RawMessage) bool {
	visibility := field(field(meta, "ui"), "visibility")
	if kindOf(visibility) != '[' {
		return false
	}
	r := jsonwire.NewReader(visibility)
	for range r.Array() {
		if v := r.Raw(); jsonwire.Unquote(v) == "model" {
			return false
		}
	}
	return true
}

// plainText returns a text without hidden characters, of at most limit bytes.
func plainText(s string, limit int, field string, rep *reporter) string {
	if clean := removeHidden(s); clean != s {
		rep.addf(Lowered, field, "hidden characters are removed")
		s = clean
	}
	if len(s) <= limit {
		return s
	}
	rep.addf(Lowered, field, "shortened from %d to %d bytes", len(s), limit)
	const mark = "…"
	return strings.TrimRight(cutAt(s, limit-len(mark)), " \n") + mark
}

// cutAt returns at most n bytes of s without splitting a character.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// clip shortens a text for a message.
func clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return cutAt(s, limit) + "…"
}
