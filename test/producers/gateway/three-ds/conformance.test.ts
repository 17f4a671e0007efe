// Every operation of the 3-D Secure service over HTTP, by status, filter and limit. Other tests test each rule in all
// its cases.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { untilReady } from '../../../support/ready.ts'
import { CARD, ENTITY, lookupBody, OTHER_ENTITY } from '../../../three-ds/samples.ts'
import { basicOf } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
beforeAll(async () => {
  bundle = await openHttpBundle()
})
afterAll(() => bundle?.close())

const NOBODY = '01a1fc5b-0000-7000-8000-000000000000'
const OPERATIONS = [
  ['GET', '/3d', undefined],
  ['GET', '/3d/count', undefined],
  ['GET', `/3d/${NOBODY}`, undefined],
  ['POST', '/lookup', {}],
  ['POST', '/jwt/create', {}],
  ['POST', '/jwt/validate', {}],
] as const

describe.each(OPERATIONS)('%s %s', (method, path, body) => {
  const call = (options = {}) => bundle.call(method, `${SERVICE}${path}`, { body, ...options })

  it('without valid credentials is 401 with number 201, whatever is wrong with the request', async () => {
    for (const authorization of [null, 'Basic eDp5', 'Bearer x.y.z', bundle.authorization.slice(0, -6)]) {
      const answer = await call({ authorization, ...(body ? { body: '{' } : {}) })
      expect(answer).toMatchObject({ status: 401, body: { code: '201', details: {}, timestamp: expect.any(Number) } })
      expect(Object.keys(answer.body).sort()).toEqual(['code', 'details', 'message', 'timestamp'])
      const challenges = answer.headers.get('www-authenticate') ?? ''
      expect(challenges).toContain('Basic')
      expect(challenges.includes('error="invalid_token"')).toBe(authorization?.startsWith('Bearer') ?? false)
    }
  })

  it('without the role THREEDS is 403 with number 202', async () => {
    const plain = await bundle.installation.addClient(`plain ${method} ${path}`.replaceAll('/', '-'), {
      roles: ['TOKEN_READ'],
    })
    const authorization = await basicOf(plain.clientFile)
    const good = { '/lookup': lookupBody(NOBODY, CARD.Y, { reuse_token: `t${'0'.repeat(26)}` }) } as const
    const jwt = { threeds_contract_id: NOBODY }
    const bodies: Record<string, unknown> = {
      ...good,
      '/jwt/create': jwt,
      '/jwt/validate': { ...jwt, jwt: 'x', authentication_id: NOBODY },
    }
    const answer = await call({ authorization, ...(body ? { body: bodies[path] } : {}) })
    expect(answer).toMatchObject({ status: 403, body: { code: '202', details: { params: { code: 'role_missing' } } } })
    // Errors of form come before a missing role.
    if (body) expect(await call({ authorization })).toMatchObject({ status: 400, body: { code: '101' } })
  })

  it('is open to a JWT of the client’s own key that claims the role, and to none that doesn’t', async () => {
    const file = JSON.parse(await readFile(bundle.installation.clientFile.replace('first', 'shop'), 'utf8')) as Record<
      string,
      string
    >
    const jwk = JSON.parse(await readFile(file['signing_key_file'] ?? '', 'utf8')) as JsonWebKey & {
      kid: string
      alg: string
    }
    const bearer = async (roles: string[]) =>
      `Bearer ${await new SignJWT({ sub: file['user_id'] ?? '', entity_id: ENTITY, roles })
        .setProtectedHeader({ alg: jwk.alg, kid: jwk.kid })
        .setExpirationTime('5m')
        .sign(createPrivateKey({ key: jwk, format: 'jwk' }))}`
    expect([200, 400, 404]).toContain((await call({ authorization: await bearer(['THREEDS']) })).status)
    if (!body) expect((await call({ authorization: await bearer(['TOKEN_READ']) })).status).toBe(403)
  })
})

describe('the face of the service', () => {
  it.each([
    ['GET', '/nothing'],
    ['POST', '/3d'],
    ['DELETE', `/3d/${NOBODY}`],
    ['GET', '/lookup'],
  ])('%s %s is 404 with number 206', async (method, path) => {
    const answer = await bundle.call(method, `${SERVICE}${path}`)
    expect(answer).toMatchObject({ status: 404, body: { code: '206', details: { params: { code: 'path_unknown' } } } })
  })

  it.each([
    ['{', 'body_json'],
    ['[]', 'body_json'],
    ['{"amount":1,"amount":2}', 'body_json'],
    [`{"x":"${'x'.repeat(70_000)}"}`, 'body_too_large'],
  ])('of a body that is none is 400 with number 101 (%#)', async (body, code) => {
    const answer = await bundle.call('POST', `${SERVICE}/lookup`, { body })
    expect(answer).toMatchObject({ status: 400, body: { code: '101', details: { body: { code } } } })
  })

  it('of another media type is 400 with number 101', async () => {
    const headers = { 'content-type': 'text/plain' }
    const answer = await bundle.call('POST', `${SERVICE}/jwt/create`, { body: 'x', headers })
    expect(answer).toMatchObject({ status: 400, body: { code: '101', details: { body: { code: 'body_media_type' } } } })
  })

  it('speaks through the rate limit with number 207', async () => {
    const limited = await bundle.openAnother({ TOKENMILL_RATE_LIMIT: '2' })
    const answers = []
    for (let time = 0; time < 3; time += 1) answers.push(await limited.call('GET', `${SERVICE}/3d/count`))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(answers[2]?.body).toMatchObject({ code: '207', details: {} })
    expect(Number(answers[2]?.headers.get('retry-after'))).toBeGreaterThan(0)
    // Directory servers and browsers aren't callers.
    const { status } = await fetch(`${limited.url}${SERVICE}/results/x`, { method: 'POST', body: '{}' })
    expect(status).toBe(200)
    await limited.close()
  })

  it('answers bytes that are no request in its own words', async () => {
    const { port } = new URL(bundle.url)
    const answer = await new Promise<string>((resolve, reject) => {
      const sent = request({ port, path: '/', headers: { 'x-long': 'x'.repeat(20_000) } }, response => {
        response.setEncoding('utf8').on('data', text => resolve(String(text)))
      })
      sent.on('error', reject).end()
    })
    expect(JSON.parse(answer)).toMatchObject({ code: '101' })
  })

  it('is documented at /openapi.json: six operations with all their statuses', async () => {
    const { body } = await bundle.call('GET', '/openapi.json', { authorization: null })
    const paths = body['paths'] as Record<string, Record<string, { operationId: string; responses: object }>>
    const known = Object.values(paths).flatMap(operations => Object.values(operations))
    expect(known.map(({ operationId }) => operationId).sort()).toEqual(
      [
        ...['countAuthentications', 'createJwt', 'getAuthentication', 'listAuthentications', 'lookup'],
        'validateJwt',
      ].sort(),
    )
    for (const { responses } of known)
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403', '404', '429', '500']))
    expect(Object.keys(paths['/oidc/3ds-service/v2/lookup']?.['post']?.responses ?? {})).toContain('504')
    await untilReady(bundle.url)
    expect((await fetch(`${bundle.url}/docs/`)).status).toBe(200)
    for (const path of ['/', '/oidc', '/oidc/3ds-service'])
      expect((await bundle.call('GET', path, { authorization: null })).body).toEqual({
        documentation: '/docs',
        openapi: '/openapi.json',
      })
  })
})

describe('lists', () => {
  const made: Record<string, unknown>[] = []
  beforeAll(async () => {
    const ways = [
      [CARD.Y, { amount: 100 }],
      [CARD.A, { amount: 200, currency_code: 'USD' }],
      [CARD.N, { amount: 300, merchant_reference: 'order-3' }],
      [CARD.mastercard, { amount: 400 }],
    ] as const
    for (const [pan, more] of ways) made.push((await bundle.lookup(pan, more)).body)
  })
  const list = async (query: string) => {
    const { status, text } = await bundle.call('GET', `${SERVICE}/3d?${query}`)
    expect(status, text).toBe(200)
    return JSON.parse(text) as { _id: string; amount: number; authentication: Record<string, string> }[]
  }
  const amounts = async (query: string) => (await list(query)).map(({ amount }) => amount)
  const count = async (query: string) => (await bundle.call('GET', `${SERVICE}/3d/count?${query}`)).body['count']

  it.each([
    ['', [400, 300, 200, 100]],
    ['amount=200', [200]],
    ['amount!=200', [400, 300, 100]],
    ['amount>=200', [400, 300, 200]],
    ['amount<=200', [200, 100]],
    ['amount>=200&amount<=300', [300, 200]],
    ['amount=100&amount=400', [400, 100]],
    ['amount%3E=300', [400, 300]],
    ['currency_code=USD', [200]],
    ['currency_code~=U', [400, 300, 200, 100]],
    ['authentication.pares_status=Y', [400, 100]],
    ['authentication.pares_status!=Y', [300, 200]],
    ['authentication.order_id~=*-3', [300]],
    ['authentication.eci_flag=02&authentication.eci_flag=06', [400, 200]],
    ['authentication.card_brand=MASTERCARD', [400]],
    [`entity_id=${ENTITY}`, [400, 300, 200, 100]],
    [`entity_id=${OTHER_ENTITY}`, []],
    ['created_at>=2020-01-01&created_at<=2099-01-01T00:00:00%2B02:00', [400, 300, 200, 100]],
    ['created_at<=2020-01-01', []],
  ] as const)('filter by %s, and count the same', async (query, expected) => {
    expect(await amounts(query)).toEqual(expected)
    expect(await count(query)).toBe(expected.length)
  })

  it.each([
    ['_sort=amount', [100, 200, 300, 400]],
    ['_sort=-amount&_limit=2', [400, 300]],
    ['_sort=amount&_skip=1&_limit=2', [200, 300]],
    ['_sort=authentication.card_brand&_limit=1', [400]],
    ['_limit=10000', [400, 300, 200, 100]],
    ['_skip=4', []],
  ] as const)('page by %s', async (query, expected) => {
    expect(await amounts(query)).toEqual(expected)
  })

  it('find a record by each of its names', async () => {
    const [first] = await list('amount=100')
    const { status, body } = await bundle.call('GET', `${SERVICE}/3d/${first?._id}`)
    expect({ status, body }).toEqual({ status: 200, body: first })
    for (const [name, value] of [
      ['_id', body['_id']],
      ['transaction_id', body['transaction_id']],
      ['public_key_alias', body['public_key_alias']],
      ['authentication.ds_transaction_id', first?.authentication['ds_transaction_id']],
    ] as const) {
      expect(value).toEqual(expect.any(String))
      expect(await count(`${name}=${value}`)).toBe(name === 'public_key_alias' ? 4 : 1)
    }
    expect(await count(`threeds_contract_id=${bundle.contract.contractId}`)).toBe(4)
    expect(body).toMatchObject({ amount: 100, currency_code: 'EUR', entity_id: ENTITY })
    expect(first?.authentication).toMatchObject({ pares_status: 'Y', cavv: made[0]?.['cavv'], enrolled: 'Y' })
  })

  it.each([
    ['_limit=0', 'query._limit', 'field_range'],
    ['_limit=10001', 'query._limit', 'field_range'],
    ['_skip=-1', 'query._skip', 'field_format'],
    ['_sort=authentication.cavv', 'query._sort', 'field_value'],
    ['_page=2', 'query._page', 'field_unknown'],
    ['pan=4000000000001000', 'query.pan', 'field_unknown'],
    ['4000000000001000=1', 'query.(unnamed)', 'field_unknown'],
    ['currency_code>=EUR', 'query.currency_code>', 'not_applicable'],
    ['amount~=1', 'query.amount~', 'not_applicable'],
    ['amount=ten', 'query.amount', 'field_format'],
  ])('with %s are 400 with number 102', async (query, field, code) => {
    for (const path of ['/3d', '/3d/count']) {
      const answer = await bundle.call('GET', `${SERVICE}${path}?${query}`)
      expect(answer).toMatchObject({ status: 400, body: { code: '102', details: { [field]: { code } } } })
      expect(answer.text).not.toContain('4000000000001000')
    }
  })

  it('hold nothing of another entity, and a record of one is 404 as none is', async () => {
    const foreign = await bundle.installation.addClient('foreign', { entity: OTHER_ENTITY, roles: ['THREEDS'] })
    const authorization = await basicOf(foreign.clientFile)
    const empty = await bundle.call('GET', `${SERVICE}/3d?entity_id=${ENTITY}`, { authorization })
    expect(empty.text).toBe('[]')
    expect((await bundle.call('GET', `${SERVICE}/3d/count`, { authorization })).body).toEqual({ count: 0 })
    const [record] = await list('_limit=1')
    const answers = [
      await bundle.call('GET', `${SERVICE}/3d/${record?._id}`, { authorization }),
      await bundle.call('GET', `${SERVICE}/3d/${NOBODY}`),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: '204' } })
    expect(await bundle.call('GET', `${SERVICE}/3d/x`)).toMatchObject({ status: 400, body: { code: '101' } })
  })
})

describe('a JWT', () => {
  const create = (contractId: string, options = {}) =>
    bundle.call('POST', `${SERVICE}/jwt/create`, { body: { threeds_contract_id: contractId }, ...options })

  it('is created with 201', async () => {
    const answer = await create(bundle.contract.contractId)
    expect(answer).toMatchObject({
      status: 201,
      body: { jwt: expect.stringMatching(/^ey/), threeds_contract_id: bundle.contract.contractId },
    })
    expect(Object.keys(answer.body)).toHaveLength(2)
  })

  it('of a contract that isn’t, or is another entity’s, is 404 with number 203', async () => {
    const foreign = await bundle.addContract({ entityId: OTHER_ENTITY })
    for (const id of [randomUUID(), foreign.contractId])
      expect(await create(id)).toMatchObject({ status: 404, body: { code: '203' } })
  })

  it.each([{}, { threeds_contract_id: 'x' }, { threeds_contract_id: randomUUID(), more: 1 }])(
    'asked for by %j is 400 with number 101',
    async body => {
      expect(await bundle.call('POST', `${SERVICE}/jwt/create`, { body })).toMatchObject({
        status: 400,
        body: { code: '101' },
      })
    },
  )
})
