// Whether a job makes a report, is put off, or is answered with a report that exists.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import * as reports from '../../src/store/report/reports.ts'
import type { Deps } from '../../workers/deps.ts'
import { openReport } from '../../workers/report.ts'
import type { Work } from '../../workers/work.ts'
import { CODER } from '../store/coder.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const CLIENT = 'c0000000000000000000000000'
const ENTITY = randomUUID()

let database: FreshDatabase
let store: Store
let key: Buffer
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('error'), connectionsMax: 2 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})
beforeEach(() => {
  key = randomBytes(32)
})

const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)

const asked = (to: string): reports.Asked => ({
  reportUid: randomUUID(),
  reportType: 'INVOICE',
  reportParameter: {},
  mimeType: 'text/csv',
  reportEntityUid: ENTITY,
  clientId: CLIENT,
  requestKey: key,
  period: { from: to, to },
})
const made = (asOf: number): reports.Made => ({
  fileName: 'x.csv',
  storageKey: `f_${randomUUID()}.csv`,
  bytes: 1,
  sha256: '0'.repeat(64),
  lines: 1,
  totals: [],
  periodClosed: false,
  asOf,
})

/** `times`: the job's, ms since the epoch. */
async function reach(iss: string, to: string, times = { acceptedAt: 0, enqueuedAt: 0, now: 0 }) {
  const mine = asked(to)
  const { reportUid, reportType, mimeType } = mine
  const task = { reportUid, reportType, entityId: ENTITY, parameters: {}, mimeType }
  const work = { claims: { iss }, request: {}, receiptId: reportUid, attempt: 1, ...times }
  const makeReport = async () => ({ made: made(0) })
  const report = openReport({ makeReport, makesReports: true })
  const deps = { store, ring: CODER } as unknown as Deps
  try {
    return await report.reach?.(work as unknown as Work<never>, { asked: mine, task }, deps, undefined)
  } finally {
    await reports.remove(store, reportUid)
  }
}

it('puts off a nightly report whose day has not ended by the store’s clock, and makes all others', async () => {
  await expect(reach('scheduler', day(1))).rejects.toMatchObject({ name: 'Postponed' })
  expect(await reach('scheduler', day(-1))).toHaveProperty('made')
  expect(await reach(CLIENT, day(1))).toHaveProperty('made')
})

it('answers with a report of an open period if its rows were read after the job was sent, but never a nightly job', async () => {
  const first = asked(day(1))
  await reports.claim(store, CODER, first, { refresh: false, staleMs: 60_000, askedAt: null })
  await reports.progress(store, first.reportUid, 0)
  // Clocks may differ by a minute.
  await reports.succeed(store, CODER, first.reportUid, made(65_500))
  const stored = { stored: { reportUid: first.reportUid } }
  // A client's `iat` has whole seconds, so the time of the queue is later.
  const times = { acceptedAt: 5_000, enqueuedAt: 5_400, now: 6_000 }
  expect(await reach(CLIENT, day(1), times)).toMatchObject(stored)
  expect(await reach(CLIENT, day(1), { ...times, enqueuedAt: 5_600 })).toHaveProperty('made')
  expect(await reach(CLIENT, day(1), { ...times, enqueuedAt: Number.MAX_SAFE_INTEGER })).toHaveProperty('made')
  expect(await reach('scheduler', day(-1), times)).toHaveProperty('made')
})
