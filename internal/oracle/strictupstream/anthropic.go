package strictupstream

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

const cacheControl = "cache_control"

var anthropicResultContent = closedUnion("type", map[string]*shape{
	"text":  names("type text citations "+cacheControl, nil),
	"image": names("type source "+cacheControl, nil),
}, "search_result document tool_reference browser_state")

var anthropicBlock = closedUnion("type", map[string]*shape{
	"text":              names("type text citations "+cacheControl, nil),
	"image":             names("type source "+cacheControl, nil),
	"document":          names("type source title context citations "+cacheControl, nil),
	"thinking":          names("type thinking signature", nil),
	"redacted_thinking": names("type data", nil),
	"tool_use":          names("type id name input caller "+cacheControl, nil),
	"tool_result":       names("type tool_use_id content is_error "+cacheControl, map[string]*shape{"content": anthropicResultContent}),
}, `search_result server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result bash_code_execution_tool_result
	text_editor_code_execution_tool_result tool_search_tool_result container_upload advisor_tool_result mcp_tool_use mcp_tool_result
	mcp_tool_listing compaction fallback tool_addition tool_removal`)

// anthropicShape has the fields of Messages, those of betas included.
var anthropicShape = names(`cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model output_config
	output_format service_tier speed stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p user_profile_id`, map[string]*shape{
	"messages":      names("role content clear_at", map[string]*shape{"content": anthropicBlock}),
	"system":        anthropicBlock,
	"metadata":      names("user_id", nil),
	"thinking":      names("type budget_tokens display block_binding", nil),
	"output_config": names("effort format task_budget", nil),
	"tool_choice":   names("type name disable_parallel_tool_use", nil),
	"tools": union("type", map[string]*shape{
		"": anthropicTool, "custom": anthropicTool,
	}),
})

var anthropicTool = names("type name description input_schema strict defer_loading allowed_callers eager_input_streaming input_examples "+cacheControl, nil)

// anthropicBetas are fields that need a beta header, each with a word of it.
var anthropicBetas = []struct{ field, beta string }{
	{"context_management", "context-management"}, {"mcp_servers", "mcp-client"}, {"output_format", "structured-outputs"}, {"speed", "fast-mode"},
}

// claude describes the parameters that a Claude model accepts.
type claude struct {
	// thinks reports whether the model supports thinking; budget and adaptive are the kinds.
	thinks, budget, adaptive bool
	// disable reports whether thinking can be switched off; calm: only up to effort high.
	disable, calm bool
	effort        bool
	// formats: the model accepts an output format and strict tools.
	formats  bool
	sampling bool
	// apart: temperature and top_p exclude each other.
	apart   bool
	prefill bool
	forced  bool
}

var (
	claudeNew = regexp.MustCompile(`claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:-(\d)(?:\D|$))?`)
	claudeOld = regexp.MustCompile(`claude-3-(\d)?-?(opus|sonnet|haiku)`)
)

// claudeOf returns what is known of a Claude model, by the name that the vendor or a
// reseller has for it; nil for other names.
func claudeOf(name string) *claude {
	if m := claudeOld.FindStringSubmatch(name); m != nil {
		thinks := m[1] == "7"
		return &claude{thinks: thinks, budget: thinks, disable: true, sampling: true, prefill: true, forced: true}
	}
	m := claudeNew.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	family, version := m[1], major*10+minor
	c := &claude{thinks: true, disable: true, forced: true, formats: version > 40}
	switch {
	case version <= 45:
		c.budget, c.sampling, c.prefill = true, true, true
		c.effort = family == "opus" && version == 45
		c.apart = version == 45 || family == "opus" && version == 41
	case version == 46:
		c.budget, c.adaptive, c.sampling, c.apart, c.effort = true, true, true, true, true
	default:
		c.adaptive, c.effort = true, true
		always := family == "fable" || family == "mythos" || family != "haiku" && version >= 55
		c.disable, c.forced = !always, !always
		c.calm = family == "opus" && version == 50 || family == "haiku" && version >= 55
	}
	return c
}

// settings holds the settings that Claude has rules for, independent of the dialect.
type settings struct {
	thinking  map[string]any
	effort    string
	maxTokens float64
	// sampling has temperature, top_p and top_k, where they are set.
	sampling map[string]any
	forced   bool
	prefill  bool
}

func (j *judge) anthropic(req map[string]any) *Refusal {
	if at := anthropicShape.unknown(req, false); at != nil {
		return j.bad("", "", "%s: Extra inputs are not permitted", dots(at))
	}
	if at, tag := anthropicShape.unknownTag(req, nil); at != nil {
		return j.bad("", "", "%s: Input tag '%s' found using 'type' does not match any of the expected tags", dots(at[:len(at)-1]), tag)
	}
	for _, b := range anthropicBetas {
		if set(req, b.field) && !strings.Contains(strings.Join(j.header.Values("Anthropic-Beta"), ","), b.beta) {
			return j.bad("", "", "%s: Extra inputs are not permitted", b.field)
		}
	}
	if r := j.anthropicLimits(req); r != nil {
		return r
	}
	if r := j.anthropicSchemas(req); r != nil {
		return r
	}
	if c := claudeOf(j.model); c != nil && !c.formats && set(obj(req, "output_config"), "format") {
		return j.bad("", "", "'%s' does not support output format.", j.model)
	}
	a := settings{thinking: obj(req, "thinking"), effort: str(obj(req, "output_config"), "effort"), sampling: map[string]any{}}
	a.maxTokens, _ = number(req, "max_tokens")
	for _, key := range []string{"temperature", "top_p", "top_k"} {
		if set(req, key) {
			a.sampling[key] = req[key]
		}
	}
	choice := str(obj(req, "tool_choice"), "type")
	a.forced = choice == "any" || choice == "tool"
	if messages := objects(req, "messages"); len(messages) > 0 {
		last := messages[len(messages)-1]
		a.prefill = str(last, "role") == "assistant" && !endsWithServerTool(last)
	}
	return j.claude(a)
}

// endsWithServerTool reports whether a turn of a server tool is to be continued.
func endsWithServerTool(m map[string]any) bool {
	blocks := objects(m, "content")
	return len(blocks) > 0 && (strings.HasSuffix(str(blocks[len(blocks)-1], "type"), "_tool_result") || str(blocks[len(blocks)-1], "type") == "server_tool_use")
}

// claude applies the rules of a Claude model.
func (j *judge) claude(a settings) *Refusal {
	c := claudeOf(j.model)
	if c == nil {
		return nil
	}
	if r := j.claudeThinking(c, a); r != nil {
		return r
	}
	if a.effort != "" && !c.effort {
		return j.bad("", "", "This model does not support the effort parameter.")
	}
	if a.prefill && !c.prefill {
		return j.bad("", "", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if a.forced && !c.forced {
		return j.bad("", "", "tool_choice: forced tool use is not supported for this model.")
	}
	return j.claudeSampling(c, a)
}

func (j *judge) claudeThinking(c *claude, a settings) *Refusal {
	budget, has := number(a.thinking, "budget_tokens")
	switch typ := str(a.thinking, "type"); typ {
	case "":
	case "enabled":
		switch {
		case !c.thinks:
			return j.bad("", "", "'%s' does not support thinking.", j.model)
		case !c.budget:
			return j.bad("", "", "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.")
		case !has || budget < 1024:
			return j.bad("", "", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case budget >= a.maxTokens:
			return j.bad("", "", "`max_tokens` must be greater than `thinking.budget_tokens`.")
		case a.forced:
			return j.bad("", "", "Thinking may not be enabled when tool_choice forces tool use.")
		case a.prefill:
			return j.bad("", "", "Assistant message prefill is not supported when thinking is enabled.")
		}
	case "adaptive", "between_tools":
		if !c.adaptive {
			return j.bad("", "", "adaptive thinking is not supported on this model")
		}
	case "disabled":
		if !c.disable {
			return j.bad("", "", "\"thinking.type.disabled\" is not supported for this model.")
		}
		if c.calm && (a.effort == "xhigh" || a.effort == "max") {
			return j.bad("", "", "thinking cannot be disabled with effort %q", a.effort)
		}
	default:
		return j.bad("", "", "thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", typ)
	}
	if has && str(a.thinking, "type") != "enabled" {
		return j.bad("", "", "thinking.%s.budget_tokens: Extra inputs are not permitted", str(a.thinking, "type"))
	}
	return nil
}

func (j *judge) claudeSampling(c *claude, a settings) *Refusal {
	temperature, hasTemperature := number(a.sampling, "temperature")
	topP, hasTopP := number(a.sampling, "top_p")
	_, hasTopK := number(a.sampling, "top_k")
	switch {
	case !c.sampling && hasTemperature && temperature != 1:
		return j.bad("", "", "`temperature` is deprecated for this model.")
	case !c.sampling && hasTopP:
		return j.bad("", "", "`top_p` is deprecated for this model.")
	case !c.sampling && hasTopK:
		return j.bad("", "", "`top_k` is deprecated for this model.")
	case c.apart && hasTemperature && hasTopP:
		return j.bad("", "", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	}
	if typ := str(a.thinking, "type"); typ != "enabled" && typ != "adaptive" {
		return nil
	}
	switch {
	case hasTemperature && temperature != 1:
		return j.bad("", "", "`temperature` may only be set to 1 when thinking is enabled.")
	case hasTopP && topP < 0.95:
		return j.bad("", "", "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")
	case hasTopK:
		return j.bad("", "", "`top_k` must be unset when thinking is enabled.")
	}
	return nil
}

type anthropicVendor struct{ defaultRules }

func (anthropicVendor) dialect() dragoman.Dialect { return dialectname.Anthropic }

func (anthropicVendor) call(r *http.Request) (call, bool) {
	count := at(r, "/v1/messages/count_tokens")
	return call{count: count}, count || at(r, "/v1/messages")
}

func (anthropicVendor) fields(j *judge, req map[string]any) *Refusal { return j.anthropic(req) }

func (anthropicVendor) resolve(s *state, j *judge, req map[string]any, body []byte) ([]byte, *Refusal) {
	if claudeOf(j.model) == nil {
		return body, nil
	}
	return body, s.anthropicSignatures(j, req)
}

func (anthropicVendor) errorBody(r *Refusal) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": r.Message}, "request_id": "req_strict"}
}

func (s *state) anthropicSignatures(j *judge, req map[string]any) *Refusal {
	for i, m := range objects(req, "messages") {
		for k, b := range objects(m, "content") {
			switch str(b, "type") {
			case "thinking":
				if !s.opaque[str(b, "signature")] {
					return j.bad("", "", "messages.%d.content.%d: Invalid `signature` in `thinking` block", i, k)
				}
			case "redacted_thinking":
				if !s.opaque[str(b, "data")] {
					return j.bad("", "", "messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", i, k)
				}
			}
		}
	}
	return nil
}
