// What applications use by default: the openai() model of the AI SDK, versions 5, 6 and 7,
// and a Mastra agent on it. It is the Responses API with stored items: each later request
// refers to the earlier items by id.
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { createOpenAI as openai5 } from '@ai-sdk/openai-v5'
import { createOpenAI as openai6 } from '@ai-sdk/openai-v6'
import { createOpenAI as openai7 } from '@ai-sdk/openai'
import * as ai5 from 'ai-v5'
import * as ai6 from 'ai-v6'
import * as ai7 from 'ai'
import { z } from 'zod'
import { tool } from './cases.mjs'

const settings = ({ base, key }) => ({ baseURL: base + '/v1', apiKey: key })
const reasoning = { openai: { reasoningEffort: 'low', reasoningSummary: 'auto' } }
const input = z.object({ city: z.string() })

// sdk talks with generateText and streamText, which run the tools themselves.
const sdk = (version, ai, open) => ({
  name: `ai ${version}, defaults`,
  talk(world, model, { system, run, think, stream }) {
    const messages = []
    return async (content) => {
      messages.push({ role: 'user', content })
      const request = {
        model: open(settings(world))(model),
        maxRetries: 0, system, messages,
        tools: { [tool.name]: ai.tool({ description: tool.description, inputSchema: input, execute: run }) },
        stopWhen: (ai.isStepCount ?? ai.stepCountIs)(5),
        providerOptions: think ? reasoning : {},
      }
      const failures = []
      const done = stream ? ai.streamText({ ...request, onError: ({ error }) => failures.push(error) }) : await ai.generateText(request)
      if (stream) for await (const part of done.fullStream) if (part.type === 'error') throw part.error
      if (failures.length) throw failures[0]
      // Of the versions, 5 and 6 have all steps here, and 7 has the last one only.
      const steps = await done.steps
      const all = (await done.response).messages
      messages.push(...(version === 7 && steps.length > 1 && !all.some((m) => m.role === 'tool') ? steps.flatMap((s) => s.response.messages) : all))
      return done.text
    }
  },
})

const mastra = {
  name: 'mastra',
  talk(world, model, { system, run, think, stream }) {
    const agent = new Agent({
      id: 'assistant', name: 'Assistant', instructions: system, model: openai7(settings(world))(model), maxRetries: 0,
      tools: { [tool.name]: createTool({ id: tool.name, description: tool.description, inputSchema: input, execute: async ({ city }) => run({ city }) }) },
    })
    const messages = []
    return async (content) => {
      messages.push({ role: 'user', content })
      const options = { maxSteps: 5, providerOptions: think ? reasoning : {} }
      const done = stream ? await agent.stream(messages, options) : await agent.generate(messages, options)
      const text = await done.text
      if (await done.error) throw await done.error
      messages.push(...(await done.response).messages)
      return text
    }
  },
}

export const clients = [sdk(5, ai5, openai5), sdk(6, ai6, openai6), sdk(7, ai7, openai7), mastra]
