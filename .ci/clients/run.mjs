// Runs every client against a gateway with every upstream, and prints a table:
//
//	node run.mjs GATEWAY [CLIENT [UPSTREAM]]
//
// The variable CLIENT_KEY has the key of the gateway.
//
// A cell is the number of cases that passed; what failed is told below.
import { applies, cases, everywhere } from './cases.mjs'

const [base, onlyClient = '', onlyUpstream = ''] = process.argv.slice(2)
const upstreams = everywhere.filter((u) => u.includes(onlyUpstream))
const packages = ['openai', 'anthropic', 'google', 'ollama', 'vercel', 'agents']
const failures = []

// Some advise on the console, at length.
globalThis.AI_SDK_LOG_WARNINGS = false
console.warn = console.debug = () => {}

process.on('unhandledRejection', (e) => failures.push(`an error that nobody caught: ${e?.stack ?? e}`))

const clients = (await Promise.all(packages.map((p) => import(`./${p}.mjs`)))).flatMap((m) => m.clients).filter((c) => c.name.includes(onlyClient))
const names = Object.keys(cases)

// once runs a case, and returns what the table says of it.
async function once(client, upstream, name, stream) {
  const world = {
    base, upstream, key: process.env.CLIENT_KEY,
    model: upstream + '/sim/planner', limited: upstream + '-429', broken: upstream + '-cut',
    thinking: upstream === 'chat' ? 'thinking' : upstream + '/sim/planner', // in Chat only some servers tell it
  }
  let timer
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('it took longer than half a minute')), 30_000)))
  try {
    await Promise.race([cases[name](client, world, stream), late])
    return true
  } catch (e) {
    failures.push(`${client.name} → ${upstream}, ${name}, ${stream ? 'streamed' : 'whole'}: ${e.stack ?? e}`)
    return false
  } finally {
    clearTimeout(timer)
  }
}

const cell = (passed) => (passed.every(Boolean) ? 'ok' : passed.map((p, i) => (p ? '' : ['whole', 'stream'][i])).filter(Boolean).join('+') + '!')
const row = (cells) => console.log(cells.map((c, i) => String(c).padEnd([26, 10][i] ?? 10)).join(' '))

row(['client', 'upstream', ...names])
let total = 0
for (const client of clients) {
  for (const upstream of upstreams) {
    const cells = []
    for (const name of names) {
      if (!applies(client, name)) {
        cells.push('–')
        continue
      }
      cells.push(cell(await Promise.all([false, true].map((stream) => once(client, upstream, name, stream)))))
      total += 2
    }
    row([client.name, upstream, ...cells])
  }
}
for (const f of failures) console.log('\nFAILED: ' + f)
console.log(`\n${total} cases, ${failures.length} failed`)
process.exit(failures.length ? 1 : 0)
