// Webhooks with real workers, a real scheduler, and receivers that fail in many ways. The delays are seconds instead of
// days.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { describeEngines } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import { volume } from '../../support/volume.ts'
import { openWebhookBench, type WebhookBench } from './bench.ts'
import { PACES } from './quick.ts'
import { hostile } from './receiver.ts'

/** Events, each for five endpoints. Fewer suffice on PostgreSQL, where the queue can't be lost without the store. */
const EVENTS = { redis: volume(40, 200), postgres: volume(20, 40) } as const

describeEngines('webhooks', engine => {
  let bench: WebhookBench
  beforeAll(async () => {
    bench = await openWebhookBench(engine, PACES.quick)
  })
  afterAll(() => bench?.close())

  it('come by hundreds to receivers that fail, hang and lie: each is told, and nobody at a private address', async () => {
    const { receiver, subscribe, happen, deliveriesTo, takenAt, untilAll, end } = bench
    const told = await Promise.all(Array.from({ length: 5 }, () => subscribe()))
    // The name leads to the receiver's private address, which only TOKENMILL_PRIVATE_HOSTS could permit.
    const forbidden = [await subscribe({ protocol: 'https', host: 'localhost', type: 'batch.stalled' })]
    for (const { path } of [...told, ...forbidden]) receiver.behave(path, hostile)
    const before = receiver.taken.length
    const many = EVENTS[engine.name]
    for (let n = 0; n < many; n += 1) await happen(`many-${n}`)
    for (let n = 0; n < 20; n += 1) await happen(`forbidden-${n}`, 'batch.stalled')
    const tries = () => receiver.taken.slice(before)
    const startedAt = Date.now()
    if (engine.redisUrls) {
      await until(() => tries().length > many)
      await flush(engine.redisUrls[0] ?? '', engine.prefix)
    }
    for (const to of told) await untilAll(to, 'DELIVERED', many)
    const ms = Date.now() - startedAt
    if (process.env['TEST_LOG']) process.stdout.write(`${5 * many} webhooks in ${ms} ms, ${tries().length} tries\n`)
    expect(receiver.forged).toBe(0)
    for (const to of told) {
      expect(new Set(takenAt(to).map(({ body }) => body.data['batch_id'])).size).toBe(many)
      expect(takenAt(to).every(({ id }) => receiver.told.has(id))).toBe(true)
      expect(receiver.atOnce.get(to.path)).toBeLessThanOrEqual(endpoints.AT_ONCE_MAX)
    }
    for (const to of forbidden) {
      const all = await deliveriesTo(to)
      expect(takenAt(to)).toEqual([])
      expect(all.filter(one => one.state === 'DELIVERED')).toEqual([])
      expect(new Set(all.flatMap(({ reason }) => reason ?? []))).toEqual(new Set(['forbidden']))
    }
    for (const to of [...told, ...forbidden]) await end(to)
  })

  it('are told at least once where a worker dies between the request and its record', async () => {
    const { receiver, script, subscribe, happen, takenAt, untilAll, end } = bench
    const to = await subscribe()
    receiver.behave(to.path, ({ times }, response) => {
      // The worker is killed before it gets the answer.
      if (times === 1) kill9(childrenRunning(script))
      response.writeHead(204).end()
    })
    await happen('crash')
    await untilAll(to, 'DELIVERED')
    expect(takenAt(to).length).toBeGreaterThanOrEqual(2)
    expect(new Set(takenAt(to).map(({ id }) => id)).size).toBe(1)
    await end(to)
  })
})

/** Removes the keys of one installation as FLUSHALL would remove all, because other tests use the same server. */
async function flush(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url)
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 }))
    if ((keys as string[]).length > 0) await redis.unlink(...(keys as string[]))
  redis.disconnect()
}
