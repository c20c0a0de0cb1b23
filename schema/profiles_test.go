package schema

import "slices"

// profiles are the profiles of the dialects. The tests of this package cannot import the
// dialects; package schema_test can, and sets them.
var profiles []Profile

// SetProfiles sets the profiles that tests use.
func SetProfiles(ps []Profile) { profiles = ps }

func Profiles() []Profile { return slices.Clone(profiles) }

func Named(name string) (Profile, bool) {
	for _, p := range profiles {
		if p.name == name {
			return p, true
		}
	}
	return Profile{}, false
}

func profile(name string) Profile {
	p, ok := Named(name)
	if !ok {
		panic("no dialect has the profile " + name)
	}
	return p
}

func OpenAITool() Profile               { return profile("openai.tool") }
func OpenAIOutput() Profile             { return profile("openai.output") }
func OpenAIStrict() Profile             { return profile("openai.strict") }
func AnthropicTool() Profile            { return profile("anthropic.tool") }
func AnthropicStrict() Profile          { return profile("anthropic.strict") }
func GeminiParameters() Profile         { return profile("gemini.parameters") }
func GeminiJSONSchema() Profile         { return profile("gemini.json_schema") }
func GeminiResponseSchema() Profile     { return profile("gemini.response_schema") }
func GeminiResponseJSONSchema() Profile { return profile("gemini.response_json_schema") }
func OllamaTool() Profile               { return profile("ollama.tool") }
func OllamaFormat() Profile             { return profile("ollama.format") }
func BedrockTool() Profile              { return profile("bedrock.tool") }
func BedrockStrict() Profile            { return profile("bedrock.strict") }
func BedrockNova() Profile              { return profile("bedrock.nova") }
func AzureStrict() Profile              { return profile("azure.strict") }
func XAITool() Profile                  { return profile("xai.tool") }
func MoonshotTool() Profile             { return profile("moonshot.tool") }
func FireworksTool() Profile            { return profile("fireworks.tool") }
func LlamaCPPTool() Profile             { return profile("llamacpp.tool") }
func CompatTool() Profile               { return profile("compat.tool") }

func geminiNames() nameRule { return GeminiParameters().names }
func claudeNames() nameRule { return AnthropicTool().names }
