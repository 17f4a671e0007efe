import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { untilReady } from '../../../support/ready.ts'
import { until } from '../../../support/until.ts'
import { basicOf, CARD, type Caller, openGatewayFor } from '../bundle.ts'

const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
const NOBODY = `${CARD}/t${'0'.repeat(26)}`

describeEngines('a gateway', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  it('shows metrics, /healthz and /readyz on a port of its own, and no metrics on its HTTP port', async () => {
    const ops = `http://127.0.0.1:${caller.gateway.opsPort}`
    await untilReady(ops)
    const pages = await Promise.all(['/healthz', '/readyz', '/metrics', '/docs'].map(page => fetch(`${ops}${page}`)))
    expect(pages.map(({ status }) => status)).toEqual([200, 200, 200, 404])
    expect((await fetch(`${caller.url}/metrics`)).status).toBe(404)
  })

  it('answers /healthz and /readyz, having asked store and queue', async () => {
    expect(await caller.call('GET', '/healthz', { authorization: null })).toMatchObject({ status: 200, text: 'ok\n' })
    await untilReady(caller.url)
    expect(await caller.call('GET', '/readyz', { authorization: null })).toMatchObject({ status: 200, text: 'ready\n' })
  })

  it('shows its numbers by route template and status, and nothing of a caller', async () => {
    await caller.put(VISA)
    await caller.call('GET', `${NOBODY}?card=4111111111111111`)
    await caller.call('GET', '/oidc/4111111111111111')
    let text = ''
    const requests = (method: string, route: string, status: number) =>
      new RegExp(
        `^tokenmill_http_request_seconds_count\\{method="${method}",route="${route}",status="${status}",process="gateway"\\} (\\d+)`,
        'm',
      ).exec(text)?.[1]
    // A request is counted once its answer is sent, when its caller may have it already.
    await until(async () => {
      text = await (await fetch(`http://127.0.0.1:${caller.gateway.opsPort}/metrics`)).text()
      return Number(requests('GET', 'unknown', 404)) > 0
    })
    expect(requests('GET', '/oidc/api/v2/card/:id', 404)).toBe('1')
    expect([requests('PUT', '/oidc/api/v2/card', 200), requests('PUT', '/oidc/api/v2/card', 500)]).toEqual(['1', '0'])
    expect(text).toMatch(/^tokenmill_gateway_answer_seconds_count\{kind="token-create",process="gateway"\} 1$/m)
    expect(text).toMatch(
      /^tokenmill_gateway_timeouts_total\{kind="token-create",reversal_status="REQUIRED",process="gateway"\} 0$/m,
    )
    expect(text).not.toContain('4111111111111111')
  })

  it('says at / and at the address that `start` prints where its documents are, to anybody', async () => {
    for (const path of ['/', '/oidc', '/oidc/']) {
      const { status, body } = await caller.call('GET', path, { authorization: null })
      expect([status, body]).toEqual([200, { documentation: '/docs', openapi: '/openapi.json' }])
      for (const place of Object.values(body)) expect((await fetch(`${caller.url}${place}`)).status).toBe(200)
    }
  })

  it('shows the keys that results are signed with', async () => {
    const { body } = await caller.call('GET', '/.well-known/jwks.json', { authorization: null })
    expect(body['keys']).toMatchObject([{ kid: expect.any(String), alg: 'EdDSA' }])
    expect(JSON.stringify(body)).not.toContain('"d"')
  })

  it('echoes a sane X-Request-Id and traceparent, and makes an id where there is none', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const echoed = await caller.call('GET', NOBODY, { headers: { 'x-request-id': 'order-17', traceparent } })
    expect([echoed.headers.get('x-request-id'), echoed.headers.get('traceparent')]).toEqual(['order-17', traceparent])
    for (const bad of ['with blank', 'x'.repeat(65), '4111111111111111', '<script>', '']) {
      const { headers } = await caller.call('GET', NOBODY, {
        headers: { 'x-request-id': bad, traceparent: 'nonsense' },
      })
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}-/)
      expect(headers.get('traceparent')).toBeNull()
    }
  })

  it('sends the headers that keep browsers honest', async () => {
    const { headers } = await caller.call('GET', NOBODY)
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(headers.get('server')).toBeNull()
  })

  it('gives the capture keys of an entity to every page', async () => {
    const entity = installation.credentials.entityId
    const { status, headers, body } = await caller.call('GET', `/oidc/.well-known/capture-keys?entity_id=${entity}`, {
      authorization: null,
    })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    const { jwe, pgp } = installation.credentials.captureKeys
    expect(body['keys']).toMatchObject([{ kty: 'RSA', kid: jwe?.alias, use: 'enc', alg: 'RSA-OAEP-256' }])
    expect(body['openpgp']).toMatchObject([
      { alias: pgp?.alias, public_key: expect.stringContaining('BEGIN PGP PUBLIC KEY') },
    ])
    const nobodys = await caller.call('GET', `/oidc/.well-known/capture-keys?entity_id=${randomUUID()}`, {
      authorization: null,
    })
    expect(nobodys.body).toEqual({ keys: [], openpgp: [] })
    for (const query of ['', '?entity_id=x', `?entity_id=${entity}&more=1`])
      expect((await caller.call('GET', `/oidc/.well-known/capture-keys${query}`, { authorization: null })).status).toBe(
        400,
      )
  })

  it('documents each operation of the interface in OpenAPI 3.1, and renders it', async () => {
    const { body } = await caller.call('GET', '/openapi.json', { authorization: null })
    expect(body['openapi']).toBe('3.1.0')
    const paths = body['paths'] as Record<string, Record<string, { responses: object; operationId: string }>>
    for (const [path, method] of [
      [CARD, 'put'],
      [`${CARD}/{id}`, 'get'],
      [`${CARD}/{id}`, 'patch'],
      [`${CARD}/{id}`, 'delete'],
      [`${CARD}/{id}/suspend`, 'patch'],
      [`${CARD}/{id}/activate`, 'patch'],
    ] as const)
      expect(Object.keys(paths[path]?.[method]?.responses ?? {})).toEqual(
        expect.arrayContaining(['400', '401', '403', '404', '429', '500']),
      )
    const page = await fetch(`${caller.url}/docs/`)
    expect([page.status, page.headers.get('content-security-policy')]).toEqual([
      200,
      expect.stringContaining("script-src 'self'"),
    ])
    const script = /src="([^"]*swagger-ui-bundle\.js)"/.exec(await page.text())?.[1] ?? ''
    const bundle = await fetch(new URL(script, `${caller.url}/docs/`))
    expect([bundle.status, (await bundle.text()).length > 100_000]).toEqual([200, true])
  })

  it('limits the requests of a client, where that is set, and of no other', async () => {
    const limited = await openGatewayFor(installation, { TOKENMILL_RATE_LIMIT: '5' })
    const answers = []
    for (let time = 0; time < 7; time += 1) answers.push(await limited.call('GET', NOBODY))
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 429, 429])
    const [, , , , , refused] = answers
    expect(refused?.body).toEqual({
      code: 429,
      message: expect.any(String),
      timestamp: expect.any(Number),
      reversal_status: 'NONE',
    })
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    const other = await installation.addClient('unlimited')
    expect((await limited.call('GET', NOBODY, { authorization: await basicOf(other.clientFile) })).status).toBe(404)
    await limited.close()
  })

  it('limits requests with wrong credentials by address, where that is set; neither its watchers nor its clients suffer', async () => {
    const limited = await openGatewayFor(installation, { TOKENMILL_RATE_LIMIT: '5' })
    const authorization = `Basic ${Buffer.from(`${randomUUID()}:wrong`).toString('base64')}`
    const statuses = []
    for (let time = 0; time < 8; time += 1) statuses.push((await limited.call('GET', NOBODY, { authorization })).status)
    expect(new Set(statuses)).toEqual(new Set([401, 429]))
    expect(statuses.at(-1)).toBe(429)
    await untilReady(limited.url)
    for (const page of ['/healthz', '/readyz'])
      expect((await limited.call('GET', page, { authorization: null })).status).toBe(200)
    expect((await limited.call('GET', NOBODY)).status).toBe(404)
    await limited.close()
  })

  it('answers for capture keys although strangers come from the same address, and says to any page that it refuses', async () => {
    const limited = await openGatewayFor(installation, { TOKENMILL_RATE_LIMIT: '5' })
    const authorization = `Basic ${Buffer.from(`${randomUUID()}:wrong`).toString('base64')}`
    for (let time = 0; time < 8; time += 1) await limited.call('GET', NOBODY, { authorization })
    const keys = `/oidc/.well-known/capture-keys?entity_id=${randomUUID()}`
    const answers = []
    for (let time = 0; time < 6; time += 1) answers.push(await limited.call('GET', keys, { authorization: null }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
    for (const { headers } of answers) expect(headers.get('access-control-allow-origin')).toBe('*')
    await limited.close()
  })
})
