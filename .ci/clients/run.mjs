// Runs every client against a gateway with every upstream, and prints a table:
//
//	node run.mjs GATEWAY [CLIENT [UPSTREAM]]
//
// The variable CLIENT_KEY has the key of the gateway.
//
// A cell is the number of cases that passed; what failed is told below.
import { applies, cases, everywhere } from './cases.mjs'
import { suite } from './openresponses.mjs'
import { upstreams as known } from './upstreams.mjs'

const [base, onlyClient = '', onlyUpstream = ''] = process.argv.slice(2)
const upstreams = everywhere.filter((u) => u.includes(onlyUpstream))
const packages = ['openai', 'anthropic', 'google', 'ollama', 'vercel', 'agents', 'defaults']
const failures = []

// Some advise on the console, at length.
globalThis.AI_SDK_LOG_WARNINGS = false
console.warn = console.debug = () => {}

process.on('unhandledRejection', (e) => failures.push(`an error that nobody caught: ${e?.stack ?? e}`))

const clients = (await Promise.all(packages.map((p) => import(`./${p}.mjs`)))).flatMap((m) => m.clients).filter((c) => c.name.includes(onlyClient))

// once runs a case, and returns whether it passed.
async function once(client, upstream, name, stream, run) {
  const world = {
    base, upstream, key: process.env.CLIENT_KEY,
    model: upstream + '/' + known[upstream].model, limited: upstream + '-429', broken: upstream + '-cut', thinking: upstream + '-thinking',
  }
  let timer
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('it took longer than half a minute')), 30_000)))
  try {
    await Promise.race([run(world, stream), late])
    return true
  } catch (e) {
    failures.push(`${client} → ${upstream}, ${name}, ${stream ? 'streamed' : 'whole'}: ${e.stack ?? e}`)
    return false
  } finally {
    clearTimeout(timer)
  }
}

const cell = (passed) => (passed.every(Boolean) ? 'ok' : passed.map((p, i) => (p ? '' : ['whole', 'stream'][i])).filter(Boolean).join('+') + '!')
const row = (cells) => console.log(cells.map((c, i) => String(c).padEnd([26, 10][i] ?? 10)).join(' '))

// table runs the cases of clients with every upstream. runs returns the function of a
// client's case, or nothing if the case does not apply.
let total = 0
async function table(clients, names, runs) {
  row(['client', 'upstream', ...names])
  for (const client of clients) {
    for (const upstream of upstreams) {
      const cells = []
      for (const name of names) {
        const run = runs(client, name, upstream)
        if (run) total += 2
        cells.push(run ? cell(await Promise.all([false, true].map((stream) => once(client.name, upstream, name, stream, run)))) : '–')
      }
      row([client.name, upstream, ...cells])
    }
  }
}

if (clients.length) {
  await table(clients, Object.keys(cases), (client, name, upstream) => applies(client, name, upstream) && ((world, stream) => cases[name](client, world, stream)))
}
if (suite.name.includes(onlyClient)) {
  await table([suite], Object.keys(suite.cases), (_, name) => suite.cases[name])
}
for (const f of failures) console.log('\nFAILED: ' + f)
console.log(`\n${total} cases, ${failures.length} failed`)
process.exit(failures.length ? 1 : 0)
