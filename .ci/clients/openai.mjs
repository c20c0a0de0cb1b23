// The openai package, its Chat Completions and its Responses.
import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { said, tool, person } from './cases.mjs'

const open = ({ base, key }) => new OpenAI({ baseURL: base + '/v1', apiKey: key, maxRetries: 0 })
const Person = z.object({ name: z.string(), age: z.number().int() })
const judge = (e) => ({ name: e.constructor.name, status: e.status, message: e.message, wait: e.headers?.get('retry-after') })
const errors = { unknown: 'NotFoundError', limited: 'RateLimitError', stranger: 'AuthenticationError' }

const chatTool = { type: 'function', function: { name: tool.name, description: tool.description, parameters: tool.schema, strict: true } }

const chat = {
  name: 'openai chat',
  ends: { stop: 'stop', calls: 'tool_calls' },
  errors, judge,
  open(world, model) {
    const client = open(world)
    const messages = []
    return {
      say: (content) => messages.push({ role: 'user', content }),
      answer: (results) => results.forEach((r) => messages.push({ role: 'tool', tool_call_id: r.id, content: r.output })),
      async turn({ tools, schema, think, stream }) {
        const body = { model, messages }
        if (think) body.reasoning_effort = 'high'
        if (tools) body.tools = [chatTool]
        if (schema) body.response_format = { type: 'json_schema', json_schema: { name: 'person', schema: person, strict: true } }
        const s = said()
        let done
        if (stream) {
          const events = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } })
          events.on('content', () => s.pieces++)
          events.on('chunk', (chunk) => (s.thought += chunk.choices[0]?.delta.reasoning_content ?? '')) // it forgets what it does not know
          done = await events.finalChatCompletion()
        } else {
          done = await client.chat.completions.create(body)
        }
        const { message, finish_reason } = done.choices[0]
        messages.push(message)
        s.text = message.content ?? ''
        s.thought ||= message.reasoning_content ?? '' // where most servers have it that are not OpenAI's
        s.calls = (message.tool_calls ?? []).map((k) => ({ id: k.id, name: k.function.name, args: JSON.parse(k.function.arguments) }))
        s.end = finish_reason
        s.usage = { input: done.usage.prompt_tokens, output: done.usage.completion_tokens }
        return s
      },
    }
  },
  async others(world, model) {
    const { models } = open(world)
    return { names: (await models.list()).data.map((m) => m.id), found: (await models.retrieve(model)).id }
  },
  async loop(world, model, run, stream) {
    const runner = open(world).chat.completions.runTools({
      model, stream,
      messages: [{ role: 'user', content: 'What is the weather in Oslo and in Rome?' }],
      tools: [{ type: 'function', function: { name: tool.name, description: tool.description, parameters: tool.schema, parse: JSON.parse, function: run } }],
    })
    return runner.finalContent()
  },
  async parse(world, model, stream) {
    const body = { model, messages: [{ role: 'user', content: 'Ann is 42' }], response_format: zodResponseFormat(Person, 'person') }
    const { chat } = open(world)
    const done = stream ? await chat.completions.stream(body).finalChatCompletion() : await chat.completions.parse(body)
    return done.choices[0].message.parsed
  },
}

const responsesTool = { type: 'function', name: tool.name, description: tool.description, parameters: tool.schema, strict: true }

// responses keeps the conversation itself, or leaves that to the server.
const responses = (stored) => ({
  name: stored ? 'openai responses, stored' : 'openai responses',
  ends: { stop: 'completed', calls: 'completed' },
  errors, judge,
  open(world, model) {
    const client = open(world)
    let input = []
    let previous
    return {
      say: (content) => input.push({ role: 'user', content }),
      answer: (results) => results.forEach((r) => input.push({ type: 'function_call_output', call_id: r.id, output: r.output })),
      async turn({ tools, schema, think, stream }) {
        const body = { model, input, store: stored, previous_response_id: previous }
        if (think) Object.assign(body, { reasoning: { effort: 'high', summary: 'auto' }, include: stored ? [] : ['reasoning.encrypted_content'] })
        if (tools) body.tools = [responsesTool]
        if (schema) body.text = { format: { type: 'json_schema', name: 'person', schema: person, strict: true } }
        const s = said()
        let done
        if (stream) {
          const events = client.responses.stream(body)
          events.on('response.output_text.delta', () => s.pieces++)
          done = await events.finalResponse()
        } else {
          done = await client.responses.create(body)
        }
        if (stored) {
          previous = done.id
          input = []
        } else {
          input.push(...done.output)
        }
        s.text = done.output_text
        s.thought = done.output.filter((i) => i.type === 'reasoning').flatMap((i) => [...i.summary, ...(i.content ?? [])]).map((p) => p.text).join('')
        s.calls = done.output.filter((i) => i.type === 'function_call').map((k) => ({ id: k.call_id, name: k.name, args: JSON.parse(k.arguments) }))
        s.end = done.status
        s.usage = { input: done.usage.input_tokens, output: done.usage.output_tokens }
        return s
      },
    }
  },
  async others(world, model) {
    const { models, responses } = open(world)
    const { id } = await responses.create({ model, input: 'Hello!' })
    assert.equal((await responses.retrieve(id)).output_text, 'You said: Hello!')
    await responses.delete(id)
    await assert.rejects(responses.retrieve(id), OpenAI.NotFoundError)
    return { names: (await models.list()).data.map((m) => m.id), found: (await models.retrieve(model)).id }
  },
  async parse(world, model, stream) {
    const body = { model, input: 'Ann is 42', text: { format: zodTextFormat(Person, 'person') } }
    const { responses } = open(world)
    const done = stream ? await responses.stream(body).finalResponse() : await responses.parse(body)
    return done.output_parsed
  },
})

export const clients = [chat, responses(false), responses(true)]
