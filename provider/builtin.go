package provider

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// builtin is a provider that is known by name, as data.
type builtin struct {
	// names are what it is called; the first is its own.
	names []string
	codec dialect.Codec
	// base is where it is; empty means that of the dialect's vendor.
	base string
	// baseEnv are the variables that say where else; the first name with
	// _BASE_URL is one in any case.
	baseEnv []string
	// keyEnv are the variables that may hold its key, header the header that
	// takes it; empty means a bearer. keyless servers work without one.
	keyEnv  []string
	header  string
	keyless bool
	// server is the name by which extensions know its accent; empty means the
	// first of its own.
	server string
}

// builtins returns the providers that are known, vendors first. The table is made once,
// because requests look names up in it. It must not be changed.
var builtins = sync.OnceValue(func() []builtin {
	return []builtin{
		// OpenAI's models since 5.4 call no tools on Chat while they think (quirk
		// E12), so the name alone means Responses.
		{names: []string{"openai"}, codec: openairesponses.Codec{}, keyEnv: []string{"OPENAI_API_KEY"}},
		{names: []string{"openai-chat"}, server: "openai", codec: openaichat.Codec{}, keyEnv: []string{"OPENAI_API_KEY"}, baseEnv: []string{"OPENAI_BASE_URL"}},
		{names: []string{"anthropic"}, codec: anthropic.Codec{}, keyEnv: []string{"ANTHROPIC_API_KEY"}, header: "X-Api-Key"},
		{names: []string{"gemini", "google"}, codec: gemini.Codec{}, keyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, header: "X-Goog-Api-Key", baseEnv: []string{"GOOGLE_GEMINI_BASE_URL"}},
		{names: []string{"vertex"}, codec: gemini.Codec{}, keyEnv: []string{"GOOGLE_OAUTH_ACCESS_TOKEN"}},
		{names: []string{"ollama"}, codec: ollama.Codec{}, keyEnv: []string{"OLLAMA_API_KEY"}, keyless: true, baseEnv: []string{"OLLAMA_HOST"}},
		{names: []string{"bedrock"}, codec: bedrock.Codec{}, baseEnv: []string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}},

		{names: []string{"deepseek"}, codec: openaichat.Codec{}, base: "https://api.deepseek.com", keyEnv: []string{"DEEPSEEK_API_KEY"}},
		{names: []string{"mistral"}, codec: openaichat.Codec{}, base: "https://api.mistral.ai/v1", keyEnv: []string{"MISTRAL_API_KEY"}},
		{names: []string{"groq"}, codec: openaichat.Codec{}, base: "https://api.groq.com/openai/v1", keyEnv: []string{"GROQ_API_KEY"}},
		{names: []string{"openrouter"}, codec: openaichat.Codec{}, base: "https://openrouter.ai/api/v1", keyEnv: []string{"OPENROUTER_API_KEY"}},
		{names: []string{"xai", "grok"}, codec: openaichat.Codec{}, base: "https://api.x.ai/v1", keyEnv: []string{"XAI_API_KEY"}},
		{names: []string{"moonshot", "kimi"}, codec: openaichat.Codec{}, base: "https://api.moonshot.ai/v1", keyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}},
		{names: []string{"qwen", "dashscope"}, codec: openaichat.Codec{}, base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", keyEnv: []string{"DASHSCOPE_API_KEY"}},
		{names: []string{"zai", "glm"}, codec: openaichat.Codec{}, base: "https://api.z.ai/api/paas/v4", keyEnv: []string{"ZAI_API_KEY", "Z_AI_API_KEY"}},
		{names: []string{"together"}, codec: openaichat.Codec{}, base: "https://api.together.xyz/v1", keyEnv: []string{"TOGETHER_API_KEY"}},
		{names: []string{"fireworks"}, codec: openaichat.Codec{}, base: "https://api.fireworks.ai/inference/v1", keyEnv: []string{"FIREWORKS_API_KEY"}},
		{names: []string{"cerebras"}, codec: openaichat.Codec{}, base: "https://api.cerebras.ai/v1", keyEnv: []string{"CEREBRAS_API_KEY"}},
		// What runs at home.
		{names: []string{"vllm"}, codec: openaichat.Codec{}, base: "http://127.0.0.1:8000/v1", keyEnv: []string{"VLLM_API_KEY"}, keyless: true},
		{names: []string{"llamacpp", "llama.cpp"}, codec: openaichat.Codec{}, base: "http://127.0.0.1:8080/v1", keyEnv: []string{"LLAMACPP_API_KEY"}, keyless: true},
		{names: []string{"lmstudio"}, codec: openaichat.Codec{}, base: "http://127.0.0.1:1234/v1", keyEnv: []string{"LMSTUDIO_API_KEY"}, keyless: true},
		// Any server of OpenAI's dialect; it has no place of its own.
		{names: []string{"compatible"}, codec: openaichat.Codec{}, base: nowhere, keyless: true},
	}
})

// nowhere is the base of what has none.
const nowhere = "-"

// builtinNamed finds a provider by one of its names.
func builtinNamed(name string) (builtin, bool) {
	all := builtins()
	i := slices.IndexFunc(all, func(b builtin) bool { return slices.Contains(b.names, name) })
	if i < 0 {
		return builtin{}, false
	}
	return all[i], true
}

// accent is the name by which extensions know the server.
func (b builtin) accent() string { return cmp.Or(b.server, b.names[0]) }

// baseVariables are the variables that may say where a provider is.
func (b builtin) baseVariables() []string {
	own := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(b.names[0])) + "_BASE_URL"
	return append([]string{own}, b.baseEnv...)
}
