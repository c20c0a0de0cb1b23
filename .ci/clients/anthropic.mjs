// The @anthropic-ai/sdk package.
import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'
import { said, tool, person } from './cases.mjs'

const open = ({ base, key }) => new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 })
const Person = z.object({ name: z.string(), age: z.number().int() })
const limit = { max_tokens: 4000 }

export const clients = [{
  name: 'anthropic',
  ends: { stop: 'end_turn', calls: 'tool_use' },
  errors: { unknown: 'NotFoundError', limited: 'RateLimitError', stranger: 'AuthenticationError' },
  judge: (e) => ({ name: e.constructor.name, status: e.status, message: e.message, wait: e.headers?.get('retry-after') }),
  open(world, model) {
    const client = open(world)
    const messages = []
    return {
      say: (content) => messages.push({ role: 'user', content }),
      answer: (results) =>
        messages.push({ role: 'user', content: results.map((r) => ({ type: 'tool_result', tool_use_id: r.id, content: r.output })) }),
      async turn({ tools, schema, think, stream }) {
        const body = { model, messages, ...limit }
        if (think) body.thinking = world.upstream === 'claude5' ? { type: 'adaptive' } : { type: 'enabled', budget_tokens: 1024 }
        if (tools) body.tools = [{ name: tool.name, description: tool.description, input_schema: tool.schema }]
        if (schema) body.output_config = { format: { type: 'json_schema', schema: person } }
        const s = said()
        let done
        if (stream) {
          const events = client.messages.stream(body)
          events.on('text', () => s.pieces++)
          done = await events.finalMessage()
        } else {
          done = await client.messages.create(body)
        }
        messages.push({ role: 'assistant', content: done.content })
        s.thought = done.content.filter((b) => b.type === 'thinking').map((b) => b.thinking).join('')
        s.text = done.content.filter((b) => b.type === 'text').map((b) => b.text).join('')
        s.calls = done.content.filter((b) => b.type === 'tool_use').map((b) => ({ id: b.id, name: b.name, args: b.input }))
        s.end = done.stop_reason
        s.usage = { input: done.usage.input_tokens, output: done.usage.output_tokens }
        return s
      },
    }
  },
  async others(world, model) {
    const { models, messages } = open(world)
    const { input_tokens: tokens } = await messages.countTokens({ model, messages: [{ role: 'user', content: 'Hello!' }] })
    return { names: (await models.list()).data.map((m) => m.id), found: (await models.retrieve(model)).id, tokens }
  },
  async loop(world, model, run, stream) {
    const runner = open(world).beta.messages.toolRunner({
      model, stream, ...limit,
      messages: [{ role: 'user', content: 'What is the weather in Oslo and in Rome?' }],
      tools: [betaZodTool({ name: tool.name, description: tool.description, inputSchema: z.object({ city: z.string() }), run })],
    })
    const last = await runner.runUntilDone()
    return last.content.map((b) => b.text ?? '').join('')
  },
  async parse(world, model, stream) {
    const body = { model, ...limit, messages: [{ role: 'user', content: 'Ann is 42' }], output_config: { format: zodOutputFormat(Person) } }
    const { messages } = open(world)
    const done = stream ? await messages.stream(body).finalMessage() : await messages.parse(body)
    return done.parsed_output
  },
}]
