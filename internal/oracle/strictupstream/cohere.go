package strictupstream

import (
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

const cohereDialect = "cohere.chat"

var cohereBlock = closedUnion("type", map[string]*shape{
	"text":      names("type text", nil),
	"thinking":  names("type thinking", nil),
	"image_url": names("type image_url", map[string]*shape{"image_url": names("url detail", nil)}),
	"document":  names("type document", map[string]*shape{"document": names("data id", nil)}),
}, "")

// cohereShape has the fields of POST /v2/chat.
var cohereShape = names(`stream model messages tools strict_tools documents citation_options response_format safety_mode max_tokens stop_sequences
	temperature seed frequency_penalty presence_penalty k p logprobs tool_choice thinking priority`, map[string]*shape{
	"messages": names("role content tool_calls tool_plan tool_call_id citations", map[string]*shape{
		"content":    cohereBlock,
		"tool_calls": names("id type function", map[string]*shape{"function": names("name arguments", nil)}),
	}),
	"tools":            names("type function", map[string]*shape{"function": names("name description parameters", nil)}),
	"thinking":         names("type token_budget", nil),
	"response_format":  names("type json_schema", nil),
	"citation_options": names("mode", nil),
})

// cohereSchema are the rules for strict tools and output formats.
var cohereSchema = &schemaRules{
	forbidden: strings.Fields("allOf oneOf not minimum maximum minItems maxItems minLength maxLength uniqueItems"),
	formats:   strings.Fields("date-time uuid date time"),
}

// cohereThinkers are the models that reason.
var cohereThinkers = []string{"command-a-reasoning-08-2025", "command-a-plus-05-2026"}

func (j *judge) cohere(req map[string]any) *Refusal {
	if at := cohereShape.unknown(req, false); at != nil {
		return j.bad("", "", "invalid request: unknown field %s", dots(at))
	}
	if at, tag := cohereShape.unknownTag(req, nil); at != nil {
		return j.bad("", "", "invalid request: %s: unknown type %q", dots(at), tag)
	}
	for key, bounds := range map[string][2]float64{
		"temperature": {0, 1}, "p": {0.01, 0.99}, "k": {0, 500}, "frequency_penalty": {0, 1}, "presence_penalty": {0, 1}, "priority": {0, 999},
	} {
		if n, ok := number(req, key); ok && (n < bounds[0] || n > bounds[1]) {
			return j.bad("", "", "invalid request: %s must be between %v and %v", key, bounds[0], bounds[1])
		}
	}
	if n := len(list(req, "stop_sequences")); n > 5 {
		return j.bad("", "", "invalid request: %d stop sequences, at most 5 are allowed", n)
	}
	if seed, ok := number(req, "seed"); ok && seed < 0 {
		return j.bad("", "", "invalid request: seed must not be negative")
	}
	if thinking := obj(req, "thinking"); len(thinking) > 0 {
		if budget, ok := number(thinking, "token_budget"); ok && budget < 1 {
			return j.bad("", "", "invalid request: token_budget must be positive")
		}
		if strings.HasPrefix(j.model, "command-") && !slices.Contains(cohereThinkers, j.model) {
			return j.bad("", "", "invalid request: thinking is not supported by %s", j.model)
		}
	}
	return j.cohereSchemas(req)
}

func (j *judge) cohereSchemas(req map[string]any) *Refusal {
	if format := obj(req, "response_format"); set(format, "json_schema") {
		if why := cohereSchema.check(obj(format, "json_schema"), "json_schema"); why != "" {
			return j.bad("", "", "invalid request: %s", why)
		}
	}
	if req["strict_tools"] != true {
		return nil
	}
	for _, t := range objects(req, "tools") {
		parameters := obj(obj(t, "function"), "parameters")
		if len(list(parameters, "required")) == 0 {
			return j.bad("", "", "invalid request: strict tools must have a required parameter")
		}
		if why := cohereSchema.check(parameters, "parameters"); why != "" {
			return j.bad("", "", "invalid request: %s", why)
		}
	}
	return nil
}

type cohereVendor struct{ defaultRules }

func (cohereVendor) dialect() dragoman.Dialect { return cohereDialect }

func (cohereVendor) call(r *http.Request) (call, bool) { return call{}, at(r, "/v2/chat") }

func (cohereVendor) fields(j *judge, req map[string]any) *Refusal { return j.cohere(req) }

func (cohereVendor) errorBody(r *Refusal) any {
	return map[string]any{"id": "strict", "message": r.Message}
}
