// Owners of tokens over HTTP: they are added, read and looked up, and a client doesn't see those of another entity.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownerOf } from '../../../../src/job/on-file.ts'
import * as references from '../../../../src/store/reference/source-references.ts'
import { formatReuseToken } from '../../../../src/token/token.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { leaveAt } from '../../../workers/reference/owners.ts'
import { basicOf, CARD, type Caller, openGatewayFor } from '../bundle.ts'

const LOOKUP = '/oidc/api/v2/references/lookup'
const ANNA = { provider: 'acme', provider_account: 'acct-1', customer_id: 'anna' }

describeStore('source references over HTTP', engine => {
  let installation: Installation
  let gateway: Caller
  let last = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    gateway = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await gateway?.close()
    await installation?.close()
  })

  async function token(): Promise<string> {
    last += 1
    const { body } = await gateway.put({ cardNumber: testPan(last), expiryMonth: 12, expiryYear: 2031 })
    return String(body['reuse_token'])
  }
  const add = (id: string, body: object, options = {}) =>
    gateway.call('PUT', `${CARD}/${id}/references`, { body, ...options })
  const read = (id: string, options = {}) => gateway.call('GET', `${CARD}/${id}/references`, options)
  const lookUp = (asked: readonly object[], options = {}) =>
    gateway.call('POST', LOOKUP, { body: { token_scope: installation.scope, references: asked }, ...options })

  it('are added, changed and read', async () => {
    const id = await token()
    const anna = { ...ANNA, card_id: 'read-1' }
    expect(await read(id)).toMatchObject({ status: 200, body: { references: [] } })
    const given = { ...anna, network_transaction_id: 'N1', agreement: 'RECURRING', is_default: true }
    expect(await add(id, given)).toMatchObject({
      status: 200,
      body: { last_four: expect.any(String), reference_outcome: 'ADDED' },
    })
    expect(await add(id, { ...anna, network_transaction_id: 'N2' })).toMatchObject({
      body: { reference_outcome: 'CHANGED' },
    })
    expect(await add(id, { ...anna, network_transaction_id: 'N2' })).toMatchObject({
      body: { reference_outcome: 'UNCHANGED' },
    })
    await add(id, { provider: 'other', card_id: 'read-2' })
    expect((await read(id)).body).toEqual({
      references: [
        { ...given, network_transaction_ids: ['N1', 'N2'], network_transaction_id: 'N2' },
        { provider: 'other', card_id: 'read-2' },
      ],
    })
  })

  it('are read page by page, oldest first', async () => {
    const id = await token()
    const all = ['page-1', 'page-2', 'page-3'].map(card_id => ({ ...ANNA, card_id }))
    for (const owner of all) await add(id, owner)
    const page = (query: string) => gateway.call('GET', `${CARD}/${id}/references?${query}`)
    const first = (await page('limit=2')).body
    expect(first).toEqual({ references: all.slice(0, 2), next: expect.any(Number) })
    expect((await page(`limit=2&after=${first['next']}`)).body).toEqual({ references: all.slice(2) })
    expect((await page('limit=3')).body).toEqual({ references: all })
    expect(await page('limit=1001')).toMatchObject({ status: 400, body: { details: { 'query.limit': {} } } })
  })

  it('of a card that is known at another token move to this one', async () => {
    const [former, id] = [await token(), await token()]
    const anna = { ...ANNA, card_id: 'moves' }
    await add(former, anna)
    expect(await add(id, anna)).toMatchObject({
      status: 200,
      body: { reference_outcome: 'MOVED', previous_token: former },
    })
    expect((await read(former)).body).toEqual({ references: [] })
    expect((await read(id)).body).toEqual({ references: [anna] })
  })

  it('are looked up in order, found or not', async () => {
    const [one, other] = [await token(), await token()]
    const [first, second] = [
      { ...ANNA, card_id: 'look-1' },
      { ...ANNA, card_id: 'look-2' },
    ]
    await add(one, { ...first, transaction_link_id: 'kHj2_a9-0QwErTyUiOpAsD' })
    await add(other, second)
    await gateway.call('PATCH', `${CARD}/${other}/suspend`)
    const { provider, card_id } = first
    const answer = await lookUp([second, { provider, card_id }, first, second])
    const shownSecond = { found: true, reuse_token: other, token_status: 'SUSPENDED', ...second }
    expect(answer.body).toEqual({
      references: [
        shownSecond,
        { found: false },
        {
          found: true,
          reuse_token: one,
          token_status: 'ACTIVE',
          ...first,
          transaction_link_id: 'kHj2_a9-0QwErTyUiOpAsD',
        },
        shownSecond,
      ],
    })
    await gateway.call('DELETE', `${CARD}/${one}`)
    expect((await lookUp([first])).body).toEqual({ references: [{ found: false }] })
  })

  it('of a token for analytics only are found without its reuse token', async () => {
    last += 1
    const { body } = await gateway.put(
      { cardNumber: testPan(last), expiryMonth: 12, expiryYear: 2031 },
      { token_type: 'ANALYTICS' },
    )
    expect(body).not.toHaveProperty('reuse_token')
    const { store } = installation.vault
    const { rows } = await store.query<{ id: string }>({
      text: `select token_id as id from tokenmill.token where analytics_token = $1`,
      values: [String(body['analytics_token'])],
    })
    const anna = { ...ANNA, card_id: 'analytics' }
    await leaveAt(installation, formatReuseToken(rows[0]?.id ?? ''), anna)
    expect((await lookUp([anna])).body).toEqual({ references: [{ found: true, token_status: 'ACTIVE', ...anna }] })
  })

  it('are looked up a thousand at once and no more', async () => {
    const id = await token()
    const asked = Array.from({ length: 1_000 }, (_, n) => ({
      provider: 'acme',
      provider_account: 'a'.repeat(128),
      customer_id: 'c'.repeat(128),
      card_id: `many-${n}`,
    }))
    await add(id, asked[999] ?? {})
    const { status, body } = await lookUp(asked)
    expect(status).toBe(200)
    const found = body['references'] as { found: boolean }[]
    expect(found.map((one, n) => (one.found ? n : undefined)).filter(n => n !== undefined)).toEqual([999])
    const tooMany = await lookUp([...asked, { provider: 'acme', card_id: 'x' }])
    expect(tooMany).toMatchObject({ status: 400, body: { details: { 'body.references': { code: 'field_length' } } } })
  })

  it('show no billing address, and no member of a release to come', async () => {
    const id = await token()
    const anna = { ...ANNA, card_id: 'billed' }
    await add(id, anna)
    const { store } = installation.vault
    const [stored] = (await references.findByOwners(store, [ownerOf(anna, installation.scope)])).values()
    if (!stored) throw new Error('it was added')
    const onFile = { ...stored.onFile, billing_address: { line1: 'Hidden Lane 1' }, of_tomorrow: true }
    await references.updateAll(store, [{ ...stored, onFile, version: stored.version + 1 }])
    expect((await read(id)).text + (await lookUp([anna])).text).not.toMatch(/Hidden|tomorrow/)
    expect(await read(id)).toMatchObject({ status: 200, body: { references: [anna] } })
  })

  describe('of another entity', () => {
    it('are neither read nor added to nor found', async () => {
      const id = await token()
      const anna = { ...ANNA, card_id: 'ours' }
      await add(id, anna)
      const entity = 'b3f0c1d2-0000-4000-8000-00000000000b'
      const { clientFile, scope } = await installation.addClient('stranger', { entity })
      const authorization = await basicOf(clientFile)
      expect(await read(id, { authorization })).toMatchObject({ status: 404 })
      expect(await add(id, anna, { authorization })).toMatchObject({
        status: 404,
        body: { details: { 'params.id': { code: 'token_not_found' } } },
      })
      expect(await lookUp([anna], { authorization })).toMatchObject({
        status: 403,
        body: { details: { 'body.token_scope': { code: 'scope_forbidden' } } },
      })
      const own = { token_scope: scope, references: [anna] }
      expect((await gateway.call('POST', LOOKUP, { authorization, body: own })).body).toEqual({
        references: [{ found: false }],
      })
    })
  })

  it('need their roles', async () => {
    const id = await token()
    const { clientFile } = await installation.addClient('lifecycle', { roles: ['TOKEN_LIFECYCLE'] })
    const authorization = await basicOf(clientFile)
    const anna = { ...ANNA, card_id: 'roles' }
    for (const answer of [
      await read(id, { authorization }),
      await add(id, anna, { authorization }),
      await lookUp([anna], { authorization }),
    ])
      expect(answer).toMatchObject({ status: 403, body: { details: { params: { code: 'role_missing' } } } })
  })

  it('that look like the card of their token are refused by the name that the caller knows', async () => {
    const id = await token()
    const body = { ...ANNA, card_id: testPan(last) }
    expect(await add(id, body)).toMatchObject({ status: 400, body: { details: { body: { code: 'reference_pan' } } } })
  })
})
