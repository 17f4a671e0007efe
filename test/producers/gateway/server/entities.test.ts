// One rule for entities, over the routes and ways of signing in, for a client of two entities: whoever signs in for the
// client may name what is either entity's; a Bearer token acts for its entity alone, also where an answer is stored; lists
// are of the entity where the caller stands, unless the request names another.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../../cli/commands/scope.ts'
import { registerClient } from '../../../../cli/open/register-client.ts'
import type { Credentials } from '../../../../producers/client-file.ts'
import type { Role } from '../../../../src/job/catalogue.ts'
import * as orders from '../../../../src/store/ledger/orders.ts'
import { orderOf } from '../../../orders/sample.ts'
import { describeStore } from '../../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { type Answer, BATCHES, CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const SISTER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const ROLES: Role[] = ['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN', 'REPORT_READ', 'REPORT_REQUEST']
const OPERATIONS = '/oidc/api/v2/operations'
const REPORTS = '/oidc/report-engine/api/v1/reports'
const ORDERS = '/oidc/orders'
const ENTITIES = [ENTITY, SISTER]
const CSV = { 'content-type': 'text/csv' }

type SignIn = 'basic' | 'own' | 'sister'
const SIGN_INS: readonly SignIn[] = ['basic', 'own', 'sister']
/** The entities that each way of signing in acts for. */
const REACH: Record<SignIn, readonly string[]> = { basic: ENTITIES, own: [ENTITY], sister: [SISTER] }

describeStore('a client of two entities', engine => {
  let installation: Installation
  let caller: Caller
  const authorization = {} as Record<SignIn, string>
  const scopes = new Map<string, string>()
  const keys = new Map<string, Pick<Credentials, 'captureKeys'>>()
  let pans = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const sister = await installation.addClient('sister', { entity: SISTER })
    keys.set(ENTITY, installation.credentials).set(SISTER, sister.credentials)
    for (const entityId of ENTITIES) {
      const scope = { entityId, par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
      scopes.set(entityId, (await makeScope(installation.vault, scope)).tokenScope)
    }
    const outDir = join(installation.dataDir, 'both')
    await mkdir(outDir)
    const file = await registerClient(installation.vault, {
      ...{ name: 'both', entities: [ENTITY, SISTER], roles: ROLES, publicJwk: undefined, names: undefined, outDir },
      ...{ audience: installation.session.config.audience, baseUrl: 'http://127.0.0.1:8080/oidc' },
    })
    const jwk = JSON.parse(await readFile(file.signing_key_file ?? '', 'utf8')) as JsonWebKey &
      Record<'kid' | 'alg', string>
    const bearer = async (entity_id: string) =>
      `Bearer ${await new SignJWT({
        sub: file.user_id,
        entity_id,
        roles: ROLES,
        exp: Math.floor(Date.now() / 1000) + 3_000,
      })
        .setProtectedHeader({ alg: jwk.alg, kid: jwk.kid })
        .sign(createPrivateKey({ key: jwk, format: 'jwk' }))}`
    authorization.basic = `Basic ${Buffer.from(`${file.user_id}:${file.api_key}`).toString('base64')}`
    authorization.own = await bearer(ENTITY)
    authorization.sister = await bearer(SISTER)
    await orders.saveAll(
      installation.vault.store,
      Array.from({ length: 20 }, (_, n) => orderOf(n)),
    )
    await installation.openWorkers()
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const call = (by: SignIn, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    caller.call(method, path, { authorization: authorization[by], headers, ...(body === undefined ? {} : { body }) })
  const cardOf = async (entity: string) => {
    pans += 1
    const credentials = keys.get(entity)
    if (!credentials) throw new Error('each entity has a key')
    return encrypted({ cardNumber: testPan(pans), expiryMonth: 12, expiryYear: 2034 }, credentials)
  }
  const createOf = async (entity: string) => ({ token_scope: scopes.get(entity), ...(await cardOf(entity)) })
  const token = async (entity: string) =>
    String((await call('basic', 'PUT', CARD, await createOf(entity))).body['reuse_token'])
  const owner = () => ({ provider: 'stripe', card_id: randomUUID() })
  const ended = async (by: SignIn, path: string) =>
    until(async () => {
      const { body } = await call(by, 'GET', path)
      return (body['finished'] === true || ['SUCCEEDED', 'FAILED'].includes(String(body['status']))) && body
    })
  const report = (reportEntityUid?: string) => ({
    ...{ reportType: 'MERCHANT_SETTLEMENT_REPORT', mimeType: 'text/csv', ...(reportEntityUid && { reportEntityUid }) },
    reportParameter: { clearingDate: `2030-01-${String(10 + (pans++ % 20))}` },
  })

  type Asking = (by: SignIn, entity: string) => Promise<Answer>
  /** What a request names, and its status where the caller doesn't act for the entity. */
  const ROUTES: Record<string, { refused: number; ask: Asking }> = {
    'PUT card': { refused: 403, ask: async (by, entity) => call(by, 'PUT', CARD, await createOf(entity)) },
    'PUT card, later': {
      refused: 403,
      ask: async (by, entity) => {
        const { headers } = await call(by, 'PUT', CARD, await createOf(entity), { prefer: 'respond-async' })
        const { code } = await ended(by, headers.get('location') ?? '')
        return { status: code } as Answer
      },
    },
    'GET card': { refused: 404, ask: async (by, entity) => call(by, 'GET', `${CARD}/${await token(entity)}`) },
    'PATCH card': {
      refused: 404,
      ask: async (by, entity) => call(by, 'PATCH', `${CARD}/${await token(entity)}`, { card_holder_name: 'ANNA' }),
    },
    suspend: { refused: 404, ask: async (by, entity) => call(by, 'PATCH', `${CARD}/${await token(entity)}/suspend`) },
    'DELETE card': { refused: 404, ask: async (by, entity) => call(by, 'DELETE', `${CARD}/${await token(entity)}`) },
    'PUT reference': {
      refused: 404,
      ask: async (by, entity) => call(by, 'PUT', `${CARD}/${await token(entity)}/references`, owner()),
    },
    'GET references': {
      refused: 404,
      ask: async (by, entity) => call(by, 'GET', `${CARD}/${await token(entity)}/references`),
    },
    'POST lookup': {
      refused: 403,
      ask: (by, entity) =>
        call(by, 'POST', '/oidc/api/v2/references/lookup', { token_scope: scopes.get(entity), references: [owner()] }),
    },
    'POST report': { refused: 403, ask: (by, entity) => call(by, 'POST', REPORTS, report(entity)) },
    'POST batch of a scope': {
      refused: 403,
      ask: (by, entity) =>
        call(
          ...([by, 'POST', `${BATCHES}?token_scope=${scopes.get(entity)}`] as const),
          `card_number,expiry\n${testPan(++pans)},12/34\n`,
          CSV,
        ),
    },
    'a row of a batch': {
      refused: 404,
      ask: async (by, entity) => {
        const rows = `id,action\n${await token(entity)},SUSPEND\n`
        const { headers } = await call(by, 'POST', `${BATCHES}?kind=token-lifecycle`, rows, CSV)
        const path = headers.get('location') ?? ''
        await ended(by, path)
        const { text } = await call(by, 'GET', `${path}/results`)
        return { status: Number(text.split('\n')[1]?.split(',')[3]) } as Answer
      },
    },
  }

  it.each(Object.entries(ROUTES))(
    'may name what is of an entity that it signed in for: %s',
    async (_, { refused, ask }) => {
      for (const by of SIGN_INS)
        for (const entity of ENTITIES) {
          const { status } = await ask(by, entity)
          const isAllowed = REACH[by].includes(entity)
          expect([by, entity, isAllowed ? status < 300 : status]).toEqual([by, entity, isAllowed || refused])
        }
    },
  )

  it('is answered again only for an entity that it signed in for, though the answer is stored', async () => {
    const later = { prefer: 'respond-async' }
    for (const other of ['own', 'sister'] as const) {
      const [entity] = REACH[other === 'own' ? 'sister' : 'own'] as [string]
      const id = await token(entity)
      const create = await createOf(entity)
      const asks: [string, string, unknown?][] = [
        ['PUT', CARD, create],
        ['PATCH', `${CARD}/${id}`, { card_holder_name: 'BERTA' }],
        ['PATCH', `${CARD}/${await token(entity)}`, { card_brand: 'NONE', token_expiry_date: '2001-01-01' }],
        ['PUT', `${CARD}/${id}/references`, owner()],
        ['DELETE', `${CARD}/${id}`],
      ]
      for (const [method, path, body] of asks) {
        const key = { 'idempotency-key': randomUUID() }
        const first = await call('basic', method, path, body, key)
        const again = await call('basic', method, path, body, key)
        expect([again.status, again.body['reuse_token']]).toEqual([first.status, first.body['reuse_token']])
        const foreign = await call(other, method, path, body, key)
        if (first.status < 300) expect([method, foreign.status]).toEqual([method, 403])
        expect(foreign.body).not.toHaveProperty('bin')
      }
      const { headers } = await call('basic', 'PUT', CARD, await createOf(entity), later)
      const location = headers.get('location') ?? ''
      expect(await ended('basic', location)).toMatchObject({ code: 200 })
      expect((await call(other, 'GET', location)).status).toBe(404)
      expect(location).toContain(OPERATIONS)
    }
  })

  it('sees batches and lists of the entity where it stands, and of others that it names', async () => {
    const made = new Map<string, string>()
    for (const entity of ENTITIES) {
      const path = `${BATCHES}?token_scope=${scopes.get(entity)}`
      const { body } = await call('basic', 'POST', path, `card_number,expiry\n${testPan(++pans)},12/34\n`, CSV)
      made.set(entity, String(body['batch_id']))
      await ended('basic', `${BATCHES}/${body['batch_id']}`)
    }
    const idsOf = ({ body }: Answer) => (body['batches'] as { batch_id: string }[]).map(one => one.batch_id)
    const ordersOf = ({ body }: Answer) => [
      ...new Set((body['orders'] as { entityUid: string }[]).map(one => one.entityUid)),
    ]
    const reportsOf = ({ body }: Answer) =>
      [...new Set((body['reports'] as { reportEntityUid: string }[]).map(one => one.reportEntityUid))].sort()
    for (const entity of ENTITIES) await call('basic', 'POST', REPORTS, report(entity))
    for (const by of SIGN_INS) {
      const listed = idsOf(await call(by, 'GET', BATCHES))
      for (const [entity, id] of made) {
        const isAllowed = REACH[by].includes(entity)
        expect([by, listed.includes(id)]).toEqual([by, isAllowed])
        for (const path of [`${BATCHES}/${id}`, `${BATCHES}/${id}/results`])
          expect([by, path, (await call(by, 'GET', path)).status]).toEqual([by, path, isAllowed ? 200 : 404])
        const criterion = `?search=${encodeURIComponent(`reportEntityUid==${entity}`)}`
        expect(reportsOf(await call(by, 'GET', `${REPORTS}${criterion}`))).toEqual(isAllowed ? [entity] : [])
      }
      const [stands] = REACH[by] as [string]
      expect(reportsOf(await call(by, 'GET', REPORTS))).toEqual([stands])
      expect(ordersOf(await call(by, 'GET', ORDERS))).toEqual([stands])
      const named = ordersOf(await call(by, 'GET', `${ORDERS}?orderReference=R19`))
      expect(named).toEqual(REACH[by].includes(SISTER) ? [SISTER] : [])
    }
  })

  it('may name no other entity than the scope’s as the one that a token is for', async () => {
    const put = async (by: SignIn, entity: string, entity_id: string) => {
      const { status, body } = await call(by, 'PUT', CARD, {
        ...(await createOf(entity)),
        token_context: { entity_id },
      })
      return [status, Object.keys((body['details'] ?? {}) as object)]
    }
    const field = 'body.token_context.entity_id'
    expect(await put('basic', ENTITY, ENTITY)).toEqual([200, []])
    expect(await put('basic', SISTER, SISTER)).toEqual([200, []])
    expect(await put('basic', ENTITY, SISTER)).toEqual([400, [field]])
    expect(await put('basic', SISTER, ENTITY)).toEqual([400, [field]])
    expect(await put('own', ENTITY, SISTER)).toEqual([403, [field]])
    expect(await put('basic', ENTITY, randomUUID())).toEqual([403, [field]])
  })

  it('names the entity of a report, which no caller gets by default', async () => {
    const { status, body } = await call('basic', 'POST', REPORTS, report())
    expect([status, body['param']]).toEqual([400, 'reportEntityUid'])
  })
})
