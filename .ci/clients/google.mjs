// The @google/genai package.
import { GoogleGenAI } from '@google/genai'
import { said, tool, person } from './cases.mjs'

const open = ({ base, key }) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: base } })
const declared = { functionDeclarations: [{ name: tool.name, description: tool.description, parametersJsonSchema: tool.schema }] }

export const clients = [{
  name: 'google genai',
  ends: { stop: 'STOP', calls: 'STOP' },
  errors: { unknown: 'ApiError', limited: 'ApiError', stranger: 'ApiError' },
  judge: (e) => ({ name: e.constructor.name, status: e.status, message: e.message }),
  open(world, model) {
    const client = open(world)
    const contents = []
    return {
      say: (text) => contents.push({ role: 'user', parts: [{ text }] }),
      answer: (results) =>
        contents.push({ role: 'user', parts: results.map((r) => ({ functionResponse: { id: r.id, name: r.name, response: { output: r.output } } })) }),
      async turn({ tools, schema, think, stream }) {
        const config = {}
        if (think) config.thinkingConfig = { includeThoughts: true, thinkingBudget: 1024 }
        if (tools) config.tools = [declared]
        if (schema) Object.assign(config, { responseMimeType: 'application/json', responseJsonSchema: person })
        const ask = { model, contents: [...contents], config }
        const s = said()
        const parts = []
        const add = (chunk) => {
          for (const p of chunk.candidates?.[0]?.content?.parts ?? []) {
            parts.push(p)
            if (p.text) s.pieces++
            if (p.text) s[p.thought ? 'thought' : 'text'] += p.text
            if (p.functionCall) s.calls.push({ id: p.functionCall.id, name: p.functionCall.name, args: p.functionCall.args })
          }
          s.end = chunk.candidates?.[0]?.finishReason ?? s.end
          const u = chunk.usageMetadata
          if (u) s.usage = { input: u.promptTokenCount, output: u.candidatesTokenCount }
        }
        if (stream) {
          for await (const chunk of await client.models.generateContentStream(ask)) add(chunk)
        } else {
          add(await client.models.generateContent(ask))
        }
        contents.push({ role: 'model', parts })
        return s
      },
    }
  },
  async others(world, model) {
    const { models } = open(world)
    const names = []
    for await (const m of await models.list()) names.push(m.name.replace('models/', ''))
    const { totalTokens: tokens } = await models.countTokens({ model, contents: 'Hello!' })
    return { names, found: (await models.get({ model })).name, tokens }
  },
  async loop(world, model, run, stream) {
    const callable = {
      tool: async () => declared,
      callTool: async (calls) => calls.map((k) => ({ functionResponse: { id: k.id, name: k.name, response: { output: run(k.args) } } })),
    }
    const ask = { model, contents: 'What is the weather in Oslo and in Rome?', config: { tools: [callable] } }
    if (!stream) return (await open(world).models.generateContent(ask)).text
    let text = ''
    for await (const chunk of await open(world).models.generateContentStream(ask)) text += chunk.text ?? ''
    return text
  },
}]
