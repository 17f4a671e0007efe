// Thousands of requests, most of them wrong, to a gateway process: no 5xx but that of the time-out, no end of the
// process, and no value of a card in an answer or in the log.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { redisUrl } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { type Child, startScript } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { volume } from '../../support/volume.ts'
import { basicOf, CARD, encrypted } from './bundle.ts'
import { type KeepAlive, openKeepAlive, type Sent } from './keep-alive.ts'

const REQUESTS = volume(5_000, 20_000)
const AT_ONCE = 50
/** A published test number, which no answer may hold. */
const CANARY = '4000056655665556'
const CVV = 'cvv9x7y5v3z1'
const STATUSES = [200, 202, 204, 400, 401, 403, 404, 429]

let database: FreshDatabase
let installation: Installation
let child: Child
let http: KeepAlive
let authorization: string
let card: Record<string, unknown>
let known: string

beforeAll(async () => {
  database = await freshDatabase()
  const redisUrls = redisUrl()?.split(',')
  const prefix = `{fuzz-${randomBytes(4).toString('hex')}}`
  installation = await openInstallation({
    name: redisUrls ? 'redis' : 'postgres',
    prefix,
    redisUrls,
    databaseUrl: database.url,
  })
  await installation.openWorkers({ roles: ['interactive'] })
  authorization = await basicOf(installation.clientFile)
  child = startScript('cli/main.ts', ['gateway'], {
    env: { ...(installation.env as Record<string, string>), TOKENMILL_HTTP_PORT: '0', TOKENMILL_LOG_LEVEL: 'info' },
  })
  const port = Number((await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' }))[1])
  http = openKeepAlive(port, AT_ONCE)
  const secret = { cardNumber: CANARY, expiryMonth: 12, expiryYear: 2030, cvv: '975' }
  card = { token_scope: installation.scope, ...(await encrypted(secret, installation.credentials)) }
  const headers = { authorization, 'content-type': 'application/json' }
  const made = await http.send({ method: 'PUT', path: CARD, headers, body: JSON.stringify(card) })
  known = (JSON.parse(made.text) as { reuse_token: string }).reuse_token
})
afterAll(async () => {
  http?.close()
  child?.signal('SIGTERM')
  await child?.exit
  await installation?.close()
  await database?.drop()
})

const awkward = fc.constantFrom(
  CANARY,
  `${CANARY.slice(0, 4)} ${CANARY.slice(4, 8)} ${CANARY.slice(8, 12)} ${CANARY.slice(12)}`,
  '',
  '0',
  '\u0000',
  '\ud800',
  '../../x',
  '%',
  "' or 1=1",
  '{{7*7}}',
  'ünïcødé',
  'x'.repeat(300),
  '__proto__',
  'constructor',
)
const value = fc.oneof(
  awkward,
  fc.string({ maxLength: 40 }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, true, -1, 1e308, 13, 0.5, [], {}, [CANARY], { cardNumber: CANARY }),
)
const names = [
  'token_scope',
  'encrypted_card',
  'public_key_alias',
  'card_brand',
  'token_type',
  'reuse_token_type',
  'reuse_token_details',
  'token_expiry_date',
  'token_context',
  'cvv',
  'card_holder_name',
  'card_holder_email',
  'expiry_month',
  'expiry_year',
  'scheme_token_action',
  'id',
  'card',
  CANARY,
]
const fields = fc.oneof(
  fc.constant({}),
  fc.dictionary(fc.oneof(fc.constantFrom(...names), awkward), value, { maxKeys: 4 }),
)

/** A valid body with some fields replaced, or bytes that may not be JSON. */
const body = fc.oneof(
  { weight: 5, arbitrary: fc.record({ good: fc.boolean(), fields }).map(({ good, fields: f }) => ({ json: f, good })) },
  {
    weight: 1,
    arbitrary: fc
      .oneof(
        awkward,
        fc.string({ maxLength: 200 }),
        fc.constant(`{"cvv":"${CVV}","cvv":"${CVV}"}`),
        fc.constant('x'.repeat(70_000)),
      )
      .map(raw => ({ raw })),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map(bytes => ({ bytes })) },
  { weight: 1, arbitrary: fc.constant({ none: true as const }) },
)
/** Stands for an existing token. */
const KNOWN = 'KNOWN'
const id = fc.oneof(
  fc.constant(KNOWN),
  fc.constant(`t${'0'.repeat(26)}`),
  awkward,
  fc.string({ maxLength: 30 }),
  fc.string({ minLength: 14, maxLength: 260 }),
)
const path = fc.oneof(
  { weight: 4, arbitrary: fc.constant(CARD) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(id, fc.constantFrom('', '', '/suspend', '/activate', '/else'))
      .map(([i, rest]) => `${CARD}/${encodeURIComponent(i.toWellFormed())}${rest}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/',
      '/oidc',
      '/oidc/.well-known/capture-keys',
      '/oidc/.well-known/capture-keys?entity_id=x',
      '/openapi.json',
      '/docs/..%2f',
      `/oidc/api/v2/operations/${CANARY}`,
      '/oidc/%E0%A4%A',
    ),
  },
)
const printable = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map(code => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 140,
})
const headers = fc.record(
  {
    authorization: fc.oneof(
      { weight: 8, arbitrary: fc.constant('good') },
      { weight: 1, arbitrary: fc.oneof(printable, fc.constantFrom('Basic', 'Bearer a.b.c', `Basic ${CANARY}`)) },
    ),
    'content-type': fc.oneof(
      { weight: 8, arbitrary: fc.constant('application/json') },
      { weight: 1, arbitrary: printable },
    ),
    'idempotency-key': fc.oneof(printable, fc.constant(CANARY), fc.constant('again')),
    'x-request-id': fc.oneof(printable, fc.constant(CANARY)),
    traceparent: printable,
    prefer: fc.constantFrom('respond-async', 'return=minimal'),
  },
  { requiredKeys: ['authorization', 'content-type'] },
)
const asked = fc.record({
  method: fc.constantFrom('PUT', 'PUT', 'PUT', 'PATCH', 'PATCH', 'GET', 'DELETE', 'POST', 'OPTIONS'),
  path,
  query: fc.option(fc.constantFrom(`?pan=${CANARY}`, '?a=1&a=2', '?%00')),
  headers,
  body,
})

function sentOf({
  method,
  path: at,
  query,
  headers: given,
  body: b,
}: typeof asked extends fc.Arbitrary<infer T> ? T : never): Sent {
  const { authorization: claim, 'content-type': type, ...others } = given
  const bytes =
    'json' in b
      ? JSON.stringify(b.good ? { ...card, ...b.json } : b.json)
      : 'raw' in b
        ? b.raw
        : 'bytes' in b
          ? Buffer.from(b.bytes)
          : undefined
  return {
    method,
    path: `${at.replace(KNOWN, known)}${query ?? ''}`,
    headers: {
      authorization: claim === 'good' ? authorization : claim,
      ...(bytes === undefined ? {} : { 'content-type': type }),
      ...others,
    },
    body: bytes,
  }
}

it(`answers ${REQUESTS.toLocaleString('en')} requests of all kinds as the interface has it`, async () => {
  const seen = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: AT_ONCE, maxLength: AT_ONCE }), async batch => {
      const answers = await Promise.all(batch.map(one => http.send(sentOf(one))))
      for (const [at, { status, text }] of answers.entries()) {
        seen.set(status, (seen.get(status) ?? 0) + 1)
        const about = () => `${JSON.stringify(batch[at])} → ${status} ${text.slice(0, 500)}`
        const isTimeout = status === 500 && text.includes('"reversal_status":"REQUIRED"')
        if (!STATUSES.includes(status) && !isTimeout) throw new Error(about())
        if (text.includes(CANARY) || text.includes(CVV)) throw new Error(`told a card: ${about()}`)
        if (status >= 400 && (JSON.parse(text) as { code?: unknown }).code !== status)
          throw new Error(`another body: ${about()}`)
      }
    }),
    { numRuns: REQUESTS / AT_ONCE, endOnFailure: true, includeErrorInReport: true },
  )
  // Each of these statuses occurs often.
  for (const status of [200, 400, 401, 404])
    expect(seen.get(status) ?? 0, JSON.stringify([...seen])).toBeGreaterThan(REQUESTS / 400)
  const log = child.stderr()
  expect(log.split('\n').filter(line => line.includes(CANARY) || line.includes(CVV))).toEqual([])
  expect(log.match(/"level":50.*/g) ?? []).toEqual([])
  await until(async () => (await http.send({ method: 'GET', path: '/readyz' })).status === 200)
})
