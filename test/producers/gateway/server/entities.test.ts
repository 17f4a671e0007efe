// One rule for entities, over the routes and ways of signing in, for a client of two entities: whoever signs in for the
// client may name what is either entity's; a Bearer token acts for its entity alone, also where an answer is stored; lists
// are of the entity where the caller stands, unless the request names another. Jobs on the queue are the client's own.
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../../cli/open/make-scope.ts'
import { openSession } from '../../../../cli/open/open.ts'
import { registerClient } from '../../../../cli/open/register-client.ts'
import { serveThreeDs } from '../../../../cli/process/three-ds.ts'
import { type Credentials, readCredentials } from '../../../../producers/client/client-file.ts'
import type { Client } from '../../../../producers/client.ts'
import { grantContract } from '../../../../src/acts/contract-grants.ts'
import type { Role } from '../../../../src/job/catalogue.ts'
import { startThreeDsSimulator, type ThreeDsSimulator } from '../../../../src/simulate/three-ds/three-ds.ts'
import * as orders from '../../../../src/store/ledger/orders.ts'
import * as threeDsContracts from '../../../../src/store/three-ds/three-ds-contracts.ts'
import { orderOf } from '../../../orders/sample.ts'
import { describeStore } from '../../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { lookupBody, makeContract, CARD as THREE_DS_CARD } from '../../../three-ds/samples.ts'
import { transactionOf } from '../../ingest/sample.ts'
import { type Answer, BATCHES, CARD, type Caller, encrypted, openCalls, openGatewayFor } from '../bundle.ts'
import { SERVICE } from '../three-ds/bundle.ts'

const SISTER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const STRANGER = '9c3b7f0e-3a52-4c3b-9a57-0c1d2e3f4a5d'
const OF_TOKENS = ['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN'] as const
const ROLES: Role[] = [...OF_TOKENS, 'REPORT_READ', 'REPORT_REQUEST', 'LEDGER_WRITE', 'THREEDS']
const ISSUER = 'https://login.example'
const OPERATIONS = '/oidc/api/v2/operations'
const REPORTS = '/oidc/report-engine/api/v1/reports'
const ORDERS = '/oidc/orders'
const ENTITIES = [ENTITY, SISTER]
const CSV = { 'content-type': 'text/csv' }

/** Bearer tokens: signed by the client itself, or by an issuer that the operator named. */
type SignIn = 'basic' | 'own' | 'sister' | 'sister by issuer'
const SIGN_INS: readonly SignIn[] = ['basic', 'own', 'sister', 'sister by issuer']
/** The entities that each way of signing in acts for. */
const REACH: Record<SignIn, readonly string[]> = {
  basic: ENTITIES,
  own: [ENTITY],
  sister: [SISTER],
  'sister by issuer': [SISTER],
}

describeStore('a client of two entities', engine => {
  let installation: Installation
  let caller: Caller
  const authorization = {} as Record<SignIn, string>
  const scopes = new Map<string, string>()
  const keys = new Map<string, Pick<Credentials, 'captureKeys'>>()
  const contracts = new Map<string, string>()
  let both: Client
  let threeDs: Caller['call']
  let simulator: ThreeDsSimulator
  let issuer: Server
  let pans = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const sister = await installation.addClient('sister', { entity: SISTER })
    keys.set(ENTITY, installation.credentials).set(SISTER, sister.credentials)
    await installation.addClient('stranger', { entity: STRANGER })
    simulator = await startThreeDsSimulator({ host: '127.0.0.1', port: 0 })
    for (const entityId of [...ENTITIES, STRANGER]) {
      const contract = makeContract(simulator.url, { entityId })
      await threeDsContracts.insert(installation.vault.store, installation.vault.ring, contract)
      await grantContract(installation.vault.store, installation.vault.ring, contract)
      contracts.set(entityId, contract.contractId)
    }
    for (const entityId of ENTITIES) {
      const scope = { entityId, par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
      scopes.set(entityId, (await makeScope(installation.vault, scope)).tokenScope)
    }
    const outDir = join(installation.dataDir, 'both')
    await mkdir(outDir)
    const file = await registerClient(installation.vault, {
      name: 'both',
      entities: [ENTITY, SISTER],
      roles: ROLES,
      publicJwk: undefined,
      names: undefined,
      outDir,
      audience: installation.session.config.audience,
      baseUrl: 'http://127.0.0.1:8080/oidc',
    })
    await installation.signRights()
    const jwk = JSON.parse(await readFile(file.signing_key_file ?? '', 'utf8')) as JsonWebKey &
      Record<'kid' | 'alg', string>
    const ofIssuer = generateKeyPairSync('ed25519')
    const published = { ...ofIssuer.publicKey.export({ format: 'jwk' }), kid: 'issuer-1', alg: 'EdDSA' }
    issuer = createServer((_request, response) => response.end(JSON.stringify({ keys: [published] })))
    await new Promise<void>(resolve => issuer.listen(0, '127.0.0.1', resolve))
    const issuedAt = `127.0.0.1:${(issuer.address() as AddressInfo).port}`
    const claims = { sub: file.user_id, roles: ROLES, exp: Math.floor(Date.now() / 1000) + 3_000 }
    const bearer = async (entity_id: string) =>
      `Bearer ${await new SignJWT({ ...claims, entity_id })
        .setProtectedHeader({ alg: jwk.alg, kid: jwk.kid })
        .sign(createPrivateKey({ key: jwk, format: 'jwk' }))}`
    authorization.basic = `Basic ${Buffer.from(`${file.user_id}:${file.api_key}`).toString('base64')}`
    authorization.own = await bearer(ENTITY)
    authorization.sister = await bearer(SISTER)
    authorization['sister by issuer'] = `Bearer ${await new SignJWT({ ...claims, iss: ISSUER, entity_id: SISTER })
      .setProtectedHeader({ alg: 'EdDSA', kid: published.kid })
      .sign(ofIssuer.privateKey)}`
    await orders.saveAll(
      installation.vault.store,
      Array.from({ length: 20 }, (_, n) => orderOf(n)),
    )
    await installation.openWorkers()
    const settings = {
      TOKENMILL_JWT_ISSUERS: `${ISSUER}=http://${issuedAt}/jwks`,
      TOKENMILL_PRIVATE_HOSTS: '127.0.0.1',
    }
    caller = await openGatewayFor(installation, settings)
    const clientFile = join(outDir, 'client.json')
    await writeFile(clientFile, JSON.stringify(file))
    both = await installation.connect({ credentials: await readCredentials(clientFile) })
    const env = { ...installation.env, ...settings, TOKENMILL_THREE_DS_PORT: '0' }
    const session = openSession(
      { env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
      'three-ds',
    )
    installation.session.lifetime.onClose('three-ds', () => session.lifetime.close())
    const served = await serveThreeDs(session)
    threeDs = await openCalls(`http://127.0.0.1:${served.port}`, authorization.basic)
  })
  afterAll(async () => {
    await caller?.close()
    issuer?.close()
    await simulator?.close()
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
    reportType: 'MERCHANT_SETTLEMENT_REPORT',
    mimeType: 'text/csv',
    ...(reportEntityUid && { reportEntityUid }),
    reportParameter: { clearingDate: `2030-01-${String(10 + (pans++ % 20))}` },
  })

  const ask3ds = (by: SignIn, method: string, path: string, body?: unknown) =>
    threeDs(method, `${SERVICE}${path}`, { authorization: authorization[by], ...(body === undefined ? {} : { body }) })
  const lookup = async (by: SignIn, entity: string) => {
    const { reuse_token: _, ...body } = lookupBody(contracts.get(entity) ?? '', THREE_DS_CARD.Y)
    const credentials = keys.get(entity)
    if (!credentials) throw new Error('each entity has a key')
    const card = await encrypted({ cardNumber: THREE_DS_CARD.Y, expiryMonth: 12, expiryYear: 2031 }, credentials)
    return ask3ds(by, 'POST', '/lookup', { ...body, ...card })
  }

  type Asking = (by: SignIn, entity: string) => Promise<Answer>
  /** What a request names, and its status where the caller doesn't act for the entity. */
  const ROUTES: Record<string, { refused: number; allowed?: number; ask: Asking }> = {
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
    'PATCH card, its scheme token': {
      refused: 404,
      // This installation has no network.
      allowed: 400,
      ask: async (by, entity) =>
        call(by, 'PATCH', `${CARD}/${await token(entity)}`, { scheme_token_action: 'ACTIVATE' }),
    },
    'POST jwt/create': {
      refused: 404,
      ask: (by, entity) => ask3ds(by, 'POST', '/jwt/create', { threeds_contract_id: contracts.get(entity) }),
    },
    'POST 3-D Secure lookup': { refused: 404, ask: lookup },
    'GET 3-D Secure authentication': {
      refused: 404,
      ask: async (by, entity) => {
        const { body } = await lookup('basic', entity)
        return ask3ds(by, 'GET', `/3d/${body['authentication_id']}`)
      },
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
    async (_, { refused, allowed, ask }) => {
      for (const by of SIGN_INS)
        for (const entity of ENTITIES) {
          const { status } = await ask(by, entity)
          const isAllowed = REACH[by].includes(entity)
          const expected = isAllowed ? (allowed ?? 200) : refused
          expect([by, entity, status < 300 ? 200 : status]).toEqual([by, entity, expected])
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

  it('sees authentications of the entities that it signed in for', async () => {
    const made = new Map<string, unknown>()
    for (const entity of ENTITIES) made.set(entity, (await lookup('basic', entity)).body['authentication_id'])
    for (const by of SIGN_INS) {
      const { text } = await ask3ds(by, 'GET', '/3d?_limit=100')
      for (const [entity, id] of made) expect([by, text.includes(String(id))]).toEqual([by, REACH[by].includes(entity)])
    }
  })

  it('sends a batch that names no scope as the entity where it stands; its rows may name tokens of all', async () => {
    const path = `${BATCHES}?kind=token-lifecycle`
    const rows = async () => `id,action\n${await token(ENTITY)},SUSPEND\n${await token(SISTER)},SUSPEND\n`
    for (const by of ['basic', 'sister'] as const) {
      const { headers, status } = await call(by, 'POST', path, await rows(), CSV)
      expect(status).toBe(202)
      const location = headers.get('location') ?? ''
      await ended(by, location)
      const { text } = await call(by, 'GET', `${location}/results`)
      const codes = text
        .split('\n')
        .slice(1, 3)
        .map(line => Number(line.split(',')[3]))
      expect([by, codes.map(code => code < 300)]).toEqual([by, [by === 'basic', true]])
      const [stands] = REACH[by] as [string]
      for (const other of SIGN_INS) {
        const { status: seen } = await call(other, 'GET', location)
        expect([by, other, seen]).toEqual([by, other, REACH[other].includes(stands) ? 200 : 404])
      }
    }
  })

  it('sends jobs about tokens and transactions of either entity, and of no other', async () => {
    const { credentials, scope } = await installation.addClient('stranger')
    const third = await installation.connect({ credentials })
    const card = { cardNumber: testPan(++pans), expiryMonth: 12, expiryYear: 2034 }
    const theirs = await third.call('token-create', { token_scope: scope, ...(await third.encryptCard(card)) })
    const foreign = String(theirs.record?.['reuse_token'])
    const ids = new Map<string, string>([[STRANGER, foreign]])
    for (const entity of ENTITIES) ids.set(entity, await token(entity))
    for (const [entity, id] of ids)
      for (const action of ['ACTIVATE', 'SUSPEND', 'DELETE'] as const) {
        const { code } = await both.call('scheme-token', { id, action })
        expect([entity, action, code === 404]).toEqual([entity, action, entity === STRANGER])
      }
    const lines = [ENTITY, SISTER, STRANGER].map((entity, index) => ({
      line: index + 1,
      transaction: transactionOf(index, { entity, seed: 'two entities' }),
    }))
    const request = { batch_id: 'two-entities', chunk: 0, transactions: lines }
    const { records } = await both.call('transaction-batch', request, { jti: 'two-entities-0' })
    expect(records).toEqual([expect.objectContaining({ line: 3, code: 403 })])
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
