// The upstreams that the clients are tried with. Each has models whose vendors refuse
// something, so that the strict upstream has rules for them:
//
//	node upstreams.mjs URL   prints the config of a gateway with the upstreams at a URL
//	node upstreams.mjs       prints the names of all models, separated by commas
//
// model is for requests without reasoning settings, thinking for those with them; silent
// upstreams do not return reasoning; textOnly is set if the model reads no images.
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'

export const upstreams = {
  chat: { type: 'compatible', path: '/v1', model: 'llama-9b-instruct', thinking: 'local-thinker?reasoning_field=reasoning_content' },
  openai: { type: 'openai-chat', path: '/v1', model: 'gpt-4.1', thinking: 'gpt-5', silent: true },
  responses: { type: 'openai', path: '/v1', model: 'gpt-4.1', thinking: 'gpt-5' },
  anthropic: { type: 'anthropic', model: 'claude-sonnet-4-5', thinking: 'claude-sonnet-4-5' },
  claude5: { type: 'anthropic', model: 'claude-opus-5-5', thinking: 'claude-opus-5-5' },
  gemini: { type: 'gemini', model: 'gemini-3.5-flash', thinking: 'gemini-3.5-flash' },
  ollama: { type: 'ollama', model: 'llama3.2', thinking: 'qwen3', textOnly: true },
  bedrock: { type: 'bedrock', region: 'eu-central-1', model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0', thinking: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0' },
}

const withoutKeys = ['compatible', 'ollama']

// config returns the config of a gateway. A refused request is not sent again: the client
// is to see the refusal.
function config(url) {
  const providers = {}
  const aliases = {}
  for (const [name, { type, path = '', region, model, thinking }] of Object.entries(upstreams)) {
    providers[name] = { type, base_url: url + path, retries: 0, ...(region && { region }), ...(!withoutKeys.includes(type) && { api_key_env: 'SIM_KEY' }) }
    aliases[`${name}-429`] = `${name}/${model}?fault=429`
    aliases[`${name}-cut`] = `${name}/${model}?fault=cut`
    aliases[`${name}-thinking`] = `${name}/${thinking}`
    // The AI SDK sends reasoning settings only to names that it takes for reasoning models.
    aliases[`gpt-5-${name}`] = `${name}/${thinking}`
    aliases[`gpt-5-plain-${name}`] = `${name}/${model}`
  }
  return { version: 1, providers, aliases, gateway: { keys: { clients: { key_env: 'CLIENT_KEY' } } } }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const names = Object.values(upstreams).flatMap(({ model, thinking }) => [model, thinking.split('?')[0]])
  console.log(argv[2] ? JSON.stringify(config(argv[2])) : [...new Set(names)].join(','))
}
