// `node bin/launch.mjs bench/reseal-beside.ts [--tokens 1000000] [--rate 8000]`: a re-encryption of all cards beside 100
// PUTs a second and migrations, one after the other. PUTs are measured beside migrations alone first; the goal is no
// failed request, and at most twice that p99.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writeSample } from '../bin/sample/cards.ts'
import * as reseals from '../src/store/reseal/reseals.ts'
import { startCommand } from '../test/support/process.ts'
import { insertTokens, openAll } from '../test/workers/reseal/tokens.ts'
import { migrateFile, startBulkWorkers } from './migrate.ts'
import { openPlace } from './place.ts'
import { openPut, type PutRun } from './put.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    rate: { type: 'string', default: '8000' },
    'file-rows': { type: 'string', default: '200000' },
  },
})
const count = Number(values.tokens)
const INSERT_ROWS = 1_000
const MEASURE_S = 20

const place = await openPlace()
const say = (line: string) => process.stdout.write(`${new Date().toISOString()} ${line}\n`)
const tell = (name: string, { requests, p50, p99, others }: PutRun) =>
  say(`${name}: ${requests} PUTs, p50 ${p50} ms, p99 ${p99} ms, not 200: ${others}`)
try {
  const installation = await place.open('redis', { TOKENMILL_RESEAL_ROWS_PER_SECOND: values.rate })
  const { vault, scope, env } = installation
  try {
    for (let from = 0; from < count; from += INSERT_ROWS)
      await insertTokens(vault.store, vault.ring, scope, Math.min(INSERT_ROWS, count - from), from)
    await vault.store.query({ text: 'vacuum analyze tokenmill.token' })
    say(`${count} tokens are stored`)
    const put = await openPut(installation)
    await startBulkWorkers(installation)
    let isEnding = false
    let files = 0
    const migrations = (async () => {
      for (; !isEnding; files += 1) {
        const file = join(place.dir, `beside-${files}.csv`)
        await writeSample(file, { rows: Number(values['file-rows']), seed: 100 + files, now: Date.now() })
        const { perSecond } = await migrateFile(installation, file)
        say(`a migration of ${values['file-rows']} rows: ${Math.round(perSecond)}/s`)
      }
    })()
    const alone: PutRun = await (await put(MEASURE_S))()
    tell('beside migrations', alone)
    const run = async (args: string[]) => {
      const { code } = await startCommand(args, { env: env as Record<string, string> }).exit
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
    }
    await run(['key', 'rotate', 'seal'])
    const began = performance.now()
    await run(['key', 'reseal', 'seal'])
    const runs: PutRun[] = []
    let rowsDoneAt = 0
    for (;;) {
      const found = await reseals.find(vault.store, 'seal')
      if (found?.state === 'DONE') break
      const measured = await (await put(MEASURE_S))()
      runs.push(measured)
      const now = await reseals.find(vault.store, 'seal')
      tell(`beside the re-encryption too (pass ${now?.pass}, ${now?.rowsDone} rows)`, measured)
      if (now && now.rowsDone >= count && rowsDoneAt === 0) rowsDoneAt = performance.now()
    }
    const ended = performance.now()
    isEnding = true
    await migrations
    const busy = runs.filter(({ p99 }) => p99 > 0)
    const most = Math.max(...busy.map(({ p99 }) => p99))
    const failed = runs.reduce((total, { others }) => total + others, 0)
    await vault.ring.refresh()
    say(`tokens by version: ${JSON.stringify(await openAll(vault.store, vault.ring))}`)
    say(
      `${count} rows in ${Math.round((rowsDoneAt - began) / 1000)} s, proved after ${Math.round((ended - began) / 1000)} s; ` +
        `highest p99 ${most} ms ÷ ${alone.p99} ms = ${(most / alone.p99).toFixed(2)}; failed ${failed}`,
    )
  } finally {
    await installation.close()
  }
} finally {
  await place.close()
}
