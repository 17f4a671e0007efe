// How a command waits for a total. No worker runs here: the test writes to the store what jobs would write.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { computeTotal, type TotalDeps } from '../../../producers/pack/total.ts'
import { makeTotalKey } from '../../../producers/pack/total-key.ts'
import type { TotalSums } from '../../../src/job/system/manifest-total.ts'
import * as totalKeys from '../../../src/store/total/total-keys.ts'
import * as parts from '../../../src/store/total/total-parts.ts'
import * as totals from '../../../src/store/total/totals.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type OnFileWorld, openOnFile, record } from '../../workers/on-file-bundle.ts'

const MIGRATION = 'acme-2030'
/** One of the batch's three rows is left out. */
const SUMS: TotalSums = { rows: 2, sha256: '0'.repeat(64), by_brand: {} }
const LEFT_OUT = { line: 2, reference: 'r-2', reason: 'expiry_differs' }

describeStore('the wait for a total', engine => {
  let installation: Installation
  let world: OnFileWorld
  let batchId: string

  beforeAll(async () => {
    installation = await openInstallation(engine)
    world = await openOnFile(installation)
    const { store, ring } = installation.vault
    await totalKeys.insert(store, MIGRATION, ring.sealTotalKey(makeTotalKey(), MIGRATION))
  })
  afterAll(() => installation?.close())
  beforeEach(async () => {
    batchId = randomUUID()
    await world.chunk([record(1), record(2), record(3)], { batchId, references: ['r-1', 'r-2', 'r-3'] })
    await installation.vault.store.query({
      text: `update tokenmill.batch set cancelled_at = now() where batch_id = $1`,
      values: [batchId],
    })
  })

  const compute = (patience?: TotalDeps['patience']) => {
    const total = computeTotal(
      { store: installation.vault.store, actor: 'test', patience },
      { migration: MIGRATION, batches: [batchId] },
    )
    total.catch(() => {})
    return total
  }

  async function openTotals(): Promise<string[]> {
    const { rows } = await installation.vault.store.query<{ total_id: string }>({
      text: `select total_id from tokenmill.manifest_total join tokenmill.batch on batch_no = any(batch_nos)
where batch_id = $1 and ended_at is null`,
      values: [batchId],
    })
    return rows.map(row => row.total_id)
  }

  /** Waits for an open total and returns its id. */
  async function opened(other?: string): Promise<string> {
    const isOpen = async () => (await openTotals()).some(totalId => totalId !== other)
    await until(isOpen, { what: 'a total that somebody asks for' })
    const [totalId = '', ...more] = await openTotals()
    expect(more).toEqual([])
    return totalId
  }

  /** When a command last said that it waits for the total. */
  async function wantedAt(totalId: string): Promise<number> {
    const { rows } = await installation.vault.store.query<{ at: number }>({
      text: 'select wanted_at as at from tokenmill.manifest_total where total_id = $1',
      values: [totalId],
    })
    return rows[0]?.at ?? 0
  }

  async function looksAgain(totalId: string): Promise<string> {
    let seen = await wantedAt(totalId)
    let looks = 0
    const isLookedAt = async () => {
      const at = await wantedAt(totalId)
      if (at !== seen) looks += 1
      seen = at
      return looks >= 3
    }
    await until(isLookedAt, { what: 'three more looks' })
    return 'looks again'
  }

  const send = () => parts.claim(installation.vault.store, { leaseMs: 60_000, wantedMs: 600_000, limit: 10 })

  async function work(totalId: string, sums = SUMS): Promise<void> {
    const { store } = installation.vault
    await parts.finish(store, { totalId, part: 0 }, [LEFT_OUT])
    await parts.finish(store, { totalId, part: 1 }, [])
    expect(await totals.finish(store, totalId, sums)).toBe(true)
  }

  const whole = () => ({ ...SUMS, exceptions: [{ ...LEFT_OUT, batch_id: batchId }] })

  it('gives the same total to all who wait for it', async () => {
    const asked = [compute(), compute(), compute()]
    const totalId = await opened()
    await looksAgain(totalId)
    await work(totalId)
    for (const total of await Promise.all(asked)) expect(total).toMatchObject(whole())
  })

  it('asks again if the total was removed, and calls that no sign-off', async () => {
    const total = compute()
    const removed = await opened()
    await totals.removeUnwanted(installation.vault.store, Date.now() + 60_000)
    await work(await opened(removed))
    expect(await total).toMatchObject(whole())
  })

  it('goes on while jobs wait in a queue, however often they were sent', async () => {
    const total = compute()
    const totalId = await opened()
    await send()
    await installation.vault.store.query({ text: 'update tokenmill.manifest_part set sent = 50' })
    expect(await Promise.race([total.then(String, String), looksAgain(totalId)])).toBe('looks again')
    await work(totalId)
    expect(await total).toMatchObject(whole())
  })

  it('ends a total of which no part is done for long, so that it can be asked for again', async () => {
    const total = compute({ unsentMs: 60_000, stalledMs: 600 })
    const totalId = await opened()
    await send()
    const other = compute()
    await expect(total).rejects.toThrow(/^The total of acme-2030 does not come: no part of it was done/i)
    await expect(other).rejects.toThrow(/does not come: no part of it was done/i)
    expect(await openTotals()).toEqual([])
    const again = compute()
    const next = await opened()
    expect(next).not.toBe(totalId)
    await work(next)
    expect(await again).toMatchObject(whole())
  })

  it('ends a total that no worker takes up', async () => {
    await expect(compute({ unsentMs: 300, stalledMs: 60_000 })).rejects.toThrow(/no worker takes it up/i)
    expect(await openTotals()).toEqual([])
  })

  it('gives no total over fewer rows than there were when it was asked for', async () => {
    const total = compute()
    const totalId = await opened()
    await installation.vault.store.query({
      text: 'delete from tokenmill.receipt using tokenmill.batch as b where receipt.batch_no = b.batch_no and b.batch_id = $1',
      values: [batchId],
    })
    await work(totalId, { ...SUMS, rows: 0 })
    await expect(total).rejects.toThrow(/1 rows were looked at, and 3 rows/)
  })
})
