package textkit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// minBase64 is the minimum length of a secret that is searched for within longer base64: the
// characters that depend on a shorter one alone occur in other data.
const minBase64 = 6

// SecretSpellings returns the forms in which servers and tools repeat a text, without
// duplicates: unchanged, quoted (some escape more than necessary), as part of a URL, and in
// base64, alone or within other bytes.
func SecretSpellings(text string) []string {
	var all []string
	add := func(s string) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	// escaped adds a text in the forms in which JSON may have it.
	escaped := func(s string) {
		for _, plus := range []string{"+", `\u002b`, `\u002B`} {
			w := strings.ReplaceAll(s, "+", plus)
			add(w)
			add(strings.ReplaceAll(w, "/", `\/`))
		}
	}
	add(text)
	for _, quoted := range quotes(text) {
		escaped(quoted)
	}
	add(url.QueryEscape(text))
	add(url.PathEscape(text))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(text))
		escaped(whole)
		add(url.QueryEscape(whole))
		raw := enc.WithPadding(base64.NoPadding)
		escaped(raw.EncodeToString([]byte(text)))
		if len(text) < minBase64 {
			continue
		}
		for before := range 3 {
			inside := base64Inside(raw, text, before)
			escaped(inside)
			add(url.QueryEscape(inside))
		}
	}
	return all
}

// quotes returns a text as Go and JSON encoders write it, without the quotation marks.
func quotes(text string) []string {
	out := []string{strconv.Quote(text)}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) == nil { // a string can always be encoded
		out = append(out, strings.TrimSuffix(plain.String(), "\n"))
	}
	if b, err := json.Marshal(text); err == nil {
		out = append(out, string(b))
	}
	for i, q := range out {
		out[i] = q[1 : len(q)-1]
	}
	return out
}

// base64Inside returns the base64 encoding of a text in the middle of other bytes, as in the
// user:password of HTTP Basic authentication: the characters that depend on the text alone,
// if before bytes of its first group of three are not part of it.
func base64Inside(enc *base64.Encoding, text string, before int) string {
	const bits, char = 8, 6
	s := enc.EncodeToString(append(make([]byte, before), text...))
	return s[(before*bits+char-1)/char : (before+len(text))*bits/char]
}
