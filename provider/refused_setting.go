package provider

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// setting is a setting of a request that can be dropped if the server refuses it.
type setting struct {
	// path is the JSON pointer of the setting in the request. names are the names that servers
	// use, in lower case; the first one that an error contains as a word counts.
	path  string
	names []string
	// drop removes the setting and reports whether it was set.
	drop func(*dragoman.Request) bool
}

// droppable are the settings that can be dropped. Longer names come before names that are
// part of them.
var droppable = [...]setting{
	{"/reasoning", []string{
		"reasoning_effort", "reasoning.effort", "reasoning.summary", "reasoningeffort", "reasoning_content", "reasoning effort", "reasoning", "encrypted content",
		"output_config.effort", "effort", "thinking_config", "thinkingconfig", "thinkinglevel", "thinking_level", "thinkingbudget", "thinking_budget",
		"thinking level", "thinking budget", "thinking", "think",
	}, func(r *dragoman.Request) bool { return drop(&r.Reasoning) }},
	{"/sampling/temperature", []string{"temperature"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.Temperature) }},
	{"/sampling/top_p", []string{"top_p", "topp"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.TopP) }},
	{"/sampling/top_k", []string{"top_k", "topk"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.TopK) }},
	{"/sampling/presence_penalty", []string{"presence_penalty", "presencepenalty"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.PresencePenalty) }},
	{"/sampling/frequency_penalty", []string{"frequency_penalty", "frequencypenalty"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.FrequencyPenalty) }},
	{"/sampling", []string{"penalty"}, func(r *dragoman.Request) bool {
		presence, frequency := drop(&r.Sampling.PresencePenalty), drop(&r.Sampling.FrequencyPenalty)
		return presence || frequency
	}},
	{"/sampling/seed", []string{"seed"}, func(r *dragoman.Request) bool { return drop(&r.Sampling.Seed) }},
	{"/sampling/stop", []string{"stop_sequences", "stopsequences", "stop"}, func(r *dragoman.Request) bool {
		had := len(r.Sampling.Stop) > 0
		r.Sampling.Stop = nil
		return had
	}},
	{"/parallel_tool_calls", []string{"parallel_tool_calls"}, func(r *dragoman.Request) bool { return drop(&r.ParallelToolCalls) }},
	{"/verbosity", []string{"verbosity"}, func(r *dragoman.Request) bool {
		had := r.Verbosity != ""
		r.Verbosity = ""
		return had
	}},
	{"/service_tier", []string{"service_tier"}, func(r *dragoman.Request) bool {
		had := r.ServiceTier != ""
		r.ServiceTier = ""
		return had
	}},
}

func drop[T any](p **T) bool {
	had := *p != nil
	*p = nil
	return had
}

// refusalPhrases are the phrases of server errors that refuse a setting.
var refusalPhrases = [...]string{
	"unsupported parameter", "unsupported value", "unsupported_parameter", "not supported", "does not support", "doesn't support", "not support",
	"unrecognized request argument", "unknown parameter", "unknown name", "unknown field", "extra inputs are not permitted", "extra_forbidden",
	"deprecated for this model", "not enabled for this model", "may not be enabled", "not allowed", "only the default", "expected `thinking`",
	"cannot be specified", "is not permitted", "invalid think value",
}

// refusedSetting returns the setting that the server refuses according to an error, or
// nil. It looks at the parameter of the error first, then at the message.
func refusedSetting(e *dragoman.APIError) *setting {
	message := strings.ToLower(e.Message)
	refuses := e.Code == "unsupported_parameter" || e.Code == "unsupported_value" || e.Code == "unknown_parameter" ||
		slices.ContainsFunc(refusalPhrases[:], func(p string) bool { return strings.Contains(message, p) })
	if !refuses {
		return nil
	}
	for _, text := range []string{strings.ToLower(e.Param), message} {
		for i := range droppable {
			if slices.ContainsFunc(droppable[i].names, func(name string) bool { return hasWord(text, name) }) {
				return &droppable[i]
			}
		}
	}
	return nil
}

// hasWord reports whether a text contains a name with no letter or digit next to it.
func hasWord(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		if (i == 0 || !isWordByte(text[i-1])) && (i+len(name) == len(text) || !isWordByte(text[i+len(name)])) {
			return true
		}
		from = i + 1
	}
}

func isWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// without returns the request without a setting that the server refused; losses are empty
// if the request does not have it.
func (s *setting) without(req *dragoman.Request) (*dragoman.Request, dragoman.Report) {
	var rep dragoman.Report
	out := *req
	if s.drop(&out) {
		rep.Add(dragoman.Dropped, dragoman.Warn, s.path, "the server refused it; the request was sent again without it")
	}
	return &out, rep
}
