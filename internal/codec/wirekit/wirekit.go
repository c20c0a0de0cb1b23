// Package wirekit holds the code that all dialect codecs share: opening and encoding
// bodies, adding positions to errors, replaying native forms, reading and classifying
// error responses, settling stop reasons, and making ids.
package wirekit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// DecodeError wraps err with its position in what was decoded.
func DecodeError(d dragoman.Dialect, what string, err error) error {
	if err == nil {
		return nil
	}
	e := &dragoman.DecodeError{Dialect: d, What: what, Offset: -1, Err: err}
	var at *jsonwire.Error
	if errors.As(err, &at) {
		e.Pointer, e.Offset, e.Err = at.Pointer, at.Offset, at.Err
	}
	return e
}

// EncodeRegistry returns the registry to encode a request with, or a response if req is
// nil. Its target has the dialect filled in. Ids that the target minted itself are
// kept, and no alias equals an id of the request. tools are the dialect's own codecs,
// used if the options have no registry.
func EncodeRegistry(req *dragoman.Request, limits targets.Limits, tools []toolwire.Codec, o dialect.EncodeOptions) *interop.Registry {
	reg := o.Registry
	if reg == nil {
		reg = newRegistry(req, limits, tools, o)
	}
	if req == nil {
		return reg.ForResponse()
	}
	target := reg.Target().Origin()
	for i := range req.Messages {
		m := &req.Messages[i]
		minted := (targets.MatchDialect | targets.MatchProvider).Allows(m.Origin, target)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				reg.AnnounceID(p.ID)
				if minted {
					reg.KeepArguments(p)
				}
				// A history from a client does not name the provider of its ids.
				if minted && !p.Synthetic && (m.Origin.Provider != "" || reg.MayCreateID(p.ID, p.Name)) {
					reg.KeepID(p.ID)
				}
			case *dragoman.ToolResult:
				reg.AnnounceID(p.CallID)
			}
		}
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if c, ok := p.(*dragoman.ToolCall); ok {
				reg.NumberID(c.ID, c.Namespace, c.Name)
			}
		}
	}
	return reg
}

// ResponseRegistry returns the registry to encode a complete response with. Clients know
// tools without a namespace by their names, so the names in these calls are reserved.
func ResponseRegistry(resp *dragoman.Response, limits targets.Limits, tools []toolwire.Codec, o dialect.EncodeOptions) *interop.Registry {
	reg := EncodeRegistry(nil, limits, tools, o)
	announce := func(ms []dragoman.Message) {
		for i := range ms {
			for _, p := range ms[i].Parts {
				if c, ok := p.(*dragoman.ToolCall); ok && c.Namespace == "" {
					reg.AnnounceName(c.Name)
				}
			}
		}
	}
	announce(resp.Output)
	for i := range resp.Alternatives {
		announce(resp.Alternatives[i].Output)
	}
	return reg
}

func newRegistry(req *dragoman.Request, limits targets.Limits, tools []toolwire.Codec, o dialect.EncodeOptions) *interop.Registry {
	t := o.Target
	t.Dialect = limits.Dialect
	if t.Model == "" && req != nil {
		t.Model = req.Model
	}
	if o.Codecs != nil {
		tools = o.Codecs
	}
	opts := interop.Options{Target: t, Limits: limits, Codecs: tools, Schemas: o.Schemas}
	if req != nil {
		opts.Tools, opts.Contributions = req.Tools, ToolContributions(req)
	}
	return interop.New(opts)
}

// ToolContributions returns the contributions of a request's tools, without the formats
// that a provider accepts: tools do not decide those (requirement R4).
func ToolContributions(req *dragoman.Request) []dragoman.Contribution {
	if !slices.ContainsFunc(req.Contributions, func(c dragoman.Contribution) bool { return len(c.Accepts) > 0 }) {
		return req.Contributions
	}
	out := slices.Clone(req.Contributions)
	for i := range out {
		out[i].Accepts = nil
	}
	return out
}

// DecodeRegistry returns the registry to decode with.
func DecodeRegistry(limits targets.Limits, tools []toolwire.Codec, o dialect.DecodeOptions) *interop.Registry {
	if o.Registry != nil {
		return o.Registry
	}
	return interop.New(interop.Options{Target: targets.Target{Dialect: limits.Dialect}, Limits: limits, Codecs: tools})
}

// Origin returns the origin of decoded bytes.
func Origin(d dragoman.Dialect, o dialect.DecodeOptions) *dragoman.Origin {
	origin := o.Origin
	origin.Dialect = d
	return &origin
}

// Encoded returns the result of an encoder. It has a body only if the body is complete,
// and always has the report.
func Encoded(d dragoman.Dialect, w *jsonwire.Writer, rep *dragoman.Report, reg *interop.Registry, err error) (dialect.Encoded, error) {
	out := dialect.Encoded{Report: *rep, Registry: reg}
	if err == nil && w.Err() != nil {
		err = fmt.Errorf("%s: %w: %w", d, dragoman.ErrInvalid, w.Err())
	}
	if err == nil {
		out.Body = w.Buf
	}
	return out, err
}

// ReplayRequest returns the native body of a request that did not change since it was
// decoded from the dialect, except for the model name. A request with state that
// another origin minted is not replayed: it is re-encoded message by message, without
// that state.
func ReplayRequest(req *dragoman.Request, limits targets.Limits, o dialect.EncodeOptions) ([]byte, bool) {
	if o.Rebuild || o.Target.Caps != (targets.Capabilities{}) || !req.Native.Current(limits.Dialect, req.Fingerprint) {
		return nil, false
	}
	target := o.Target
	target.Dialect = limits.Dialect
	if target.Model == "" {
		target.Model = req.Model
	}
	for i := range req.Messages {
		if !mayReplay(&req.Messages[i], limits, target) {
			return nil, false
		}
	}
	return withModel(req.Native.Raw, req.Model, []string{"model"})
}

// namesModel reports whether a body has a model name.
func namesModel(body []byte) bool {
	r := jsonwire.NewReader(body)
	for key := range r.Object() {
		if string(key) == "model" && r.Kind() == '"' {
			return true
		}
		r.Skip()
	}
	return false
}

// mayReplay reports whether the target may receive the native form of a message,
// including all the state in it.
func mayReplay(m *dragoman.Message, limits targets.Limits, target targets.Target) bool {
	if !(limits.Replay.Messages | limits.Replay.ItemIDs).Allows(m.Origin, target.Origin()) {
		return false
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			if !MayReplayReasoning(m, p, &limits, &target) {
				return false
			}
		case *dragoman.Text:
			if p.Signature != "" && !MayReplayReasoning(m, nil, &limits, &target) {
				return false
			}
		case *dragoman.ToolCall:
			if p.Signature != "" && !MayReplayReasoning(m, nil, &limits, &target) {
				return false
			}
		}
	}
	return true
}

// ReplayResponse is like ReplayRequest, for a response.
func ReplayResponse(resp *dragoman.Response, d dragoman.Dialect, o dialect.EncodeOptions) ([]byte, bool) {
	if o.Rebuild || !resp.Native.Current(d, resp.Fingerprint) {
		return nil, false
	}
	model := resp.Model
	if o.Model != "" {
		model = o.Model
	}
	return withModel(resp.Native.Raw, model, []string{"model"})
}

func withModel(raw []byte, model string, path []string) ([]byte, bool) {
	out, err := jsonwire.ReplaceString(raw, model, path)
	if err != nil {
		return nil, false
	}
	return out, true
}

// ReplayMessage returns the native form of a message that is unchanged since it was decoded,
// if the target may get it back. A message with call arguments that are not JSON must be
// encoded again, with {} in their place (requirement R7), because servers that parse the
// arguments would refuse every later request.
func ReplayMessage(m *dragoman.Message, limits *targets.Limits, target *targets.Target, rebuild bool) ([]byte, bool) {
	if rebuild || m.Native == nil || !limits.Replay.Messages.Allows(m.Origin, target.Origin()) {
		return nil, false
	}
	if !m.Native.Current(limits.Dialect, m.Fingerprint) || brokenCall(m) {
		return nil, false
	}
	return m.Native.Raw, true
}

// brokenCall reports whether a message has a call whose arguments are not JSON.
func brokenCall(m *dragoman.Message) bool {
	for _, p := range m.Parts {
		c, ok := p.(*dragoman.ToolCall)
		if !ok || c == nil || c.Problem == nil || c.Payload == codes.PayloadText || c.Hosted {
			continue
		}
		if why := dragoman.CheckArguments(c.Arguments); why != nil && why.Code == codes.ProblemInvalidJSON {
			return true
		}
	}
	return false
}

// MayReplayReasoning reports whether opaque reasoning of a message may be sent to the
// target.
func MayReplayReasoning(m *dragoman.Message, r *dragoman.Reasoning, limits *targets.Limits, target *targets.Target) bool {
	origin := m.Origin
	if r != nil && r.Origin != nil {
		origin = r.Origin
	}
	return limits.Replay.Reasoning.Allows(origin, target.Origin())
}

// MayReplayOpaque reports whether an opaque part may be sent to the target: it came
// from the target's dialect, in a message from the target's provider or of unknown
// origin. A part that is encrypted for an account follows the rule for reasoning.
func MayReplayOpaque(m *dragoman.Message, p *dragoman.Opaque, limits *targets.Limits, target *targets.Target) bool {
	rule := limits.Replay.Messages
	if p.Type == "compaction" || p.Type == "reasoning" {
		rule = limits.Replay.Reasoning
	}
	return p.Dialect == limits.Dialect && (m.Origin == nil || rule.Allows(m.Origin, target.Origin()))
}

// WithCache returns the parts of a message with its cache hint on the last part that
// can carry one, for wire formats that mark parts instead of messages. ok is false if
// no part can carry it.
func WithCache(parts []dragoman.Part, hint *dragoman.CacheHint) (out []dragoman.Part, ok bool) {
	for i := len(parts) - 1; i >= 0; i-- {
		switch p := parts[i].(type) {
		case *dragoman.Text:
			marked := *p
			marked.Cache = hint
			out = slices.Clone(parts)
			out[i] = &marked
			return out, true
		case *dragoman.Media:
			marked := *p
			marked.Cache = hint
			out = slices.Clone(parts)
			out[i] = &marked
			return out, true
		}
	}
	return parts, false
}

// CountCacheHints returns the number of cache breakpoints in the messages of a request.
func CountCacheHints(req *dragoman.Request) int {
	n := 0
	count := func(parts []dragoman.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if p.Cache != nil {
					n++
				}
			case *dragoman.Media:
				if p.Cache != nil {
					n++
				}
			}
		}
	}
	count(req.Instructions)
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Cache != nil {
			n++
		}
		count(m.Parts)
	}
	return n
}

// IsKeepAlive reports whether an event of a stream is a keep-alive, or the [DONE]
// marker that some servers send after the terminal event. Such events are passed
// through even after the end; anything else after the end is dropped (quirk C12).
func IsKeepAlive(ev sse.Event) bool {
	data := bytes.TrimSpace(ev.Data)
	return !ev.HasData || len(data) == 0 || string(data) == "[DONE]"
}

// SyntheticID returns an id for a call that came without one, made from the caller's
// seed and the position of the call. The same position gives the same id, so a history
// that is sent again gets the same ids (quirks B10, B12).
func SyntheticID(prefix, seed string, place ...int) string {
	h := sha256.New()
	h.Write([]byte(seed))
	for _, n := range place {
		h.Write([]byte{0})
		h.Write([]byte(strconv.Itoa(n)))
	}
	return prefix + hex.EncodeToString(h.Sum(nil)[:12])
}

// RequestSize estimates the length of an encoded request, with or without the output
// schemas of its tools, so that its buffer rarely grows.
func RequestSize(req *dragoman.Request, outputSchemas bool) int {
	n, raw := 192+partsSize(req.Instructions), 0
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Native != nil { // usually written unchanged
			raw += len(m.Native.Raw) + 1
		} else {
			n += 24 + partsSize(m.Parts)
		}
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		size := len(t.Parameters)
		if outputSchemas {
			size += len(t.OutputSchema)
		}
		if t.Source != nil {
			size = max(size, len(t.Source.JSON))
		}
		raw += 96 + len(t.Namespace) + len(t.Name) + size
		n += len(t.Description)
	}
	return n + n/8 + raw // an eighth for escapes
}

// ResponseSize is like RequestSize, for a response.
func ResponseSize(resp *dragoman.Response) int {
	n := 512
	for i := range resp.Output {
		n += 128 + partsSize(resp.Output[i].Parts)
	}
	for i := range resp.Alternatives {
		for j := range resp.Alternatives[i].Output {
			n += 256 + partsSize(resp.Alternatives[i].Output[j].Parts)
		}
	}
	return n + n/8
}

func partsSize(parts []dragoman.Part) int {
	n := 0
	for _, p := range parts {
		n += 24
		switch p := p.(type) {
		case *dragoman.Text:
			n += len(p.Text)
		case *dragoman.Reasoning:
			n += len(p.Text) + len(p.Encrypted) + len(p.Signature)
		case *dragoman.Media:
			n += len(p.Base64) + len(p.Text) + len(p.URL)
		case *dragoman.ToolCall:
			n += 72 + len(p.Arguments)
		case *dragoman.ToolResult:
			n += 8 + len(p.CallID) + len(p.Name) + partsSize(p.Content)
		case *dragoman.Data:
			n += len(p.JSON)
		case *dragoman.Opaque:
			n += len(p.JSON)
		}
	}
	return n
}
