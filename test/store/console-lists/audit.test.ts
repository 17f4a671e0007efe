// The lists of the audit: every filter gives what a plain rule over all rows gives, page by page, reads its index, and shows people
// for some entities nothing of others.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as auditList from '../../../src/store/access/audit-list.ts'
import * as choices from '../../../src/store/console/audit/choices.ts'
import * as proof from '../../../src/store/console/audit/proof.ts'
import * as seenRows from '../../../src/store/console/audit/rows.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import { ALL, type Sight, sightOf } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const ROWS = 6_000
const ENTITIES = [1, 2, 3].map(n => `0b5a4f6e-6f0c-4a53-8d43-00000000000${n}`)
const PEOPLE = [1, 2].map(n => `0b5a4f6e-6f0c-4a53-8d43-00000000010${n}`)
const CLIENT = `c${'1'.padStart(25, '0')}`
const ACTORS = [`person:${PEOPLE[0]}`, `person:${PEOPLE[1]}`, `client:${CLIENT}`, 'cli:root', 'retention']
const ACTIONS = ['batch.pause', 'batch.resume', 'client.add', 'audit.export']
const OUTCOMES = ['done', 'refused', 'failed'] as const
const NOW = Date.parse('2026-11-23T12:00:00Z')
const DAY_MS = 86_400_000

interface Row {
  auditId: number
  at: number
  actor: string
  action: string
  subject: string
  outcome: string
  entityId: string | null
}

describe('the lists of the audit', () => {
  let database: FreshDatabase
  let store: Store
  let all: Row[]
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
    await store.query({ text: 'delete from tokenmill.audit' })
    await store.query({
      text: `insert into tokenmill.person (person_id, name, roles, entities) values ($1, 'Ada', '{ADMIN}', null), ($2, 'Lim', '{VIEWER}', $3)`,
      values: [...PEOPLE, ENTITIES.slice(0, 1)],
    })
    // Rows are written a little later than they began, so their ids are not quite in the order of time.
    await store.query({
      text: `insert into tokenmill.audit (at, actor, action, subject, outcome, entity_id, detail)
select $1::timestamptz - make_interval(secs => (n - n % 7 * 5) * 60), ($2::text[])[1 + n % 5], ($3::text[])[1 + n / 3 % 4], 'subject ' || n % 40,
  case when n % 29 = 0 then 'refused' when n % 31 = 0 then 'failed' else 'done' end, e.id,
  case when e.id is null then '{}' else jsonb_build_object('entity_id', e.id) end || jsonb_build_object('client_id', $6::text)
from generate_series(1, $5::int) as n
cross join lateral (select case when n % 3 = 0 then ($4::uuid[])[1 + n / 3 % 3] end as id) as e`,
      values: [new Date(NOW), ACTORS, ACTIONS, ENTITIES, ROWS, CLIENT],
    })
    await store.query({ text: 'analyze tokenmill.audit' })
    const { rows } = await store.query<Row>({
      text: `select audit_id as "auditId", at, actor, action, subject, outcome, entity_id as "entityId" from tokenmill.audit`,
    })
    all = rows
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const SIGHTS: Record<string, Sight> = {
    'all entities': sightOf(null),
    'one entity': sightOf(ENTITIES.slice(0, 1)),
    'two entities': sightOf(ENTITIES.slice(1)),
  }
  const isSeen = (sight: Sight, { entityId }: Row) =>
    sight.sees === 'all' || (entityId !== null && sight.entities.includes(entityId))
  /** A person of the first entity is Lim; nobody else of the actors is for some entities only. */
  const isKnown = (sight: Sight, { actor }: Row) =>
    sight.sees === 'all' || (actor === ACTORS[1] && sight.entities.includes(ENTITIES[0] ?? ''))
  const FILTERS = (like: number): Record<string, auditList.AuditFilter> => ({
    nothing: {},
    'a person': { actor: ACTORS[0] },
    'another person': { actor: ACTORS[1] },
    'an account': { actor: 'cli:root' },
    'an act': { action: 'batch.pause' },
    'an act and an actor': { action: 'client.add', actor: ACTORS[1] },
    ...Object.fromEntries(OUTCOMES.map(outcome => [outcome, { outcome }])),
    days: { since: NOW - 3 * DAY_MS, until: NOW - DAY_MS },
    'days of an act': { since: NOW - 3 * DAY_MS, action: 'batch.resume' },
    'a subject': { like },
    'a subject and an outcome': { like, outcome: 'refused' },
  })
  const cases = () =>
    Object.entries(SIGHTS).flatMap(([who, sight]) => {
      const like = all.find(row => isSeen(sight, row))?.auditId ?? 0
      return Object.entries(FILTERS(like)).map(([what, filter]) => ({ name: `${who}, ${what}`, sight, filter }))
    })
  function expected(sight: Sight, { actor, action, outcome, since, until, like }: auditList.AuditFilter): number[] {
    const subject = all.find(row => row.auditId === like)?.subject
    return all
      .filter(row => isSeen(sight, row))
      .filter(row => actor === undefined || (row.actor === actor && isKnown(sight, row)))
      .filter(row => (action ?? row.action) === row.action && (outcome ?? row.outcome) === row.outcome)
      .filter(row => row.at >= (since ?? 0) && row.at < (until ?? Number.POSITIVE_INFINITY))
      .filter(row => subject === undefined || row.subject === subject)
      .sort((a, b) => b.at - a.at || b.auditId - a.auditId)
      .map(({ auditId }) => auditId)
  }

  it.each([
    ['as many rows as there are', 10_000],
    ['few rows', 150],
  ])('are, page by page, what the rule says, where a page looks at %s', async (_, looked) => {
    for (const { name, sight, filter } of cases()) {
      const found: number[] = []
      for (let after: number | undefined; ; ) {
        const page = await auditList.list(sight, store, { ...filter, after, limit: 97, looked }, seenRows.SEEN_AUDIT)
        found.push(...page.found.map(({ auditId }) => auditId))
        expect(page.lookedTo === undefined || looked === 150, name).toBe(true)
        after = page.next
        if (after === undefined) break
      }
      expect(found, name).toEqual(expected(sight, filter))
    }
  })

  it('are the same for commands, which show whole rows, look at all, and name subjects and acts by their begin', async () => {
    const filters: Record<string, auditList.AuditFilter> = {
      ...FILTERS(all[0]?.auditId ?? 0),
      'a whole subject': { subject: 'subject 7' },
      'acts on batches': { action: 'batch.*' },
    }
    for (const [what, filter] of Object.entries(filters)) {
      const { found, next, lookedTo } = await auditList.list(
        ALL,
        store,
        { ...filter, limit: ROWS, looked: null },
        auditList.WHOLE_AUDIT,
      )
      const { subject, action, ...rule } = filter
      const isNamed = (row: Row | undefined) =>
        row !== undefined &&
        (subject ?? row.subject) === row.subject &&
        (action === undefined || row.action === action || (action === 'batch.*' && row.action.startsWith('batch.')))
      const wanted = expected(ALL, rule).filter(id => isNamed(all.find(row => row.auditId === id)))
      expect(
        found.map(({ auditId }) => auditId),
        what,
      ).toEqual(wanted)
      expect({ next, lookedTo }).toEqual({ next: undefined, lookedTo: undefined })
      expect(found.every(({ at, detail }) => /\.\d{6}Z$/.test(at) && 'client_id' in detail)).toBe(true)
    }
  })

  it('have no page behind a row of somebody else, as behind none, and none about its subject', async () => {
    const sight = sightOf(ENTITIES.slice(0, 1))
    const theirs = all.find(({ entityId }) => entityId === ENTITIES[1])?.auditId ?? 0
    for (const auditId of [theirs, 999_999_999]) {
      const nothing = { found: [], next: undefined, lookedTo: undefined }
      expect(await auditList.list(sight, store, { after: auditId, limit: 10 }, seenRows.SEEN_AUDIT)).toEqual(nothing)
      expect(await auditList.list(sight, store, { like: auditId, limit: 10 }, seenRows.SEEN_AUDIT)).toEqual(nothing)
      expect(await seenRows.find(sight, store, auditId)).toBeUndefined()
    }
  })

  it('name to people for some entities only who acts for no other entity', async () => {
    const { found } = await auditList.list(sightOf(ENTITIES.slice(0, 1)), store, { limit: 500 }, seenRows.SEEN_AUDIT)
    expect(new Set(found.map(({ actor }) => actor))).toEqual(new Set([null, ACTORS[1]]))
    expect(new Set(found.map(({ actorName }) => actorName))).toEqual(new Set([null, 'Lim']))
    expect(new Set(found.map(({ host }) => host))).toEqual(new Set([null]))
    const whole = await auditList.list(sightOf(null), store, { limit: 10 }, seenRows.SEEN_AUDIT)
    expect(new Set(whole.found.map(({ actor }) => actor))).toEqual(new Set(ACTORS))
  })

  it('offer who acted and which acts there are, as far as the person may see them', async () => {
    const [one, none] = [sightOf(ENTITIES.slice(0, 1)), sightOf(['0b5a4f6e-6f0c-4a53-8d43-00000000000f'])]
    const names = async (sight: Sight, limit = 10) =>
      (await choices.listActors(sight, store, limit)).map(({ actor, name }) => [actor, name])
    expect(await names(sightOf(null))).toEqual([
      ['cli:root', null],
      [`client:${CLIENT}`, null],
      [ACTORS[0], 'Ada'],
      [ACTORS[1], 'Lim'],
      ['retention', null],
    ])
    expect(await names(sightOf(null), 2)).toHaveLength(2)
    expect(await names(one)).toEqual([[ACTORS[1], 'Lim']])
    expect(await names(none)).toEqual([])
    expect(await choices.listActions(sightOf(null), store, 10)).toEqual(ACTIONS.toSorted())
    expect(await choices.listActions(none, store, 10)).toEqual([])
  })

  it('find the newest row about a subject, and a row by its number', async () => {
    await store.query({
      text: `update tokenmill.audit set seq = audit_id, hash = sha256('x'), mac = sha256('x'), key_version = 1`,
    })
    const rows = all.toSorted((a, b) => b.at - a.at || b.auditId - a.auditId)
    const newest = rows.find(({ subject }) => subject === 'subject 7')?.auditId
    expect(await seenRows.findNamed(sightOf(null), store, 'subject 7')).toBe(newest)
    const one = sightOf(ENTITIES.slice(0, 1))
    const ours = rows.find(row => row.subject === 'subject 7' && isSeen(one, row))?.auditId
    expect(await seenRows.findNamed(one, store, 'subject 7')).toBe(ours)
    expect(await seenRows.findNamed(sightOf(null), store, String(newest))).toBe(newest)
    const theirs = rows.find(row => !isSeen(one, row))?.auditId
    expect(await seenRows.findNamed(one, store, String(theirs))).toBeUndefined()
    expect(await seenRows.findNamed(one, store, 'nothing')).toBeUndefined()
  })

  it('have what was done to a batch', async () => {
    const about = { clientId: CLIENT, batchId: 'subject 7', limit: 5 }
    const found = await seenRows.listOfBatch(sightOf(null), store, about)
    expect(found.map(({ subject }) => subject)).toEqual(Array.from({ length: 5 }, () => 'subject 7'))
    expect(await seenRows.listOfBatch(sightOf(null), store, { ...about, clientId: 'c' })).toEqual([])
  })

  it('read an index, whatever is asked', async () => {
    const plans: string[] = []
    const explaining: Db = {
      async query<R>({ text, values }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
        plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
        return { rows: [] as R[], count: 0 }
      },
    }
    // As in an audit with millions of rows.
    await store.query({
      text: `update pg_class set reltuples = 5e6, relpages = 4e5 where oid = 'tokenmill.audit'::regclass`,
    })
    const INDEX: Record<string, string> = {
      nothing: 'audit_by_time',
      'a person': 'audit_by_actor',
      'another person': 'audit_by_actor',
      'an account': 'audit_by_actor',
      'an act': 'audit_by_action',
      'an act and an actor': 'audit_by_actor',
      done: 'audit_by_time',
      refused: 'audit_not_done',
      failed: 'audit_not_done',
      days: 'audit_by_time',
      'days of an act': 'audit_by_action',
      'a subject': 'audit_by_subject',
      'a subject and an outcome': 'audit_by_subject',
    }
    for (const { name, sight, filter } of cases()) {
      for (const after of [undefined, all[3_000]?.auditId]) {
        await auditList.list(sight, explaining, { ...filter, after, limit: 51 }, seenRows.SEEN_AUDIT)
        const plan = plans.at(-1) ?? ''
        const [, what = ''] = name.split(', ')
        expect(plan, name).toContain(`using ${sight.sees === 'all' ? INDEX[what] : 'audit_of_entity'}`)
        expect(plan, name).not.toMatch(/Seq Scan on audit|Bitmap/)
        // Only the rows of several entities are put into one order.
        if (sight.sees === 'all') expect(plan, name).not.toContain('Sort')
      }
    }
    const COMMANDS: readonly [string, auditList.AuditFilter][] = [
      ['audit_by_time', { action: 'batch.*' }],
      ['audit_by_subject', { subject: 'subject 7' }],
      ...Object.entries(FILTERS(7)).map(([what, filter]): [string, auditList.AuditFilter] => [
        INDEX[what] ?? '',
        filter,
      ]),
    ]
    for (const [index, filter] of COMMANDS) {
      await auditList.list(ALL, explaining, { ...filter, limit: 50, looked: null }, auditList.WHOLE_AUDIT)
      expect(plans.at(-1)).toContain(`using ${index}`)
      expect(plans.at(-1)).not.toContain('Sort')
    }
    const about = { clientId: CLIENT, batchId: 'subject 7', limit: 5 }
    for (const sight of Object.values(SIGHTS)) {
      await seenRows.listOfBatch(sight, explaining, about)
      expect(plans.at(-1)).toContain('using audit_by_subject')
      await seenRows.findNamed(sight, explaining, 'subject 7')
      await seenRows.find(sight, explaining, 7)
      await choices.listActors(sight, explaining, 200)
      await choices.listActions(sight, explaining, 200)
      await proof.findVerdicts(sight, explaining)
      for (const plan of plans.slice(-6)) expect(plan).not.toContain('Seq Scan on audit')
    }
  })
})
