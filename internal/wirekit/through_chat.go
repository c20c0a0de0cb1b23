package wirekit

import (
	"encoding/base64"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// signedMembers are the members of a Chat call in which servers hand Gemini's
// signature to clients and clients hand it back (quirk B17): the member of a
// call, and the way from it to the signature.
var signedMembers = []struct {
	path string
	keys []string
}{
	{"/extra_content", []string{"google", "thought_signature"}},
	{"/provider_specific_fields", []string{"thought_signature"}},
	{"/function/provider_specific_fields", []string{"thought_signature"}},
	{"/thought_signature", nil},
	{"/function/thought_signature", nil},
	{"/thoughtSignature", nil},
	{"/function/thoughtSignature", nil},
}

// idSignature stands between an id and a signature that a gateway hid behind it.
const idSignature = "__thought__"

// ThroughChat returns the signature with which Gemini signed a call that came
// through a Chat API, and the call without it in the members that carried it; it
// is empty for any other. What stands beside it in them is not Gemini's and stays.
// The member says who signed, whatever the origin of the message is, and stays
// where it is for Chat. An id is never taken apart: its result has the same one.
func ThroughChat(c *dragoman.ToolCall) (signature string, bare *dragoman.ToolCall) {
	if c.Extra.For(dragoman.OpenAIChat) == nil && !strings.Contains(c.ID, idSignature) {
		return "", c
	}
	for _, m := range signedMembers {
		for _, f := range slices.Backward(c.Extra.For(dragoman.OpenAIChat)) {
			if f.Path != m.path {
				continue
			}
			if s := textAt(f.Value, m.keys); isSignature(s) {
				return s, withoutSignature(c, s)
			}
		}
	}
	if _, s, ok := strings.Cut(c.ID, idSignature); ok && hiddenSignature(s) {
		return s, c
	}
	return "", c
}

// withoutSignature is a call without a signature in any of the members that carry
// one: some servers write it in two.
func withoutSignature(c *dragoman.ToolCall, signature string) *dragoman.ToolCall {
	bare := *c
	bare.Extra = &dragoman.Extra{Dialect: c.Extra.Dialect}
	for _, f := range c.Extra.Fields {
		for _, m := range signedMembers {
			if f.Path == m.path {
				f.Value = without(f.Value, m.keys, signature)
			}
		}
		if f.Value != nil {
			bare.Extra.Fields = append(bare.Extra.Fields, f)
		}
	}
	return &bare
}

// without is what is left of a value when the text at the end of a way through
// objects is taken out of it; nil where nothing is.
func without(raw []byte, keys []string, text string) []byte {
	r := jsonwire.NewReader(raw)
	switch {
	case textAt(raw, keys) != text:
		return raw
	case len(keys) == 0:
		return nil
	}
	var w jsonwire.Writer
	left := false
	w.BeginObject()
	for key := range r.Object() {
		k := string(key)
		value := r.Raw()
		if k == keys[0] {
			value = without(value, keys[1:], text)
		}
		if value != nil {
			left = true
			w.QuotedKey(k)
			w.Raw(value)
		}
	}
	w.EndObject()
	if !left || w.Err() != nil {
		return nil
	}
	return w.Buf
}

// textAt is the text at the end of a way through objects; empty where there is
// none.
func textAt(raw []byte, keys []string) string {
	r := jsonwire.NewReader(raw)
	if len(keys) == 0 {
		if r.Kind() == '"' {
			return r.String()
		}
		return ""
	}
	if r.Kind() != '{' {
		return ""
	}
	found := ""
	for key := range r.Object() {
		if string(key) == keys[0] {
			found = textAt(r.Raw(), keys[1:])
		} else {
			r.Skip()
		}
	}
	return found
}

// minHidden is how long the signatures behind ids are at least.
const minHidden = 40

// hiddenSignature reports whether what stands behind the mark in an id is a
// signature, as gateways write it: whole, with its padding. Anybody may have the
// mark in an id, before a word or the digits of a hash.
func hiddenSignature(s string) bool {
	lower := strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' })
	upper := strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	return len(s) >= minHidden && len(s)%4 == 0 && lower && upper && isSignature(s)
}

// isSignature reports whether a text can be one: the API takes base64 and
// nothing else (quirk B16).
func isSignature(s string) bool {
	s = strings.TrimRight(s, "=")
	if s == "" {
		return false
	}
	if _, err := base64.RawStdEncoding.DecodeString(s); err == nil {
		return true
	}
	_, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil
}
