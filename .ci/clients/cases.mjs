// What every client has to get done, written once. A client is an object
//
//	name      what it is called in the table
//	ends      what it calls the end of an answer: {stop, calls}, and broken where it
//	          tells that by the end, and by no error
//	errors    what it calls errors: {unknown, limited, stranger}, the names of classes
//	open({base, key}, model)         a conversation
//	  .say(prompt)                   the user speaks
//	  .answer([{id, name, output}])  tools have run
//	  .turn({tools, schema, think, stream}) the model speaks: {thought, text, calls, end, usage, pieces}
//	loop({base, key}, model, run, stream)   its own tool loop, where it has one: the last text
//	parse({base, key}, model, stream)   its own structured output, where it has one
//	hides                            the upstreams whose thinking it does not show
//	sends(output)                    what it makes of a result, where that is not the result
//	others({base, key}, model)       what else it asks for: {names, found, tokens}
//	judge(error)                     {name, status, message, wait}
//	talk({base, key}, model, {system, run, think, stream})  a conversation with its own
//	  tool loop: a function from a prompt to the text of the response
//
// A client may have talk alone.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { upstreams } from './upstreams.mjs'

export const tool = {
  name: 'get_weather',
  description: 'Current weather in a city.',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
}

export const person = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
}

const weather = { Oslo: '4 °C', Rome: '21 °C' }
const both = 'What is the weather in Oslo and in Rome?'
// told is what the model makes of the results, as the client sends them.
const told = ({ sends = (output) => output }) => ['4 °C', '21 °C'].map((output) => 'get_weather says: ' + sends(output)).join('\n')

export const everywhere = Object.keys(upstreams)

// said starts an answer that is put together from pieces.
export const said = () => ({ thought: '', text: '', calls: [], end: undefined, usage: undefined, pieces: 0 })

async function text(client, world, stream) {
  const c = client.open(world, world.model)
  c.say('Hello 🙂!')
  const s = await c.turn({ stream })
  assert.equal(s.text, 'You said: Hello 🙂!')
  assert.deepEqual(s.calls, [])
  assert.equal(s.end, client.ends.stop)
  counted(s)
  if (stream) assert.ok(s.pieces > 1, `the text came in ${s.pieces} piece`)
}

async function call(client, world, stream) {
  const c = client.open(world, world.model)
  c.say("What's the weather in Oslo?")
  called(client, await c.turn({ tools: true, stream }), ['Oslo'])
}

async function parallel(client, world, stream) {
  const c = client.open(world, world.model)
  c.say(both)
  called(client, await c.turn({ tools: true, stream }), ['Oslo', 'Rome'])
}

async function twoTurns(client, world, stream) {
  const c = client.open(world, world.model)
  c.say(both)
  const s = await c.turn({ tools: true, stream })
  called(client, s, ['Oslo', 'Rome'])
  await c.answer(s.calls.map((k) => ({ id: k.id, name: k.name, output: weather[k.args.city] })))
  const last = await c.turn({ tools: true, stream })
  assert.equal(last.text, told(client))
  assert.deepEqual(last.calls, [])
  assert.equal(last.end, client.ends.stop)
  counted(last)
}

async function ownLoop(client, world, stream) {
  const ran = []
  const run = ({ city }) => {
    ran.push(city)
    return weather[city]
  }
  assert.equal(await client.loop(world, world.model, run, stream), told(client))
  assert.deepEqual(ran.sort(), ['Oslo', 'Rome'])
}

// reasoning: what the model thought before it called is shown, and sent back with the
// results.
async function reasoning(client, world, stream) {
  const c = client.open(world, world.thinking)
  c.say(both)
  const s = await c.turn({ tools: true, think: true, stream })
  called(client, s, ['Oslo', 'Rome'])
  if (!client.hides?.includes(world.upstream) && !upstreams[world.upstream].silent) assert.match(s.thought, /get_weather/)
  await c.answer(s.calls.map((k) => ({ id: k.id, name: k.name, output: weather[k.args.city] })))
  const last = await c.turn({ tools: true, think: true, stream })
  assert.equal(last.text, told(client))
  assert.equal(last.end, client.ends.stop)
}

async function structured(client, world, stream) {
  const c = client.open(world, world.model)
  c.say('Ann is 42')
  const s = await c.turn({ schema: true, stream })
  assert.deepEqual(JSON.parse(s.text), { name: 'Ann', age: 42 })
  assert.equal(s.end, client.ends.stop)
}

async function parsed(client, world, stream) {
  assert.deepEqual(await client.parse(world, world.model, stream), { name: 'Ann', age: 42 })
}

// others: what a client asks a server beside answers. It lists the names of models, and
// finds one; it counts the tokens of a prompt, where its language can.
async function others(client, world, stream) {
  if (stream) return
  const { names, found, tokens } = await client.others(world, world.model)
  assert.ok(names.includes(world.limited), `models: ${names}`)
  assert.match(found, new RegExp(world.model + '$'))
  if (tokens !== undefined) assert.ok(tokens > 0, `tokens: ${tokens}`)
}

async function unknown(client, world, stream) {
  const named = await failure(client, world, world.upstream + '/no-such-model', stream)
  assert.deepEqual([named.name, named.status], [client.errors.unknown, 404], named.message)
  assert.match(named.message, /no-such-model/)
  const nowhere = await failure(client, world, 'no-such-model', stream)
  assert.deepEqual([nowhere.name, nowhere.status], [client.errors.unknown, 404], nowhere.message)
  assert.match(nowhere.message, /unknown model .{1,3}no-such-model/) // some show the body as it is
}

async function limited(client, world, stream) {
  const e = await failure(client, world, world.limited, stream)
  assert.deepEqual([e.name, e.status], [client.errors.limited, 429], e.message)
  assert.match(e.message, /the simulator was asked for this error/)
  if (e.wait !== undefined) assert.equal(String(e.wait), '2')
}

async function stranger(client, world, stream) {
  const e = await failure(client, { ...world, key: 'no-key-of-this-gateway' }, world.model, stream)
  assert.deepEqual([e.name, e.status], [client.errors.stranger, 401], e.message)
}

// broken: the connection to the model breaks within the answer. Nobody may take what
// came for the whole of it.
async function broken(client, world, stream) {
  if (stream && client.ends.broken) {
    const c = client.open(world, world.broken)
    c.say('Hello!')
    assert.equal((await c.turn({ stream })).end, client.ends.broken)
    return
  }
  const e = await failure(client, world, world.broken, stream)
  if (!stream) assert.ok(e.status === 500 || e.status === 502, `${e.status} ${e.message}`)
  assert.match(e.message, /the connection to the upstream broke/)
}

// conversation: the model sees all of it: the system text, what it said before, its calls and
// their results. The strict upstream tells what it saw.
const conversation = (pick, think) => async (client, world, stream) => {
  const mark = randomUUID()
  const ask = client.talk(world, pick(world.upstream), { system: `Be brief, ${mark}.`, run: ({ city }) => `4 °C in ${city}, ${mark}`, think, stream })
  const first = `You said: My code is ${mark}!`
  assert.equal(await ask(`My code is ${mark}!`), first)
  const second = await ask(both)
  for (const city of ['Oslo', 'Rome']) assert.ok(second.includes(`4 °C in ${city}, ${mark}`), second)
  assert.equal(await ask('Goodbye!'), 'You said: Goodbye!')
  const last = (await seen(mark)).filter((t) => t.some((s) => s.includes('Goodbye!'))).at(-1)
  assert.ok(last, 'the upstream did not see the last prompt')
  for (const want of [`Be brief, ${mark}.`, `My code is ${mark}!`, first, both, `4 °C in Oslo, ${mark}`, `4 °C in Rome, ${mark}`, second]) {
    assert.ok(last.some((s) => s.includes(want)), `the upstream did not see ${JSON.stringify(want)}, only ${JSON.stringify(last)}`)
  }
}

// seen returns the strings of each request with a mark that the strict upstream accepted.
export async function seen(mark) {
  const bodies = await (await fetch(`${process.env.STRICT_UPSTREAM}/strict/seen?text=${mark}`)).json()
  return bodies.map((b) => texts(JSON.parse(b)))
}

// texts returns every string of a JSON value.
const texts = (v) => (typeof v === 'string' ? [v] : v && typeof v === 'object' ? Object.values(v).flatMap(texts) : [])

const talk = conversation((upstream) => `${upstream}/${upstreams[upstream].model}`, false)
const talkThinking = conversation((upstream) => 'gpt-5-' + upstream, true)
// effort: the model does not reason, or does so by itself, and the settings are dropped.
// A request that is passed through is refused, which is the vendor's to say.
const effort = conversation((upstream) => 'gpt-5-plain-' + upstream, true)

export const cases = { talk, 'talk+think': talkThinking, effort, text, call, parallel, 'two turns': twoTurns, 'own loop': ownLoop, reasoning, structured, parsed, others, unknown, limited, stranger, broken }

// applies reports whether a client has what a case is about.
export const applies = (client, name, upstream) => {
  if (name === 'effort' && upstream === 'responses') return false
  return needs[name] ? client[needs[name]] : client.open
}

const needs = { talk: 'talk', 'talk+think': 'talk', effort: 'talk', 'own loop': 'loop', parsed: 'parse', others: 'others' }

function called(client, s, cities) {
  assert.deepEqual(s.calls.map((k) => [k.name, k.args]), cities.map((city) => [tool.name, { city }]))
  const ids = s.calls.map((k) => k.id).filter(Boolean)
  assert.equal(new Set(ids).size, client.noIDs ? 0 : cities.length, `ids: ${ids}`)
  assert.equal(s.end, client.ends.calls)
  counted(s)
}

function counted(s) {
  assert.ok(s.usage?.input > 0 && s.usage?.output > 0, `usage: ${JSON.stringify(s.usage)}`)
}

async function failure(client, world, model, stream) {
  try {
    const c = client.open(world, model)
    c.say('Hello!')
    const s = await c.turn({ stream })
    assert.fail(`no error: ${JSON.stringify(s)}`)
  } catch (e) {
    if (e instanceof assert.AssertionError) throw e
    return client.judge(e)
  }
}
