// Shares of a granted rate through a real store: the shares of several busy and idle processes at the same time, and of
// one that can't reach the store.

import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openLog } from '../../../src/log.ts'
import { openRegistry } from '../../../src/metrics.ts'
import type { SchemeRate } from '../../../src/scheme/open.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import * as schemeRates from '../../../src/store/provider/scheme-rates.ts'
import { openWorkerMetrics } from '../../../workers/metrics/metrics.ts'
import { openShares, type Shares } from '../../../workers/provider/rate-shares.ts'
import { describeStore } from '../../support/engines.ts'
import { until } from '../../support/until.ts'

const GRANTED = 200

interface Busy {
  limit: number
  waiting: { interactive: number; bulk: number }
  shares: Shares
  store: Store
}

describeStore('shares of a granted rate', engine => {
  let store: Store
  const open: Busy[] = []
  const log = openLog('silent')
  beforeAll(() => {
    store = openStore(engine.databaseUrl, { log, connectionsMax: 2 })
  })
  afterAll(() => store?.close())
  afterEach(async () => {
    for (const one of open.splice(0)) {
      await one.shares.close().catch(() => undefined)
      await one.store.close().catch(() => undefined)
    }
  })

  async function join(interactive: boolean, place?: string): Promise<Busy> {
    const own = openStore(engine.databaseUrl, { log, connectionsMax: 2 })
    const waiting = { interactive: 0, bulk: 0 }
    const rate: SchemeRate = {
      name: 'mdes',
      granted: GRANTED,
      rate: () => busy.limit,
      isResting: () => false,
      part: () => 1,
      slowdown: () => undefined,
      limit: ratePerSecond => {
        busy.limit = ratePerSecond
        most = Math.max(most, total())
      },
      load: () => ({ started: { interactive: 0, bulk: 0 }, waiting }),
    }
    const busy = { limit: GRANTED, waiting, store: own } as Busy
    open.push(busy)
    const metrics = openWorkerMetrics(openRegistry({ role: 'test' }), CATALOGUE, [])
    busy.shares = await openShares([rate], own, { place, interactive, log, metrics })
    return busy
  }
  let most = 0
  const total = () => open.reduce((sum, { limit }) => sum + limit, 0)

  it('are nothing before the first renewal, and follow demand without ever being too much', async () => {
    const [i, a, b] = [await join(true), await join(false), await join(false)]
    most = 0
    expect(total()).toBeLessThan(30)
    a.waiting.bulk = 1_000
    await until(() => a.limit === 193.5)
    b.waiting.bulk = 1_000
    await until(() => a.limit === 97 && b.limit === 97)
    i.waiting.interactive = 12.5
    await until(() => i.limit === 50 && a.limit === 75 && b.limit === 75)
    a.waiting.bulk = 0
    i.waiting.interactive = 0
    const late = await join(false)
    late.waiting.bulk = 1_000
    await until(() => Math.round(b.limit + late.limit) > 190 && Math.abs(b.limit - late.limit) < 1)
    expect(most).toBeLessThanOrEqual(GRANTED)
    const rows = await schemeRates.findAll(store)
    expect(rows.map(({ provider }) => provider)).toEqual(['mdes', 'mdes', 'mdes', 'mdes'])
  })

  it('go back at once when a process ends', async () => {
    const [a, b] = [await join(false), await join(false)]
    b.waiting.bulk = 1_000
    await until(() => b.limit > 190)
    await b.shares.close()
    expect(b.limit).toBe(0)
    a.waiting.bulk = 1_000
    await until(() => a.limit === GRANTED)
  })

  it('are given up by a process that loses the store, and then are others’', async () => {
    const [a, b] = [await join(false), await join(false)]
    a.waiting.bulk = 1_000
    b.waiting.bulk = 1_000
    await until(() => a.limit === 100 && b.limit === 100)
    most = 0
    await b.store.close()
    await until(() => b.limit === 0)
    expect(a.limit).toBe(100)
    await until(() => a.limit === GRANTED)
    expect(most).toBeLessThanOrEqual(GRANTED)
    expect(await schemeRates.findAll(store)).toHaveLength(1)
  })

  it('go on from whoever had the place before', async () => {
    const place = randomUUID()
    const dead = await join(false, place)
    dead.waiting.bulk = 1_000
    await until(() => dead.limit === GRANTED)
    await dead.store.close()
    open.splice(0)
    const next = await join(false, place)
    next.waiting.bulk = 1_000
    await until(() => next.limit === GRANTED)
    expect(await schemeRates.findAll(store)).toHaveLength(1)
    await dead.shares.close().catch(() => undefined)
  })

  it('are kept though another process stops in the midst of its renewal', async () => {
    const a = await join(false)
    a.waiting.bulk = 1_000
    await until(() => a.limit === GRANTED)
    let least = GRANTED
    const stopped = store.transaction(async db => {
      await schemeRates.hold(db)
      await until(() => false, { ms: 4_000 }).catch(() => undefined)
      least = Math.min(least, a.limit)
      await schemeRates.findAll(db)
    })
    await expect(stopped).rejects.toThrow()
    expect(least).toBe(GRANTED)
    const before = (await schemeRates.findAll(store))[0]?.beat ?? 0
    await until(async () => ((await schemeRates.findAll(store))[0]?.beat ?? 0) > before)
    expect(a.limit).toBe(GRANTED)
  })
})
