// What the scheduler writes of the installation, with the rights of its own database user.
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLook, WATCHED_CHECKS, type WatchSources } from '../../../producers/operate/watch.ts'
import { FAILED_QUEUE } from '../../../src/job/catalogue.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openLog } from '../../../src/log.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { findPulse } from '../../../src/store/console/now.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { asWorker } from '../../support/workers.ts'
import { writeBatch } from '../../support/write-batch.ts'

describeStore('the scheduler', engine => {
  let installation: Installation
  let store: Store
  let sources: WatchSources
  beforeAll(async () => {
    installation = await openInstallation(engine)
    store = openStore(asWorker(engine.databaseUrl), { log: openLog('silent'), connectionsMax: 8 })
    const { queues } = installation
    sources = {
      store,
      queues,
      catalogue: CATALOGUE,
      redis: undefined,
      scheduleLateMs: 900_000,
      clock: () => Date.now(),
    }
  })
  afterAll(async () => {
    await store?.close()
    await installation?.close()
  })
  const look = (given: WatchSources) => openLook(given)()
  const rows = async <R>(text: string) => (await store.query<R>({ text })).rows

  it('writes each check that it may make, the queue of each kind, and the minute', async () => {
    const { queues } = installation
    await queues.add('token-create', { id: 'one', data: {} })
    await queues.add(FAILED_QUEUE('report'), { id: `f-${randomUUID()}`, data: {} })
    await look(sources)
    const checks = await rows<{ name: string; state: string; says: string }>(
      'select name, state, says from tokenmill.watch_check',
    )
    expect(checks.map(({ name }) => name).sort()).toEqual(WATCHED_CHECKS.map(({ name }) => name).sort())
    expect(checks.filter(({ says }) => /asked|refuse/.test(says))).toEqual([])
    expect(
      checks
        .filter(({ state }) => state !== 'well')
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['failed jobs', 'workers'])
    const depths = await rows<{ kind: string; waiting: number; failed: number }>(
      'select kind, waiting, failed from tokenmill.watch_queue',
    )
    expect(depths.map(({ kind }) => kind).sort()).toEqual(CATALOGUE.kinds.toSorted())
    expect(depths.find(({ kind }) => kind === 'token-create')).toMatchObject({ waiting: 1, failed: 0 })
    expect(depths.find(({ kind }) => kind === 'report')).toMatchObject({ waiting: 0, failed: 1 })
    expect(await rows('select failed, outbox_ms::integer as outbox from tokenmill.watch_minute')).toEqual([
      { failed: 1, outbox: 0 },
    ])
  })

  it('forgets the queue of a kind that this release does not have', async () => {
    await rows(
      `insert into tokenmill.watch_queue (kind, waiting, active, delayed, failed) values ('of-old', 0, 0, 0, 0)`,
    )
    await look(sources)
    const kept = await rows<{ kind: string }>('select kind from tokenmill.watch_queue order by kind')
    expect(kept.map(({ kind }) => kind)).toEqual(CATALOGUE.kinds.toSorted())
  })

  it('hears the workers that take batches apart from the others, and nobody where nobody is', async () => {
    const at = { host: 'one', version: '1.0.0', connections: 1, keys: [], features: [] }
    const [bulk, others] = [randomUUID(), randomUUID()]
    await processes.see(store, { ...at, processId: bulk, role: 'bulk', kinds: ['token-batch'] })
    await store.query({
      text: `update tokenmill.process set seen_at = now() - interval '9 seconds' where process_id = $1`,
      values: [bulk],
    })
    await processes.see(store, { ...at, processId: others, role: 'interactive', kinds: ['token-create'] })
    for (const entities of [null, [randomUUID()]]) {
      const { heardMs, batchesHeardMs } = await findPulse(sightOf(entities), installation.vault.store)
      expect(Number(batchesHeardMs) - Number(heardMs)).toBeGreaterThan(8_000)
    }
    await rows('delete from tokenmill.process')
    await rows('delete from tokenmill.watch_check')
    const none = { watchedMs: null, heardMs: null, batchesHeardMs: null, areServersOut: false }
    expect(await findPulse(sightOf(null), installation.vault.store)).toEqual({ ...none, isWhole: true })
  })

  it('counts unpublished results once a look, and no more often than 20 times as long as it took', async () => {
    let [counted, slowMs] = [0, 0]
    const counting = {
      ...store,
      query: async (statement: Parameters<Store['query']>[0]) => {
        if (/min\(created_at\) as oldest\s+from tokenmill.outbox/.test(statement.text)) {
          counted += 1
          await setTimeout(slowMs)
        }
        return store.query(statement)
      },
    } as Store
    await look({ ...sources, store: counting })
    expect(counted).toBe(1)
    slowMs = 500
    const lookAgain = openLook({ ...sources, store: counting })
    for (let n = 0; n < 3; n++) await lookAgain()
    expect(counted).toBe(2)
  })

  it('leaves what it saw of the queues as it was while these do not answer', async () => {
    const seen = 'select kind, waiting, seen_at from tokenmill.watch_queue order by kind'
    const before = await rows(seen)
    const away = async () => Promise.reject(new Error('away'))
    await look({ ...sources, queues: { ...installation.queues, ping: away, depth: away, oldestMs: away } })
    expect(await rows(seen)).toEqual(before)
    expect(await rows(`select state from tokenmill.watch_check where name = 'queues'`)).toEqual([{ state: 'critical' }])
  })

  it('is told by workers what they did: each row of a chunk, and each single job, also of their last moment', async () => {
    const workers = await installation.openWorkers()
    const client = await installation.connect()
    const { scope: token_scope } = installation
    const card = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
    await client.call('token-create', { token_scope, ...(await client.encryptCard(card)) })
    await client.call('token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' })
    const cards = ['5555555555554444', '5105105105105100', '4242424242424241'].map(number => ({
      card_number: number,
      expiry_month: 12,
      expiry_year: 2030,
    }))
    const outcomes = await writeBatch(client, installation, cards)
    await workers.close()
    const told = await rows<{ kind: string; done: number; refused: number; waited: number }>(
      `select w.kind, sum(w.done)::integer as done, sum(w.refused)::integer as refused, sum((select sum(n) from unnest(w.waits) as n))::integer as waited
from tokenmill.process as p, jsonb_to_recordset(p.work) as w(kind text, done bigint, refused bigint, waits bigint[]) group by 1 order by 1`,
    )
    const rejected = outcomes.filter(outcome => outcome === 'REJECTED').length
    expect(told).toEqual([
      { kind: 'token-batch', done: 3 - rejected, refused: rejected, waited: 1 },
      { kind: 'token-create', done: 1, refused: 0, waited: 1 },
      { kind: 'token-lifecycle', done: 0, refused: 1, waited: 1 },
    ])
  })
})
