// The owner of the database can't decide where a look-up posts a card, nor on whose account: a contract that tokenmill did
// not write, or that was changed since, is as one that doesn't exist.
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../../src/acts/grants.ts'
import { CARD, OTHER_ENTITY } from '../../../three-ds/samples.ts'
import { basicOf } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
/** A directory server of the owner's, and what it got. */
let other: Server
const posted: string[] = []
beforeAll(async () => {
  bundle = await openHttpBundle({ TOKENMILL_THREE_DS_TIMEOUT_SECONDS: '3' })
  other = createServer((request, response) => {
    posted.push(request.url ?? '')
    request.resume()
    response.end('{}')
  })
  await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
})
afterAll(async () => {
  await bundle?.close()
  await new Promise(done => other?.close(done))
})

/** Runs a statement as the owner of the database. */
const own = (text: string, ...values: unknown[]) => bundle.installation.vault.store.query({ text, values })
const ungranted = () => listUngranted(bundle.installation.vault.store, bundle.installation.vault.ring, GRANT_LISTS)
const counted = async () => {
  const shown = await (await fetch(`http://127.0.0.1:${bundle.process.opsPort}/metrics`)).text()
  const value = /^tokenmill_ungranted_rows_total\{.*kind="threeds-contract".*\} (\d+)$/m.exec(shown)?.[1]
  return value === undefined ? undefined : Number(value)
}

let contractId: string
beforeEach(async () => {
  ;({ contractId } = await bundle.addContract({ name: randomUUID() }))
  expect(await ungranted()).toEqual([])
})

const address = () => `http://127.0.0.1:${(other.address() as AddressInfo).port}/`
it.each([
  ['another directory server', () => `directory_url = '${address()}'`],
  ['another acquirer', () => `acquirer_bin = '499999'`],
  ['another merchant of the acquirer', () => `acquirer_merchant_id = 'other'`],
  ['another category', () => `mcc = '7995'`],
  ['another country', () => `merchant_country = 'BR'`],
  ['another merchant', () => `merchant_name = 'other'`],
  ['another requestor', () => `requestor_id = 'other', requestor_name = 'other', requestor_url = '${address()}'`],
  ['another address of notifications', () => `notification_url = '${address()}'`],
  ['another issuer', () => `issuer = 'other'`],
  ['another unit', () => `org_unit_id = 'other'`],
  ['another name', () => `name = 'other ${randomUUID()}'`],
  ['no code', () => 'mac = null, mac_version = null'],
])('a contract to which the owner gave %s is as one that does not exist, and is named', async (_, set) => {
  await own(`update tokenmill.threeds_contract set ${set()} where contract_id = $1`, contractId)
  const absent = await bundle.lookup(CARD.Y, { threeds_contract_id: randomUUID() })
  const before = (await counted()) ?? 0
  expect(await bundle.lookup(CARD.Y, { threeds_contract_id: contractId })).toMatchObject({
    status: absent.status,
    body: { code: '203' },
  })
  const made = await bundle.call('POST', `${SERVICE}/jwt/create`, { body: { threeds_contract_id: contractId } })
  expect(made).toMatchObject({ status: absent.status })
  expect(posted).toEqual([])
  expect(await counted()).toBe(before + 2)
  expect(await ungranted()).toEqual([`threeds-contract ${contractId}`])
  await own('delete from tokenmill.threeds_contract where contract_id = $1', contractId)
})

it('a contract that was given to another entity, or minted, is as one that does not exist', async () => {
  await own('update tokenmill.threeds_contract set entity_id = $2 where contract_id = $1', contractId, OTHER_ENTITY)
  expect(await ungranted()).toEqual([`threeds-contract ${contractId}`])
  await own('update tokenmill.threeds_contract set contract_id = $2 where contract_id = $1', contractId, randomUUID())
  const [minted] = await ungranted()
  expect(minted).toBeDefined()
  const answer = await bundle.lookup(CARD.Y, { threeds_contract_id: minted?.split(' ')[1] })
  expect(answer).toMatchObject({ body: { code: '203' } })
  await own('delete from tokenmill.threeds_contract where contract_id = $1', minted?.split(' ')[1])
})

it('a client to which the owner gave a role is absent, and is counted', async () => {
  const { clientFile, credentials } = await bundle.installation.addClient('given', { roles: ['TOKEN_READ'] })
  const roles = `array['TOKEN_READ', 'THREEDS']`
  await own(`update tokenmill.client set roles = ${roles} where client_id = $1`, credentials.signingKey.clientId)
  const authorization = await basicOf(clientFile)
  expect(await bundle.call('POST', `${SERVICE}/jwt/create`, { authorization, body: {} })).toMatchObject({ status: 401 })
  const shown = await (await fetch(`http://127.0.0.1:${bundle.process.opsPort}/metrics`)).text()
  expect(shown).toMatch(/^tokenmill_ungranted_rows_total\{.*kind="client".*\} 1$/m)
})
