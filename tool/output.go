package tool

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Limits bound the output of one call, all its parts together. A zero field means the next
// wider limit: the tool's falls back to the toolbox's, that to the runner's, and that to the
// default. A negative field means no limit.
type Limits struct {
	// Chars limits the characters of text; the default is 50,000.
	Chars int `json:"chars,omitempty"`
	// Tokens limits the tokens of text, as counted by [Runner.Count]; the default is no limit.
	Tokens int `json:"tokens,omitempty"`
	// Binary limits the bytes of all media; the default is 10 MiB.
	Binary int `json:"binary,omitempty"`
	// Items limits the number of parts; the default is 100.
	Items int `json:"items,omitempty"`
}

const (
	defaultChars  = 50_000
	defaultBinary = 10 << 20
	defaultItems  = 100
)

// withWider replaces zero fields with those of the wider limits.
func (l Limits) withWider(wider Limits) Limits {
	pick := func(a, b int) int {
		if a != 0 {
			return a
		}
		return b
	}
	return Limits{pick(l.Chars, wider.Chars), pick(l.Tokens, wider.Tokens), pick(l.Binary, wider.Binary), pick(l.Items, wider.Items)}
}

// fits reports whether a native form is within the sum of the limits. It cannot be cut: if it
// is longer, the content is sent instead.
func (l Limits) fits(n *dragoman.Native) bool {
	const base64 = 4.0 / 3 // floats: the limits may be as large as integers are
	return l.Chars < 0 || l.Binary < 0 || float64(len(n.JSON)) <= utf8.UTFMax*float64(l.Chars)+base64*float64(l.Binary)
}

// maxMessage is the maximum length of an error text in bytes. The text may contain anything,
// such as a long tool name that a model made up.
const maxMessage = 16 << 10

// shortened returns the beginning and the end of an error text.
func shortened(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	head, tail := cutAt(s, maxMessage/2), cutFrom(s, len(s)-maxMessage/2)
	return fmt.Sprintf("%s\n[… %s cut here …]\n%s", head, textkit.Count(len(s)-len(head)-len(tail), "byte"), tail)
}

// SpillStore stores outputs that are too long for the model, so that the model can read them
// page by page. Contents are redacted before they are stored. Put must respect its context,
// which ends after 30 s: nothing else limits it.
type SpillStore interface {
	// Put stores a content and returns the name to read it by, which is the same for the same
	// call and part.
	Put(ctx context.Context, of CallRef, part int, content string) (name string, err error)
	// Read returns up to n bytes from offset, in whole characters, and the total length. Only
	// outputs of the same run, or of other runs of the same conversation, may be read. The
	// error for an unknown name wraps [ErrNoSpill].
	Read(ctx context.Context, run, name string, offset, n int) (text string, total int, err error)
}

// ErrNoSpill reports that no output is stored under a name.
var ErrNoSpill = errors.New("tool: no stored output has this name")

// outputOf converts the return value of a typed function to an output. Values other than text
// and parts are encoded as JSON: as data if the tool declares its output, otherwise as text,
// which is fenced.
func outputOf(v any, s *Settings) (Output, error) {
	switch v := v.(type) {
	case nil:
		return Output{}, nil
	case Output:
		return v, nil
	case *Output:
		if v == nil {
			return Output{}, nil
		}
		return *v, nil
	case string:
		return Output{Content: []dragoman.Part{&dragoman.Text{Text: v}}}, nil
	case Text:
		return Output{Content: []dragoman.Part{&dragoman.Text{Text: string(v)}}}, nil
	case dragoman.Part:
		if r, ok := v.(*dragoman.ToolResult); ok {
			return fromResult(r), nil
		}
		return Output{Content: []dragoman.Part{v}}, nil
	case []dragoman.Part:
		return Output{Content: v}, nil
	case dragoman.ToolResult:
		return fromResult(&v), nil
	case *Ticket:
		return Output{Ticket: v}, nil
	case json.RawMessage:
		return fromJSON(v, s)
	case struct{}:
		return Output{}, nil
	}
	raw, err := encodeJSON(v)
	if err != nil {
		return Output{}, err
	}
	return fromJSON(raw, s)
}

// encodeJSON encodes a value as compact JSON, without HTML escaping.
func encodeJSON(v any) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}

// errOutput is wrapped by errors about outputs that cannot be sent.
var errOutput = errors.New("its output cannot be sent")

func fromJSON(raw json.RawMessage, s *Settings) (Output, error) {
	if len(raw) == 0 {
		return Output{}, nil
	}
	if err := jsonwire.Check(raw); err != nil {
		return Output{}, fmt.Errorf("%w: %w", errOutput, err)
	}
	if s.nativeResults() {
		if e, ok, err := toolwire.ReadEnvelope(raw); err != nil {
			return Output{}, fmt.Errorf("%w: %w", errOutput, err)
		} else if ok {
			return fromEnvelope(e), nil
		}
	}
	if s.Structured {
		return Output{Content: []dragoman.Part{&dragoman.Data{JSON: raw}}}, nil
	}
	return Output{Content: []dragoman.Part{&dragoman.Text{Text: string(raw)}}}, nil
}

// fromEnvelope unpacks a provider-native result. The fields that are private to the tool are
// dropped here: no store and no wire gets them.
func fromEnvelope(e toolwire.Envelope) Output {
	return Output{Envelope: &e.Native, Content: []dragoman.Part{&dragoman.Text{Text: e.Text}}}
}

// unwrapData unpacks an envelope that a tool returned as a data part. If the tool may not
// return envelopes, the data becomes text; otherwise encoders would read it as an envelope.
func unwrapData(out Output, s *Settings) (Output, error) {
	if out.Envelope != nil || len(out.Content) != 1 {
		return out, nil
	}
	d, ok := out.Content[0].(*dragoman.Data)
	if !ok || d == nil {
		return out, nil
	}
	e, ok, err := toolwire.ReadEnvelope(d.JSON)
	switch {
	case !ok:
		return out, nil
	case !s.nativeResults():
		out.Content = []dragoman.Part{&dragoman.Text{Text: string(d.JSON)}}
		return out, nil
	case err != nil:
		return Output{}, fmt.Errorf("%w: %w", errOutput, err)
	}
	native := fromEnvelope(e)
	out.Envelope, out.Content = native.Envelope, native.Content
	return out, nil
}

// fromResult converts a full result to an output. The id of the call is set by this package.
func fromResult(r *dragoman.ToolResult) Output {
	if r == nil {
		return Output{}
	}
	return Output{Content: r.Content, Failed: r.Outcome == codes.OutcomeError, Display: r.Display, Envelope: r.Envelope}
}

// bounder cuts an output to its limits.
type bounder struct {
	limits Limits
	count  func(string) int
	store  SpillStore
	of     CallRef
	// reader is the tool that reads the store; empty means that the model does not have one.
	reader string
	// part is the number under which the whole output is stored.
	part int
	// failed is the reason why content could not be stored.
	failed error

	// whole is the text of the output before it is cut. where describes how to read it; it
	// is empty until the output is stored.
	whole string
	where string
	// cut counts the content that was left out, for the record.
	cut Cut
}

// Cut describes the content that was left out of an output because of [Limits].
type Cut struct {
	// Characters counts characters of texts and data that were left out, Parts counts parts,
	// and Bytes counts bytes of media. A file that is only named, such as one that the
	// provider stores, counts as one byte.
	Characters int `json:"characters,omitempty"`
	Parts      int `json:"parts,omitempty"`
	Bytes      int `json:"bytes,omitempty"`
	// Stored is the name of the whole output, all texts and data, in the [SpillStore] of the
	// run. It is empty if the output was not stored; Record.Cause then holds the error of the
	// store, if any.
	Stored string `json:"stored,omitempty"`
	// Whole is the SHA-256 of the whole output, including media. It distinguishes outputs
	// with the same beginning and end.
	Whole Hash `json:"whole"`
}

// Lost reports whether content was cut that is not stored. Media are never stored.
func (c *Cut) Lost() bool {
	return c != nil && (c.Bytes > 0 || c.Characters > 0 && c.Stored == "")
}

// bound cuts parts to the limits. It keeps the beginning and the end of long parts, with a
// line between them that says how much is missing and where it is. Text becomes valid
// UTF-8. The parts are changed in place.
func (b *bounder) bound(ctx context.Context, parts []dragoman.Part) []dragoman.Part {
	if !b.tooMany(parts) && !b.tooLarge(parts) && textsFit(parts, b.chars(parts)) {
		return validText(parts)
	}
	if b.store != nil {
		b.whole = wholeText(parts)
	}
	sum := hashParts(parts)
	defer func() {
		if b.cut != (Cut{}) {
			b.cut.Whole = sum
		}
	}()
	parts = b.media(b.items(ctx, parts))
	chars := b.chars(parts) // the notes about parts that were left out count too
	if textsFit(parts, chars) {
		return validText(parts)
	}
	parts = b.shorterData(ctx, parts, chars)
	total := 0
	for _, p := range parts {
		if s := textOf(p); s != nil {
			total += utf8.RuneCountInString(*s)
		}
	}
	if total <= chars {
		return validText(parts)
	}
	return validText(b.headAndTail(ctx, parts, chars, total))
}

// display cuts the text for humans to the limits for models, separately. Nothing reads it page
// by page, so the rest is not stored.
func (b *bounder) display(text string) string {
	if text == "" {
		return ""
	}
	t := &dragoman.Text{Text: text}
	alone := bounder{limits: b.limits, count: b.count}
	alone.bound(context.Background(), []dragoman.Part{t})
	return t.Text
}

// chars returns the limit on characters, with the limit on tokens applied.
func (b *bounder) chars(parts []dragoman.Part) int {
	chars := b.limits.Chars
	if b.limits.Tokens <= 0 {
		return chars
	}
	whole := wholeText(parts)
	size := utf8.RuneCountInString(whole)
	if chars < 0 || chars > size {
		chars = size
	}
	for n := 0; chars > 1; n++ {
		tokens := b.tokens(whole, size, chars)
		if tokens <= b.limits.Tokens {
			break
		}
		fewer := int(float64(chars) * float64(b.limits.Tokens) / float64(tokens))
		if n >= 8 { // the tokens are spread unevenly
			fewer = min(fewer, chars/2)
		}
		chars = max(1, fewer)
	}
	return chars
}

// tokens returns the tokens of what a limit of chars characters keeps of a text of size
// characters: its beginning and its end.
func (b *bounder) tokens(whole string, size, chars int) int {
	count := b.count
	if count == nil {
		count = func(s string) int { return (len(s) + 3) / 4 }
	}
	if chars >= size {
		return count(whole)
	}
	head, tail := chars-chars/2, chars/2
	tokens := count(whole[:runeOffset(whole, head)])
	if tail > 0 {
		tokens += count(whole[runeOffset(whole, size-tail):])
	}
	return tokens
}

// tooLarge reports whether media exceed their limit.
func (b *bounder) tooLarge(parts []dragoman.Part) bool {
	size := 0
	for _, p := range parts {
		if m, ok := p.(*dragoman.Media); ok {
			size += mediaSize(m)
		}
	}
	return b.limits.Binary >= 0 && size > b.limits.Binary
}

// hashParts returns the hash of the contents of parts.
func hashParts(parts []dragoman.Part) (out Hash) {
	h := sha256.New()
	write := func(s string) {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		_, _ = io.WriteString(h, s) // a hash does not fail
	}
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			write(p.Text)
		case *dragoman.Data:
			write(string(p.JSON))
		case *dragoman.Media:
			write(p.MIME)
			write(p.Base64)
			write(p.URL)
			write(p.Text)
		}
	}
	h.Sum(out[:0])
	return out
}

// tooMany reports whether there are more parts than the limit allows.
func (b *bounder) tooMany(parts []dragoman.Part) bool {
	return b.limits.Items >= 0 && len(parts) > b.limits.Items
}

// items removes parts from the middle if there are too many.
func (b *bounder) items(ctx context.Context, parts []dragoman.Part) []dragoman.Part {
	most := b.limits.Items
	if !b.tooMany(parts) {
		return parts
	}
	tail := most / 2
	head := most - tail
	cut := len(parts) - head - tail
	out := append(make([]dragoman.Part, 0, most+1), parts[:head]...)
	note := fmt.Sprintf("[%d of %d parts left out here: at most %d are kept", cut, len(parts), most)
	left := parts[head : len(parts)-tail]
	b.cut.Parts = cut
	for _, p := range left {
		if m, ok := p.(*dragoman.Media); ok && textOf(p) == nil {
			b.cut.Bytes += max(1, mediaSize(m))
		}
	}
	if text := wholeText(left); text != "" {
		b.cut.Characters += utf8.RuneCountInString(text)
		note += "; " + b.stored(ctx)
	}
	out = append(out, &dragoman.Text{Text: note + "]"})
	return append(out, parts[len(parts)-tail:]...)
}

// media replaces media that are too large together with a line of text.
func (b *bounder) media(parts []dragoman.Part) []dragoman.Part {
	left := b.limits.Binary
	if left < 0 {
		return parts
	}
	for i, p := range parts {
		m, ok := p.(*dragoman.Media)
		if !ok {
			continue
		}
		size := mediaSize(m)
		if size > left {
			b.cut.Bytes += size
			parts[i] = &dragoman.Text{Text: fmt.Sprintf("[%s %s of %s left out: at most %d are kept]", m.Media, m.MIME, textkit.Count(size, "byte"), b.limits.Binary)}
			continue
		}
		left -= size
	}
	return parts
}

// mediaSize returns about how many bytes a medium has. Most of a long URL is data.
func mediaSize(m *dragoman.Media) int { return len(m.Base64)/4*3 + len(m.URL)/4*3 }

// textOf returns the text of a part, or nil.
func textOf(p dragoman.Part) *string {
	switch p := p.(type) {
	case *dragoman.Text:
		return &p.Text
	case *dragoman.Media:
		if p.Text != "" {
			return &p.Text
		}
	}
	return nil
}

func textSize(parts []dragoman.Part) int {
	n := 0
	for _, p := range parts {
		if s := textOf(p); s != nil {
			n += len(*s)
		} else if d, ok := p.(*dragoman.Data); ok {
			n += len(d.JSON)
		}
	}
	return n
}

// textsFit reports whether texts and data have at most chars characters. A negative chars
// means no limit.
func textsFit(parts []dragoman.Part, chars int) bool {
	if chars < 0 || textSize(parts) <= chars { // bytes are never fewer than characters
		return true
	}
	n := 0
	for _, p := range parts {
		if s := textOf(p); s != nil {
			n += utf8.RuneCountInString(*s)
		} else if d, ok := p.(*dragoman.Data); ok {
			n += utf8.RuneCount(d.JSON)
		}
	}
	return n <= chars
}

// longString is the maximum length of a string inside shortened data, in bytes.
const longString = 2000

// shorterData shortens the strings of data that is too long. Data that is still too long
// becomes text, which is cut later.
func (b *bounder) shorterData(ctx context.Context, parts []dragoman.Part, chars int) []dragoman.Part {
	for i, p := range parts {
		d, ok := p.(*dragoman.Data)
		if !ok {
			continue
		}
		removed := 0
		where := func(text string) string {
			removed += utf8.RuneCountInString(text)
			return b.stored(ctx)
		}
		short := shortenStrings(d.JSON, where)
		if n := utf8.RuneCount(short); n <= chars {
			d.JSON = short
			chars -= n
			b.cut.Characters += removed
			continue
		}
		parts[i] = &dragoman.Text{Text: string(d.JSON)}
	}
	return parts
}

// shortenStrings cuts the middle out of long strings of a JSON text and puts a note there.
// where gets the removed text and returns the end of the note: how to read that text.
func shortenStrings(raw json.RawMessage, where func(removed string) string) json.RawMessage {
	r := jsonwire.NewReader(raw)
	var w jsonwire.Writer
	shorten(r, &w, where)
	if r.End() != nil || w.Err() != nil {
		return raw
	}
	return w.Buf
}

func shorten(r *jsonwire.Reader, w *jsonwire.Writer, where func(removed string) string) {
	switch r.Kind() {
	case '{':
		w.BeginObject()
		for key := range r.Object() {
			w.QuotedKey(string(key))
			shorten(r, w, where)
		}
		w.EndObject()
	case '[':
		w.BeginArray()
		for range r.Array() {
			shorten(r, w, where)
		}
		w.EndArray()
	case '"':
		s := r.String()
		if len(s) > longString {
			head, tail := cutAt(s, longString/2), cutFrom(s, len(s)-longString/2)
			removed := s[len(head) : len(s)-len(tail)]
			s = fmt.Sprintf("%s[… %s cut; %s …]%s", head, textkit.Count(len(removed), "byte"), where(removed), tail)
		}
		w.String(s)
	default:
		w.Raw(r.Raw())
	}
}

// headAndTail keeps the first and the last characters of all the texts together, stores the
// whole if there is a store, and notes it at the cut.
func (b *bounder) headAndTail(ctx context.Context, parts []dragoman.Part, chars, total int) []dragoman.Part {
	note := fmt.Sprintf("\n[… %s cut here; %s …]\n", textkit.Count(total-chars, "character"), b.stored(ctx))
	b.cut.Characters += total - chars
	head, tail := chars-chars/2, chars/2
	out := parts[:0:0]
	seen, told := 0, false
	for _, p := range parts {
		s := textOf(p)
		if s == nil {
			out = append(out, p)
			continue
		}
		n := utf8.RuneCountInString(*s)
		from, to := seen, seen+n
		seen = to
		// The parts of this text that are in the head and in the tail.
		first := min(max(head-from, 0), n)
		last := min(max(to-(total-tail), 0), n)
		if first+last >= n {
			out = append(out, p)
			continue
		}
		begin, end := runeOffset(*s, first), runeOffset(*s, n-last)
		text := (*s)[:begin]
		if !told {
			text += note
			told = true
		}
		text += (*s)[end:]
		if text != "" {
			*s = text
			out = append(out, p)
		}
	}
	return out
}

// stored stores the whole output, once, and returns a text that says how to read it.
func (b *bounder) stored(ctx context.Context) string {
	if b.where != "" {
		return b.where
	}
	b.where = "the rest was not stored"
	if b.store != nil && b.store != NoSpill {
		name, err := b.store.Put(ctx, b.of, b.part, b.whole)
		switch {
		case errors.Is(err, dragoman.ErrTooLarge):
			b.failed, b.where = err, "the output is too long to be stored, and the rest is lost"
		case err != nil:
			b.failed, b.where = err, "the output could not be stored, and the rest is lost"
		case b.reader != "":
			b.cut.Stored, b.where = name, fmt.Sprintf("read all of it with %s, name %q", b.reader, name)
		default:
			b.cut.Stored, b.where = name, fmt.Sprintf("all of it is stored as %q", name)
		}
	}
	return b.where
}

// wholeText returns the texts and data of parts, one after the other.
func wholeText(parts []dragoman.Part) string {
	var whole strings.Builder
	for _, p := range parts {
		if s := textOf(p); s != nil {
			whole.WriteString(strings.ToValidUTF8(*s, "\uFFFD"))
		} else if d, ok := p.(*dragoman.Data); ok {
			whole.Write(d.JSON)
		}
	}
	return whole.String()
}

// runeOffset returns the byte offset of the n-th character.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// cutAt returns the beginning of s, at most n bytes of whole characters; cutFrom returns its
// end from about byte n.
func cutAt(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func cutFrom(s string, n int) string {
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[min(n, len(s)):]
}

// validText replaces invalid UTF-8, which no wire accepts.
func validText(parts []dragoman.Part) []dragoman.Part {
	for _, p := range parts {
		if s := textOf(p); s != nil && !utf8.ValidString(*s) {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
	}
	return parts
}
