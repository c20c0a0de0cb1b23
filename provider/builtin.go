package provider

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// builtin describes a provider that is known by name.
type builtin struct {
	wire.Provider
	codec dialect.Codec
	// base is the base URL; empty means that of the dialect's vendor.
	base string
}

// builtins returns the built-in providers, vendors first. The table is built once, because
// requests look names up in it. It must not be changed.
var builtins = sync.OnceValue(func() []builtin {
	chat := dialects.Default() // the dialect of compatible servers
	return append(vendors(), []builtin{
		{wire.Provider{Names: []string{"deepseek"}, KeyEnv: []string{"DEEPSEEK_API_KEY"}}, chat, "https://api.deepseek.com"},
		{wire.Provider{Names: []string{"mistral"}, KeyEnv: []string{"MISTRAL_API_KEY"}}, chat, "https://api.mistral.ai/v1"},
		{wire.Provider{Names: []string{"groq"}, KeyEnv: []string{"GROQ_API_KEY"}}, chat, "https://api.groq.com/openai/v1"},
		{wire.Provider{Names: []string{"openrouter"}, KeyEnv: []string{"OPENROUTER_API_KEY"}}, chat, "https://openrouter.ai/api/v1"},
		{wire.Provider{Names: []string{"xai", "grok"}, KeyEnv: []string{"XAI_API_KEY"}}, chat, "https://api.x.ai/v1"},
		{wire.Provider{Names: []string{"moonshot", "kimi"}, KeyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}}, chat, "https://api.moonshot.ai/v1"},
		{wire.Provider{Names: []string{"qwen", "dashscope"}, KeyEnv: []string{"DASHSCOPE_API_KEY"}}, chat, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"},
		{wire.Provider{Names: []string{"zai", "glm"}, KeyEnv: []string{"ZAI_API_KEY", "Z_AI_API_KEY"}}, chat, "https://api.z.ai/api/paas/v4"},
		{wire.Provider{Names: []string{"together"}, KeyEnv: []string{"TOGETHER_API_KEY"}}, chat, "https://api.together.xyz/v1"},
		{wire.Provider{Names: []string{"fireworks"}, KeyEnv: []string{"FIREWORKS_API_KEY"}}, chat, "https://api.fireworks.ai/inference/v1"},
		{wire.Provider{Names: []string{"cerebras"}, KeyEnv: []string{"CEREBRAS_API_KEY"}}, chat, "https://api.cerebras.ai/v1"},
		// Local servers.
		{wire.Provider{Names: []string{"vllm"}, KeyEnv: []string{"VLLM_API_KEY"}, Keyless: true}, chat, "http://127.0.0.1:8000/v1"},
		{wire.Provider{Names: []string{"llamacpp", "llama.cpp"}, KeyEnv: []string{"LLAMACPP_API_KEY"}, Keyless: true}, chat, "http://127.0.0.1:8080/v1"},
		{wire.Provider{Names: []string{"lmstudio"}, KeyEnv: []string{"LMSTUDIO_API_KEY"}, Keyless: true}, chat, "http://127.0.0.1:1234/v1"},
		// Any server of the dialect; it has no default base URL.
		{wire.Provider{Names: []string{"compatible"}, Keyless: true}, chat, noDefaultBase},
	}...)
})

// vendors returns the providers that the dialects declare. A provider that uses the server of
// another vendor follows that vendor.
func vendors() (out []builtin) {
	var others []builtin
	for _, codec := range dialects.All() {
		for _, p := range wire.Of(codec).Providers {
			b := builtin{Provider: p, codec: codec}
			if b.Server == "" {
				out = append(out, b)
			} else {
				others = append(others, b)
			}
		}
	}
	for _, b := range others {
		i := slices.IndexFunc(out, func(vendor builtin) bool { return vendor.name() == b.Server })
		b.Headers = out[i].Headers
		out = slices.Insert(out, i+1, b)
	}
	return out
}

// noDefaultBase is the base of providers without a default base URL.
const noDefaultBase = "-"

// builtinNamed finds a provider by one of its names.
func builtinNamed(name string) (builtin, bool) {
	all := builtins()
	i := slices.IndexFunc(all, func(b builtin) bool { return slices.Contains(b.Names, name) })
	if i < 0 {
		return builtin{}, false
	}
	return all[i], true
}

// serverName returns the name of the server for extensions.
func (b builtin) serverName() string { return cmp.Or(b.Server, b.name()) }

// name returns the provider's first name, which is also its type.
func (b builtin) name() string { return b.Names[0] }

// baseVariables returns the environment variables that may hold the provider's base URL.
func (b builtin) baseVariables() []string {
	own := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(b.name())) + "_BASE_URL"
	return append([]string{own}, b.BaseEnv...)
}
