package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Redactor takes secrets out of texts. The zero value, and nil, know the shapes
// of common keys and tokens. It is safe for concurrent use.
type Redactor struct {
	// Secrets are values to take out wherever they stand, also as JSON, URLs and
	// base64 write them. Those shorter than [MinSecret] are not looked for: they
	// would blot ordinary text.
	Secrets []string
	// NoShapes turns the common shapes off.
	NoShapes bool
}

// MinSecret is the length in bytes that a secret must have to be looked for.
const MinSecret = 6

// Mask stands where a secret was.
const Mask = "[redacted]"

// shape is what a key of some service looks like: a beginning, and at least min
// characters that keys are made of.
type shape struct {
	begins string
	min    int
	// digit wants a digit among the characters: words have none.
	digit bool
}

// shapes are the beginnings that services give their keys so that they can be
// recognised.
var shapes = [...]shape{
	{"sk-", 20, true},
	{"sk_live_", 16, false},
	{"rk_live_", 16, false},
	{"whsec_", 20, true},
	{"ghp_", 30, false},
	{"gho_", 30, false},
	{"ghu_", 30, false},
	{"ghs_", 30, false},
	{"ghr_", 30, false},
	{"github_pat_", 40, false},
	{"glpat-", 20, false},
	{"xoxb-", 20, true},
	{"xoxp-", 20, true},
	{"xoxa-", 20, true},
	{"xapp-", 20, true},
	{"AKIA", 16, true},
	{"ASIA", 16, true},
	{"AIza", 35, false},
	{"ya29.", 30, true},
	{"hf_", 30, false},
	{"gsk_", 30, true},
	{"xai-", 40, true},
	{"npm_", 36, false},
	{"pypi-", 50, true},
	{"dop_v1_", 60, false},
	{"SG.", 40, true},
	{"Bearer ", 20, true},
	{"eyJ", 60, true}, // a JSON Web Token
}

// with adds secrets.
func (r *Redactor) with(secrets []string) *Redactor {
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

// Redact returns s with a [Mask] for each secret in it.
func (r *Redactor) Redact(s string) string {
	if r != nil {
		for _, secret := range r.Secrets {
			if len(secret) < MinSecret {
				continue
			}
			for _, written := range spellings(secret) {
				s = strings.ReplaceAll(s, written, Mask)
			}
		}
		if r.NoShapes {
			return s
		}
	}
	s = redactPrivateKeys(s)
	for _, shape := range &shapes {
		s = shape.redact(s)
	}
	return s
}

// spellings are the ways in which a secret is written inside other texts.
func spellings(secret string) []string {
	out := []string{secret}
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if enc.Encode(secret) == nil {
		add(strings.TrimSuffix(quoted.String()[1:], "\"\n"))
	}
	if b, err := json.Marshal(secret); err == nil {
		add(string(b[1 : len(b)-1]))
	}
	add(url.QueryEscape(secret))
	add(url.PathEscape(secret))
	add(base64.StdEncoding.EncodeToString([]byte(secret)))
	add(base64.RawURLEncoding.EncodeToString([]byte(secret)))
	return out
}

func (k shape) redact(s string) string {
	at := strings.Index(s, k.begins)
	if at < 0 {
		return s
	}
	var b strings.Builder
	for at >= 0 {
		begin := at + len(k.begins)
		end := begin
		digit := false
		for end < len(s) && isKeyByte(s[end]) {
			digit = digit || s[end] >= '0' && s[end] <= '9'
			end++
		}
		inWord := at > 0 && isWordByte(s[at-1]) && !escaped(s[:at])
		if end-begin >= k.min && (digit || !k.digit) && !inWord {
			keep := at
			if strings.HasSuffix(k.begins, " ") { // a word before the key, not part of it
				keep = begin
			}
			b.WriteString(s[:keep])
			b.WriteString(Mask)
		} else {
			b.WriteString(s[:end])
		}
		s = s[end:]
		at = strings.Index(s, k.begins)
	}
	b.WriteString(s)
	return b.String()
}

// escaped reports whether a text ends in a letter that JSON escapes a control
// character with, as in \n.
func escaped(s string) bool {
	return len(s) >= 2 && s[len(s)-2] == '\\' && strings.IndexByte("bfnrt", s[len(s)-1]) >= 0
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func isKeyByte(c byte) bool { return isWordByte(c) || c == '-' || c == '.' }

// redactPrivateKeys takes out the blocks in which private keys are kept.
func redactPrivateKeys(s string) string {
	const begin, end = "-----BEGIN ", "PRIVATE KEY-----"
	for from := 0; ; {
		i := strings.Index(s[from:], begin)
		if i < 0 {
			return s
		}
		i += from
		line, rest := s[i:], len(s)
		if n := strings.IndexAny(line[len(begin):], "\n\\"); n >= 0 {
			line = line[:len(begin)+n]
		}
		mark := strings.Index(line, end)
		if mark < 0 {
			from = i + len(begin)
			continue
		}
		if last := strings.Index(s[i+mark+len(end):], end); last >= 0 {
			rest = i + mark + len(end) + last + len(end)
		}
		s = s[:i] + Mask + s[rest:]
		from = i + len(Mask)
	}
}

// parts returns the parts of an output with the secrets taken out, each a copy
// that may be changed further.
func (r *Redactor) parts(parts []dragoman.Part) []dragoman.Part {
	out := make([]dragoman.Part, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			if p != nil {
				c := *p
				c.Text = r.Redact(p.Text)
				out = append(out, &c)
			}
		case *dragoman.Data:
			if p != nil {
				c := *p
				c.JSON = r.json(p.JSON)
				out = append(out, &c)
			}
		case *dragoman.Media:
			if p != nil {
				c := *p
				c.Text, c.URL, c.Title = r.Redact(p.Text), r.Redact(p.URL), r.Redact(p.Title)
				out = append(out, &c)
			}
		case nil:
		default:
			out = append(out, p)
		}
	}
	return out
}

// json redacts a JSON text. A mask holds nothing that JSON escapes, so what was
// JSON still is.
func (r *Redactor) json(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return json.RawMessage(r.Redact(string(raw)))
}
