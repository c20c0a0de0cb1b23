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

// What answers say beside their content, in every dialect: which of it is the
// provider's and which is ours.

// ReportMinted reports that the id of a response is ours: no provider knows it.
func ReportMinted(rep *dragoman.Report, id string) {
	rep.Addf(dragoman.Synthesized, dragoman.Info, "/id", "response id %q", id)
}

// ReportNoTime reports that the time of a response is none.
func ReportNoTime(rep *dragoman.Report) {
	rep.Add(dragoman.Synthesized, dragoman.Info, "/created", "no time is known; 0 written, because clients demand it")
}

// Tiers are the words of a dialect's answers for how urgently they were made.
type Tiers struct {
	Dialect dragoman.Dialect
	// Ordinary is the word for a tier that is none in particular.
	Ordinary string
	Known    func(string) bool
}

// Answer is the service tier to write in an answer; empty for none. A server of
// the dialect says what it likes. The word of another is written if the dialect
// has it too, or one that means the same; else it is reported and left out,
// because clients know the words of their dialect only.
func (t Tiers) Answer(tier string, origin *dragoman.Origin, rep *dragoman.Report) string {
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

// OpenAITiers are those of OpenAI's two dialects.
func OpenAITiers(d dragoman.Dialect) Tiers {
	return Tiers{Dialect: d, Ordinary: "default", Known: KnownTier}
}

// ReportFailed reports what is left out of a response that failed and is
// written as an error alone, which is all that clients of dialect d understand.
func ReportFailed(rep *dragoman.Report, resp *dragoman.Response, d dragoman.Dialect) {
	rep.Add(dragoman.Moved, dragoman.Info, "/error", "a response that failed is written as an error, and nothing else")
	drop := func(set bool, sev dragoman.Severity, path, detail string) {
		if set {
			rep.Add(dragoman.Dropped, sev, path, detail)
		}
	}
	drop(len(resp.Output) > 0, dragoman.Serious, "/output", "what had arrived before the error")
	drop(len(resp.Alternatives) > 0, dragoman.Serious, "/alternatives", "what had arrived before the error")
	const beside = "an error has no such member"
	drop(resp.ID != "", dragoman.Info, "/id", beside)
	drop(resp.Model != "", dragoman.Info, "/model", beside)
	drop(!resp.Created.IsZero(), dragoman.Info, "/created", beside)
	drop(resp.Usage != (dragoman.Usage{}), dragoman.Info, "/usage", beside)
	drop(resp.ServiceTier != "", dragoman.Info, "/service_tier", beside)
	ReportDetails(rep, resp.Stop, "")
	extra.ReportEcho(rep, besideError(resp), d, extra.At(""))
}

// besideError are the members of a response that its error does not hold, which
// tells of its own what was lost.
func besideError(resp *dragoman.Response) *dragoman.Extra {
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

// ReportSpeaker reports the name of who speaks in a message of an answer, which no
// wire has a member for.
func ReportSpeaker(rep *dragoman.Report, m *dragoman.Message, at extra.Path) {
	if m.Name != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the name %.40q of the speaker", m.Name)
	}
}

// ReportCall reports what a call of an answer loses that is written in pieces, in
// the words of one that is written whole. sent says that its arguments, or some of
// them, went out as they came: these are not told in an object.
func ReportCall(reg *interop.Registry, c *dragoman.ToolCall, sent bool, at extra.Path, rep *dragoman.Report) {
	c = Judged(c)
	said := *c
	said.Cache = nil // which no answer has
	if c.Problem != nil && sent {
		if _, why := toolwire.AnswerText(c); why != nil {
			rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments that must not run went out as they came; the stop keeps them from it: %s", why.Message)
		}
		said.Payload, said.Arguments, said.Problem = codes.PayloadObject, "{}", nil
	}
	var unseen jsonwire.Writer
	_ = reg.WriteCall(&unseen, &said, at, rep) // one that it cannot write was streamed all the same
}

// ReportCost reports the usage of a stream that failed, for a wire on which an
// error is all that is said then; one that the start told is known.
func ReportCost(rep *dragoman.Report, u, told dragoman.Usage) {
	if u != (dragoman.Usage{}) && u != told {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage", "an error has no such member")
	}
}
