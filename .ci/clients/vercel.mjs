// The ai package with the packages of its providers.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText, isStepCount, jsonSchema, Output, tool as define } from 'ai'
import { createOllama } from 'ollama-ai-provider-v2'
import { createOllama as createOllamaSDK } from 'ai-sdk-ollama'
import { z } from 'zod'
import { everywhere, said, tool, person } from './cases.mjs'

const providers = {
  'openai chat': ({ base, key }) => createOpenAI({ baseURL: base + '/v1', apiKey: key }).chat,
  'openai responses': ({ base, key }) => createOpenAI({ baseURL: base + '/v1', apiKey: key }),
  'openai-compatible': ({ base, key }) =>
    createOpenAICompatible({ name: 'dragoman', baseURL: base + '/v1', apiKey: key, supportsStructuredOutputs: true, includeUsage: true }),
  anthropic: ({ base, key }) => createAnthropic({ baseURL: base + '/v1', apiKey: key }),
  google: ({ base, key }) => createGoogleGenerativeAI({ baseURL: base + '/v1beta', apiKey: key }),
  'ollama-ai-provider-v2': ({ base, key }) => createOllama({ baseURL: base + '/api', headers: { Authorization: 'Bearer ' + key } }),
  'ai-sdk-ollama': ({ base, key }) => createOllamaSDK({ baseURL: base, apiKey: key }),
}

// What they make of errors. Two packages that speak Ollama's language are not of its
// makers: one wraps the error of the ollama package, the other looks for a message
// where Ollama's servers have none, and tells the status in words.
const judge = (e) => ({ name: e.name, status: e.statusCode, message: e.message, wait: e.responseHeaders?.['retry-after'] })
const judges = {
  'ollama-ai-provider-v2': (e) => ({ ...judge(e), message: JSON.parse(e.responseBody).error }),
  'ai-sdk-ollama': (e) => ({ name: e.name, status: e.cause?.status_code, message: e.message }),
}
const named = (name) => ({ unknown: name, limited: name, stranger: name })
const errors = { 'ai-sdk-ollama': named('OllamaError') }

// What they do not show: reasoning in Chat, which OpenAI's servers do not tell; of
// Responses all but summaries, which the simulator does not make; and in Ollama's
// language that of models which think as they like, and tell it where they are asked
// for more.
const hides = {
  'openai chat': everywhere, 'openai responses': ['responses'],
  'ollama-ai-provider-v2': ['chat', 'responses'], 'ai-sdk-ollama': ['chat', 'responses'],
}

// One passes over errors within a stream.
const broken = { 'ollama-ai-provider-v2': 'other' }

// A result of Gemini's has to be an object: this is theirs.
const sends = { google: (output) => JSON.stringify({ name: tool.name, content: output }) }

// For models that @ai-sdk/anthropic does not know it asks for an object by a tool that
// the model is forced to call. Ollama's servers cannot be asked to force one.
const options = (name, model) => (name === 'anthropic' && model.startsWith('ollama/') ? { anthropic: { structuredOutputMode: 'outputFormat' } } : {})

// Each provider reads its own.
const thinking = ({ upstream }) => ({
  openai: { forceReasoning: true, reasoningEffort: 'high', reasoningSummary: 'auto' },
  dragoman: { reasoningEffort: 'high' },
  anthropic: { thinking: upstream === 'claude5' ? { type: 'adaptive' } : { type: 'enabled', budgetTokens: 1024 } },
  google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } },
  ollama: { think: true },
})

const quiet = { onError: () => {} } // or it writes to the console

const client = (name, provider) => ({
  name: 'ai, ' + name,
  ends: { stop: 'stop', calls: 'tool-calls', broken: broken[name] },
  errors: errors[name] ?? named('AI_APICallError'),
  judge: judges[name] ?? judge,
  sends: sends[name],
  hides: hides[name],
  open(world, model) {
    const messages = []
    return {
      say: (content) => messages.push({ role: 'user', content }),
      answer: (results) =>
        messages.push({
          role: 'tool',
          content: results.map((r) => ({ type: 'tool-result', toolCallId: r.id, toolName: r.name, output: { type: 'text', value: r.output } })),
        }),
      async turn({ tools, schema, think, stream }) {
        const ask = { model: provider(world)(model, { think }), messages, maxRetries: 0, providerOptions: { ...options(name, model), ...(think && thinking(world)) } }
        if (tools) ask.tools = { [tool.name]: define({ description: tool.description, inputSchema: jsonSchema(tool.schema) }) }
        if (schema) ask.output = Output.object({ schema: jsonSchema(person), name: 'person' })
        const s = said()
        let done
        if (stream) {
          done = streamText({ ...ask, ...quiet })
          for await (const part of done.fullStream) {
            if (part.type === 'error') throw part.error
            if (part.type === 'text-delta') s.pieces++
          }
        } else {
          done = await generateText(ask)
        }
        messages.push(...(await done.response).messages)
        s.text = await done.text
        s.thought = (await done.reasoningText) ?? ''
        s.calls = (await done.toolCalls).map((k) => ({ id: k.toolCallId, name: k.toolName, args: k.input }))
        s.end = await done.finishReason
        const usage = await done.usage
        s.usage = { input: usage.inputTokens, output: usage.outputTokens }
        return s
      },
    }
  },
  async loop(world, model, run, stream) {
    const ask = {
      model: provider(world)(model),
      maxRetries: 0,
      prompt: 'What is the weather in Oslo and in Rome?',
      tools: { [tool.name]: define({ description: tool.description, inputSchema: z.object({ city: z.string() }), execute: run }) },
      stopWhen: isStepCount(5),
    }
    return stream ? streamText({ ...ask, ...quiet }).text : (await generateText(ask)).text
  },
  async parse(world, model, stream) {
    const schema = z.object({ name: z.string(), age: z.number().int() })
    const ask = { model: provider(world)(model), maxRetries: 0, providerOptions: options(name, model), prompt: 'Ann is 42', output: Output.object({ schema }) }
    return stream ? streamText({ ...ask, ...quiet }).output : (await generateText(ask)).output
  },
})

export const clients = Object.entries(providers).map(([name, provider]) => client(name, provider))
