// Runs the examples of the documents as they stand there, but for the address:
//
//	node examples.mjs GATEWAY DOCUMENT…
//
// What an example prints is the text that follows it.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const [base, ...documents] = process.argv.slice(2)
const address = 'http://127.0.0.1:8088'
let failed = 0
for (const document of documents) {
  const text = readFileSync(document, 'utf8')
  const found = [...text.matchAll(/```js\n(.*?)```\n(.*?)```text\n(.*?)```\n/gs)]
  if (!found.length || found.length !== text.split('```js\n').length - 1) {
    console.log(`${document}: an example does not say what it prints`)
    failed++
  }
  for (const [i, [, program, between, prints]] of found.entries()) {
    const file = join(import.meta.dirname, `example-${basename(document, '.md')}-${i}.mjs`)
    writeFileSync(file, program.replaceAll(address, base))
    const { stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 60_000 })
    const ok = stdout === prints && program.includes(address) && !between.includes('```js')
    if (!ok) failed++
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${document}, example ${i + 1}${ok ? '' : `: it prints\n${stdout}${stderr}`}`)
  }
}
process.exit(failed ? 1 : 0)
