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
	chat := dialects.Default() // compatible servers speak it
	return append(vendors(), []builtin{
		{names: []string{"deepseek"}, codec: chat, base: "https://api.deepseek.com", keyEnv: []string{"DEEPSEEK_API_KEY"}},
		{names: []string{"mistral"}, codec: chat, base: "https://api.mistral.ai/v1", keyEnv: []string{"MISTRAL_API_KEY"}},
		{names: []string{"groq"}, codec: chat, base: "https://api.groq.com/openai/v1", keyEnv: []string{"GROQ_API_KEY"}},
		{names: []string{"openrouter"}, codec: chat, base: "https://openrouter.ai/api/v1", keyEnv: []string{"OPENROUTER_API_KEY"}},
		{names: []string{"xai", "grok"}, codec: chat, base: "https://api.x.ai/v1", keyEnv: []string{"XAI_API_KEY"}},
		{names: []string{"moonshot", "kimi"}, codec: chat, base: "https://api.moonshot.ai/v1", keyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}},
		{names: []string{"qwen", "dashscope"}, codec: chat, base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", keyEnv: []string{"DASHSCOPE_API_KEY"}},
		{names: []string{"zai", "glm"}, codec: chat, base: "https://api.z.ai/api/paas/v4", keyEnv: []string{"ZAI_API_KEY", "Z_AI_API_KEY"}},
		{names: []string{"together"}, codec: chat, base: "https://api.together.xyz/v1", keyEnv: []string{"TOGETHER_API_KEY"}},
		{names: []string{"fireworks"}, codec: chat, base: "https://api.fireworks.ai/inference/v1", keyEnv: []string{"FIREWORKS_API_KEY"}},
		{names: []string{"cerebras"}, codec: chat, base: "https://api.cerebras.ai/v1", keyEnv: []string{"CEREBRAS_API_KEY"}},
		// What runs at home.
		{names: []string{"vllm"}, codec: chat, base: "http://127.0.0.1:8000/v1", keyEnv: []string{"VLLM_API_KEY"}, keyless: true},
		{names: []string{"llamacpp", "llama.cpp"}, codec: chat, base: "http://127.0.0.1:8080/v1", keyEnv: []string{"LLAMACPP_API_KEY"}, keyless: true},
		{names: []string{"lmstudio"}, codec: chat, base: "http://127.0.0.1:1234/v1", keyEnv: []string{"LMSTUDIO_API_KEY"}, keyless: true},
		// Any server of OpenAI's dialect; it has no place of its own.
		{names: []string{"compatible"}, codec: chat, base: nowhere, keyless: true},
	}...)
})

// vendors returns the providers that the dialects declare. One with another vendor's server
// is listed behind that vendor.
func vendors() (out []builtin) {
	var others []builtin
	for _, codec := range dialects.All() {
		for _, p := range wire.Of(codec).Providers {
			b := builtin{names: p.Names, server: p.Server, codec: codec, keyEnv: p.KeyEnv, baseEnv: p.BaseEnv, header: p.KeyHeader, keyless: p.Keyless}
			if b.server == "" {
				out = append(out, b)
			} else {
				others = append(others, b)
			}
		}
	}
	for _, b := range others {
		i := slices.IndexFunc(out, func(vendor builtin) bool { return vendor.names[0] == b.server })
		out = slices.Insert(out, i+1, b)
	}
	return out
}

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
