// Sends cards, proofs, challenges and JWTs through the 3-D Secure service, valid and invalid. Then it searches the log,
// the metrics, the refusals, what the console shows and every table for them. PCI DSS 3.3.1, 3.5.1, and EMV 3-D Secure on CAVV.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CODE } from '../../../../src/simulate/three-ds/cards.ts'
import { type Canary, canary, findCodes, findTraces, misspelt, type Place } from '../../../security/canary.ts'
import { openConsoleOf } from '../../../security/console/open.ts'
import { readDatabase } from '../../../security/places.ts'
import { type Child, startScript } from '../../../support/process.ts'
import { challenge } from '../../../three-ds/bundle.ts'
import { CARD, lookupBody } from '../../../three-ds/samples.ts'
import { encrypted, openCalls } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

const CVV = '0739'
let bundle: HttpBundle
let child: Child
let url: string
let opsPort: string
let call: HttpBundle['call']
const cards: Canary[] = []
const refusals: Place[] = []
/** CAVVs, challenges, JWTs. */
const secrets = new Set<string>()

beforeAll(async () => {
  bundle = await openHttpBundle()
  child = startScript('cli/main.ts', ['three-ds'], {
    env: { ...(bundle.installation.env as Record<string, string>), TOKENMILL_LOG_LEVEL: 'trace' },
  })
  const [, port] = await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
  ;[, opsPort = ''] = await child.line(/"opsPort":(\d+)/, { stream: 'stderr' })
  url = `http://127.0.0.1:${port}`
  call = await openCalls(url, bundle.authorization)
})
afterAll(async () => {
  child?.signal('SIGTERM')
  await child?.exit
  await bundle?.close()
})

const card = (name: string): Canary => {
  const made = canary(`three-ds ${name}`)
  cards.push(made)
  return made
}

async function body(pan: string, more: Record<string, unknown> = {}, cvv = CVV) {
  const { reuse_token: _, ...fields } = lookupBody(bundle.contract.contractId, CARD.Y)
  const content = { cardNumber: pan, expiryMonth: 12, expiryYear: 2031, cvv }
  return { ...fields, ...(await encrypted(content, bundle.installation.credentials)), ...more }
}

async function lookup(sent: unknown, headers: Record<string, string> = {}) {
  const answer = await call('POST', `${SERVICE}/lookup`, { body: sent, headers })
  for (const name of ['cavv', 'payload']) {
    const value = answer.body[name]
    if (typeof value === 'string') secrets.add(value)
  }
  if (answer.status !== 200) refusals.push({ name: `refusal ${refusals.length}`, text: answer.text })
  return answer
}

it('authenticates, with a security code inside the encrypted card', async () => {
  for (const pan of [CARD.Y, CARD.A, CARD.N, CARD.R, CARD.mastercard, CARD.malformed, CARD.failure, card('any').pan])
    expect(await lookup(await body(pan))).toMatchObject({ status: 200 })
})

it('challenges, and takes the JWT that comes back', async () => {
  const { body: created } = await call('POST', `${SERVICE}/jwt/create`, {
    body: { threeds_contract_id: bundle.contract.contractId },
  })
  const first = String(created['jwt'])
  secrets.add(first.split('.')[2] ?? '')
  const { jti } = JSON.parse(Buffer.from(first.split('.')[1] ?? '', 'base64url').toString()) as { jti: string }
  const { body: answer } = await lookup(await body(CARD.challengeY, { device_info_id: jti }))
  // This authentication doesn't end, so its challenge is in the store.
  await lookup(await body(CARD.challengeN))
  const { back } = await challenge(answer as Record<string, string>, { code: CODE })
  const page = await (
    await fetch(`${url}${SERVICE}/return`, { method: 'POST', body: new URLSearchParams({ cres: back['cres'] ?? '' }) })
  ).text()
  const jwt = /name="jwt" value="([^"]+)"/.exec(page)?.[1] ?? ''
  secrets.add(jwt.split('.')[2] ?? '').add(jwt.split('.')[1] ?? '')
  const validating = { authentication_id: answer['authentication_id'], threeds_contract_id: bundle.contract.contractId }
  const { status, body: validated } = await call('POST', `${SERVICE}/jwt/validate`, { body: { ...validating, jwt } })
  expect(status).toBe(201)
  const { cavv, authorization_payload } = validated['validation_result'] as Record<string, string>
  secrets.add(cavv ?? '').add(authorization_payload ?? '')
  for (const bad of [jwt, `${jwt}x`, first, CARD.Y]) {
    const { text } = await call('POST', `${SERVICE}/jwt/validate`, { body: { ...validating, jwt: bad } })
    refusals.push({ name: 'a JWT refused', text })
  }
})

it('refuses what is wrong, and repeats none of it', async () => {
  const { pan } = card('wrong')
  const good = await body(pan)
  const wrong: Record<string, unknown>[] = [
    await body(misspelt(card('luhn')).pan),
    await body(pan, {}, '90817263544536271'),
    { ...good, reuse_token: `t${pan}` },
    { ...lookupBody(bundle.contract.contractId, CARD.Y), reuse_token: pan.padStart(26, '0') },
    { ...lookupBody(bundle.contract.contractId, CARD.Y), reuse_token: undefined, card: `t${pan}`.padEnd(27, '0') },
    { ...good, merchant_reference: `order ${pan}` },
    { ...good, merchant_reference: pan.replace(/(....)(?=.)/g, '$1-') },
    { ...good, [pan]: pan },
    { ...good, currency_code: pan },
    { ...good, threeds_contract_id: pan },
    { ...good, public_key_alias: pan },
    { ...good, encrypted_card: pan },
    { ...good, email: `${pan}@` },
    { ...good, cardNumber: pan, cvv: CVV },
    { ...good, device_data_info: { [pan]: pan } },
  ]
  for (const sent of wrong)
    expect(await lookup(sent), JSON.stringify(sent)).toMatchObject({ status: expect.not.toBeOneOf([200]) })
  for (const key of [pan, `x-${pan}`])
    expect(await lookup(good, { 'idempotency-key': key })).toMatchObject({ status: 400 })
  for (const [method, path] of [
    ['GET', `/3d?pan=${pan}`],
    ['GET', `/3d?${pan}=1`],
    ['GET', `/3d/count?authentication.order_id=${pan}`],
    ['GET', `/3d/${pan}`],
    ['GET', `/${pan}`],
    ['POST', `/results?${pan}`],
    ['POST', `/return?${pan}`],
  ] as const) {
    const headers = { 'x-request-id': pan, 'user-agent': pan, referer: pan }
    const { text } = await call(method, `${SERVICE}${path}`, {
      headers,
      ...(method === 'POST' ? { body: { pan, cres: pan } } : {}),
    })
    refusals.push({ name: `${method} ${path.slice(0, 8)}`, text })
  }
})

it('passes on what goes to the directory server only, and keeps none of it', async () => {
  const { pan } = card('passed on')
  const device_data_info = { user_agent: pan, browser_header: pan }
  expect(
    await lookup(await body(pan, { billing_address_1: pan, device_info_id: pan, device_data_info })),
  ).toMatchObject({ status: 200 })
})

it('leaves nothing of it anywhere', async () => {
  await bundle.lookup(CARD.Y)
  await bundle.installation.openWorkers({ roles: ['interactive'] })
  const served = await openConsoleOf(bundle.installation)
  const shown = await served.read()
  await served.close()
  expect(shown.filter(({ text }) => text.startsWith('200 ')).length).toBeGreaterThan(20)
  const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
  expect(metrics).toMatch(/tokenmill_three_ds_ended_total\{[^}]*outcome="Y"[^}]*\} [1-9]/)
  expect(metrics).toMatch(/tokenmill_three_ds_directory_seconds_count\{[^}]*answer="answered"[^}]*\} [1-9]/)
  child.signal('SIGTERM')
  expect(await child.exit).toMatchObject({ code: 0 })
  const places = [
    { name: 'log', text: `${child.stdout()}\n${child.stderr()}` },
    { name: 'metrics', text: metrics },
    ...refusals,
    ...shown,
    ...(await readDatabase(bundle.databaseUrl)),
  ]
  expect(child.stderr()).toContain('"route":"/oidc/3ds-service/v2/lookup"')
  expect(places.find(({ name }) => name.endsWith('.authentication'))?.text).toContain('order-1')
  expect(findTraces(cards, places)).toEqual([])
  // The published numbers have many zeros, so only whole numbers are searched for.
  for (const pan of Object.values(CARD)) secrets.add(pan)
  expect(findCodes([CVV], places)).toEqual([])
  expect(secrets.size).toBeGreaterThan(8)
  secrets.add(bundle.contract.key.reveal().toString('base64'))
  for (const secret of secrets)
    for (const form of [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret, 'base64').toString('hex')])
      expect(
        places.filter(({ text }) => text.includes(form)).map(({ name }) => name),
        form.slice(0, 6),
      ).toEqual([])
})
