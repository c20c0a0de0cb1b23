package wirekit

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// Reports for response fields other than content, shared by all dialects. They separate
// what the provider sent from what Dragoman added.

// ReportNewID reports that Dragoman made the response id; the provider does not know
// it.
func ReportNewID(rep *dragoman.Report, id string) {
	rep.Addf(dragoman.Synthesized, dragoman.Info, "/id", "response id %q", id)
}

// ReportNoTime reports that the creation time of a response is unknown.
func ReportNoTime(rep *dragoman.Report) {
	rep.Add(dragoman.Synthesized, dragoman.Info, "/created", "creation time is unknown; 0 written, because clients require a value")
}

// Tiers describes the service tiers that responses of a dialect can name.
type Tiers struct {
	Dialect dragoman.Dialect
	// Ordinary is the dialect's name for the default tier.
	Ordinary string
	Known    func(string) bool
}

// ResponseTier returns the service tier to write in a response, or "" for none. A tier from a
// server of the same dialect is returned unchanged. A tier from another dialect is
// returned if this dialect knows it, or replaced by Ordinary if it means the same. Any
// other tier is reported and dropped, because clients know only the tiers of their
// dialect.
func (t Tiers) ResponseTier(tier string, origin *dragoman.Origin, rep *dragoman.Report) string {
	if tier == "" || origin == nil || origin.Dialect == t.Dialect || t.Known(tier) {
		return tier
	}
	switch strings.ToLower(tier) {
	case "default", "standard", "standard_only":
		rep.Addf(dragoman.Lowered, dragoman.Info, "/service_tier", "%q written as %q", tier, t.Ordinary)
		return t.Ordinary
	default:
		rep.Addf(dragoman.Dropped, dragoman.Info, "/service_tier", "the API has no tier %.40q", tier)
		return ""
	}
}

// OpenAITiers returns the tiers of an OpenAI dialect.
func OpenAITiers(d dragoman.Dialect) Tiers {
	return Tiers{Dialect: d, Ordinary: "default", Known: KnownTier}
}

// ReportFailed reports what is left out of a failed response. Such a response is
// written as an error only, because clients of dialect d understand nothing else.
func ReportFailed(rep *dragoman.Report, resp *dragoman.Response, d dragoman.Dialect) {
	rep.Add(dragoman.Moved, dragoman.Info, "/error", "a failed response is written as an error only")
	drop := func(set bool, sev dragoman.Severity, path, detail string) {
		if set {
			rep.Add(dragoman.Dropped, sev, path, detail)
		}
	}
	drop(len(resp.Output) > 0, dragoman.Serious, "/output", "output received before the error")
	drop(len(resp.Alternatives) > 0, dragoman.Serious, "/alternatives", "output received before the error")
	const noField = "an error has no such field"
	drop(resp.ID != "", dragoman.Info, "/id", noField)
	drop(resp.Model != "", dragoman.Info, "/model", noField)
	drop(!resp.Created.IsZero(), dragoman.Info, "/created", noField)
	drop(resp.Usage != (dragoman.Usage{}), dragoman.Info, "/usage", noField)
	drop(resp.ServiceTier != "", dragoman.Info, "/service_tier", noField)
	ReportDetails(rep, resp.Stop, "")
	extra.ReportEcho(rep, outsideError(resp), d, extra.At(""))
}

// outsideError returns the unknown fields of a response that its error does not
// contain. The losses of the error are reported separately.
func outsideError(resp *dragoman.Response) *dragoman.Extra {
	e, err := resp.Extra, resp.Error
	if e == nil || err == nil || err.Native == nil || isChunk(err.Native.JSON) {
		return e
	}
	r := jsonwire.NewReader(err.Native.JSON)
	if r.Kind() != '{' {
		return e
	}
	fields := slices.Clone(e.Fields)
	for key := range r.Object() {
		path := "/" + extra.Escape(string(key))
		fields = slices.DeleteFunc(fields, func(f dragoman.Field) bool { return f.Path == path })
		r.Skip()
	}
	return &dragoman.Extra{Dialect: e.Dialect, Fields: fields}
}

// ReportName reports the speaker name of a response message, which no wire format
// has a field for.
func ReportName(rep *dragoman.Report, m *dragoman.Message, at extra.Path) {
	if m.Name != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the name %.40q of the speaker", m.Name)
	}
}

// ReportCall reports the losses of a call that was streamed in chunks, with the same
// texts as for a call that is written whole. sent means that some or all of its
// arguments were already sent unchanged; they are then not reported as replaced by {}.
func ReportCall(reg *interop.Registry, c *dragoman.ToolCall, sent bool, at extra.Path, rep *dragoman.Report) {
	c = Checked(c)
	written := *c
	written.Cache = nil // responses have no cache hints
	if c.Problem != nil && sent {
		if _, why := toolwire.ResponseArguments(c); why != nil {
			rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "the arguments of a blocked call were sent unchanged; the stop reason blocks the call: %s", why.Message)
		}
		written.Payload, written.Arguments, written.Problem = codes.PayloadObject, "{}", nil
	}
	var discard jsonwire.Writer
	_ = reg.WriteCall(&discard, &written, at, rep) // a call that fails here was streamed anyway
}

// ReportCost reports the usage of a failed stream, for wire formats whose errors have
// no usage. It reports nothing if the start of the stream already sent that usage.
func ReportCost(rep *dragoman.Report, u, sent dragoman.Usage) {
	if u != (dragoman.Usage{}) && u != sent {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage", "an error has no such field")
	}
}
