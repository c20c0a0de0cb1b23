// Package extra stores native fields that the canonical model lacks, writes them back
// to their own dialect, and reports them as lost toward every other one.
package extra

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Path is a position in a document. It builds its JSON pointer only when String is
// called, because most positions have nothing to report.
type Path struct {
	prefix string
	steps  [3]step
	n      int
	// list means that the elements are at the position itself, not in a field of it.
	list bool
}

// step leads to an element of a field, or of the position itself.
type step struct {
	name  string
	index int
}

// At returns the path of prefix itself.
func At(prefix string) Path { return Path{prefix: prefix} }

// List returns the path of a list that other dialects have as a field of an object. Its
// Elem has no field name before the index.
func List(prefix string) Path { return Path{prefix: prefix, list: true} }

// Elem returns the path of element i of prefix.
func Elem(prefix string, i int) Path {
	p := Path{prefix: prefix, n: 1}
	p.steps[0].index = i
	return p
}

func (p Path) String() string {
	if p.n == 0 {
		return p.prefix
	}
	b := make([]byte, 0, len(p.prefix)+32)
	b = append(b, p.prefix...)
	for _, s := range p.steps[:p.n] {
		if s.name != "" {
			b = append(append(b, '/'), s.name...)
		}
		b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
	}
	return string(b)
}

// Elem returns the path of element i of the field name of p.
func (p Path) Elem(name string, i int) Path {
	if p.n == len(p.steps) {
		p = At(p.String())
	}
	if p.list {
		name, p.list = "", false
	}
	p.steps[p.n] = step{name, i}
	p.n++
	return p
}

// Places determines the paths of a stream's parts in the response that the stream
// collects to. Events number the parts across all messages of a choice; paths count
// within a message. The zero value is ready to use.
type Places struct {
	begun map[[2]int]int // parts by choice and message
}

// Next returns the path of a part that starts, and the path of its message.
func (p *Places) Next(ev *dragoman.PartStart) (part, message Path) {
	key := [2]int{ev.Choice, ev.Message}
	n := p.begun[key]
	if p.begun == nil {
		p.begun = map[[2]int]int{}
	}
	p.begun[key] = n + 1
	message = Elem(Choice(ev.Choice)+"/output", ev.Message)
	return message.Elem("parts", n), message
}

// Choice returns the pointer of a choice: the response itself, or an alternative.
func Choice(i int) string {
	if i <= 0 {
		return ""
	}
	return "/alternatives/" + strconv.Itoa(i-1)
}

// Escape escapes a field name as a segment of a JSON pointer.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// hasEscapes reports whether a name must be escaped in a JSON pointer.
func hasEscapes(name []byte) bool {
	return bytes.IndexByte(name, '~') >= 0 || bytes.IndexByte(name, '/') >= 0
}

// Name returns the unescaped name of the field that a pointer ends with.
func Name(path string) []byte {
	return []byte(unescape(path[strings.LastIndexByte(path, '/')+1:]))
}

func unescape(segment string) string {
	if strings.IndexByte(segment, '~') < 0 {
		return segment
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
}

// MCP is the dialect of tool servers. Their metadata is for programs: no model API writes it,
// and it is not a loss that a model does not get it.
const MCP dragoman.Dialect = "mcp"

// Add stores the field name below prefix (a pointer, or empty) in *e.
func Add(e **dragoman.Extra, d dragoman.Dialect, prefix string, name []byte, raw []byte) {
	if f := find(*e, prefix, name); f != nil {
		f.Value = raw
		return
	}
	if *e == nil {
		*e = &dragoman.Extra{Dialect: d}
	}
	path := ""
	if hasEscapes(name) {
		path = prefix + "/" + Escape(string(name))
	} else {
		path = prefix + "/" + string(name) // one allocation, not two
	}
	(*e).Fields = append((*e).Fields, dragoman.Field{Path: path, Value: raw})
}

// AddCopy is like Add with a copy of raw. It copies only new values, because the chunks
// of a stream repeat their fields in memory that is reused. It returns by how many
// bytes the stored data grew, for callers that limit it; replacing a value can make the
// result negative.
func AddCopy(e **dragoman.Extra, d dragoman.Dialect, prefix string, name []byte, raw []byte) int {
	if f := find(*e, prefix, name); f != nil {
		grown := len(raw) - len(f.Value)
		if !bytes.Equal(f.Value, raw) {
			f.Value = bytes.Clone(raw)
		}
		return grown
	}
	Add(e, d, prefix, name, bytes.Clone(raw))
	return fieldBytes + len(prefix) + len(name) + len(raw)
}

// fieldBytes is the approximate size of a field in addition to its name and value.
const fieldBytes = 40

// Replaces returns the value that Add would replace. ok is false if Add would add a
// field.
func Replaces(e *dragoman.Extra, prefix string, name []byte) (old []byte, ok bool) {
	if f := find(e, prefix, name); f != nil {
		return f.Value, true
	}
	return nil, false
}

// find returns the field with a name, if the list is short. Of duplicate fields the
// last value counts, at the position of the first. In a long list, settled resolves
// duplicates instead: otherwise a hostile object with a million fields would take
// quadratic time.
func find(e *dragoman.Extra, prefix string, name []byte) *dragoman.Field {
	if e == nil || len(e.Fields) >= short {
		return nil
	}
	escaped := hasEscapes(name)
	for i := range e.Fields {
		path := e.Fields[i].Path
		if !strings.HasPrefix(path, prefix) || len(path) <= len(prefix) || path[len(prefix)] != '/' {
			continue
		}
		if rest := path[len(prefix)+1:]; rest == string(name) && !escaped || escaped && rest == Escape(string(name)) {
			return &e.Fields[i]
		}
	}
	return nil
}

// short is the maximum number of fields that find searches.
const short = 64

// settled returns the fields without duplicate paths.
func settled(fields []dragoman.Field) []dragoman.Field {
	if len(fields) <= short {
		return fields
	}
	at := make(map[string]int, len(fields))
	out := make([]dragoman.Field, 0, len(fields))
	for _, f := range fields {
		if i, ok := at[f.Path]; ok {
			out[i].Value = f.Value
			continue
		}
		at[f.Path] = len(out)
		out = append(out, f)
	}
	return out
}

// Write writes the fields of dialect d that are stored directly below prefix into the
// object that w is writing.
func Write(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string) {
	WriteBut(w, e, d, prefix, nil)
}

// WriteBut is like Write without the fields for which skip is true: those that are
// written in another place, or must not be written. A nil skip skips nothing.
func WriteBut(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string, skip func(dragoman.Field) bool) {
	for _, f := range settled(e.For(d)) {
		rest, ok := strings.CutPrefix(f.Path, prefix+"/")
		if ok && !strings.Contains(rest, "/") && (skip == nil || !skip(f)) {
			w.QuotedKey(unescape(rest))
			w.Raw(f.Value)
		}
	}
}

// WriteUnless writes the fields of the object itself, except for the paths for which
// skip is true. The writers of nested objects write the fields of those objects.
func WriteUnless(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, skip func(path string) bool) {
	WriteBut(w, e, d, "", func(f dragoman.Field) bool { return skip(f.Path) })
}

// Clone returns a copy of e that does not change when fields are added to e.
func Clone(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	return &dragoman.Extra{Dialect: e.Dialect, Fields: slices.Clone(e.Fields)}
}

// End ends the object that w is writing. It writes the fields stored for dialect d
// last, and reports the fields of another dialect as lost at the object's path.
func End(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, at Path, rep *dragoman.Report) {
	Write(w, e, d, "")
	w.EndObject()
	Report(rep, e, d, at)
}

// Has reports whether a field is stored directly below prefix for dialect d.
func Has(e *dragoman.Extra, d dragoman.Dialect, prefix string) bool {
	for _, f := range e.For(d) {
		if rest, ok := strings.CutPrefix(f.Path, prefix+"/"); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Get returns the value stored at path for dialect d.
func Get(e *dragoman.Extra, d dragoman.Dialect, path string) ([]byte, bool) {
	for _, f := range slices.Backward(e.For(d)) {
		if f.Path == path {
			return f.Value, true
		}
	}
	return nil, false
}

// empty reports whether a value carries no information: null, or an empty list or
// string.
func empty(v []byte) bool {
	switch string(v) {
	case "null", "[]", `""`:
		return true
	default:
		return false
	}
}

// likelyDefault reports whether a value is probably the default. It may not be: false
// can override a default of true, and the mere presence of an object can matter.
func likelyDefault(v []byte) bool {
	return string(v) == "false" || string(v) == "{}"
}

// redundant reports whether a field is stored only for its spelling, because the
// canonical form has the same information. For example, "success" of a result is an
// outcome, and the display name of media is its name.
func redundant(f dragoman.Field) bool {
	switch f.Path {
	case "/toolResult/status":
		return string(f.Value) == `"success"`
	case "/stream": // a request that explicitly asks for no stream
		return string(f.Value) == "false"
	case "/inlineData/displayName", "/fileData/displayName":
		return true
	default:
		return false
	}
}

// ReportState reports the loss of the opaque state with which a provider signed a text:
// no other provider can read it.
func ReportState(rep *dragoman.Report, signature string, at Path) {
	if signature != "" {
		ReportOpaque(rep, at.String()+"/signature")
	}
}

// opaque is the detail of losses of opaque state.
const opaque = "opaque reasoning state belongs to its own provider"

// ReportOpaque reports opaque state, such as signatures and encrypted reasoning, that is
// left out because another provider could not read it.
func ReportOpaque(rep *dragoman.Report, path string) {
	rep.Add(dragoman.Dropped, dragoman.Warn, path, opaque)
}

// IsOpaque reports whether [ReportOpaque] made a loss. It is not a real loss if the
// gateway stores the state.
func IsOpaque(l *dragoman.Loss) bool { return l.Kind == dragoman.Dropped && l.Detail == opaque }

// unsigned is the detail of losses of [ReportUnsigned].
const unsigned = "the API requires a signature on the first call of a turn; a placeholder is written"

// ReportUnsigned reports a call without a signature that gets a placeholder (quirk B16). The
// conversation itself loses nothing.
func ReportUnsigned(rep *dragoman.Report, path string) {
	rep.Add(dragoman.Synthesized, dragoman.Info, path, unsigned)
}

// IsUnsigned reports whether [ReportUnsigned] made a loss. For a caller that should have
// stored the signature, it is a real loss.
func IsUnsigned(l *dragoman.Loss) bool {
	return l.Kind == dragoman.Synthesized && l.Detail == unsigned
}

// ReportItem reports the loss of the item id that another wire gave to a call or to
// reasoning, in addition to the call id. name is the name of the field.
func ReportItem(rep *dragoman.Report, id string, at Path, name string) {
	if id != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+name, "the item id belongs to its own API")
	}
}

// finishMessage is the path of Gemini's message about why it ended the response.
const finishMessage = "/candidates/0/finishMessage"

// FinishMessage returns Gemini's message about why it ended the response; rest holds
// the fields without it. Other APIs have no such message.
func FinishMessage(e *dragoman.Extra) (message string, rest *dragoman.Extra) {
	if e == nil {
		return "", e
	}
	raw, ok := Get(e, e.Dialect, finishMessage)
	if !ok {
		return "", e
	}
	r := jsonwire.NewReader(raw)
	if r.Kind() != '"' {
		return "", e
	}
	message = r.String()
	fields := slices.DeleteFunc(slices.Clone(e.Fields), func(f dragoman.Field) bool { return f.Path == finishMessage })
	return message, &dragoman.Extra{Dialect: e.Dialect, Fields: fields}
}

// Report reports the fields as lost, unless they belong to dialect d.
func Report(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path) {
	report(rep, e, d, at, dragoman.Warn)
}

// ReportEcho reports the lost fields of a response. They describe the provider and the
// request, and are not content.
func ReportEcho(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path) {
	report(rep, e, d, at, dragoman.Info)
}

func report(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path, severity dragoman.Severity) {
	if e == nil || e.Dialect == d || e.Dialect == MCP {
		return
	}
	for _, f := range settled(e.Fields) {
		if empty(f.Value) || redundant(f) {
			continue
		}
		s := severity
		if likelyDefault(f.Value) {
			if s == dragoman.Info { // an echo of a default
				continue
			}
			s = dragoman.Info
		}
		switch f.Path {
		case "/id", "/status", // item metadata of its own API
			"/function/index",         // the position of a call in its list; every Ollama server sends it
			"/systemInstruction/role": // Gemini ignores it, and Gemini CLI always sends it
			s = dragoman.Info
		case "/conversation", "/prompt", "/cachedContent", "/cached_content", "/continuationToken", "/continuation_token":
			if severity == dragoman.Warn && at.n == 0 && at.prefix == "" {
				rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "%s has no such field; the content that it refers to is stored by its own provider and is not sent", d)
				continue
			}
		case "/documents": // the model is to respond from these
			if severity == dragoman.Warn && at.n == 0 && at.prefix == "" {
				rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "%s has no such field; the model does not get the documents", d)
				continue
			}
		case finishMessage: // the only explanation of why a response failed
			s = dragoman.Warn
		case "/total_duration", "/load_duration", "/prompt_eval_duration", "/eval_duration": // durations on the server
			s = dragoman.Info
		}
		rep.Addf(dragoman.Dropped, s, at.String()+f.Path, "%s has no such field", d)
	}
}

// TypedNoun returns a noun with the type that the wire gives it, such as "a compaction
// item".
func TypedNoun(typ, noun string) string {
	if typ == "" {
		return WithArticle(noun) + " without a type"
	}
	return WithArticle(typ) + " " + noun
}

// WithArticle returns a type name with "a" or "an", shortened if it is long.
func WithArticle(word string) string {
	if word == "" {
		return "something without a type"
	}
	if len(word) > 60 {
		word = strings.ToValidUTF8(word[:60], "")
	}
	article := "a "
	if strings.IndexByte("aeioAEIO", word[0]) >= 0 || strings.HasPrefix(word, "mcp_") {
		article = "an "
	}
	return article + word
}

// WriteBelow writes the fields of dialect d at any depth below prefix, a JSON pointer
// or empty, into the object that w is writing. It creates nested objects as needed.
// Objects at the paths in done were already written.
func WriteBelow(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string, done ...string) {
	if e != nil && e.Dialect == d {
		writeBelow(w, e.Fields, prefix, done)
	}
}

func writeBelow(w *jsonwire.Writer, fields []dragoman.Field, prefix string, done []string) {
	var inside []string
	for _, f := range fields {
		rest, ok := strings.CutPrefix(f.Path, prefix+"/")
		if !ok {
			continue
		}
		name, _, nested := strings.Cut(rest, "/")
		if !nested {
			w.QuotedKey(unescape(name))
			w.Raw(f.Value)
		} else if path := prefix + "/" + name; !slices.Contains(inside, path) && !slices.Contains(done, path) {
			inside = append(inside, path)
		}
	}
	for _, path := range inside {
		w.QuotedKey(string(Name(path)))
		w.BeginObject()
		writeBelow(w, fields, path, done)
		w.EndObject()
	}
}
