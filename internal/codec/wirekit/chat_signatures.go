package wirekit

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// signedFields are the fields of a Chat call that carry Gemini signatures to clients
// and back (quirk B17): path is the field of the call, keys lead from its value to the
// signature. The first one is Google's own, the second one LiteLLM's.
var signedFields = []struct {
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

// ThroughChat returns the signature of a Gemini call that came through a Chat API, and
// the call without the signature in its fields. The signature is empty for any other
// call. Other values in these fields do not belong to Gemini and are kept. The field
// identifies the signer, whatever the origin of the message; for Chat, it stays in
// place. If the call has no such field, the records of its message may have the
// signature.
func ThroughChat(c *dragoman.ToolCall, records *Records) (signature string, bare *dragoman.ToolCall) {
	if s := signatureOn(c); s != "" {
		return s, withoutSignature(c, s)
	}
	if s := records.signature(c); s != "" {
		return s, c
	}
	// A call of another API and its result keep the same id.
	_, signature = SplitID(c.ID)
	return signature, c
}

// signatureOn returns the signature in the fields of a call.
func signatureOn(c *dragoman.ToolCall) string {
	fields := c.Extra.For(dialectname.OpenAIChat)
	if fields == nil {
		return ""
	}
	for _, m := range signedFields {
		for _, f := range slices.Backward(fields) {
			if f.Path != m.path {
				continue
			}
			if s := textAt(f.Value, m.keys); isSignature(s) {
				return s
			}
		}
	}
	return ""
}

// Records holds the reasoning records in which a router passes on Gemini call
// signatures (quirk B17), and the calls of the same message. A nil Records is empty.
type Records struct {
	signatures map[string]string // by the id of the call
	calls      map[string]bool   // by their ids
}

// RecordsOf returns the records among the parts of a message, or nil if there are none.
func RecordsOf(parts []dragoman.Part) *Records {
	signed := func(p dragoman.Part) bool {
		r, ok := p.(*dragoman.Reasoning)
		return ok && len(r.Details) > 0
	}
	if !slices.ContainsFunc(parts, signed) {
		return nil
	}
	r := new(Records)
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			r.AddReasoning(p)
		case *dragoman.ToolCall:
			r.AddCall(p)
		}
	}
	return r
}

// AddReasoning adds reasoning. It reports whether the reasoning has nothing but its text and call
// signatures.
func (r *Records) AddReasoning(p *dragoman.Reasoning) bool {
	all := len(p.Details) > 0 && p.Encrypted == "" && p.Signature == ""
	for _, d := range p.Details {
		of, signature := signedRecord(d)
		if signature == "" {
			all = false
			continue
		}
		if r.signatures == nil {
			r.signatures = map[string]string{}
		}
		for _, id := range idsOf(of) {
			if r.signatures[id] == "" {
				r.signatures[id] = signature
			}
		}
	}
	return all
}

// AddCall adds a call.
func (r *Records) AddCall(c *dragoman.ToolCall) {
	if r.calls == nil {
		r.calls = map[string]bool{}
	}
	r.calls[c.ID] = true
}

// InCalls reports whether the reasoning has nothing but its text and signatures of calls in this
// message. Those calls carry the signatures then.
func (r *Records) InCalls(p *dragoman.Reasoning) bool {
	return r != nil && r.AddReasoning(p) && !slices.ContainsFunc(p.Details, func(d json.RawMessage) bool {
		of, _ := signedRecord(d)
		return !slices.ContainsFunc(idsOf(of), func(id string) bool { return r.calls[id] })
	})
}

// WithSignature returns a call with its signature from the records, in a field of the call. It
// returns c itself if the records have no signature for it or it already has one.
func (r *Records) WithSignature(c *dragoman.ToolCall) *dragoman.ToolCall {
	signature := r.signature(c)
	if signature == "" || signatureOn(c) != "" {
		return c
	}
	signed := *c
	_ = keepSignature(&signed, signature, 0)
	return &signed
}

func (r *Records) signature(c *dragoman.ToolCall) string {
	if r == nil {
		return ""
	}
	return r.signatures[c.ID]
}

// signedRecord reads a reasoning record. The signature is empty if the record does not
// have the signature of a call.
func signedRecord(raw json.RawMessage) (callID, signature string) {
	if textAt(raw, []string{"type"}) != "reasoning.encrypted" {
		return "", ""
	}
	if format := textAt(raw, []string{"format"}); format != "" && format != "google-gemini-v1" {
		return "", ""
	}
	callID = textAt(raw, []string{"id"})
	signature = cmp.Or(textAt(raw, []string{"data"}), textAt(raw, []string{"signature"}))
	if callID == "" || !isSignature(signature) {
		return "", ""
	}
	return callID, signature
}

// idsOf returns the call ids that a record may refer to: one gateway writes a prefix
// before the id.
func idsOf(of string) []string {
	if id, ok := strings.CutPrefix(of, "tool_call_"); ok {
		return []string{of, id}
	}
	return []string{of}
}

// withoutSignature returns a call without a signature in any of its fields; some
// servers write it in two of them.
func withoutSignature(c *dragoman.ToolCall, signature string) *dragoman.ToolCall {
	bare := *c
	bare.Extra = &dragoman.Extra{Dialect: c.Extra.Dialect}
	for _, f := range c.Extra.Fields {
		for _, m := range signedFields {
			if f.Path == m.path {
				f.Value = withoutText(f.Value, m.keys, signature)
			}
		}
		if f.Value != nil {
			bare.Extra.Fields = append(bare.Extra.Fields, f)
		}
	}
	return &bare
}

// withoutText returns a value without the text at the path keys, or nil if nothing is left.
func withoutText(raw []byte, keys []string, text string) []byte {
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
			value = withoutText(value, keys[1:], text)
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

// textAt returns the text at the path keys, or "".
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

// The marks with which gateways append a signature to an id.
const (
	litellmMark = "__thought__"
	bifrostMark = "_ts_"
)

const (
	// minHidden is the minimum length of a signature in an id.
	minHidden = 40
	// maxOrdinary is the maximum id length that every API accepts. The shorter mark may
	// occur in ordinary ids, so only longer ids are searched for a signature after it.
	// Its gateway does the same when it removes signatures.
	maxOrdinary = 64
)

// SplitID splits a call id into the bare id and the Gemini signature that a gateway
// appended to it (quirk B17). For any other id it returns the id and "". The result
// depends only on the id, so a call and its result still have the same id.
func SplitID(id string) (bare, signature string) {
	if len(id) <= minHidden {
		return id, ""
	}
	if bare, s, ok := strings.Cut(id, litellmMark); ok && bare != "" && len(s)%4 == 0 && hiddenSignature(s) {
		return bare, s
	}
	if bare, s, ok := strings.Cut(id, bifrostMark); ok && bare != "" && len(id) > maxOrdinary && hiddenSignature(s) {
		if b, err := base64.RawURLEncoding.DecodeString(s); err == nil {
			return bare, base64.StdEncoding.EncodeToString(b)
		}
	}
	return id, ""
}

// SplitCallID splits the id of a call (see [SplitID]) and stores the signature in a field
// of the call, where the gateway that appended it also accepts it. original is the
// id before the split, or "" if it has no signature. A signature that the call already
// has takes precedence; kept is false if it differs.
func SplitCallID(c *dragoman.ToolCall) (original string, kept bool) {
	bare, signature := SplitID(c.ID)
	if signature == "" {
		return "", true
	}
	original, c.ID = c.ID, bare
	if have := signatureOn(c); have != "" {
		return original, have == signature
	}
	first := 0
	if strings.Contains(original, litellmMark) {
		first = 1
	}
	return original, keepSignature(c, signature, first)
}

// keepSignature stores a signature in the first of signedFields[first:] that the call
// does not have. It reports whether there is one. It does not change fields that the
// call shares with others.
func keepSignature(c *dragoman.ToolCall, signature string, first int) bool {
	var fields []dragoman.Field
	if c.Extra != nil {
		if c.Extra.Dialect != dialectname.OpenAIChat {
			return false
		}
		fields = slices.Clip(c.Extra.Fields)
	}
	for _, m := range signedFields[first:] {
		if !slices.ContainsFunc(fields, func(f dragoman.Field) bool { return f.Path == m.path }) {
			fields = append(fields, dragoman.Field{Path: m.path, Value: textIn(m.keys, signature)})
			c.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: fields}
			return true
		}
	}
	return false
}

// textIn returns a text wrapped in objects at the path keys.
func textIn(keys []string, text string) []byte {
	var w jsonwire.Writer
	for _, k := range keys {
		w.BeginObject()
		w.Key(k)
	}
	w.String(text)
	for range keys {
		w.EndObject()
	}
	return w.Buf
}

// hiddenSignature reports whether the text after a mark in an id is a signature. The
// mark may also occur in ordinary ids, before a word or the digits of a hash.
func hiddenSignature(s string) bool {
	lower := strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' })
	upper := strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	return len(s) >= minHidden && lower && upper && isSignature(s)
}

// isSignature reports whether a text can be a signature: the API accepts only base64
// (quirk B16).
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
