// Plain HTTP requests, written from the Open Responses document: what a client may send, and
// what it may rely on in the response. The proxy before the gateway checks every response
// against the document itself.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { seen } from './cases.mjs'
import { upstreams } from './upstreams.mjs'

const post = ({ base, key }, path, body) =>
  fetch(base + '/v1' + path, { method: 'POST', headers: { 'content-type': 'application/json', authorization: 'Bearer ' + key }, body: typeof body === 'string' ? body : JSON.stringify(body) })

const user = (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
const weather = {
  type: 'function', name: 'get_weather', description: 'Current weather in a city.', strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
}
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

// create returns the response to a request, from the events of its stream if it has one.
async function create(world, stream, body) {
  const answer = await post(world, '/responses', { model: world.model, ...body, stream })
  if (answer.status !== 200) assert.fail(`status ${answer.status}: ${brief(await answer.text())}`)
  const response = stream ? collected(await answer.text()) : await answer.json()
  complete(response)
  return response
}

// collected checks the events of a stream, and returns the response of the last one.
function collected(text) {
  const blocks = text.split('\n\n').filter((b) => b && !b.startsWith(':'))
  assert.equal(blocks.pop(), 'data: [DONE]')
  const events = blocks.map((block) => {
    const [, name, data] = block.match(/^event: (.*)\ndata: (.*)$/)
    const event = JSON.parse(data)
    assert.equal(event.type, name)
    return event
  })
  assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => events[0].sequence_number + i))
  assert.deepEqual(events.slice(0, 2).map((e) => e.type), ['response.created', 'response.in_progress'])
  const last = events.at(-1)
  assert.equal(last.type, 'response.completed')
  last.response.output.forEach((item, i) => {
    const of = (type) => events.filter((e) => e.type === type && e.output_index === i)
    assert.equal(of('response.output_item.added').length, 1)
    assert.deepEqual(of('response.output_item.done').map((e) => e.item), [item])
    if (item.type === 'message') assert.equal(of('response.output_text.delta').map((e) => e.delta).join(''), said(item))
    if (item.type === 'function_call') assert.equal(of('response.function_call_arguments.delta').map((e) => e.delta).join(''), item.arguments)
  })
  return last.response
}

const brief = (text) => text.slice(0, 300)
const said = (item) => item.content.map((p) => p.text).join('')
const textOf = (response) => response.output.filter((i) => i.type === 'message').map(said).join('')
const callOf = (response) => response.output.find((i) => i.type === 'function_call')

// complete checks the fields that a completed response always has.
function complete(r) {
  assert.deepEqual([r.object, r.status, r.error, r.incomplete_details], ['response', 'completed', null, null])
  for (const key of ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'top_logprobs']) assert.equal(typeof r[key], 'number', key)
  for (const key of ['id', 'model', 'service_tier', 'truncation']) assert.equal(typeof r[key], 'string', key)
  assert.ok(r.completed_at >= r.created_at, `completed at ${r.completed_at}, created at ${r.created_at}`)
  assert.equal(r.usage.total_tokens, r.usage.input_tokens + r.usage.output_tokens)
}

// echoes checks that a response repeats settings of its request. Where the gateway passes the
// response through, that is up to the simulator, which does not.
function echoes(world, got, want) {
  if (world.upstream !== 'responses') assert.deepEqual(got, want)
}

// saw checks that the last request of the upstream with a mark has all of some texts.
async function saw(mark, ...wanted) {
  const last = (await seen(mark)).at(-1) ?? []
  for (const want of wanted) assert.ok(last.some((s) => s.includes(want)), `the upstream did not see ${want}, only ${JSON.stringify(last)}`)
}

async function text(world, stream) {
  const r = await create(world, stream, { input: 'Hello!', temperature: 1, metadata: { case: 'text' } })
  assert.equal(textOf(r), 'You said: Hello!')
  echoes(world, r.metadata, { case: 'text' })
}

async function tools(world, stream) {
  const r = await create(world, stream, { input: [user('What is the weather in Oslo?')], tools: [weather], tool_choice: 'auto' })
  const call = callOf(r)
  assert.deepEqual([call.name, JSON.parse(call.arguments), call.status], ['get_weather', { city: 'Oslo' }, 'completed'])
  echoes(world, r.tools.map((t) => [t.type, t.name]), [['function', 'get_weather']])
}

// turns: the client sends the whole conversation.
async function turns(world, stream) {
  const mark = randomUUID()
  const input = [user(`My code is ${mark}!`)]
  input.push(...(await create(world, stream, { input, store: false })).output)
  input.push(user('What is the weather in Oslo?'))
  const asked = await create(world, stream, { input, tools: [weather], store: false })
  input.push(...asked.output, { type: 'function_call_output', call_id: callOf(asked).call_id, output: `4 °C, ${mark}` })
  const last = await create(world, stream, { input, tools: [weather], store: false })
  assert.ok(textOf(last).includes(`4 °C, ${mark}`), textOf(last))
  await saw(mark, `You said: My code is ${mark}!`, `4 °C, ${mark}`)
}

// stored: the server has the conversation, and the client refers to it.
async function stored(world, stream) {
  const mark = randomUUID()
  const first = await create(world, stream, { input: `My code is ${mark}!` })
  const asked = await create(world, stream, { input: 'What is the weather in Oslo?', previous_response_id: first.id, tools: [weather] })
  echoes(world, asked.previous_response_id, first.id)
  const output = { type: 'function_call_output', call_id: callOf(asked).call_id, output: `4 °C, ${mark}` }
  const last = await create(world, stream, { input: [output], previous_response_id: asked.id, tools: [weather] })
  assert.ok(textOf(last).includes(`4 °C, ${mark}`), textOf(last))
  if (world.upstream !== 'responses') await saw(mark, `You said: My code is ${mark}!`, `4 °C, ${mark}`) // that one has stored it
}

// references: the client refers to single items.
async function references(world, stream) {
  const mark = randomUUID()
  const reference = (i) => ({ type: 'item_reference', id: i.id })
  const question = user(`My code is ${mark}!`)
  const first = await create(world, stream, { input: [question] })
  const next = user('What is the weather in Oslo?')
  const asked = await create(world, stream, { input: [question, ...first.output.map(reference), next], tools: [weather] })
  const output = { type: 'function_call_output', call_id: callOf(asked).call_id, output: `4 °C, ${mark}` }
  const last = await create(world, stream, { input: [question, ...first.output.map(reference), next, ...asked.output.map(reference), output], tools: [weather] })
  assert.ok(textOf(last).includes(`4 °C, ${mark}`), textOf(last))
  await saw(mark, `You said: My code is ${mark}!`, `4 °C, ${mark}`)
}

async function image(world, stream) {
  const mark = randomUUID()
  const content = [{ type: 'input_text', text: `What is this, ${mark}?` }, { type: 'input_image', image_url: 'data:image/png;base64,' + pixel, detail: 'auto' }]
  await create(world, stream, { input: [{ type: 'message', role: 'user', content }] })
  await saw(mark, upstreams[world.upstream].textOnly ? '[image not shown]' : pixel)
}

async function system(world, stream) {
  const mark = randomUUID()
  const message = (role, text) => ({ type: 'message', role, content: [{ type: 'input_text', text }] })
  const r = await create(world, stream, { instructions: `Be brief, ${mark}.`, input: [message('system', `Be kind, ${mark}.`), message('developer', `Be exact, ${mark}.`), user('Hello!')] })
  echoes(world, r.instructions, `Be brief, ${mark}.`)
  await saw(mark, `Be brief, ${mark}.`, `Be kind, ${mark}.`, `Be exact, ${mark}.`)
}

// phase: earlier assistant messages say whether they are the answer.
async function phase(world, stream) {
  const mark = randomUUID()
  const assistant = (text, phase) => ({ type: 'message', role: 'assistant', phase, content: [{ type: 'output_text', text }] })
  await create(world, stream, { input: [user('Hello!'), assistant(`Let me think, ${mark}.`, 'commentary'), assistant(`Hello, ${mark}!`, 'final_answer'), user('Go on!')] })
  await saw(mark, `Let me think, ${mark}.`, `Hello, ${mark}!`, ...(world.upstream === 'responses' ? ['commentary', 'final_answer'] : []))
}

async function errors(world, stream) {
  const refused = async (status, body, about) => {
    const answer = await post(world, '/responses', body)
    const text = await answer.text()
    assert.ok([status].flat().includes(answer.status), `status ${answer.status}, not ${status}, for ${JSON.stringify(body)}: ${brief(text)}`)
    const { error } = JSON.parse(text)
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type'])
    assert.match(error.message, about)
  }
  const body = { model: world.model, stream }
  await refused(400, '{"model":', /JSON/)
  await refused(404, { ...body, model: world.upstream + '/no-such-model', input: 'Hello!' }, /no-such-model/)
  await refused(400, { ...body, input: 'Hello!', temperature: 'warm' }, /temperature/)
  await refused([400, 404], { ...body, input: 'Hello!', previous_response_id: 'resp_none' }, /resp_none/)
  await refused([400, 404], { ...body, input: [{ type: 'item_reference', id: 'msg_none' }, user('Hello!')] }, /msg_none/)
  await refused([400, 404], { ...body, input: 'Hello!', conversation: 'conv_none' }, /conv_none/)
  await refused(429, { ...body, model: world.limited, input: 'Hello!' }, /simulator/)
}

// compact: a conversation becomes a shorter one, which the next request begins with.
async function compact(world, stream) {
  if (stream) return
  const mark = randomUUID()
  const input = [user(`My code is ${mark}!`), { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I see.' }] }, user('Hello!')]
  const answer = await post(world, '/responses/compact', { model: world.model, input })
  const body = await answer.text()
  assert.equal(answer.status, 200, brief(body))
  const compacted = JSON.parse(body)
  assert.equal(compacted.object, 'response.compaction')
  assert.ok(compacted.output.length > 0 && compacted.usage.total_tokens >= 0, body)
  const next = await create(world, false, { input: [...compacted.output, user('Goodbye!')], store: false })
  assert.ok(textOf(next).endsWith('Goodbye!'), textOf(next))
  await saw(mark, mark, 'Goodbye!') // the summary has the code
}

export const suite = { name: 'open responses', cases: { text, tools, turns, stored, references, image, system, phase, errors, compact } }
