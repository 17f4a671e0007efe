// What a person is shown of himself or herself stays bounded by what is shown: own sessions, own passkeys and own accounts, among
// those of 6,000 others; and who still looks at a live page.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as displays from '../../../src/store/console/installation/displays.ts'
import * as ownIdentities from '../../../src/store/console/own-identities.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import { explaining, type Lists, openLists, within } from './plan.ts'

const RP_ID = 'console.example.com'
const ISSUER = 'https://login.example.com'
const PERSON = '00000000-0000-4000-8000-000000002999'
const ID = `('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid`
const hashOf = (n: number) => createHash('sha256').update(String(n)).digest()

let lists: Lists | undefined
let store: Store
let owner: Store
beforeAll(async () => {
  lists = await openLists()
  ;({ owner, store } = lists)
  for (const text of [
    `insert into tokenmill.person (person_id, name, roles) select ${ID}, 'person ' || n, '{VIEWER}' from generate_series(1, 6000) as n`,
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
select 'k' || n, ${ID}, '{}', 'ES256', '${RP_ID}', 0 from generate_series(1, 6000) as n`,
    `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject)
select ${ID}, ${ID}, '${ISSUER}', 'subject ' || n from generate_series(1, 6000) as n`,
    `insert into tokenmill.session (session_hash, person_id, expires_at, address)
select sha256(n::text::bytea), ${ID}, now() + interval '8 hours', '::1' from generate_series(1, 6000) as n`,
    'vacuum analyze tokenmill.person, tokenmill.person_credential, tokenmill.person_identity, tokenmill.session',
  ])
    await owner.query({ text })
})
afterAll(() => lists?.close())

const LISTS: [string, (db: Db) => Promise<unknown>, RegExp][] = [
  ['sessions', db => sessions.listOf(db, PERSON), /session_by_person/],
  ['a session', db => sessions.find(db, hashOf(2_999)), /session_pkey/],
  ['sessions of live pages', db => sessions.listLive(db, [hashOf(1), hashOf(2)]), /session_pkey/],
  ['displays of live pages', db => displays.listLive(db, [hashOf(1), hashOf(2)]), /display_/],
  ['ids of passkeys', db => signingIn.listKeysOf(db, PERSON), /credential_by_person/],
  ['passkeys', db => signingIn.listOwnKeys(db, PERSON), /credential_by_person/],
  ['a passkey for this domain', db => signingIn.hasKey(db, PERSON, RP_ID), /credential_by_person/],
  ['accounts', db => ownIdentities.listOwnIdentities(db, PERSON), /identity_by_person/],
  ['the end of an act', db => pendingActs.listEnds(db, 'nonce'), /failed_act/],
]

it.each(LISTS.map(([name, read, index]) => ({ name, read, index })))(
  'own $name are read by their index',
  async ({ read, index }) => {
    const plan = await explaining(store, read)
    expect(plan).toMatch(index)
    expect(plan).not.toMatch(/Seq Scan on (session|person)/)
    await within(200, async () => {
      await read(store)
    })
  },
)

it('a person is shown own rows alone', async () => {
  expect(await sessions.listOf(store, PERSON)).toHaveLength(1)
  expect(await signingIn.listOwnKeys(store, PERSON)).toMatchObject([{ credentialId: 'k2999' }])
  expect(await ownIdentities.listOwnIdentities(store, PERSON)).toMatchObject([{ subject: 'subject 2999' }])
})
