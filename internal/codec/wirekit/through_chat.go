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

// signedMembers are the members of a Chat call in which servers hand Gemini's
// signature to clients and clients hand it back (quirk B17): the member of a
// call, and the way from it to the signature. The first is Google's own, the
// second that of LiteLLM.
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

// ThroughChat returns the signature with which Gemini signed a call that came
// through a Chat API, and the call without it in the members that carried it; it
// is empty for any other. What stands beside it in them is not Gemini's and stays.
// The member says who signed, whatever the origin of the message is, and stays
// where it is for Chat. Where the call has no such member, the records of its
// message may have it.
func ThroughChat(c *dragoman.ToolCall, records *Records) (signature string, bare *dragoman.ToolCall) {
	if s := signatureOn(c); s != "" {
		return s, withoutSignature(c, s)
	}
	if s := records.signature(c); s != "" {
		return s, c
	}
	// A call of another API keeps its id, and its result the same.
	_, signature = SplitID(c.ID)
	return signature, c
}

// signatureOn is the signature in the members of a call.
func signatureOn(c *dragoman.ToolCall) string {
	fields := c.Extra.For(dialectname.OpenAIChat)
	if fields == nil {
		return ""
	}
	for _, m := range signedMembers {
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

// Records are the records of reasoning in which a router hands on Gemini's
// signatures of calls (quirk B17), and the calls beside them. None has neither.
type Records struct {
	signatures map[string]string // by the id of the call
	calls      map[string]bool   // by their ids
}

// RecordsOf finds the records among the parts of a message; nil where it has none.
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
			r.Tell(p)
		case *dragoman.ToolCall:
			r.Call(p)
		}
	}
	return r
}

// Tell takes reasoning, and reports whether what it has besides its text are
// signatures of calls, whichever these are.
func (r *Records) Tell(p *dragoman.Reasoning) bool {
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

// Call takes a call.
func (r *Records) Call(c *dragoman.ToolCall) {
	if r.calls == nil {
		r.calls = map[string]bool{}
	}
	r.calls[c.ID] = true
}

// Carried reports whether what reasoning has besides its text are signatures of
// calls that are there, which carry it on.
func (r *Records) Carried(p *dragoman.Reasoning) bool {
	return r != nil && r.Tell(p) && !slices.ContainsFunc(p.Details, func(d json.RawMessage) bool {
		of, _ := signedRecord(d)
		return !slices.ContainsFunc(idsOf(of), func(id string) bool { return r.calls[id] })
	})
}

// Carry returns a call with the signature that the records have of it, in a member
// of its own; the call itself where they have none or it has one already.
func (r *Records) Carry(c *dragoman.ToolCall) *dragoman.ToolCall {
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

// signedRecord reads a record of reasoning; the signature is empty for one that
// has none of a call.
func signedRecord(raw json.RawMessage) (of, signature string) {
	if textAt(raw, []string{"type"}) != "reasoning.encrypted" {
		return "", ""
	}
	if format := textAt(raw, []string{"format"}); format != "" && format != "google-gemini-v1" {
		return "", ""
	}
	of = textAt(raw, []string{"id"})
	signature = cmp.Or(textAt(raw, []string{"data"}), textAt(raw, []string{"signature"}))
	if of == "" || !isSignature(signature) {
		return "", ""
	}
	return of, signature
}

// idsOf are the ids of calls that a record may mean: one gateway writes a word
// before it.
func idsOf(of string) []string {
	if id, ok := strings.CutPrefix(of, "tool_call_"); ok {
		return []string{of, id}
	}
	return []string{of}
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

// The marks between an id and a signature that gateways hide behind it.
const (
	litellmMark = "__thought__"
	bifrostMark = "_ts_"
)

const (
	// minHidden is how long the signatures behind ids are at least.
	minHidden = 40
	// maxOrdinary is how long an id is that any API takes. The shorter mark is
	// a word that ids may have: only behind it in a longer id is a signature
	// looked for, as its gateway does when it takes them off again.
	maxOrdinary = 64
)

// SplitID takes the signature of Gemini's off a call id behind which a gateway
// hid it (quirk B17); it is empty, and the id the whole of it, for any other.
// Whether an id is split depends on the id alone, so that a call and its result
// still have the same one.
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

// TakeOffID splits the id of a call (see [SplitID]) and keeps the signature in a
// member of the call, where the gateway that hid it takes it back too. came is the
// id as it was, empty where it hid none. A signature that the call has already
// counts; kept is false where that is another one.
func TakeOffID(c *dragoman.ToolCall) (came string, kept bool) {
	bare, signature := SplitID(c.ID)
	if signature == "" {
		return "", true
	}
	came, c.ID = c.ID, bare
	if have := signatureOn(c); have != "" {
		return came, have == signature
	}
	first := 0
	if strings.Contains(came, litellmMark) {
		first = 1
	}
	return came, keepSignature(c, signature, first)
}

// keepSignature puts a signature into a member that the call does not have, from
// the first of the known ones on, and reports whether there is one. What the call
// shares with others stays.
func keepSignature(c *dragoman.ToolCall, signature string, first int) bool {
	var fields []dragoman.Field
	if c.Extra != nil {
		if c.Extra.Dialect != dialectname.OpenAIChat {
			return false
		}
		fields = slices.Clip(c.Extra.Fields)
	}
	for _, m := range signedMembers[first:] {
		if !slices.ContainsFunc(fields, func(f dragoman.Field) bool { return f.Path == m.path }) {
			fields = append(fields, dragoman.Field{Path: m.path, Value: textIn(m.keys, signature)})
			c.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: fields}
			return true
		}
	}
	return false
}

// textIn is a text at the end of a way through objects.
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

// hiddenSignature reports whether what stands behind a mark in an id is a
// signature. Anybody may have the mark in an id, before a word or the digits of
// a hash.
func hiddenSignature(s string) bool {
	lower := strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' })
	upper := strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	return len(s) >= minHidden && lower && upper && isSignature(s)
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
