// The store holds no card number, proof or challenge in clear. The reader role can't read the sealed ones.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { CODE } from '../../src/simulate/three-ds/cards.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { sweepThreeDs, THREE_DS_RETENTION } from '../../src/store/three-ds/three-ds-retention.ts'
import { createJwt } from '../../src/three-ds/jwt.ts'
import { lookup } from '../../src/three-ds/lookup.ts'
import { isProblem } from '../../src/three-ds/problem.ts'
import { shownRecord } from '../../src/three-ds/record.ts'
import { type Bundle, challenge, openBundle } from './bundle.ts'
import { CALLER, CARD, lookupBody } from './samples.ts'

let bundle: Bundle
let reader: Store
const secrets: string[] = []
beforeAll(async () => {
  bundle = await openBundle()
  reader = openStore(bundle.url, { log: openLog('silent'), connectionsMax: 1, role: 'tokenmill_reader' })
  for (const pan of [CARD.Y, CARD.A, CARD.mastercard, CARD.challengeY, CARD.challengeN]) {
    const encrypted = { reuse_token: undefined, encrypted_card: pan, public_key_alias: 'key.a' }
    for (const more of [{}, encrypted]) {
      const found = await lookup(bundle.ports, CALLER, lookupBody(bundle.contract.contractId, pan, more))
      if (isProblem(found)) throw new Error(`problem ${found.problem}`)
      secrets.push(pan, found.answer['cavv'] ?? pan, found.answer['payload'] ?? pan)
      if (pan === CARD.challengeY) await challenge(found.answer, { code: CODE })
      const stored = await bundle.ports.authentications.find(found.record.authenticationId)
      secrets.push(stored?.secrets.reveal().cavv ?? pan)
    }
  }
  await createJwt(bundle.ports, CALLER, { threeds_contract_id: bundle.contract.contractId })
})
afterAll(async () => {
  await reader?.close()
  await bundle?.close()
})

const TABLES = ['authentication', 'threeds_contract', 'threeds_jwt'] as const

describe('the store', () => {
  it.each(TABLES)('holds no card number, proof, challenge or key in %s, in whatever form', async table => {
    const { rows } = await bundle.store.query<{ text: string }>({
      text: `select row_to_json(t)::text as text from tokenmill.${table} as t`,
    })
    const dump = rows.map(({ text }) => text).join('\n')
    expect(dump.length).toBeGreaterThan(100)
    for (const secret of new Set([...secrets, bundle.contract.key.reveal().toString('base64')]))
      for (const form of [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret, 'base64').toString('hex')])
        expect(dump.includes(form), form.slice(0, 4)).toBe(false)
    expect(dump).not.toContain(bundle.contract.key.reveal().toString('hex'))
  })

  it('keeps nothing of who pays: no name, address or e-mail', async () => {
    const { rows } = await bundle.store.query<{ text: string }>({
      text: `select string_agg(row_to_json(t)::text, '') as text from tokenmill.authentication as t`,
    })
    for (const known of ['Ada', 'Tester', 'Testville', 'ada@example.com', 'device-1'])
      expect(rows[0]?.text).not.toContain(known)
  })

  it('keeps the challenge only while it is under way', async () => {
    const { rows } = await bundle.store.query<{ state: string; sealed: boolean }>({
      text: 'select distinct state, sealed is not null as sealed from tokenmill.authentication order by state',
    })
    expect(rows).toEqual([
      { state: 'A', sealed: true },
      { state: 'C', sealed: true },
      { state: 'Y', sealed: true },
    ])
  })

  it('opens no secret in another row’s place', async () => {
    await bundle.store.query({
      text: `update tokenmill.authentication as a set sealed = b.sealed from tokenmill.authentication as b
where a.state = 'Y' and b.state = 'A'`,
    })
    const { rows } = await bundle.store.query<{ id: string }>({
      text: `select authentication_id as id from tokenmill.authentication where state = 'Y' limit 1`,
    })
    await expect(bundle.ports.authentications.find(rows[0]?.id ?? '')).rejects.toMatchObject({ code: 'defect' })
  })

  it.each([
    ['another entity', `entity_id = gen_random_uuid()`],
    ['another client', `client_id = 'c'`],
    ['another contract', `contract_id = (select contract_id from tokenmill.threeds_contract where name = 'other')`],
  ])('opens no secret of a row that the owner of the database gave to %s', async (_, set) => {
    await bundle.addContract({ name: 'other' })
    const { rows } = await bundle.store.query<{ id: string }>({
      text: `select authentication_id as id from tokenmill.authentication where state = 'A' and token_id is null limit 1`,
    })
    const id = rows[0]?.id ?? ''
    await bundle.store.query({
      text: `create table public.kept as select * from tokenmill.authentication where authentication_id = '${id}'`,
    })
    await bundle.store.query({
      text: `update tokenmill.authentication set ${set} where authentication_id = '${id}'`,
    })
    await expect(bundle.ports.authentications.find(id)).rejects.toMatchObject({ code: 'defect' })
    await bundle.store.query({
      text: `update tokenmill.authentication as a
set entity_id = k.entity_id, client_id = k.client_id, contract_id = k.contract_id
from public.kept as k where a.authentication_id = k.authentication_id`,
    })
    await bundle.store.query({ text: 'drop table public.kept' })
    await bundle.store.query({ text: `delete from tokenmill.threeds_contract where name = 'other'` })
    expect((await bundle.ports.authentications.find(id))?.state).toBe('A')
  })

  it('shows the reader role what is in clear and nothing sealed', async () => {
    for (const [table, column] of [
      ['authentication', 'sealed'],
      ['authentication', 'request_digest'],
      ['threeds_contract', 'key_sealed'],
      ['threeds_contract', 'former_key_sealed'],
    ])
      await expect(reader.query({ text: `select ${column} from tokenmill.${table}` })).rejects.toMatchObject({
        code: '42501',
      })
    expect((await reader.query({ text: 'select pares_status, eci_flag from tokenmill.authentication' })).count).toBe(10)
    expect((await reader.query({ text: 'select jti from tokenmill.threeds_jwt' })).count).toBe(1)
  })

  it('of a record shows callers nothing of who asked', async () => {
    const { rows } = await bundle.store.query<{ id: string }>({
      text: `select authentication_id as id from tokenmill.authentication where state = 'A' limit 1`,
    })
    const found = await bundle.ports.authentications.find(rows[0]?.id ?? '')
    expect(found && Object.keys(shownRecord(found)).sort()).toEqual(
      [
        ...['_id', 'amount', 'authentication', 'card', 'created_at', 'currency_code', 'entity_id'],
        ...['threeds_contract_id', 'transaction_id'],
      ].sort(),
    )
  })

  it('forgets JWTs and authentications when their time is over', async () => {
    const day = 86_400_000
    expect(await sweepThreeDs(bundle.store, Date.now())).toEqual({ jwts: 0, authentications: 0 })
    expect(await sweepThreeDs(bundle.store, Date.now() + 2 * day)).toEqual({ jwts: 1, authentications: 0 })
    const later = Date.now() + (THREE_DS_RETENTION.authenticationDays + 1) * day
    expect(await sweepThreeDs(bundle.store, later)).toEqual({ jwts: 0, authentications: 10 })
  })
})
