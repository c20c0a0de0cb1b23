package wirekit

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

// Refusable returns the values that [targets.Capabilities.Refuses] and RefusesThinking
// may contain.
func Refusable() []string {
	return []string{
		"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "stop", "seed", "n",
		"logit_bias", "logprobs", "top_logprobs", "response_format", "reasoning_format", "max_tokens", "prefill", effortNone, effortOff,
	}
}

const (
	effortNone = "reasoning_effort=none"
	// effortOff: an effort above high is refused while reasoning is switched off.
	effortOff = "reasoning_effort=xhigh+off"
)

// extraSettings are the refusable settings that a request carries as extra fields.
var extraSettings = []string{"logit_bias", "logprobs", "top_logprobs", "reasoning_format"}

// Refuses reports whether the model refuses a setting of the request.
func Refuses(req *dragoman.Request, caps *targets.Capabilities, word string) bool {
	return listed(caps.Refuses, word) || caps.RefusesThinking != "" && Reasons(req, caps) && listed(caps.RefusesThinking, word)
}

// RefusesAny reports whether the target does not accept some media among the parts.
func RefusesAny(caps *targets.Capabilities, parts []dragoman.Part) bool {
	return slices.ContainsFunc(parts, func(p dragoman.Part) bool {
		m, ok := p.(*dragoman.Media)
		return ok && !caps.AcceptsMedia(m.Media)
	})
}

// listed reports whether a space-separated list contains word.
func listed(list, word string) bool {
	for len(list) > 0 {
		first, rest, _ := strings.Cut(list, " ")
		if first == word {
			return true
		}
		list = rest
	}
	return false
}

// Reasons reports whether the model reasons for a request.
func Reasons(req *dragoman.Request, caps *targets.Capabilities) bool {
	s := req.Reasoning
	switch {
	case s == nil || caps.NoThinking:
		return caps.ThinksByDefault
	case reasoningOff(s):
		return false
	case s.Mode == codes.ReasoningDefault && s.Effort == "" && s.BudgetTokens == nil:
		return caps.ThinksByDefault
	default:
		return true
	}
}

// fitSettings drops the settings that the model refuses and moves its temperature
// into range.
func fitSettings(req *dragoman.Request, caps *targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
	if caps.Refuses == "" && caps.RefusesThinking == "" && caps.Temperature == "" {
		return req
	}
	out, changed := *req, false
	refused := func(set bool, word, path string) bool {
		if !set || !Refuses(req, caps, word) {
			return false
		}
		changed = true
		rep.Addf(dragoman.Dropped, dragoman.Warn, path, "the model does not accept %s%s", word, whileReasoning(caps, word))
		return true
	}
	s := &out.Sampling
	numbers := [...]**dragoman.Number{&s.Temperature, &s.TopP, &s.FrequencyPenalty, &s.PresencePenalty}
	for i, word := range [...]string{"temperature", "top_p", "frequency_penalty", "presence_penalty"} {
		n := numbers[i]
		if word == "temperature" && *n != nil && Float(**n) == 1 {
			continue // the default, which is accepted, or left out below
		}
		if refused(*n != nil, word, "/sampling/"+word) {
			*n = nil
		}
	}
	if t := s.Temperature; t != nil && Float(*t) == 1 && listed(caps.Refuses, "temperature") {
		rep.Add(dragoman.Dropped, dragoman.Info, "/sampling/temperature", "the model accepts no temperature; 1 is its default")
		s.Temperature, changed = nil, true
	}
	if refused(s.TopK != nil, "top_k", "/sampling/top_k") {
		s.TopK = nil
	}
	if refused(s.Seed != nil, "seed", "/sampling/seed") {
		s.Seed = nil
	}
	if refused(s.Candidates != nil, "n", "/sampling/candidates") {
		s.Candidates = nil
	}
	if refused(len(s.Stop) > 0, "stop", "/sampling/stop") {
		s.Stop = nil
	}
	if t := s.Temperature; t != nil && caps.Temperature != "" {
		if within := clamp(*t, caps.Temperature); within != *t {
			rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/temperature", "%s written as %s: the model accepts temperatures in the range %s", *t, within, caps.Temperature)
			s.Temperature, changed = &within, true
		}
	}
	if out.Extra != nil {
		var rest []dragoman.Field
		for i, f := range out.Extra.Fields {
			word := strings.TrimPrefix(f.Path, "/")
			drop := slices.Contains(extraSettings, word) && refused(string(f.Value) != "null", word, f.Path)
			if drop && rest == nil {
				rest = slices.Clone(out.Extra.Fields[:i])
				continue
			}
			if rest != nil && !drop {
				rest = append(rest, f)
			}
		}
		if rest != nil {
			extra := *out.Extra
			extra.Fields = rest
			out.Extra = &extra
		}
	}
	if !changed {
		return req
	}
	fitted := out // a copy, so that out is not allocated if nothing changed
	return &fitted
}

// whileReasoning qualifies a refusal that holds only while the model reasons.
func whileReasoning(caps *targets.Capabilities, word string) string {
	if listed(caps.Refuses, word) {
		return ""
	}
	return " while it reasons"
}

// clamp moves a number into a range such as "0 1.5".
func clamp(n dragoman.Number, within string) dragoman.Number {
	least, most, ok := strings.Cut(within, " ")
	if !ok {
		return n
	}
	switch v := Float(n); {
	case v < Float(dragoman.Number(least)):
		return dragoman.Number(least)
	case v > Float(dragoman.Number(most)):
		return dragoman.Number(most)
	default:
		return n
	}
}
