package tool

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Redactor removes secrets from texts. The zero value and nil remove the shapes of common keys
// and tokens. It is safe for concurrent use.
type Redactor struct {
	// Secrets lists values to remove wherever they appear, also as encoded in JSON, URLs and
	// base64, alone or within other text. Values shorter than 6 bytes are ignored, because they
	// would match ordinary text.
	Secrets []string
	// NoShapes turns off the removal of common shapes.
	NoShapes bool
}

// minSecret is the minimum length in bytes of a secret.
const minSecret = 6

// mask replaces a secret.
const mask = "[redacted]"

// shape is the shape of a service's keys: a prefix, and at least min key characters.
type shape struct {
	begins string
	min    int
	// digit requires a digit among the characters, because ordinary words have no digits.
	digit bool
	// plain requires min letters and digits in a row: identifiers such as
	// npm_package_config_name have other characters between words.
	plain bool
}

// shapes lists the prefixes that services give their keys so that they can be recognized.
var shapes = [...]shape{
	{begins: "sk-", min: 20, digit: true},
	{begins: "sk_live_", min: 16},
	{begins: "rk_live_", min: 16},
	{begins: "whsec_", min: 20, digit: true},
	{begins: "ghp_", min: 30},
	{begins: "gho_", min: 30},
	{begins: "ghu_", min: 30},
	{begins: "ghs_", min: 30},
	{begins: "ghr_", min: 30},
	{begins: "github_pat_", min: 40},
	{begins: "glpat-", min: 20},
	{begins: "xoxb-", min: 20, digit: true},
	{begins: "xoxp-", min: 20, digit: true},
	{begins: "xoxa-", min: 20, digit: true},
	{begins: "xapp-", min: 20, digit: true},
	{begins: "AKIA", min: 16, digit: true},
	{begins: "ASIA", min: 16, digit: true},
	{begins: "AIza", min: 35},
	{begins: "ya29.", min: 30, digit: true},
	{begins: "hf_", min: 30, plain: true},
	{begins: "gsk_", min: 30, digit: true},
	{begins: "xai-", min: 40, digit: true},
	{begins: "npm_", min: 36, plain: true},
	{begins: "pypi-", min: 50, digit: true},
	{begins: "dop_v1_", min: 60},
	{begins: "SG.", min: 40, digit: true},
	{begins: "Bearer ", min: 20, digit: true},
	{begins: "eyJ", min: 60, digit: true}, // a JSON Web Token
}

// withSecrets returns a Redactor with additional secrets.
func (r *Redactor) withSecrets(secrets []string) *Redactor {
	if len(secrets) == 0 {
		return r
	}
	out := Redactor{}
	if r != nil {
		out = *r
	}
	out.Secrets = append(slices.Clone(out.Secrets), secrets...)
	return &out
}

// Redact returns s with each secret replaced by "[redacted]".
func (r *Redactor) Redact(s string) string {
	if r != nil {
		s = redactSecrets(s, r.Secrets)
		if r.NoShapes {
			return s
		}
	}
	s, _ = redactPrivateKeys(s)
	return redactShapes(s)
}

// redactSecrets removes known values, the longest first, because one may be a prefix of
// another.
func redactSecrets(s string, secrets []string) string {
	var written []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			written = append(written, textkit.SecretSpellings(secret)...)
		}
	}
	slices.SortStableFunc(written, func(a, b string) int { return len(b) - len(a) })
	for _, w := range written {
		s = strings.ReplaceAll(s, w, mask)
	}
	return s
}

// redactShapes removes text that looks like a key. It reads every byte once, and few of them
// twice.
func redactShapes(s string) string {
	var b strings.Builder
	var run keyRun
	done := 0
	for i := 0; i+1 < len(s); i++ {
		if i > 1 && isWordByte(s[i-1]) && s[i-2] != '\\' || !mayBegin(s[i], s[i+1]) {
			continue // within a word, as most bytes are, or not the start of a key
		}
		k, end := run.keyAt(s, i)
		if end == 0 {
			continue
		}
		keep := i
		if strings.HasSuffix(k.begins, " ") { // a word before the key, not part of it
			keep += len(k.begins)
		}
		b.WriteString(s[done:keep])
		b.WriteString(mask)
		done = end
		i = end - 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// mayBegin reports whether a key may begin with these two bytes. Most texts have few such
// pairs.
func mayBegin(a, b byte) bool {
	switch a {
	case 's', 'r':
		return b == 'k'
	case 'w':
		return b == 'h'
	case 'g':
		return b == 'h' || b == 'i' || b == 'l' || b == 's'
	case 'x':
		return b == 'o' || b == 'a'
	case 'A':
		return b == 'K' || b == 'S' || b == 'I'
	case 'y':
		return b == 'a'
	case 'h':
		return b == 'f'
	case 'n':
		return b == 'p'
	case 'p':
		return b == 'y'
	case 'd':
		return b == 'o'
	case 'S':
		return b == 'G'
	case 'B':
		return b == 'e'
	case 'e':
		return b == 'y'
	default:
		return false
	}
}

// keyRun is the last run of key characters: its end, and its last digit. Several keys may seem
// to begin in one run, which is read only once.
type keyRun struct{ end, digit int }

func (r *keyRun) read(s string, from int) {
	if from < r.end {
		return
	}
	r.end, r.digit = from, -1
	for r.end < len(s) && isKeyByte(s[r.end]) {
		if s[r.end] >= '0' && s[r.end] <= '9' {
			r.digit = r.end
		}
		r.end++
	}
}

// keyAt returns the shape and the end of the key that begins at byte i; end 0 means that no key
// begins there.
func (r *keyRun) keyAt(s string, i int) (shape, int) {
	if i > 0 && isWordByte(s[i-1]) && !escaped(s[:i]) {
		return shape{}, 0
	}
	for _, k := range &shapes {
		if !strings.HasPrefix(s[i:], k.begins) {
			continue
		}
		begin := i + len(k.begins)
		r.read(s, begin)
		if r.end-begin >= k.min && (r.digit >= begin || !k.digit) && !(k.plain && strings.ContainsAny(s[begin:begin+k.min], "_-.")) {
			return k, r.end
		}
	}
	return shape{}, 0
}

// escaped reports whether a text ends in a letter of a JSON escape of a control character, as
// in \n.
func escaped(s string) bool {
	return len(s) >= 2 && s[len(s)-2] == '\\' && strings.IndexByte("bfnrt", s[len(s)-1]) >= 0
}

func isWordByte(c byte) bool { return wordBytes[c] }

// wordBytes contains letters, digits and the underscore. It is a table because every byte of
// every text is looked up.
var wordBytes = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") {
		is[c] = true
	}
	return is
}()

func isKeyByte(c byte) bool { return isWordByte(c) || c == '-' || c == '.' }

// maxLabel is the maximum length of the label of a block, such as "ENCRYPTED PRIVATE KEY".
const maxLabel = 64

// redactPrivateKeys removes blocks with private keys. It reads every byte a few times, however
// many blocks seem to begin. open reports that the last block does not end: all following text
// may belong to the key.
func redactPrivateKeys(s string) (out string, open bool) {
	const begin = "-----BEGIN "
	var b strings.Builder
	done, from := 0, 0
	for {
		i := strings.Index(s[from:], begin)
		if i < 0 {
			break
		}
		i += from
		from = i + len(begin)
		kind, ok := privateKey(s[from:])
		if !ok {
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(mask)
		from += strings.Index(s[from:], kind) + len(kind)
		if last := strings.Index(s[from:], kind); last >= 0 {
			from += last + len(kind)
		} else {
			from, open = len(s), true
		}
		done = from
	}
	if done == 0 {
		return s, false
	}
	b.WriteString(s[done:])
	return b.String(), open
}

// privateKey returns the end of the first line of a block, which identifies its last line, if
// the block has a private key: PRIVATE KEY----- or PRIVATE KEY BLOCK-----. The text begins with
// the label.
func privateKey(s string) (kind string, ok bool) {
	const dashes = "-----"
	label, _, ok := strings.Cut(s[:min(len(s), maxLabel+len(dashes))], dashes)
	at := strings.Index(label, "PRIVATE KEY")
	if !ok || at < 0 || strings.ContainsAny(label, "\n\\") {
		return "", false
	}
	return label[at:] + dashes, true
}

// parts returns copies of the parts with the secrets removed. The copies may be changed
// further. Parts that no result can have are left out.
func (r *Redactor) parts(parts []dragoman.Part) []dragoman.Part {
	out := make([]dragoman.Part, 0, len(parts))
	for _, p := range parts {
		if isNilPart(p) {
			continue
		}
		switch p := p.(type) {
		case *dragoman.Text:
			c := *p
			c.Text, c.Extra = r.Redact(p.Text), r.extra(p.Extra)
			out = append(out, &c)
		case *dragoman.Data:
			c := *p
			c.JSON = r.json(p.JSON)
			out = append(out, &c)
		case *dragoman.Media:
			c := *p
			c.Text, c.URL, c.Title, c.Name = r.Redact(p.Text), r.Redact(p.URL), r.Redact(p.Title), r.Redact(p.Name)
			c.Extra = r.extra(p.Extra)
			out = append(out, &c)
		}
	}
	return out
}

// decision redacts the reason of a decision and the values that it sets.
func (r *Redactor) decision(d *Decision) *Decision {
	if d == nil || d.Reason == "" && len(d.Edits) == 0 {
		return d
	}
	out := *d
	out.Reason, out.Edits = r.Redact(d.Reason), slices.Clone(d.Edits)
	for i := range out.Edits {
		out.Edits[i].Value = r.json(out.Edits[i].Value)
	}
	return &out
}

// decided redacts a policy's decision and error for an event. The error still wraps the
// original.
func (r *Redactor) decided(d *Decision, failed error) (Decision, error) {
	if failed != nil {
		if text := failed.Error(); r.Redact(text) != text {
			failed = &causeError{r.Redact(text), failed}
		}
	}
	return *r.decision(d), failed
}

// extra redacts native fields.
func (r *Redactor) extra(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	out := &dragoman.Extra{Dialect: e.Dialect, Fields: slices.Clone(e.Fields)}
	for i := range out.Fields {
		out.Fields[i].Value = r.json(out.Fields[i].Value)
	}
	return out
}

// isNilPart reports whether a part is nil, typed or untyped.
func isNilPart(p dragoman.Part) bool {
	v := reflect.ValueOf(p)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// json redacts a JSON text so that it stays valid JSON. The mask has no characters that JSON
// escapes, so almost always the text can be redacted like any other. A secret that is not part
// of one string, such as a number or a truncated key, is removed value by value; if even that
// leaves a secret, the whole text is removed.
func (r *Redactor) json(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	text := r.Redact(string(raw))
	if text == string(raw) || jsonwire.Check([]byte(text)) == nil {
		return json.RawMessage(text)
	}
	in := jsonwire.NewReader(raw)
	var out jsonwire.Writer
	(&valueRedactor{Redactor: r}).value(in, &out)
	if in.End() == nil && out.Err() == nil && jsonwire.Check(out.Buf) == nil && r.Redact(string(out.Buf)) == string(out.Buf) {
		return out.Buf
	}
	return json.RawMessage(`"` + mask + `"`)
}

// valueRedactor copies JSON with the secrets removed from each string, name and number.
type valueRedactor struct {
	*Redactor
	// open reports that a private key began in a string and did not end there: the following
	// strings may be its lines.
	open bool
}

func (r *valueRedactor) value(in *jsonwire.Reader, out *jsonwire.Writer) {
	switch in.Kind() {
	case '{':
		out.BeginObject()
		for key := range in.Object() {
			out.QuotedKey(r.Redact(string(key)))
			r.value(in, out)
		}
		out.EndObject()
	case '[':
		out.BeginArray()
		for range in.Array() {
			r.value(in, out)
		}
		out.EndArray()
	case '"':
		out.String(r.text(in.String()))
	default:
		raw := in.Raw()
		if text := r.Redact(string(raw)); text != string(raw) {
			out.String(text)
		} else {
			out.Raw(raw)
		}
	}
}

func (r *valueRedactor) text(s string) string {
	if r.open {
		return mask
	}
	if r.Redactor == nil || !r.NoShapes {
		_, r.open = redactPrivateKeys(s)
	}
	return r.Redact(s)
}
