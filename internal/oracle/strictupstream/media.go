package strictupstream

import (
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// blindModels match the names of models that read text only, by the API that serves them.
var blindModels = map[dragoman.Dialect]*regexp.Regexp{
	dragoman.OpenAIChat: regexp.MustCompile(`^(gpt-3\.5|gpt-4(-0613)?$|o1-mini|o1-preview|o3-mini|gpt-audio|deepseek-(chat|reasoner|v4)|kimi-k2-|moonshot-v1-\d+k$|` +
		`codestral-|open-mi[sx]tral|mistral-large-24|devstral-(small|medium)-25|llama-3\.|openai/gpt-oss|qwen-(plus|max|flash|turbo)|qwen3-(max|coder|\d+b)|glm-(4\.[567]|5)(-|$))`),
	dragoman.OpenAIResponses: regexp.MustCompile(`^(gpt-3\.5|gpt-4(-0613)?$|o1-mini|o1-preview|o3-mini)`),
	dragoman.Ollama:          regexp.MustCompile(`^(llama[23]|llama3\.[123]|qwen2|qwen2\.5|qwen2\.5-coder|qwen3|qwen3-coder|gpt-oss|mistral|mistral-nemo|phi[34]|gemma2|deepseek-r1)(:|$)`),
	dragoman.Bedrock:         regexp.MustCompile(`(amazon\.nova-micro|openai\.gpt-oss|deepseek\.|meta\.llama3-[13]-|qwen\.qwen3-(32b|235b|coder|next))`),
}

// media refuses media that the model cannot read (quirk D14). Gemini and Claude models read
// images.
func (j *judge) media(req map[string]any) *Refusal {
	names := blindModels[j.dialect]
	blind := names != nil && names.MatchString(j.model)
	switch j.dialect {
	case dragoman.OpenAIChat:
		return j.chatMedia(req, blind)
	case dragoman.OpenAIResponses:
		if blind && anyType(list(req, "input"), "input_image", "input_file") {
			return j.bad("invalid_value", "input", "Invalid value: image and file inputs are not supported with this model.")
		}
	case dragoman.Ollama:
		for _, m := range objects(req, "messages") {
			if blind && len(list(m, "images")) > 0 {
				return j.bad("", "", "this model is missing data required for image input")
			}
		}
	case dragoman.Bedrock:
		for _, m := range objects(req, "messages") {
			if blind && holds(m["content"], "image", "video", "audio") {
				return j.bad("", "", "This model doesn't support the image content block that you provided. Remove it and try again.")
			}
		}
	}
	return nil
}

func (j *judge) chatMedia(req map[string]any, blind bool) *Refusal {
	openAI := openAIModelOf(j.model) != nil
	deaf := blind && !strings.Contains(j.model, "audio") || openAI && !strings.Contains(j.model, "audio")
	for i, m := range objects(req, "messages") {
		for _, p := range objects(m, "content") {
			switch typ := str(p, "type"); {
			case strings.HasPrefix(j.model, "deepseek-") && typ != "text":
				return j.bad("invalid_request_error", "", "Failed to deserialize the JSON body into the target type: messages[%d]: unknown variant `%s`, expected `text`", i, typ)
			case blind && (typ == "image_url" || typ == "video_url"), deaf && typ == "input_audio", openAI && typ == "video_url":
				return j.bad("", "", "Invalid content type. %s is only supported by certain models.", typ)
			}
		}
	}
	return nil
}

// anyType reports whether an object anywhere in a value has one of the types.
func anyType(v any, types ...string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return anyType(e, types...) })
	case map[string]any:
		if slices.Contains(types, str(v, "type")) {
			return true
		}
		return anyType(v["content"], types...) || anyType(v["output"], types...)
	}
	return false
}

// holds reports whether a list of Bedrock blocks, or of the results in them, has one of the
// blocks.
func holds(v any, keys ...string) bool {
	blocks, _ := v.([]any)
	return slices.ContainsFunc(blocks, func(e any) bool {
		b, _ := e.(map[string]any)
		return slices.ContainsFunc(keys, func(k string) bool { return set(b, k) }) || holds(obj(b, "toolResult")["content"], keys...)
	})
}
