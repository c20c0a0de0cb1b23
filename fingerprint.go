package dragoman

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"
)

// Fingerprint identifies the content of a canonical value, the same in every
// process and version. It covers everything a wire could show, and leaves out
// the sidecar it guards. The zero Fingerprint equals no value's.
type Fingerprint [16]byte

// hasher writes a canonical value in an injective form: every field is
// prefixed with its length, so that no two values share their bytes.
type hasher struct{ b []byte }

var hashers = sync.Pool{New: func() any { return &hasher{b: make([]byte, 0, 4096)} }}

func fingerprint(write func(*hasher)) Fingerprint {
	h := hashers.Get().(*hasher)
	h.b = h.b[:0]
	write(h)
	sum := sha256.Sum256(h.b)
	if cap(h.b) <= 1<<20 {
		hashers.Put(h)
	}
	return Fingerprint(sum[:16])
}

func (h *hasher) num(n int64)    { h.b = binary.AppendVarint(h.b, n) }
func (h *hasher) str(s string)   { h.num(int64(len(s))); h.b = append(h.b, s...) }
func (h *hasher) bytes(s []byte) { h.num(int64(len(s))); h.b = append(h.b, s...) }
func (h *hasher) bool(v bool) {
	if v {
		h.b = append(h.b, 1)
	} else {
		h.b = append(h.b, 0)
	}
}
func (h *hasher) present(v bool) bool { h.bool(v); return v }

func (h *hasher) optBool(p *bool) {
	if h.present(p != nil) {
		h.bool(*p)
	}
}

func (h *hasher) optNum(p *int64) {
	if h.present(p != nil) {
		h.num(*p)
	}
}

func (h *hasher) optNumber(p *Number) {
	if h.present(p != nil) {
		h.str(string(*p))
	}
}

func (h *hasher) raws(rs []json.RawMessage) {
	h.num(int64(len(rs)))
	for _, r := range rs {
		h.bytes(r)
	}
}

func (h *hasher) native(n *Native) {
	if h.present(n != nil) {
		h.str(string(n.Format))
		h.bytes(n.JSON)
	}
}

func (h *hasher) cache(c *CacheHint) {
	if h.present(c != nil) {
		h.str(c.TTL)
	}
}

func (h *hasher) extra(e *Extra) {
	if !h.present(e != nil) {
		return
	}
	h.str(string(e.Dialect))
	h.num(int64(len(e.Fields)))
	for _, f := range e.Fields {
		h.str(f.Path)
		h.bytes(f.Value)
	}
}

func (h *hasher) parts(ps []Part) {
	h.num(int64(len(ps)))
	for _, p := range ps {
		h.part(p)
	}
}

func (h *hasher) part(p Part) {
	if isNilPart(p) {
		h.str("") // no kind of part; encoders refuse it
		return
	}
	h.str(string(p.Kind()))
	switch p := p.(type) {
	case *Text:
		h.str(p.Text)
		h.cache(p.Cache)
		h.str(p.Signature)
		h.extra(p.Extra)
	case *Reasoning:
		h.str(p.Text)
		h.num(int64(len(p.Summary)))
		for _, s := range p.Summary {
			h.str(s)
		}
		h.str(p.Signature)
		h.str(p.Encrypted)
		h.bool(p.Redacted)
		h.str(p.ID)
		h.str(p.Field)
		h.raws(p.Details)
		h.str(string(p.Status))
		h.extra(p.Extra)
	case *Media:
		h.str(string(p.Media))
		h.str(p.MIME)
		h.str(p.Base64)
		h.str(p.Text)
		h.str(p.URL)
		h.str(p.FileID)
		if p.Attachment != "" { // others keep the fingerprints that are stored
			h.str("attachment")
			h.str(p.Attachment)
		}
		h.str(p.Name)
		h.str(p.Title)
		h.str(p.Detail)
		h.cache(p.Cache)
		h.extra(p.Extra)
	case *ToolCall:
		h.str(p.ID)
		h.str(p.ItemID)
		h.str(p.Name)
		h.str(p.Namespace)
		h.str(string(p.Payload))
		h.str(p.Arguments)
		h.bool(p.Hosted)
		h.str(string(p.Status))
		h.bool(p.Async)
		h.bytes(p.Caller)
		h.str(p.Signature)
		h.cache(p.Cache)
		h.extra(p.Extra)
	case *ToolResult:
		h.str(p.CallID)
		h.str(p.Name)
		h.str(p.Namespace)
		h.str(string(p.Payload))
		h.parts(p.Content)
		h.str(string(p.Outcome))
		h.native(p.Envelope)
		h.str(p.ItemID)
		h.str(string(p.Status))
		h.bytes(p.Caller)
		h.cache(p.Cache)
		h.extra(p.Extra)
	case *Refusal:
		h.str(p.Text)
		h.extra(p.Extra)
	case *Data:
		h.bytes(p.JSON)
	case *Opaque:
		h.str(string(p.Dialect))
		h.str(p.Type)
		h.bytes(p.JSON)
	}
}

func (h *hasher) message(m *Message) {
	h.str(string(m.Role))
	h.str(m.Name)
	h.str(m.Phase)
	h.str(string(m.Status))
	h.cache(m.Cache)
	h.parts(m.Parts)
	h.extra(m.Extra)
}

func (h *hasher) messages(ms []Message) {
	h.num(int64(len(ms)))
	for i := range ms {
		h.message(&ms[i])
	}
}

func (h *hasher) tool(s *ToolSpec) {
	h.str(string(s.Kind))
	h.str(s.Name)
	h.str(s.Namespace)
	h.str(s.NamespaceDescription)
	h.str(s.Description)
	h.bytes(s.Parameters)
	if h.present(s.Grammar != nil) {
		h.str(s.Grammar.Syntax)
		h.str(s.Grammar.Definition)
	}
	h.str(string(s.Strict))
	h.bool(s.Deferred)
	h.bytes(s.OutputSchema)
	h.raws(s.Examples)
	h.str(s.Annotations.Title)
	h.optBool(s.Annotations.ReadOnly)
	h.optBool(s.Annotations.Destructive)
	h.optBool(s.Annotations.Idempotent)
	h.optBool(s.Annotations.OpenWorld)
	h.cache(s.Cache)
	h.extra(s.Extra)
	h.extra(s.NamespaceExtra)
	// A hosted tool is its source and nothing else.
	if h.present(s.Kind == ToolHosted && s.Source != nil) {
		h.str(string(s.Source.Format))
		h.bytes(s.Source.JSON)
	}
}

func (h *hasher) choice(c *ToolChoice) {
	if !h.present(c != nil) {
		return
	}
	h.str(string(c.Mode))
	h.bool(c.Tools != nil) // no list means all tools, an empty one none
	h.num(int64(len(c.Tools)))
	for i := range c.Tools {
		h.str(c.Tools[i].Namespace)
		h.str(c.Tools[i].Name)
		h.str(string(c.Tools[i].Kind))
		h.native(c.Tools[i].Native)
		h.extra(c.Tools[i].Extra)
	}
	h.native(c.Native)
	h.extra(c.Extra)
}

func (h *hasher) settings(r *Request) {
	h.parts(r.Instructions)
	h.choice(r.ToolChoice)
	h.optBool(r.ParallelToolCalls)
	if h.present(r.Output != nil) {
		h.str(string(r.Output.Kind))
		h.str(r.Output.Name)
		h.str(r.Output.Description)
		h.bytes(r.Output.Schema)
		h.str(string(r.Output.Strict))
		h.str(string(r.Output.Dialect))
		h.extra(r.Output.Extra)
	}
	if h.present(r.Reasoning != nil) {
		h.str(string(r.Reasoning.Mode))
		h.str(r.Reasoning.Effort)
		h.optNum(r.Reasoning.BudgetTokens)
		h.str(r.Reasoning.Summary)
		h.optBool(r.Reasoning.Encrypted)
		h.extra(r.Reasoning.Extra)
	}
	s := &r.Sampling
	h.optNumber(s.Temperature)
	h.optNumber(s.TopP)
	h.optNum(s.TopK)
	h.optNumber(s.FrequencyPenalty)
	h.optNumber(s.PresencePenalty)
	h.optNum(s.Seed)
	h.num(int64(len(s.Stop)))
	for _, v := range s.Stop {
		h.str(v)
	}
	h.optNum(s.Candidates)
	h.optNum(r.MaxOutputTokens)
	h.cache(r.Cache)
	h.str(r.CacheKey)
	h.num(int64(len(r.Metadata)))
	for _, kv := range r.Metadata {
		h.str(kv.Key)
		h.str(kv.Value)
	}
	h.str(r.User)
	h.str(r.ServiceTier)
	h.str(r.Verbosity)
	h.optBool(r.Store)
	h.str(r.PreviousResponseID)
	h.bool(r.Stream)
	h.bool(r.StreamUsage)
	h.extra(r.Extra)
}

func (h *hasher) stop(s *Stop) {
	h.str(string(s.Reason))
	h.str(s.Native)
	h.str(s.Sequence)
	h.native(s.Details)
}

func (h *hasher) usage(u *Usage) {
	for _, c := range []Count{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
		h.bool(c.Known)
		h.num(c.N)
	}
	h.extra(u.Extra)
}

// Fingerprint identifies the message. Its origin and sidecar do not count.
func (m *Message) Fingerprint() Fingerprint {
	if m == nil {
		m = &Message{}
	}
	return fingerprint(func(h *hasher) { h.message(m) })
}

// Fingerprint identifies the tool's definition.
func (s *ToolSpec) Fingerprint() Fingerprint {
	if s == nil {
		s = &ToolSpec{}
	}
	return fingerprint(func(h *hasher) { h.tool(s) })
}

// Fingerprint identifies all of the request but its model, so that a request
// whose model alone changed can keep every other byte.
func (r *Request) Fingerprint() Fingerprint {
	if r == nil {
		r = &Request{}
	}
	return fingerprint(func(h *hasher) {
		h.settings(r)
		h.messages(r.Messages)
		h.num(int64(len(r.Tools)))
		for i := range r.Tools {
			h.tool(&r.Tools[i])
		}
	})
}

// Fingerprint identifies all of the response but its model.
func (r *Response) Fingerprint() Fingerprint {
	if r == nil {
		r = &Response{}
	}
	return fingerprint(func(h *hasher) {
		h.str(r.ID)
		h.num(r.Created.Unix())
		h.messages(r.Output)
		h.stop(&r.Stop)
		h.usage(&r.Usage)
		h.num(int64(len(r.Alternatives)))
		for i := range r.Alternatives {
			a := &r.Alternatives[i]
			h.num(int64(a.Index))
			h.messages(a.Output)
			h.stop(&a.Stop)
			h.extra(a.Extra)
		}
		h.str(r.ServiceTier)
		if h.present(r.Error != nil) {
			h.str(string(r.Error.Class))
			h.str(r.Error.Message)
			h.str(r.Error.Type)
			h.str(r.Error.Code)
			h.str(r.Error.Param)
			h.native(r.Error.Native)
		}
		h.extra(r.Extra)
	})
}

// Current reports whether the sidecar is of dialect d and still mirrors a
// value with fingerprint f.
func (s *Sidecar) Current(d Dialect, f func() Fingerprint) bool {
	return s != nil && s.Dialect == d && s.Raw != nil && s.Mirror == f()
}
