// The lists of schedules and of runs: each filter reads an index and its first page alone, for people of all entities and of some.
// 100 schedules, and 20,000 runs of 200 days.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as seenRuns from '../../../src/store/console/runs.ts'
import * as seenSchedules from '../../../src/store/console/schedules.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import * as scheduleRuns from '../../../src/store/report/schedule-runs.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const SCHEDULES = 100
const DAYS = 200
const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
/** One entity has two schedules. */
const entityOf = (n: number) => `00000000-0000-4000-9000-${String(n % 50).padStart(12, '0')}`
const CLIENT = 'c'.padEnd(26, '0')
const DAY_MS = 86_400_000

describe('the lists of schedules and runs', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
    const run = (text: string, values: unknown[] = []) => store.query({ text, values })
    await run(
      `insert into tokenmill.client (client_id, name, user_id, entities, roles, system)
values ($1, 'shop', gen_random_uuid(), array[$2::uuid], '{}', false)`,
      [CLIENT, entityOf(1)],
    )
    const uuid = (kind: string, n: string) => `('00000000-0000-4000-${kind}-' || lpad((${n})::text, 12, '0'))::uuid`
    await run(
      `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone, created_at)
select ${uuid('8000', 'n')}, 'report', $1, 'INVOICE', ${uuid('9000', 'n % 50')}, 'text/csv', '02:00', 'UTC', now() - interval '500 days'
from generate_series(1, ${SCHEDULES}) as n`,
      [CLIENT],
    )
    await run(
      `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, next_at, reason, ended_at)
select ${uuid('8000', 'n')}, current_date - d, ${uuid('9000', 'n % 50')}, case when n * d % 997 = 3 then 'FAILED' else 'SUCCEEDED' end,
  now() - make_interval(days => d), null, case when n * d % 997 = 3 then 'role_missing' end, now() - make_interval(days => d)
from generate_series(1, ${SCHEDULES}) as n, generate_series(1, ${DAYS}) as d`,
    )
    for (const table of ['client', 'schedule', 'schedule_run', 'report']) await run(`analyze tokenmill.${table}`)
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** The plan of what is asked, as it was run. */
  const planOf = async (ask: (db: Db) => Promise<unknown>) => {
    let plan = ''
    await ask({
      async query<R>({ text, values = [] }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({
          text: `explain (analyze, timing off, summary off) ${text}`,
          values,
        })
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return { rows: [] as R[], count: 0 }
      },
    })
    return plan
  }
  /** Rows of runs that any step of the plan read. */
  const readOf = (plan: string) =>
    Math.max(
      ...[...plan.matchAll(/schedule_run.*rows=(\d+)(?:\.\d+)? loops=(\d+)/g)].map(([, n, l]) => Number(n) * Number(l)),
    )

  const sights = [
    ['all entities', null],
    ['one entity', [entityOf(7)]],
    ['twenty entities', Array.from({ length: 20 }, (_, n) => entityOf(n))],
  ] as const
  const states = [undefined, ...scheduleRuns.RUN_STATES]
  it.each(sights)('of runs read an index and little more than a page, for a person of %s', async (_who, entities) => {
    const sight = sightOf(entities)
    for (const scheduleId of [undefined, idOf(7)])
      for (const state of states)
        for (const businessDate of [undefined, new Date(Date.now() - 100 * DAY_MS).toISOString().slice(0, 10)]) {
          const after =
            businessDate === undefined ? undefined : { businessDate, scheduleId: idOf(40), entityId: entityOf(40) }
          const what = JSON.stringify({ scheduleId, state, businessDate })
          const plan = await planOf(db => seenRuns.list(sight, db, { scheduleId, state, after, limit: 51 }))
          expect(plan, what).not.toMatch(/Seq Scan on schedule_run/)
          expect(readOf(plan), `${what}\n${plan}`).toBeLessThanOrEqual(51 * (entities?.length ?? 1))
        }
  })

  it.each(sights)(
    'of schedules read the runs that are open, that failed, and those of each last day, for %s',
    async (_who, entities) => {
      const now = Date.now()
      const sight = sightOf(entities)
      const listing = { dueBefore: now - 900_000, failedSince: now - DAY_MS, limit: 201 }
      const plans = [
        await planOf(db => seenSchedules.list(sight, db, listing)),
        await planOf(db => seenSchedules.find(sight, db, idOf(7))),
        await planOf(db => seenSchedules.findTrouble(sight, db, { ...listing, scheduleId: idOf(7) })),
        await planOf(db => seenSchedules.listOfDate(sight, db, { scheduleId: idOf(7), date: '2026-01-01', limit: 10 })),
        await planOf(db => seenSchedules.listEntities(sight, db, idOf(7))),
        await planOf(db =>
          seenRuns.find(sight, db, { scheduleId: idOf(7), businessDate: '2026-01-01', entityId: entityOf(7) }),
        ),
      ]
      for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on schedule_run/)
      for (const plan of plans) expect(readOf(plan), plan).toBeLessThanOrEqual(SCHEDULES + 1)
    },
  )

  it('are complete and in order, page by page', async () => {
    const pages = async (entities: readonly string[] | null, filter: Partial<seenRuns.RunListing>) => {
      const found: seenRuns.ListedRun[] = []
      for (;;) {
        const page = await seenRuns.list(sightOf(entities), store, { ...filter, after: found.at(-1), limit: 500 })
        found.push(...page)
        if (page.length < 500) return found
      }
    }
    const ours = await pages([entityOf(7)], {})
    expect(ours).toHaveLength(2 * DAYS)
    expect(new Set(ours.map(({ entityId }) => entityId))).toEqual(new Set([entityOf(7)]))
    const keys = ours.map(({ businessDate, scheduleId }) => `${businessDate} ${scheduleId}`)
    expect(keys).toEqual(keys.toSorted().toReversed())
    const failed = await pages(null, { state: 'FAILED' })
    const [counted] = (
      await store.query<{ n: number }>({
        text: `select count(*)::int as n from tokenmill.schedule_run where state = 'FAILED'`,
      })
    ).rows
    expect(failed).toHaveLength(counted?.n ?? 0)
    expect(await pages([entityOf(8)], { scheduleId: idOf(7) })).toEqual([])
  })

  it('says of a schedule what is late, what failed, and how its last day went', async () => {
    const set = (text: string) => store.query({ text: `update tokenmill.schedule_run set ${text}` })
    const yesterday = `business_date = current_date - 1`
    await set(
      `state = 'QUEUED', next_at = now(), ended_at = null, due_at = now() - interval '3 hours' where ${yesterday} and schedule_id = '${idOf(5)}'`,
    )
    await set(`state = 'FAILED', reason = 'fault', ended_at = now() where ${yesterday} and schedule_id = '${idOf(6)}'`)
    // A later success makes up for it.
    await set(
      `state = 'FAILED', reason = 'fault', ended_at = now() - interval '2 hours' where business_date = current_date - 2 and schedule_id = '${idOf(9)}'`,
    )
    await set(`ended_at = now() where ${yesterday} and schedule_id = '${idOf(9)}'`)
    const now = Date.now()
    const listing = { dueBefore: now - 900_000, failedSince: now - DAY_MS, limit: 10 }
    const listed = await seenSchedules.list(sightOf(null), store, listing)
    const of = (n: number) => listed.find(({ scheduleId }) => scheduleId === idOf(n))
    expect(of(5)).toMatchObject({ lastState: 'QUEUED', failedAt: null, lastRuns: 1, hasEntities: true })
    expect(now - (of(5)?.lateSince ?? 0)).toBeGreaterThan(3 * 3_500_000)
    expect(of(6)).toMatchObject({
      lastState: 'FAILED',
      lastReason: 'fault',
      lateSince: null,
      failedAt: expect.any(Number),
    })
    expect(of(9)?.failedAt ?? null).toBe(null)
    for (const n of [5, 6, 9]) {
      const { lateSince, failedAt, failedReason } = of(n) ?? expect.fail()
      const found = await seenSchedules.findTrouble(sightOf(null), store, { ...listing, scheduleId: idOf(n) })
      expect(found).toEqual({ lateSince, failedAt, failedReason })
    }
    expect(await seenSchedules.list(sightOf([entityOf(8)]), store, listing)).toHaveLength(2)
    expect(await seenSchedules.find(sightOf([entityOf(8)]), store, idOf(7))).toBeUndefined()
  })
})
