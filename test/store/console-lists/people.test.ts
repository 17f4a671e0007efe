// What the page People reads stays bounded by what it shows: 6,000 people with passkeys, sessions and invites, and an audit of
// others.
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as seenPeople from '../../../src/store/console/people.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { Db, Statement, Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { type Lists, openLists, within } from './plan.ts'

const OURS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
const RP_ID = 'console.example.com'
const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const ID = `('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid`

let lists: Lists | undefined
let store: Store
let owner: Store
beforeAll(async () => {
  lists = await openLists()
  ;({ owner, store } = lists)
  const of = (texts: readonly string[]) => Promise.all(texts.map(text => owner.query({ text })))
  await of([
    `insert into tokenmill.person (person_id, name, roles, revoked_at)
select ${ID}, 'person ' || lpad(n::text, 6, '0'), array[case when n % 100 = 0 then 'ADMIN' else 'VIEWER' end],
  case when n % 2 = 0 then now() - make_interval(secs => n / 4) end from generate_series(1, 6000) as n`,
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
select 'k' || n, ${ID}, '{}', 'ES256', case when n % 3 = 0 then 'old.example.com' else '${RP_ID}' end, 0 from generate_series(1, 6000) as n`,
    `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject)
select ${ID}, ${ID}, 'https://login.example.com', 'subject ' || n from generate_series(1, 6000) as n`,
    `insert into tokenmill.session (session_hash, person_id, created_at, seen_at, expires_at, address)
select sha256(n::text::bytea), ${ID}, now() - make_interval(mins => n), now() - make_interval(mins => n), now() - make_interval(mins => n - 480),
  '::1' from generate_series(1, 6000) as n`,
    `insert into tokenmill.invite (invite_id, lookup_hash, public_key, name, roles, invited_by, expires_at, used_at)
select ${ID}, sha256(n::text::bytea), sha256(n::text::bytea), 'n' || n, '{VIEWER}', 'person:' || ${ID}, now() + make_interval(mins => n - 10),
  case when n > 40 then now() end from generate_series(1, 6000) as n`,
    `insert into tokenmill.audit (actor, action, subject)
select case when n % 1000 = 0 then 'person:' || '${idOf(1)}' else 'client:c' || n % 7 end, 'batch.pause', 'b' || n from generate_series(1, 30000) as n`,
    `insert into tokenmill.scope (token_scope, entity_id) select ${ID}, '${OURS}' from generate_series(1, 40) as n`,
  ])
  await owner.query({
    text: 'vacuum analyze tokenmill.person, tokenmill.person_credential, tokenmill.person_identity, tokenmill.session, tokenmill.invite, tokenmill.audit, tokenmill.scope',
  })
})
afterAll(() => lists?.close())

type Read = (sight: Sight, db: Db) => Promise<unknown>
const page = { rpId: RP_ID, limit: 51 }
const [live, gone] = [idOf(2_999), idOf(3_000)]
const LISTS: [string, Read, RegExp][] = [
  ['people by name', (sight, db) => seenPeople.list(sight, db, page), /person_name_stands_once/],
  ['people further on', (sight, db) => seenPeople.list(sight, db, { ...page, after: live }), /person_name_stands_once/],
  ['revoked people', (sight, db) => seenPeople.listRevoked(sight, db, page), /person_by_end/],
  [
    'revoked people further on',
    (sight, db) => seenPeople.listRevoked(sight, db, { ...page, after: gone }),
    /person_by_end/,
  ],
  ['administrators', (sight, db) => seenPeople.countAdmins(sight, db, RP_ID), /person_name_stands_once/],
  ['a person', (sight, db) => seenPeople.find(sight, db, { personId: live, rpId: RP_ID }), /person_pkey/],
  ['passkeys', (sight, db) => seenPeople.listPasskeys(sight, db, live), /credential_by_person/],
  ['accounts', (sight, db) => seenPeople.listAccounts(sight, db, live), /identity_by_person/],
  [
    'what a person did',
    (sight, db) => seenPeople.listDeeds(sight, db, { personId: idOf(1), limit: 20 }),
    /audit_by_actor/,
  ],
  ['what nobody did', (sight, db) => seenPeople.listDeeds(sight, db, { personId: live, limit: 20 }), /audit_by_actor/],
  ['open invites', (sight, db) => seenPeople.listInvites(sight, db, { limit: 101 }), /invite_open/],
  ['an invite', (sight, db) => seenPeople.findInvite(sight, db, idOf(1)), /invite_pkey/],
  [
    'an invite by its key',
    (sight, db) => seenPeople.findInviteByKey(sight, db, Buffer.alloc(32)),
    /invite_lookup_stands_once/,
  ],
]

it.each(LISTS.map(([name, read, index]) => ({ name, read, index })))(
  '$name are read by their index, and for people for some entities not at all',
  async ({ read, index }) => {
    let plan = ''
    const explaining: Db = {
      async query<R>({ text, values }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return { rows: [] as R[], count: 0 }
      },
    }
    await read(sightOf(null), explaining)
    expect(plan).toMatch(index)
    expect(plan).not.toContain('Seq Scan')
    await within(200, async () => {
      await read(sightOf(null), store)
    })
    await read(sightOf([OURS]), explaining)
    expect(plan).toContain('One-Time Filter: false')
  },
)

it('lists each person once, by name, and those who were revoked by their end', async () => {
  const seen: string[] = []
  for (const read of [seenPeople.list, seenPeople.listRevoked]) {
    let after: string | undefined
    for (let pages = 0; pages < 3; pages += 1) {
      const listed = await read(sightOf(null), store, { rpId: RP_ID, after, limit: 30 })
      seen.push(...listed.map(({ personId }) => personId))
      after = listed.at(-1)?.personId
    }
  }
  expect(new Set(seen).size).toBe(180)
  expect(seen.slice(0, 3)).toEqual([idOf(1), idOf(3), idOf(5)])
  expect(seen.slice(90, 93)).toEqual([idOf(2), idOf(4), idOf(6)])
})

it('knows how many passkeys fit, and how many sessions are live', async () => {
  const find = (n: number) => seenPeople.find(sightOf(null), store, { personId: idOf(n), rpId: RP_ID })
  expect(await find(3)).toMatchObject({ passkeys: 1, fitting: 0, accounts: 1, sessions: 1, revokedAt: null })
  expect(await find(4)).toMatchObject({ passkeys: 1, fitting: 1, sessions: 0, revokedAt: expect.any(Number) })
  expect(await find(17)).toMatchObject({ sessions: 0, signedInAt: expect.any(Number) })
  expect(await seenPeople.countAdmins(sightOf(null), store, RP_ID)).toBe(0)
  expect(await seenPeople.listEntities(sightOf(null), store, { limit: 5 })).toEqual([
    { entityId: OURS, scopes: [idOf(1), idOf(2), idOf(3)] },
  ])
  expect(await seenPeople.listEntities(sightOf([OURS]), store, { limit: 5 })).toEqual([])
  const [first] = await seenPeople.listInvites(sightOf(null), store, { limit: 1 })
  expect(first).toMatchObject({ name: 'n40', inviter: 'person 000040' })
})

it('remembers the last sign-in of each person, and no earlier session that is over', async () => {
  const personId = idOf(600)
  const add = (age: string, value: string) =>
    owner.query({
      text: `insert into tokenmill.session (session_hash, person_id, created_at, seen_at, expires_at, address)
values (sha256($1), $2, now() - $3::interval, now() - $3::interval, now() - $3::interval + interval '8 hours', '::1')`,
      values: [value, personId, age],
    })
  await add('20 days', 'oldest')
  await add('10 days', 'older')
  await sessions.removeOver(store)
  const { rows } = await owner.query<{ hours: number }>({
    text: `select extract(epoch from now() - created_at)::int / 3600 as hours from tokenmill.session where person_id = $1`,
    values: [personId],
  })
  expect(rows).toEqual([{ hours: 10 }])
})
