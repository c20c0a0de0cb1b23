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
// through a Chat API, and the call without the member that carried it; it is
// empty for any other. The member says who signed, whatever the origin of the
// message is, and stays where it is for Chat. An id is never taken apart: its
// result has the same one.
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
				return s, withoutMember(c, f.Path)
			}
		}
	}
	if _, s, ok := strings.Cut(c.ID, idSignature); ok && isSignature(s) {
		return s, c
	}
	return "", c
}

func withoutMember(c *dragoman.ToolCall, path string) *dragoman.ToolCall {
	bare := *c
	fields := slices.DeleteFunc(slices.Clone(c.Extra.Fields), func(f dragoman.Field) bool { return f.Path == path })
	bare.Extra = &dragoman.Extra{Dialect: c.Extra.Dialect, Fields: fields}
	return &bare
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
