// `node bin/launch.mjs bench/console/load.ts [--tokens 1000000] [--receipts 10000000] [--batches 100000] [--dir DIR]`: how long the
// pages and searches of the console take in a store of that size, over HTTP, while three batches are worked; the first time after
// a restart of PostgreSQL; and what 50 watchers of the page Now cost. Goals: p99 under 200 ms, under 1 s after a restart, under
// 5 % of a core. It drops the cache of the operating system, so it wants a machine of its own, and root. With `--dir` the filled store is
// kept there and measured again; to remove it, delete the folder. Linux.
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { writeSample } from '../../bin/sample/cards.ts'
import { freePorts } from '../../test/ops/free-ports.ts'
import type { Installation } from '../../test/support/installation.ts'
import { type Child, startCommand } from '../../test/support/process.ts'
import { openPlace } from '../place.ts'
import { ASKED, ENTITY_SEEN, openFilled } from './fill.ts'
import { coldly, type Measured, warmly, write } from './measure.ts'
import { processorSeconds, startProcesses } from './processes.ts'
import { findAddresses } from './routes.ts'
import { makePeople, openVisitor } from './visitor.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    receipts: { type: 'string', default: '10000000' },
    batches: { type: 'string', default: '100000' },
    requests: { type: 'string', default: '200' },
    restarts: { type: 'string', default: '3' },
    parts: { type: 'string', default: 'warm,cold,csv,watchers' },
    dir: { type: 'string' },
  },
})
const REQUESTS = Number(values.requests)
const parts = values.parts.split(',')
const PEOPLE = 20
const WATCHERS = 50
const WATCH_S = 20

const place = await openPlace(values.dir)
try {
  const size = { tokens: Number(values.tokens), receipts: Number(values.receipts), batches: Number(values.batches) }
  const installation = await openFilled(place, size)
  const [port = 0] = await freePorts(1)
  const running = await startProcesses(installation, port)
  const { vault } = installation
  const people = {
    all: await makePeople(vault, PEOPLE, null),
    'one entity': await makePeople(vault, PEOPLE, [ENTITY_SEEN]),
  }
  const atWork = await startBatches(installation)
  let failed = false
  try {
    for (const [who, cookies] of Object.entries(people)) {
      const { ask, close } = openVisitor(port, cookies)
      const searches = searchesOf()
      const started = ['/now', '/now/again', ...(await foundBy(ask, searches))]
      const { addresses, unreached } = await findAddresses(ask, started)
      process.stdout.write(`\n${who}: not reached: ${unreached.join(' ')}\n`)
      const asked: Measured[] = [...addresses].map(([name, own]) => ({ name, own: own.map(path => ({ path })) }))
      asked.push({ name: 'POST /search', own: searches.map(what => ({ path: '/search', form: { what } })) })
      if (parts.includes('warm')) failed = write(await warmly(ask, asked, REQUESTS), 200) || failed
      if (parts.includes('cold'))
        failed = write(await coldly(ask, asked, { restarts: Number(values.restarts), dir: place.dir }), 1_000) || failed
      if (parts.includes('csv')) await takeCsv(who, ask)
      close()
    }
    if (parts.includes('watchers')) await watch(people.all)
    process.exitCode = failed ? 1 : 0
  } finally {
    for (const child of atWork) child.signal('SIGTERM')
    await Promise.all(atWork.map(child => child.exit))
    await running.close()
    await installation.close()
  }

  /** `--in-flight 1`: they go on for as long as it is measured, and leave time to others. */
  async function startBatches({ vault, env, clientFile, dataDir }: Installation): Promise<Child[]> {
    const seed = Math.floor(Date.now() / 1000)
    return Promise.all(
      [1, 2, 3].map(async n => {
        const file = join(dataDir, `open-${n}.csv`)
        await writeSample(file, { rows: 400_000, seed: seed + n, now: Date.now() })
        const args = ['migrate', file, '--client', clientFile, '--in-flight', '1', '--chunk', '100']
        const child = startCommand(args, { env: env as Record<string, string> })
        const going =
          'select count(*)::int as n from tokenmill.batch where source_name = $1 and chunks_done > 0 and finished_at is null'
        for (let tries = 0; tries < 300; tries += 1) {
          const { rows } = await vault.store.query<{ n: number }>({ text: going, values: [`open-${n}.csv`] })
          if ((rows[0]?.n ?? 0) > 0) break
          await pause(100)
        }
        return child
      }),
    )
  }

  /** CPU of the console while the page is watched; the shares of PostgreSQL and the scheduler are there without watchers, too. */
  async function watch(cookies: readonly string[]): Promise<void> {
    const share = async () => {
      const before = processorSeconds(running.console.pid)
      await pause(WATCH_S * 1_000)
      return (processorSeconds(running.console.pid) - before) / WATCH_S
    }
    const alone = await share()
    let bytes = 0
    const streams = Array.from({ length: WATCHERS }, (_none, n) => {
      const headers = { host: `localhost:${port}`, cookie: cookies[n % cookies.length] ?? '' }
      const stream = get({ host: 'localhost', port, path: '/now/live', headers, agent: false }, response => {
        if (response.statusCode !== 200) process.stdout.write(`a watcher was answered ${response.statusCode}\n`)
        response.on('data', (part: Buffer) => {
          bytes += part.length
        })
      })
      stream.on('error', () => {})
      return stream
    })
    await pause(5_000)
    const watched = await share()
    for (const stream of streams) stream.destroy()
    process.stdout.write(
      `\n${WATCHERS} watchers of Now: ${(watched * 100).toFixed(1)} % of a core, without them ${(alone * 100).toFixed(1)} %; ${Math.round(bytes / 1024)} KiB sent (goal: under 5 %)\n`,
    )
  }
} finally {
  await place.close()
}

function searchesOf(): string[] {
  const numbers = Array.from({ length: ASKED / 4 }, (_none, n) => n)
  return numbers.flatMap(n => [`asked-${n}`, `asked for ${n}`, `nobody ${n}`, `order-${n * 9_973}`])
}

/** The pages of what is found by name. */
async function foundBy(ask: ReturnType<typeof openVisitor>['ask'], searches: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const what of [...searches.slice(0, 80), '01890000-0000-7000-8000-000000000001']) {
    const { location } = await ask('POST', '/search', { what })
    if (location !== undefined) found.push(location)
  }
  return found
}

/** The longest list, whole. */
async function takeCsv(who: string, ask: ReturnType<typeof openVisitor>['ask']): Promise<void> {
  const { status, text, ms } = await ask('POST', '/batches/csv', {})
  process.stdout.write(
    `batches as CSV, ${who}: ${status}, ${text.split('\n').length} lines in ${(ms / 1000).toFixed(1)} s\n`,
  )
}
