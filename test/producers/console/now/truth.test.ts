// Workers, Redis, scheduler and store are stopped in turn, each for real: within 10 s the page says "Well" no more.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openSession, type Session } from '../../../../cli/open/open.ts'
import { startScheduler } from '../../../../cli/process/scheduler.ts'
import { childrenRunning } from '../../../chaos/bundle.ts'
import { findRedis, type RedisServer, startRedis } from '../../../support/redis.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle } from '../bundle.ts'
import { withoutStore } from '../without-store.ts'

const WITHIN_MS = 10_000
const hasRedis = findRedis() !== undefined

let redis: RedisServer
let bundle: ConsoleBundle
let scheduler: Session
let whole: string
let limited: string

beforeAll(async () => {
  if (!hasRedis) return
  redis = await startRedis()
  bundle = await openConsoleBundle({ REDIS_URL: redis.url, TOKENMILL_LOG_LEVEL: 'silent' })
  const { env } = bundle.installation
  scheduler = openSession({ env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }, 'scheduler')
  await Promise.all([bundle.installation.startWorkers(), startScheduler(scheduler)])
  whole = (await bundle.addPerson('ada')).cookie
  limited = (await bundle.addPerson('bea', { entities: [OURS] })).cookie
})
afterAll(async () => {
  await scheduler?.lifetime.close()
  await bundle?.close()
  await redis?.stop()
})

/** What the page's first line says to both people. A page that isn't shown says nothing. */
async function sentences(): Promise<string[]> {
  const pages = await Promise.all([whole, limited].map(cookie => bundle.call('GET', '/now', { cookie })))
  return pages.map(({ status, text }) =>
    status === 200 ? (/id="sentence-text"[^>]*>([^<]*)</.exec(text)?.[1] ?? '') : `${status}`,
  )
}
const areWell = async () => (await sentences()).every(text => text === 'Well')
const isNoneWell = async () => (await sentences()).every(text => text !== 'Well')
const soWithin = (condition: () => Promise<boolean>, what: string) => until(condition, { ms: WITHIN_MS, what })

it.skipIf(!hasRedis)(
  'says well while all is, and of nothing that it can’t see',
  async () => {
    await until(areWell, { ms: 15_000, what: 'the first look' })

    const pids = childrenRunning('worker-process.ts')
    expect(pids).toHaveLength(2)
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    // The last heartbeat may be 5 s old; 8 s of silence are too long. The clock is moved on by 6 s.
    await bundle.rows(`update tokenmill.process set seen_at = seen_at - interval '6 seconds' where kinds <> '{}'`)
    await soWithin(isNoneWell, 'the end of Well without workers')
    expect((await sentences())[0]).toMatch(/^Unknown since \d\d:\d\d:\d\d$/)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
    await soWithin(areWell, 'the heartbeat of workers that go on')

    await redis.kill9()
    await soWithin(isNoneWell, 'the end of Well without Redis')
    await redis.restart()
    await until(areWell, { ms: 20_000, what: 'the look after Redis is back' })

    await scheduler.lifetime.close()
    await soWithin(isNoneWell, 'the end of Well without a scheduler')
    expect((await bundle.call('GET', '/now', { cookie: whole })).text).toContain('no scheduler lives')

    await withoutStore(bundle, async () => {
      await soWithin(isNoneWell, 'the end of Well without the store')
      expect(await sentences()).toEqual(['503', '503'])
    })
  },
  90_000,
)
