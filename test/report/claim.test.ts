// Which job makes a report, and which reports and files are removed later.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { storageKey } from '../../src/report/files/file-name.ts'
import { openFiles } from '../../src/report/files/open.ts'
import { requestKey } from '../../src/report/request-key.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import * as reports from '../../src/store/report/reports.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { RETRY } from '../../workers/line/run-job.ts'
import { endAbandoned, sweepReports } from '../../workers/report/sweep.ts'
import { LAST_ATTEMPT } from '../../workers/report.ts'
import { CODER } from '../store/coder.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const ENTITY = randomUUID()
const KEEP = { refresh: false, staleMs: 60_000, askedAt: null }

let database: FreshDatabase
let store: Store
let key: Buffer
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('error'), connectionsMax: 8 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})
beforeEach(() => {
  key = randomBytes(32)
})

const asked = (reportUid: string = randomUUID()): reports.Asked => ({
  reportUid,
  reportType: 'INVOICE',
  reportParameter: {},
  mimeType: 'text/csv',
  reportEntityUid: ENTITY,
  clientId: 'c0000000000000000000000000',
  requestKey: key,
  period: undefined,
})
const made = (periodClosed: boolean, storageKey = `f_${randomUUID()}.csv`, asOf = 0): reports.Made => ({
  fileName: 'x.csv',
  storageKey,
  bytes: 1,
  sha256: '0'.repeat(64),
  lines: 1,
  totals: [],
  periodClosed,
  asOf,
})
async function eventsOf(
  reportUid: string,
): Promise<{ type: string; revision: number; data: Record<string, unknown> }[]> {
  const { rows } = await store.query<{ type: string; revision: number; data: Record<string, unknown> }>({
    text: 'select type, revision, data from tokenmill.event where subject = $1 order by revision',
    values: [reportUid],
  })
  return rows
}
async function makeOne(periodClosed: boolean, storageKey?: string): Promise<string> {
  const { report } = await reports.claim(store, CODER, asked(), { ...KEEP, refresh: true })
  await reports.progress(store, report.reportUid, 0)
  await reports.succeed(store, CODER, report.reportUid, made(periodClosed, storageKey))
  return report.reportUid
}
const age = (reportUid: string, days: number) =>
  store.query({
    text: `update tokenmill.report set created_on = now() - $2 * interval '1 day', modified_on = now() - $2 * interval '1 day' where report_uid = $1`,
    values: [reportUid, days],
  })

describe('of those that ask for one report', () => {
  it('one makes it, however many come at once', async () => {
    const claims = await Promise.all(Array.from({ length: 6 }, () => reports.claim(store, CODER, asked(), KEEP)))
    expect(claims.map(({ claim }) => claim).toSorted()).toEqual(['busy', 'busy', 'busy', 'busy', 'busy', 'mine'])
    expect(new Set(claims.map(({ report }) => report.reportUid)).size).toBe(1)
  })

  it('the next is answered with what was made, unless it asks for it anew', async () => {
    const uid = await makeOne(true)
    expect(await reports.claim(store, CODER, asked(), KEEP)).toMatchObject({
      claim: 'stored',
      report: { reportUid: uid },
    })
    expect(await reports.claim(store, CODER, asked(), { ...KEEP, refresh: true })).toMatchObject({ claim: 'mine' })
  })

  it('the next makes it where its period was open, or where it failed', async () => {
    await makeOne(false)
    const second = await reports.claim(store, CODER, asked(), KEEP)
    expect(second.claim).toBe('mine')
    await reports.fail(store, CODER, second.report.reportUid, {
      word: 'report_mismatch',
      reason: 'net is not its parts',
    })
    expect(await reports.claim(store, CODER, asked(), KEEP)).toMatchObject({ claim: 'mine' })
    expect(await reports.find(store, second.report.reportUid)).toMatchObject({
      status: 'FAILED',
      failureReason: 'net is not its parts',
    })
  })

  it('those that waited are answered with what was made meanwhile, also where its period was open', async () => {
    const now = Date.now()
    const waiting = Array.from({ length: 3 }, () => asked())
    const { report: first } = await reports.claim(store, CODER, asked(), KEEP)
    const claim = (mine: reports.Asked, more = {}) =>
      reports.claim(store, CODER, mine, { ...KEEP, askedAt: now, ...more })
    for (const mine of waiting) expect((await claim(mine)).claim).toBe('busy')
    await reports.progress(store, first.reportUid, 0)
    await reports.succeed(store, CODER, first.reportUid, made(false, undefined, now + 5))
    for (const mine of waiting)
      expect(await claim(mine)).toMatchObject({ claim: 'stored', report: { reportUid: first.reportUid } })
    expect((await claim(asked(), { askedAt: now + 5 })).claim).toBe('mine')
  })

  it('one of those that waited makes it anew if it asks for that', async () => {
    const { report: first } = await reports.claim(store, CODER, asked(), KEEP)
    await reports.progress(store, first.reportUid, 0)
    await reports.succeed(store, CODER, first.reportUid, made(false, undefined, 5))
    expect((await reports.claim(store, CODER, asked(), { ...KEEP, askedAt: 0, refresh: true })).claim).toBe('mine')
  })

  it('the next attempt of the same job goes on with its own', async () => {
    const mine = asked()
    expect((await reports.claim(store, CODER, mine, KEEP)).claim).toBe('mine')
    await reports.progress(store, mine.reportUid, 12)
    expect(await reports.claim(store, CODER, mine, KEEP)).toMatchObject({
      claim: 'mine',
      report: { status: 'INITIATED', lines: null },
    })
    await reports.fail(store, CODER, mine.reportUid, { word: 'defect', reason: 'x' })
    expect(await reports.claim(store, CODER, mine, KEEP)).toMatchObject({
      claim: 'mine',
      report: { failureReason: null },
    })
  })

  it('another takes it over from one that was not heard of any more, and only then', async () => {
    const lost = asked()
    await reports.claim(store, CODER, lost, KEEP)
    await age(lost.reportUid, 1)
    await reports.progress(store, lost.reportUid, null)
    expect((await reports.claim(store, CODER, asked(), KEEP)).claim).toBe('busy')
    await age(lost.reportUid, 1)
    const heir = asked()
    expect((await reports.claim(store, CODER, heir, KEEP)).claim).toBe('mine')
    expect(await reports.find(store, lost.reportUid)).toMatchObject({ status: 'FAILED' })
    await reports.progress(store, heir.reportUid, 0)
    await reports.succeed(store, CODER, heir.reportUid, made(true))
    // The first job comes back. It gets the report that the other job made, and can't end its own.
    await expect(reports.succeed(store, CODER, lost.reportUid, made(true))).rejects.toMatchObject({ name: 'LostRace' })
    expect(await reports.claim(store, CODER, lost, KEEP)).toMatchObject({
      claim: 'stored',
      report: { reportUid: heir.reportUid },
    })
  })

  it('is told once, each time that it ends; which of two ends holds, its revision tells', async () => {
    const mine = asked()
    await reports.claim(store, CODER, mine, KEEP)
    await reports.fail(store, CODER, mine.reportUid, { word: 'report_mismatch', reason: 'net of the lines is 123456' })
    await reports.fail(store, CODER, mine.reportUid, { word: 'defect', reason: 'late' })
    await reports.claim(store, CODER, mine, KEEP)
    await reports.progress(store, mine.reportUid, 0)
    await reports.succeed(store, CODER, mine.reportUid, made(true))
    const told = await eventsOf(mine.reportUid)
    expect(told.map(({ type, revision }) => `${type} ${revision}`)).toEqual(['report.failed 1', 'report.succeeded 2'])
    // The event holds a code only: no sums of the report and no texts.
    expect(told[0]?.data).toEqual({
      report_uid: mine.reportUid,
      report_type: 'INVOICE',
      entity_id: ENTITY,
      revision: 1,
      status: 'FAILED',
      reason: 'report_mismatch',
    })
    expect(told[1]?.data).toEqual({
      report_uid: mine.reportUid,
      report_type: 'INVOICE',
      entity_id: ENTITY,
      revision: 2,
      status: 'SUCCESSFUL',
      file_name: 'x.csv',
    })
    const refused = asked()
    await store.transaction(db => reports.refuseParameters(db, CODER, refused, 'reportableDay field_required'))
    expect(await eventsOf(refused.reportUid)).toMatchObject([
      { type: 'report.failed', data: { status: 'INVALID_INPUT_PARAMETERS', reason: 'parameters' } },
    ])
  })

  it('is told to nobody where another report answers its job', async () => {
    const mine = asked()
    await reports.claim(store, CODER, mine, KEEP)
    await age(mine.reportUid, 1)
    const heir = asked()
    await reports.claim(store, CODER, heir, KEEP)
    expect(await eventsOf(mine.reportUid)).toMatchObject([{ type: 'report.failed', data: { reason: 'abandoned' } }])
    await reports.claim(store, CODER, mine, KEEP)
    await reports.progress(store, heir.reportUid, 0)
    await reports.succeed(store, CODER, heir.reportUid, made(true))
    expect(await reports.claim(store, CODER, mine, KEEP)).toMatchObject({ claim: 'stored' })
    expect(await eventsOf(mine.reportUid)).toHaveLength(1)
    expect((await eventsOf(heir.reportUid)).map(({ type }) => type)).toEqual(['report.succeeded'])
  })

  it('only one can end it', async () => {
    const { report } = await reports.claim(store, CODER, asked(), KEEP)
    await reports.progress(store, report.reportUid, 0)
    await reports.succeed(store, CODER, report.reportUid, made(true))
    await expect(reports.succeed(store, CODER, report.reportUid, made(true))).rejects.toMatchObject({
      name: 'LostRace',
    })
    await reports.fail(store, CODER, report.reportUid, { word: 'defect', reason: 'late' })
    expect(await reports.find(store, report.reportUid)).toMatchObject({ status: 'SUCCESSFUL', failureReason: null })
  })
})

describe('the same report', () => {
  it('is of one type, entity, format and set of parameters, in whatever order they stand', () => {
    const base = {
      reportType: 'INVOICE',
      entityId: ENTITY,
      parameters: { a: '1', b: '2' },
      mimeType: 'text/csv',
    } as const
    const same = requestKey({ ...base, parameters: { b: '2', a: '1' } })
    expect(requestKey(base).equals(same)).toBe(true)
    for (const other of [
      { reportType: 'BATCH_REPORT' as const },
      { entityId: randomUUID() },
      { parameters: { a: '1', b: '3' } },
      { mimeType: 'text/plain' as const },
    ])
      expect(requestKey({ ...base, ...other }).equals(same)).toBe(false)
  })
})

describe('the sweep', () => {
  it('removes old reports with their files, orphans that are old enough, and ends what nobody makes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tokenmill-sweep-'))
    const files = openFiles({ url: pathToFileURL(folder).href })
    const now = Date.now()
    const uid = '11111111-1111-4111-8111-111111111111'
    const orphan = storageKey(`INVOICE_2026-01-01_${uid}.csv`, 'a'.repeat(64))
    // Files of others in the same place must stay.
    const foreign = ['payroll-2026.xlsx', 'kek', `INVOICE_2026-01-01_${uid}.csv`]
    for (const name of ['old.csv', 'young.csv', orphan, `part_${uid}`, 'fresh.csv', ...foreign])
      await writeFile(join(folder, name), 'x')
    for (const name of ['old.csv', 'young.csv', orphan, `part_${uid}`, ...foreign])
      await utimes(join(folder, name), now / 1000 - 3 * 86_400, now / 1000 - 3 * 86_400)
    const old = await makeOne(true, 'old.csv')
    await age(old, 401)
    const young = await makeOne(true, 'young.csv')
    await age(young, 399)
    const abandoned = (await reports.claim(store, CODER, asked(), { ...KEEP, refresh: true })).report.reportUid
    await age(abandoned, 9)
    expect(await endAbandoned({ store, ring: CODER as LiveRing }, now)).toBe(1)
    expect(await sweepReports({ store }, files, 400, now)).toEqual({ removed: 1, orphans: 2 })
    expect((await readdir(folder)).toSorted()).toEqual(['fresh.csv', 'young.csv', ...foreign].toSorted())
    expect(await reports.find(store, old)).toBeUndefined()
    expect(await reports.find(store, abandoned)).toMatchObject({ status: 'FAILED' })
    expect(await sweepReports({ store }, files, 400, now)).toEqual({
      removed: 0,
      orphans: 0,
    })
    await rm(folder, { recursive: true, force: true })
  })
})

describe('the last attempt', () => {
  it('is the one after which nobody tries again', () => {
    expect(LAST_ATTEMPT).toBe(RETRY.attemptsMax)
  })
})
