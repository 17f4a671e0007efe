// A challenge over HTTP, from the lookup to the validated JWT: the result from the server, the return of the browser,
// the limits of JWTs, and the events on the client's results queue.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Delivery } from '../../../../producers/client.ts'
import { CODE } from '../../../../src/simulate/three-ds/cards.ts'
import { CHALLENGE_MS } from '../../../../src/three-ds/apply-message.ts'
import { sign } from '../../../../src/vault/three-ds-jwt.ts'
import { until } from '../../../support/until.ts'
import { challenge } from '../../../three-ds/bundle.ts'
import { CARD, CAVV, OTHER_ENTITY } from '../../../three-ds/samples.ts'
import { basicOf } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
const told: Delivery[] = []
beforeAll(async () => {
  bundle = await openHttpBundle()
  await bundle.installation.openWorkers({ roles: ['interactive'] })
  bundle.shop.results(delivery => {
    told.push(delivery)
  })
})
afterAll(() => bundle?.close())

const claimsOf = (jwt: unknown) =>
  JSON.parse(Buffer.from(String(jwt).split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, string>

interface Begun {
  jti: string
  answer: Record<string, string>
  id: string
}

/** Makes a JWT and a lookup that names it. */
async function begin(pan: string = CARD.challengeY, contract = bundle.contract): Promise<Begun> {
  const body = { threeds_contract_id: contract.contractId }
  const { body: created } = await bundle.call('POST', `${SERVICE}/jwt/create`, { body })
  const jti = claimsOf(created['jwt'])['jti'] ?? ''
  const { status, body: answer } = await bundle.lookup(pan, { ...body, device_info_id: jti })
  expect(status).toBe(200)
  return { jti, answer: answer as Record<string, string>, id: String(answer['authentication_id']) }
}

const post = (path: string, body: string, type = 'application/json') =>
  fetch(`${bundle.url}${SERVICE}/${path}`, { method: 'POST', headers: { 'content-type': type }, body })

/** Posts what the browser brings back from the challenge. */
async function comeBack(cres: string) {
  const answer = await post('return', new URLSearchParams({ cres }).toString(), 'application/x-www-form-urlencoded')
  const page = await answer.text()
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1]
  return { status: answer.status, headers: answer.headers, page, jwt: field('jwt'), id: field('authentication_id') }
}

const validate = (id: string, jwt: string | undefined, contractId = bundle.contract.contractId) =>
  bundle.call('POST', `${SERVICE}/jwt/validate`, {
    body: { authentication_id: id, jwt, threeds_contract_id: contractId },
  })
const retrieve = async (id: string) =>
  (await bundle.call('GET', `${SERVICE}/3d/${id}`)).body['authentication'] as Record<string, string>

/** Signs a JWT as the authentication network would. */
const signed = ({ jti, answer }: Begun, more: Record<string, unknown> = {}, key = bundle.contract.key) =>
  sign(key, {
    jti: randomUUID(),
    aud: jti,
    iat: Math.floor(Date.now() / 1000),
    Payload: {
      Payment: {
        ProcessorTransactionId: answer['transaction_id'],
        ExtendedData: { PAResStatus: 'Y', CAVV },
      },
    },
    ...more,
  })

describe('a challenge', () => {
  it('ends by the result, comes back through the browser as a JWT, and validates once', async () => {
    const { answer, id } = await begin()
    expect(await retrieve(id)).toMatchObject({ pares_status: 'C', payload: answer['payload'] })
    const { back } = await challenge(answer, { code: CODE })
    expect(bundle.simulator.seen(answer['transaction_id'] ?? '').results).toBe(1)
    expect(await retrieve(id)).toMatchObject({ pares_status: 'Y', eci_flag: '05', cavv: expect.any(String) })
    const returned = await comeBack(back['cres'] ?? '')
    expect(returned).toMatchObject({ status: 200, id })
    expect(claimsOf(returned.jwt)).toMatchObject({ aud: expect.any(String) })
    const validated = await validate(id, returned.jwt)
    expect(validated).toMatchObject({
      status: 201,
      body: {
        authentication_id: id,
        action_code: 'SUCCESS',
        error_no: '0',
        validation_result: { pares_status: 'Y', cavv: (await retrieve(id))['cavv'], cavv_algorithm: '2' },
      },
    })
    expect(await validate(id, returned.jwt)).toMatchObject({ status: 400, body: { code: '405' } })
  })

  it.each([
    ['with a wrong code and then the right one ends as Y', CARD.challengeY, ['000000', CODE], 'Y', 'SUCCESS'],
    ['that the issuer fails ends as N', CARD.challengeN, [CODE], 'N', 'FAILURE'],
    ['that could not be made ends as U', CARD.challengeU, [CODE], 'U', 'NOACTION'],
  ] as const)('%s', async (_, pan, codes, state, action) => {
    const { answer, id } = await begin(pan)
    let back: Record<string, string> = {}
    for (const code of codes) ({ back } = await challenge(answer, { code }))
    const { jwt } = await comeBack(back['cres'] ?? '')
    expect((await validate(id, jwt)).body).toMatchObject({
      action_code: action,
      validation_result: { pares_status: state },
    })
    expect(await retrieve(id)).not.toHaveProperty('payload')
  })

  it('that is cancelled ends as N and says so in the record', async () => {
    const { answer, id } = await begin()
    await challenge(answer, { do: 'cancel' })
    expect(await retrieve(id)).toMatchObject({ pares_status: 'N', challenge_cancel: '01' })
  })

  it('that nobody comes back from ends as U when its time is over, and is told', async () => {
    const { id } = await begin()
    await bundle.installation.vault.store.query({
      text: 'update tokenmill.authentication set pending_until = $2 where authentication_id = $1',
      values: [id, new Date(Date.now() - CHALLENGE_MS)],
    })
    await until(async () => (await retrieve(id))['pares_status'] === 'U')
    expect(await retrieve(id)).toMatchObject({ error_no: '513' })
    await until(() => told.some(one => one.type === 'event' && one.subject['authentication_id'] === id))
  })
})

describe('the page that a browser comes back to', () => {
  it('may be framed by the contract’s shop alone, and tells it alone', async () => {
    const { answer } = await begin()
    const { back } = await challenge(answer, { code: CODE })
    const { headers, page } = await comeBack(back['cres'] ?? '')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain('frame-ancestors https://shop.example')
    expect(policy).toContain('form-action https://shop.example')
    expect(policy).toContain("default-src 'none'")
    expect(headers.get('x-frame-options')).toBeNull()
    expect(headers.get('cache-control')).toBe('no-store')
    expect(page).toContain('data-shop="https://shop.example"')
    expect(page).toContain('action="https://shop.example"')
  })

  it('waits where the result isn’t here yet, and shows nothing where there is no such payment', async () => {
    const { answer } = await begin()
    const creq = JSON.parse(Buffer.from(answer['payload'] ?? '', 'base64url').toString()) as Record<string, string>
    const cres = (more: Record<string, string> = {}) =>
      Buffer.from(JSON.stringify({ ...creq, messageType: 'CRes', transStatus: 'Y', ...more })).toString('base64url')
    const waiting = await comeBack(cres())
    expect(waiting).toMatchObject({ status: 200, jwt: undefined })
    expect(waiting.page).toContain('Try again')
    for (const bad of [cres({ acsTransID: randomUUID() }), 'nonsense', '', '"><script>alert(1)</script>']) {
      const { status, page } = await comeBack(bad)
      expect(status).toBe(400)
      expect(page).not.toContain('alert')
    }
  })
})

describe('a browser’s form', () => {
  const LONG = { messageExtension: Array(10).fill({ data: 'ü>'.repeat(4_000) }) }

  it.each([
    ['with long extensions', 'application/x-www-form-urlencoded; charset=UTF-8', LONG],
    ['of another media type', 'text/plain', {}],
    ['of an Erro message', 'application/x-www-form-urlencoded', { messageType: 'Erro', transStatus: undefined }],
  ])('%s brings the outcome', async (_, type, more) => {
    const { answer, id } = await begin()
    const { back } = await challenge(answer, { code: CODE })
    const cres = JSON.parse(Buffer.from(back['cres'] ?? '', 'base64url').toString()) as object
    const text = Buffer.from(JSON.stringify({ ...cres, ...more })).toString('base64')
    const page = await (await post('return', `cres=${text}`, type)).text()
    expect(page).toContain(`name="authentication_id" value="${id}"`)
    expect(page).toContain('name="jwt"')
  })

  it.each([
    ['that is too large', `cres=${'x'.repeat(300_000)}`, 'application/x-www-form-urlencoded'],
    ['that is no JSON though it says so', '{', 'application/json'],
    ['in parts', '--x\r\n', 'multipart/form-data; boundary=x'],
  ])('%s is answered by a page', async (_, body, type) => {
    const answer = await post('return', body, type)
    expect({ status: answer.status, type: answer.headers.get('content-type') }).toEqual({
      status: 400,
      type: 'text/html; charset=utf-8',
    })
    expect(await answer.text()).toContain('Nothing to return to')
  })
})

describe('a result from a directory server', () => {
  it.each([
    ['no JSON', '{', 'application/json'],
    ['another media type', '{}', 'text/plain'],
    ['another message', '{"messageType":"AReq"}', 'application/json'],
    ['too much', JSON.stringify({ messageType: 'RReq', x: 'x'.repeat(70_000) }), 'application/json'],
  ])('that is %s is answered 200 with an Erro', async (_, body, type) => {
    const answer = await post('results/some-key', body, type)
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 200,
      body: { messageType: 'Erro', errorCode: '101', errorComponent: 'S' },
    })
  })

  it('of ids that don’t belong together changes nothing', async () => {
    const { answer, id } = await begin()
    const rreq = {
      messageType: 'RReq',
      messageVersion: '2.2.0',
      threeDSServerTransID: answer['transaction_id'],
      dsTransID: answer['ds_transaction_id'],
      acsTransID: randomUUID(),
      transStatus: 'Y',
      authenticationValue: CAVV,
    }
    const message = await (await post('results/some-key', JSON.stringify(rreq))).json()
    expect(message).toMatchObject({ messageType: 'Erro', errorCode: '301' })
    expect(await retrieve(id)).toMatchObject({ pares_status: 'C' })
  })
})

describe('a JWT that is brought back', () => {
  const refused = async (begun: Begun, jwt: string, code: string) => {
    const answer = await validate(begun.id, jwt)
    expect(answer).toMatchObject({ status: 400, body: { code } })
    expect(answer.text).not.toContain(CAVV)
    expect(await retrieve(begun.id)).toMatchObject({ pares_status: 'C' })
  }

  it('is malformed: 401', async () => refused(await begin(), 'x.y.z', '401'))
  it('is signed by another key: 402', async () => {
    const begun = await begin()
    const other = await bundle.addContract()
    await refused(begun, await signed(begun, {}, other.key), '402')
  })
  it('names no algorithm, or another one: 402', async () => {
    const begun = await begin()
    const [, payload = ''] = (await signed(begun)).split('.')
    for (const header of [
      { alg: 'none', typ: 'JWT' },
      { alg: 'HS512', typ: 'JWT' },
      { alg: 'RS256', typ: 'JWT' },
    ]) {
      const head = Buffer.from(JSON.stringify(header)).toString('base64url')
      const answer = await validate(begun.id, `${head}.${payload}.${'A'.repeat(43)}`)
      expect(['401', '402']).toContain(answer.body['code'])
    }
  })
  it('is older than two hours: 403', async () => {
    const begun = await begin()
    await refused(begun, await signed(begun, { iat: Math.floor(Date.now() / 1000) - 7_300 }), '403')
  })
  it('answers none of ours: 404', async () => {
    const begun = await begin()
    await refused(begun, await signed(begun, { aud: randomUUID() }), '404')
  })
  it('answers one of another contract: 406', async () => {
    const begun = await begin()
    const other = await bundle.addContract()
    const theirs = await begin(CARD.challengeY, other)
    await refused(begun, await signed({ ...begun, jti: theirs.jti }), '406')
  })
  it('answers one of another authentication: 407', async () => {
    const [begun, other] = [await begin(), await begin()]
    await refused(begun, await signed({ ...begun, jti: other.jti }), '407')
  })
  it('contradicts the result that came first: 408', async () => {
    const begun = await begin(CARD.challengeN)
    await challenge(begun.answer, { code: CODE })
    expect(await validate(begun.id, await signed(begun))).toMatchObject({ status: 400, body: { code: '408' } })
    expect(await retrieve(begun.id)).toMatchObject({ pares_status: 'N' })
  })
  it('is used by one of two at once: 201 and 405', async () => {
    const begun = await begin()
    const jwt = await signed(begun)
    const answers = await Promise.all([validate(begun.id, jwt), validate(begun.id, jwt)])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400])
    expect(answers.find(({ status }) => status === 400)?.body).toMatchObject({ code: '405' })
  })
  it('is of no authentication, or of another entity’s contract: 404 with numbers 204 and 203', async () => {
    const begun = await begin()
    const jwt = await signed(begun)
    const foreign = await bundle.addContract({ entityId: OTHER_ENTITY })
    expect(await validate(randomUUID(), jwt)).toMatchObject({ status: 404, body: { code: '204' } })
    expect(await validate(begun.id, jwt, foreign.contractId)).toMatchObject({ status: 404, body: { code: '203' } })
    expect(await validate(begun.id, jwt, (await bundle.addContract()).contractId)).toMatchObject({
      status: 404,
      body: { code: '204' },
    })
  })
  it.each([{}, { authentication_id: 'x', jwt: 'x', threeds_contract_id: randomUUID() }])(
    'in a request like %j is 400 with number 101',
    async body => {
      expect(await bundle.call('POST', `${SERVICE}/jwt/validate`, { body })).toMatchObject({
        status: 400,
        body: { code: '101' },
      })
    },
  )
})

describe('what a client is told', () => {
  const eventsOf = (id: string) => told.filter(one => one.type === 'event' && one.subject['authentication_id'] === id)

  it('is each end once, without proof, challenge or card', async () => {
    const [ended, challenged, pending] = [await begin(CARD.Y), await begin(), await begin()]
    const { back } = await challenge(challenged.answer, { code: CODE })
    const { jwt } = await comeBack(back['cres'] ?? '')
    await validate(challenged.id, jwt)
    await until(() => eventsOf(ended.id).length > 0 && eventsOf(challenged.id).length > 0)
    expect(eventsOf(pending.id)).toEqual([])
    for (const { id, answer } of [ended, challenged]) {
      const [event, ...others] = eventsOf(id)
      expect(others).toEqual([])
      expect(event).toMatchObject({
        v: 1,
        type: 'event',
        event: 'three-ds-notification',
        subject: { authentication_id: id, transaction_id: answer['transaction_id'] },
        data: { amount: 1_000, currency_code: 'EUR', authentication: { pares_status: 'Y', eci_flag: '05' } },
      })
      const text = JSON.stringify(event)
      const { cavv = '' } = await retrieve(id)
      for (const secret of [cavv, answer['payload'], CARD.Y, CARD.challengeY].filter(Boolean))
        expect(text).not.toContain(secret)
    }
  })

  it('lies in the store from the moment of the end, and is nothing for a revoked client', async () => {
    const rows = async (id: unknown) =>
      (
        await bundle.installation.vault.store.query<{ body: string }>({
          text: `select body from tokenmill.outbox where body like $1`,
          values: [`%${id}%`],
        })
      ).rows
    const { body } = await bundle.lookup(CARD.N)
    expect(await rows(body['authentication_id'])).toHaveLength(1)
    const gone = await bundle.installation.addClient('gone', { roles: ['THREEDS'] })
    const authorization = await basicOf(gone.clientFile)
    const { body: challenged } = await bundle.lookup(CARD.challengeY, {}, { authorization })
    await bundle.installation.vault.store.query({
      text: 'update tokenmill.client set revoked_at = now() where client_id = $1',
      values: [gone.credentials.signingKey.clientId],
    })
    await challenge(challenged as Record<string, string>, { code: CODE })
    expect(await retrieve(String(challenged['authentication_id']))).toMatchObject({ pares_status: 'Y' })
    expect(await rows(challenged['authentication_id'])).toEqual([])
  })
})
