// Package extra collects native members that the canonical model has no place
// for, writes them back to their own dialect, and reports them as lost toward
// every other one.
package extra

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Path is a place in a document: a JSON pointer built only when it is asked
// for, because most places have nothing to report.
type Path struct {
	prefix string
	steps  [3]step
	n      int
	// list: the elements stand in the place itself, not in a member of it.
	list bool
}

// step leads to an element of a member, or of the place itself.
type step struct {
	member string
	index  int
}

// At is the path of prefix itself.
func At(prefix string) Path { return Path{prefix: prefix} }

// List is the path of a list that is told like the object which holds one
// elsewhere: its Elem has no member before the index.
func List(prefix string) Path { return Path{prefix: prefix, list: true} }

// Elem is the path of element i of prefix.
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
		if s.member != "" {
			b = append(append(b, '/'), s.member...)
		}
		b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
	}
	return string(b)
}

// Elem is the path of element i of member name of p.
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

// Places says where the parts of a stream stand in the response that it collects
// to. An event numbers a part over all messages of its choice; a pointer counts
// within the message. The zero value is ready.
type Places struct {
	begun map[[2]int]int // parts by choice and message
}

// Next is the place of a part that starts, and that of its message.
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

// Choice is the pointer of an answer: the response itself, or an alternative.
func Choice(i int) string {
	if i <= 0 {
		return ""
	}
	return "/alternatives/" + strconv.Itoa(i-1)
}

// Escape writes a member's name as a segment of a JSON pointer.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// hasEscapes reports whether a name is another one as a segment of a JSON pointer.
func hasEscapes(name []byte) bool {
	return bytes.IndexByte(name, '~') >= 0 || bytes.IndexByte(name, '/') >= 0
}

// Name is the name of the member that a pointer ends with, as its object spells it.
func Name(path string) []byte {
	return []byte(unescape(path[strings.LastIndexByte(path, '/')+1:]))
}

func unescape(segment string) string {
	if strings.IndexByte(segment, '~') < 0 {
		return segment
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
}

// Add keeps the member name below prefix (a pointer, or empty) in *e.
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
		path = prefix + "/" + string(name) // one text, not two
	}
	(*e).Fields = append((*e).Fields, dragoman.Field{Path: path, Value: raw})
}

// AddCopy is Add with a copy of raw, made only when it says something new: the
// chunks of a stream repeat their members, in memory that is used again. It
// returns how many bytes more are kept now, for who bounds them: a value that
// another takes the place of is kept no longer.
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

// fieldBytes is about what a field takes beside its name and its value.
const fieldBytes = 40

// Replaces is the value that Add would replace; ok is false where it would keep
// one more.
func Replaces(e *dragoman.Extra, prefix string, name []byte) (old []byte, ok bool) {
	if f := find(e, prefix, name); f != nil {
		return f.Value, true
	}
	return nil, false
}

// find returns the field of a member, in a list that is short. Of a repeated
// name the last value counts, in the place of the first; in a long list that
// is settled by settled, or a hostile object with a million members would cost
// the square of it.
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

// short is how many fields are searched for a repeated name.
const short = 64

// settled returns the fields with each path once.
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

// Write writes the members kept directly below prefix into the object that w
// is writing, if they are of dialect d.
func Write(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string) {
	WriteBut(w, e, d, prefix, nil)
}

// WriteBut is Write without the members that skip is true of: those that are
// written elsewhere, or must not be. A nil skip is true of none.
func WriteBut(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string, skip func(dragoman.Field) bool) {
	for _, f := range settled(e.For(d)) {
		rest, ok := strings.CutPrefix(f.Path, prefix+"/")
		if ok && !strings.Contains(rest, "/") && (skip == nil || !skip(f)) {
			w.QuotedKey(unescape(rest))
			w.Raw(f.Value)
		}
	}
}

// WriteUnless writes the fields of the object itself, without the paths that skip
// is true of. Fields of nested objects are left to the writer of those objects.
func WriteUnless(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, skip func(path string) bool) {
	WriteBut(w, e, d, "", func(f dragoman.Field) bool { return skip(f.Path) })
}

// Clone returns a copy that does not change when e gets more fields.
func Clone(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	return &dragoman.Extra{Dialect: e.Dialect, Fields: slices.Clone(e.Fields)}
}

// End ends the object that w is writing: the members kept for dialect d come
// last, those kept for another are reported as lost at the object's place.
func End(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, at Path, rep *dragoman.Report) {
	Write(w, e, d, "")
	w.EndObject()
	Report(rep, e, d, at)
}

// Has reports whether a member is kept directly below prefix for dialect d.
func Has(e *dragoman.Extra, d dragoman.Dialect, prefix string) bool {
	for _, f := range e.For(d) {
		if rest, ok := strings.CutPrefix(f.Path, prefix+"/"); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Get returns the value kept at path for dialect d.
func Get(e *dragoman.Extra, d dragoman.Dialect, path string) ([]byte, bool) {
	for _, f := range slices.Backward(e.For(d)) {
		if f.Path == path {
			return f.Value, true
		}
	}
	return nil, false
}

// empty reports whether a member says nothing: null, or an empty list or string.
func empty(v []byte) bool {
	switch string(v) {
	case "null", "[]", `""`:
		return true
	default:
		return false
	}
}

// likelyDefault reports whether a member most likely says what holds without it.
// Some say more: false where true is the rule, and the mere presence of an
// object.
func likelyDefault(v []byte) bool {
	return string(v) == "false" || string(v) == "{}"
}

// told reports whether a member is kept only for its spelling, because the
// canonical form tells it as well: "success" of a result is an outcome, and the display
// name of media its name.
func told(f dragoman.Field) bool {
	switch f.Path {
	case "/toolResult/status":
		return string(f.Value) == `"success"`
	case "/stream": // a request that says it wants none
		return string(f.Value) == "false"
	case "/inlineData/displayName", "/fileData/displayName":
		return true
	default:
		return false
	}
}

// ReportState reports the opaque state that a provider signed a text with: no
// other can read it.
func ReportState(rep *dragoman.Report, signature string, at Path) {
	if signature != "" {
		ReportOpaque(rep, at.String()+"/signature")
	}
}

// opaque is what the losses of opaque state say.
const opaque = "opaque reasoning state belongs to its own provider"

// ReportOpaque reports opaque state, such as signatures and encrypted reasoning, that is
// left out because another provider could not read it.
func ReportOpaque(rep *dragoman.Report, path string) {
	rep.Add(dragoman.Dropped, dragoman.Warn, path, opaque)
}

// IsOpaque reports whether a loss is one of [ReportOpaque]'s: it is none where somebody on
// the way keeps the state.
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

// ReportItem reports the identity that another wire gave an item, a call or
// reasoning, apart from what it is called by; name is that of the member.
func ReportItem(rep *dragoman.Report, id string, at Path, name string) {
	if id != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+name, "the identity of an item on its own wire")
	}
}

// finishMessage is where Gemini says in words why it ended the answer.
const finishMessage = "/candidates/0/finishMessage"

// FinishMessage returns the words in which Gemini says why it ended an answer;
// rest are the members without them. Other APIs have none.
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

// Report reports the members as lost, unless they are of dialect d.
func Report(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path) {
	report(rep, e, d, at, dragoman.Warn)
}

// ReportEcho reports members of a response that are lost. They are what a
// provider says about itself and the request it got, and no part of the answer.
func ReportEcho(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path) {
	report(rep, e, d, at, dragoman.Info)
}

func report(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path, severity dragoman.Severity) {
	if e == nil || e.Dialect == d {
		return
	}
	for _, f := range settled(e.Fields) {
		if empty(f.Value) || told(f) {
			continue
		}
		s := severity
		if likelyDefault(f.Value) {
			if s == dragoman.Info { // an echo of what nobody asked for
				continue
			}
			s = dragoman.Info
		}
		switch f.Path {
		case "/id", "/status", // the wire's own bookkeeping of an item
			"/function/index",         // the position of a call in its list; every Ollama server sends it
			"/systemInstruction/role": // which Gemini does not heed, and Gemini CLI always sends
			s = dragoman.Info
		case "/conversation", "/prompt", "/cachedContent", "/cached_content", "/continuationToken", "/continuation_token":
			if severity == dragoman.Warn && at.n == 0 && at.prefix == "" {
				rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "%s has no such member; what it stands for is with its own provider, and is not sent", d)
				continue
			}
		case "/documents": // what the model is to answer from
			if severity == dragoman.Warn && at.n == 0 && at.prefix == "" {
				rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "%s has no such member; the model does not get the documents", d)
				continue
			}
		case finishMessage: // the only words that say why an answer failed
			s = dragoman.Warn
		case "/total_duration", "/load_duration", "/prompt_eval_duration", "/eval_duration": // how long a server took
			s = dragoman.Info
		}
		rep.Addf(dragoman.Dropped, s, at.String()+f.Path, "%s has no such member", d)
	}
}

// AType is a thing that the wire calls by its type, such as "a compaction item",
// also where it came without one.
func AType(typ, noun string) string {
	if typ == "" {
		return A(noun) + " without a type"
	}
	return A(typ) + " " + noun
}

// A is a word of the wire with its article, cut where it is long.
func A(word string) string {
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

// WriteBelow writes the fields at any depth below prefix, which is a JSON pointer
// or empty, into the object that w is writing, if they are of dialect d. It
// creates objects on the way. The places in done are written already.
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
