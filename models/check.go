package models

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The values that an entry may have. A misspelled value is an error, not a rule that never
// applies.
var (
	refusalWords = []string{
		"cache_points", "call_ids", "dummy_signature", "effort", "file_parts", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "n",
		"open_schemas", "parallel_tool_calls", "prefill", "presence_penalty", "reasoning_effort", "reasoning_effort=none", "reasoning_format",
		"response_format", "response_format=json_schema", "result_media", "seed", "stop", "stream_options", "strict", "temperature", "temperature=0",
		"think=true", "thinking", "thinking.budget_tokens", "thinking.type=disabled", "thinkingBudget", "thinkingLevel",
		"tool_choice", "tool_choice=named", "tool_choice=required", "tool_search", "tools", "top_k", "top_logprobs", "top_p",
	}
	togetherWords = []string{
		"chat:tools", "chat:tools+reasoning", "functions+google_search", "functions+response_schema", "json_schema+stream",
		"json_schema+tools", "temperature+top_p", "thinking+stream=false", "thinking.type=disabled+effort:xhigh|max",
		"thinkingLevel+thinkingBudget",
	}
	effortWords = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "default"}
	inputWords  = []string{"text", "image", "audio", "video", "pdf"}
	statusWords = []string{"", "current", "deprecated", "retired"}
	forcedWords = []string{"", "never", "without_thinking"}
	fieldWords  = []string{"", "reasoning_effort", "reasoningConfig"}
)

// The range of a limit in tokens.
const (
	leastLimit = 1 << 10
	mostLimit  = 12 << 20
)

// check reports contradictions and unknown values in an entry.
func (e *Entry) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	values := func(field string, list, known []string) {
		for _, w := range list {
			if !slices.Contains(known, w) {
				bad("%s: unknown value %q: known values are %s", field, w, strings.TrimPrefix(strings.Join(known, ", "), ", "))
			}
		}
	}
	if len(e.Match) == 0 {
		bad("match: at least one name is needed")
	}
	values("refuses", e.Refuses, refusalWords)
	values("refuses_reasoning", e.RefusesReasoning, refusalWords)
	values("ignores", e.Ignores, refusalWords)
	values("ignores_reasoning", e.IgnoresReasoning, refusalWords)
	values("refuses_together", e.RefusesTogether, togetherWords)
	values("inputs", e.Inputs, inputWords)
	values("status", []string{e.Status}, statusWords)
	values("forced_choice", []string{e.ForcedChoice}, forcedWords)
	for _, l := range []struct {
		field string
		n     int64
	}{{"context", e.Context}, {"context_beta", e.ContextBeta}, {"input", e.Input}, {"output", e.Output}} {
		if l.n != 0 && (l.n < leastLimit || l.n > mostLimit) {
			bad("%s: %d is not between %d and %d", l.field, l.n, leastLimit, mostLimit)
		}
	}
	if e.Context > 0 && (e.Input > e.Context || e.Output > e.Context) {
		bad("input %d and output %d must be within context %d", e.Input, e.Output, e.Context)
	}
	if t := e.Temperature; len(t) != 0 && (len(t) != 2 || t[0] < 0 || t[0] > t[1]) {
		bad("temperature: %v is not [min, max]", t)
	}
	if r := e.Reasoning; r != nil {
		values("reasoning.efforts", r.Efforts, effortWords)
		values("reasoning.field", []string{r.Field}, fieldWords)
		switch {
		case !r.Supported && (len(r.Efforts) > 0 || r.Budget != nil || r.AlwaysOn || r.Off != ""):
			bad("reasoning: supported is false, so the other fields must be empty")
		case r.AlwaysOn && (r.Off != "" || slices.Contains(r.Efforts, "none")):
			bad("reasoning: always_on contradicts off and the effort none")
		case r.Budget != nil && (r.Budget.Min < 0 || r.Budget.Max != 0 && r.Budget.Max < r.Budget.Min):
			bad("reasoning.budget: max is below min")
		}
	}
	errs = append(errs, e.Price.check())
	return errors.Join(errs...)
}

// check reports contradictions in a price.
func (p *Price) check() error {
	if p == nil {
		return nil
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("price: "+format, args...))
	}
	amount := func(field string, v *float64) {
		switch {
		case v == nil:
		case *v < 0 || math.IsInf(*v, 0) || math.IsNaN(*v):
			bad("%s: %v is not a price", field, *v)
		case len(strconv.FormatFloat(*v, 'f', -1, 64)) > 12:
			bad("%s: %v has too many digits", field, *v)
		}
	}
	rates := func(at string, in, out, read, write *float64) {
		if in == nil || out == nil {
			bad("%sin and out are both needed", at)
			return
		}
		amount(at+"in", in)
		amount(at+"out", out)
		amount(at+"cache_read", read)
		amount(at+"cache_write", write)
		if read != nil && *read > *in {
			bad("%scache_read %v is more than in %v", at, *read, *in)
		}
	}
	rates("", p.In, p.Out, p.CacheRead, p.CacheWrite)
	amount("cache_write_1h", p.CacheWrite1h)
	amount("audio_in", p.AudioIn)
	amount("web_search", p.WebSearch)
	above := int64(0)
	for i, t := range p.Tiers {
		rates(fmt.Sprintf("tiers[%d].", i), t.In, t.Out, t.CacheRead, t.CacheWrite)
		if t.Above <= above {
			bad("tiers: %d is not larger than the tier before", t.Above)
		}
		above = t.Above
	}
	for _, f := range []struct {
		field string
		v     *float64
	}{{"batch", p.Batch}, {"flex", p.Flex}, {"priority", p.Priority}, {"fast", p.Fast}, {"regional", p.Regional}} {
		if f.v != nil && (*f.v <= 0 || *f.v > 10) {
			bad("%s: %v is not a factor", f.field, *f.v)
		}
	}
	return errors.Join(errs...)
}
