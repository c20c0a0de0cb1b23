// The @openai/agents package, over both APIs. It runs tools itself; what waits for a
// person's approval is how one looks between two turns.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool as define } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { everywhere, said, tool } from './cases.mjs'

setTracingDisabled(true)

const client = (useResponses) => ({
  name: useResponses ? 'agents, responses' : 'agents, chat',
  // Of Responses it shows summaries, which the simulator does not make; of Chat what is in
  // the member "reasoning".
  hides: useResponses ? ['responses'] : everywhere,
  ends: { stop: 'done', calls: 'waits' },
  errors: { unknown: 'NotFoundError', limited: 'RateLimitError', stranger: 'AuthenticationError' },
  judge: (e) => ({ name: e.constructor.name, status: e.status, message: e.message, wait: e.headers?.get('retry-after') }),
  open(world, model) {
    const runner = newRunner(world, useResponses)
    let input, outputs, agent
    const execute = ({ city }) => outputs[city]
    return {
      say: (prompt) => (input = prompt),
      answer: (results) => {
        outputs = {}
        for (const k of input.getInterruptions()) {
          outputs[JSON.parse(k.rawItem.arguments).city] = results.find((r) => r.id === k.rawItem.callId).output
          input.approve(k)
        }
      },
      async turn({ tools, schema, think, stream }) {
        agent ??= new Agent({
          name: 'Assistant', model,
          modelSettings: think ? { reasoning: { effort: 'high', summary: 'auto' } } : {},
          tools: tools ? [define({ name: tool.name, description: tool.description, parameters: z.object({ city: z.string() }), needsApproval: true, execute })] : [],
          ...(schema && { outputType: z.object({ name: z.string(), age: z.number().int() }) }),
        })
        const s = said()
        const result = await runner.run(agent, input, { stream })
        if (stream) {
          for await (const e of result) if (e.type === 'raw_model_stream_event' && e.data.type === 'output_text_delta') s.pieces++
          await result.completed
        }
        input = result.state
        const waiting = result.interruptions ?? []
        s.calls = waiting.map((k) => ({ id: k.rawItem.callId, name: k.rawItem.name, args: JSON.parse(k.rawItem.arguments) }))
        s.thought = result.newItems.filter((i) => i.type === 'reasoning_item').flatMap((i) => i.rawItem.content.concat(i.rawItem.rawContent ?? [])).map((p) => p.text).join('')
        s.end = waiting.length ? 'waits' : 'done'
        s.text = waiting.length ? '' : schema ? JSON.stringify(result.finalOutput) : result.finalOutput
        s.usage = { input: result.state.usage.inputTokens, output: result.state.usage.outputTokens }
        return s
      },
    }
  },
  async loop(world, model, run, stream) {
    const agent = new Agent({
      name: 'Assistant', model,
      tools: [define({ name: tool.name, description: tool.description, parameters: z.object({ city: z.string() }), execute: run })],
    })
    const result = await newRunner(world, useResponses).run(agent, 'What is the weather in Oslo and in Rome?', { stream })
    if (stream) await result.completed
    return result.finalOutput
  },
})

const newRunner = ({ base, key }, useResponses) =>
  new Runner({
    modelProvider: new OpenAIProvider({ openAIClient: new OpenAI({ baseURL: base + '/v1', apiKey: key, maxRetries: 0 }), useResponses }),
    tracingDisabled: true,
  })

export const clients = [client(true), client(false)]
