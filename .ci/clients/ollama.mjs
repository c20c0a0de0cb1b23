// The ollama package.
import assert from 'node:assert/strict'
import { Ollama } from 'ollama'
import { said, tool, person } from './cases.mjs'

const open = ({ base, key }) => new Ollama({ host: base, headers: { Authorization: 'Bearer ' + key } })

export const clients = [{
  name: 'ollama',
  noIDs: true, // its types have none
  hides: ['chat', 'responses'], // whose models think as they like, and tell it where they are asked for more
  ends: { stop: 'stop', calls: 'stop' },
  errors: { unknown: 'ResponseError', limited: 'ResponseError', stranger: 'ResponseError' },
  judge: (e) => ({ name: e.constructor.name, status: e.status_code, message: e.message }),
  async others(world, model) {
    const client = open(world)
    assert.ok((await client.version()).version)
    assert.ok((await client.show({ model })).capabilities.includes('tools'))
    return { names: (await client.list()).models.map((m) => m.name), found: model }
  },
  open(world, model) {
    const client = open(world)
    const messages = []
    return {
      say: (content) => messages.push({ role: 'user', content }),
      answer: (results) => results.forEach((r) => messages.push({ role: 'tool', tool_name: r.name, content: r.output })),
      async turn({ tools, schema, think, stream }) {
        const ask = { model, messages, think }
        if (tools) ask.tools = [{ type: 'function', function: { name: tool.name, description: tool.description, parameters: tool.schema } }]
        if (schema) ask.format = person
        const s = said()
        const add = ({ message, done, done_reason, prompt_eval_count, eval_count }) => {
          s.text += message.content
          s.thought += message.thinking ?? ''
          if (message.content) s.pieces++
          for (const k of message.tool_calls ?? []) s.calls.push({ name: k.function.name, args: k.function.arguments })
          if (done) Object.assign(s, { end: done_reason, usage: { input: prompt_eval_count, output: eval_count } })
        }
        if (stream) {
          for await (const part of await client.chat({ ...ask, stream: true })) add(part)
        } else {
          add(await client.chat(ask))
        }
        messages.push({ role: 'assistant', content: s.text, thinking: s.thought, tool_calls: s.calls.map((k) => ({ function: { name: k.name, arguments: k.args } })) })
        return s
      },
    }
  },
}]
