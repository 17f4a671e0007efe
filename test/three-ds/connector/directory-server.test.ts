import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OutboundError } from '../../../src/outbound.ts'
import { Secret } from '../../../src/secret.ts'
import { CODE } from '../../../src/simulate/three-ds/cards.ts'
import { openDirectoryServer } from '../../../src/three-ds/connector/directory-server.ts'
import { lookup } from '../../../src/three-ds/lookup.ts'
import { isProblem } from '../../../src/three-ds/problem.ts'
import { expireOverdue, receiveResult, receiveReturn } from '../../../src/three-ds/result.ts'
import { resultKeyOf } from '../../../src/three-ds/result-key.ts'
import { type Bundle, challenge, listen, openBundle } from '../bundle.ts'
import { CALLER, CARD, lookupBody, STRANGER } from '../samples.ts'

let bundle: Bundle
beforeAll(async () => {
  bundle = await openBundle({ timeoutMs: 1_500 })
})
afterAll(() => bundle?.close())

async function ask(pan: string, more: Record<string, unknown> = {}, options = {}) {
  const body = lookupBody(bundle.contract.contractId, pan, more)
  const found = await lookup(bundle.ports, CALLER, body, options)
  if (isProblem(found)) throw new Error(`problem ${found.problem}`)
  return found
}

describe('a lookup of the card', () => {
  it.each([
    ['Y', CARD.Y, { pares_status: 'Y', eci_flag: '05', enrolled: 'Y', signature_verification: 'Y' }, true],
    ['Y on Mastercard', CARD.mastercard, { pares_status: 'Y', eci_flag: '02' }, true],
    ['A', CARD.A, { pares_status: 'A', eci_flag: '06' }, true],
    ['N', CARD.N, { pares_status: 'N', eci_flag: '07', status_reason: '01' }, false],
    ['U', CARD.U, { pares_status: 'U', eci_flag: '07', error_no: '0' }, false],
    ['R', CARD.R, { pares_status: 'R', eci_flag: '07' }, false],
    ['that is malformed', CARD.malformed, { pares_status: 'U', enrolled: 'U', error_no: '511' }, false],
    [
      'that no issuer enrolled',
      CARD.notEnrolled,
      { pares_status: 'U', enrolled: 'N', error_no: '512', reason_code: '305' },
      false,
    ],
    [
      'whose server fails',
      CARD.failure,
      { pares_status: 'U', enrolled: 'U', error_no: '512', reason_code: '403' },
      false,
    ],
  ] as const)('%s ends so', async (_, pan, expected, hasCavv) => {
    const { answer, ended, record } = await ask(pan)
    expect(answer).toMatchObject(expected)
    expect(answer['cavv'] !== undefined).toBe(hasCavv)
    expect(answer).not.toHaveProperty('payload')
    expect(ended).toBe(true)
    expect(answer).toMatchObject({
      authentication_id: record.authenticationId,
      transaction_id: record.transactionId,
      error_no: expect.stringMatching(/^(0|\d{3})$/),
      order_id: 'order-1',
      card_brand: pan === CARD.mastercard ? 'MASTERCARD' : 'VISA',
    })
    expect(bundle.simulator.seen(record.transactionId).requests).toBe(1)
  })

  it('held as CB shows CB and has the ECI of its co-badge', async () => {
    const { answer } = await ask('', { reuse_token: 'tx5200000000003001' })
    expect(answer).toMatchObject({ card_brand: 'CB', eci_flag: '02' })
  })

  it('of no network is refused, and nothing is written down', async () => {
    const found = await lookup(bundle.ports, CALLER, lookupBody(bundle.contract.contractId, '1000000000000008'))
    expect(found).toMatchObject({ problem: 302 })
  })

  it('named in the merchant reference is refused', async () => {
    const body = lookupBody(bundle.contract.contractId, CARD.Y, { merchant_reference: 'order 4000 0000 0000 1000' })
    expect(await lookup(bundle.ports, CALLER, body)).toMatchObject({
      problem: 101,
      details: [{ field: 'body.merchant_reference', reason: 'reference_pan' }],
    })
  })

  it('under another entity’s contract finds no contract', async () => {
    expect(await lookup(bundle.ports, STRANGER, lookupBody(bundle.contract.contractId, CARD.Y))).toMatchObject({
      problem: 203,
    })
  })
})

describe('a challenge', () => {
  it.each([
    ['with the right code ends as Y', CARD.challengeY, { code: CODE }, { state: 'Y', eci_flag: '05' }],
    ['on Mastercard too', CARD.mastercardChallenge, { code: CODE }, { state: 'Y', eci_flag: '02' }],
    ['that the issuer fails ends as N', CARD.challengeN, { code: CODE }, { state: 'N', eci_flag: '07' }],
    ['that could not be made ends as U', CARD.challengeU, { code: CODE }, { state: 'U', challenge_cancel: '04' }],
    [
      'that was cancelled ends as N and says so',
      CARD.challengeY,
      { do: 'cancel' },
      { state: 'N', challenge_cancel: '01' },
    ],
  ] as const)('%s', async (_, pan, fields, { state, ...findings }) => {
    const { answer, record, ended } = await ask(pan)
    expect(ended).toBe(false)
    expect(answer).toMatchObject({ pares_status: 'C', challenge_required: 'Y', acs_url: expect.any(String) })
    expect(answer).not.toHaveProperty('cavv')
    const { page, back, action } = await challenge(answer, fields)
    expect(page).toContain('Test &#60;Shop&#62; &#38; Sons')
    expect(page).toContain('10.00 EUR')
    expect(page).not.toContain(pan)
    expect(action).toBe(bundle.contract.notificationUrl)
    expect(back['threeDSSessionData']).toBe('session')
    const stored = await bundle.ports.authentications.find(record.authenticationId)
    expect(stored).toMatchObject({ state, findings })
    expect(stored?.secrets.reveal().payload).toBeUndefined()
    expect(stored?.secrets.reveal().cavv !== undefined).toBe(state === 'Y')
    expect(await receiveReturn(bundle.ports, back['cres'] ?? '')).toMatchObject({ record: { state } })
    expect(bundle.simulator.seen(record.transactionId)).toMatchObject({ requests: 1, results: 1 })
  })

  it('gives three tries, with the problem said on the page', async () => {
    const { answer, record } = await ask(CARD.challengeY)
    const wrong = { code: '000000', do: 'confirm' }
    const first = await challenge(answer, wrong)
    expect(first.back).toEqual({})
    await challenge(answer, wrong)
    expect((await challenge(answer, wrong)).back).toHaveProperty('cres')
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'N' })
  })

  it('that nobody finished ends as U, though the data of another one can not be opened', async () => {
    const [damaged, { record }] = [await ask(CARD.challengeY), await ask(CARD.challengeY)]
    const change = (text: string) =>
      bundle.store.query({
        text: `update tokenmill.authentication set ${text} where authentication_id = $1`,
        values: [damaged.record.authenticationId],
      })
    await change(
      `sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1), pending_until = pending_until - interval '1 s'`,
    )
    bundle.advance(31 * 60_000)
    const { ended, failed } = await expireOverdue(bundle.ports, 100)
    expect(failed.map(one => one.authenticationId)).toEqual([damaged.record.authenticationId])
    expect(ended.map(one => one.authenticationId)).toContain(record.authenticationId)
    await change(`sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1)`)
    expect((await expireOverdue(bundle.ports, 100)).failed).toEqual([])
  })

  it('that nobody finished ends as U, and its result comes late', async () => {
    const { answer, record } = await ask(CARD.challengeY)
    bundle.advance(31 * 60_000)
    const { ended } = await expireOverdue(bundle.ports, 100)
    expect(ended.map(one => one.authenticationId)).toContain(record.authenticationId)
    await challenge(answer, { code: CODE })
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({
      state: 'U',
      findings: { error_no: '513', eci_flag: '07' },
    })
    expect(bundle.simulator.seen(record.transactionId).results).toBe(0)
  })

  it('whose time is over ends as U even where no clock has said so', async () => {
    const { answer, record } = await ask(CARD.challengeY)
    bundle.advance(31 * 60_000)
    await challenge(answer, { code: CODE })
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'U' })
  })
})

describe('a results request', () => {
  const rreqOf = (findings: Record<string, string | undefined>, transactionId: string, more: object = {}) => ({
    messageType: 'RReq',
    messageVersion: '2.2.0',
    threeDSServerTransID: transactionId,
    dsTransID: findings['ds_transaction_id'],
    acsTransID: findings['acs_transaction_id'],
    transStatus: 'N',
    ...more,
  })

  it('with any id but those of the parties is none of ours', async () => {
    const { record } = await ask(CARD.challengeY)
    const rreq = rreqOf(record.findings, record.transactionId)
    for (const id of ['threeDSServerTransID', 'dsTransID', 'acsTransID']) {
      const wrong = { ...rreq, [id]: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' }
      expect((await receiveResult(bundle.ports, wrong, await resultKeyOf(bundle.ports, record))).message).toMatchObject(
        {
          messageType: 'Erro',
          errorCode: '301',
        },
      )
    }
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'C' })
  })

  it('is believed at the address alone that its directory server was given', async () => {
    const { record } = await ask(CARD.challengeY)
    const proof = { transStatus: 'Y', authenticationValue: Buffer.alloc(20, 7).toString('base64') }
    const forged = rreqOf(record.findings, record.transactionId, proof)
    const { record: other } = await ask(CARD.challengeY)
    for (const key of ['', 'x'.repeat(22), await resultKeyOf(bundle.ports, other)])
      expect((await receiveResult(bundle.ports, forged, key)).message).toMatchObject({ errorCode: '301' })
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'C' })
  })

  it('of another form changes nothing', async () => {
    const { record } = await ask(CARD.challengeY)
    for (const [wrong, code] of [
      [null, '101'],
      [{ messageType: 'AReq' }, '101'],
      [rreqOf(record.findings, record.transactionId, { transStatus: 'C' }), '203'],
      [rreqOf(record.findings, record.transactionId, { transStatus: undefined }), '203'],
    ] as const)
      expect((await receiveResult(bundle.ports, wrong, await resultKeyOf(bundle.ports, record))).message).toMatchObject(
        { messageType: 'Erro', errorCode: code },
      )
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'C' })
  })

  it('is answered the same when it comes again, ends once, and is not talked over', async () => {
    const { record } = await ask(CARD.challengeY)
    const rreq = rreqOf(record.findings, record.transactionId)
    const answers = await Promise.all(
      Array.from({ length: 5 }, async () => receiveResult(bundle.ports, rreq, await resultKeyOf(bundle.ports, record))),
    )
    expect(answers.map(({ message }) => message.messageType)).toEqual(Array(5).fill('RRes'))
    expect(answers.filter(({ ended }) => ended)).toHaveLength(1)
    const other = { ...rreq, transStatus: 'U' }
    expect((await receiveResult(bundle.ports, other, await resultKeyOf(bundle.ports, record))).message).toMatchObject({
      messageType: 'Erro',
    })
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'N', version: 3 })
  })
})

describe('a directory server that does not answer', () => {
  it('leaves the outcome unknown, and a repeat under the same key goes on with the same transaction', async () => {
    const body = lookupBody(bundle.contract.contractId, CARD.silence)
    const key = { idempotencyKey: 'silent-1' }
    expect(await lookup(bundle.ports, CALLER, body, key)).toMatchObject({ problem: 502 })
    const open = await bundle.ports.authentications.findByKey(CALLER.clientId, 'silent-1')
    expect(open).toMatchObject({ state: 'OPEN' })
    const { answer, record } = await ask(CARD.silence, {}, key)
    expect(answer).toMatchObject({ pares_status: 'Y', transaction_id: open?.transactionId })
    expect(bundle.simulator.seen(record.transactionId).requests).toBe(2)
    const { answer: again, ended } = await ask(CARD.silence, {}, key)
    expect({ again, ended }).toEqual({ again: answer, ended: false })
    expect(bundle.simulator.seen(record.transactionId).requests).toBe(2)
    const other = lookupBody(bundle.contract.contractId, CARD.silence, { amount: 1 })
    expect(await lookup(bundle.ports, CALLER, other, key)).toMatchObject({ problem: 103 })
  })

  it('and is never asked again ends as U by the clock', async () => {
    const body = lookupBody(bundle.contract.contractId, CARD.silence)
    await lookup(bundle.ports, CALLER, body, { idempotencyKey: 'silent-2' })
    bundle.advance(11 * 60_000)
    await expireOverdue(bundle.ports, 100)
    const { answer } = await ask(CARD.silence, {}, { idempotencyKey: 'silent-2' })
    expect(answer).toMatchObject({ pares_status: 'U', enrolled: 'U', error_no: '502' })
  })

  it('is asked once by lookups at once under one key, and the session stays with the one that asked', async () => {
    const jti = randomUUID()
    await bundle.ports.jwts.insert({ jti, contractId: bundle.contract.contractId, issuedAt: bundle.ports.clock() })
    const body = lookupBody(bundle.contract.contractId, CARD.Y, { device_info_id: jti })
    const key = { idempotencyKey: 'twice' }
    const both = await Promise.all([1, 2, 3].map(() => lookup(bundle.ports, CALLER, body, key)))
    const answered = both.filter(one => !isProblem(one))
    expect(answered.length).toBeGreaterThanOrEqual(1)
    for (const one of both) if (isProblem(one)) expect(one.problem).toBe(503)
    const record = await bundle.ports.authentications.findByKey(CALLER.clientId, 'twice')
    expect(bundle.simulator.seen(record?.transactionId ?? '').requests).toBe(1)
    expect(record?.jti).toBe(jti)
    expect(await bundle.ports.jwts.find(jti)).toMatchObject({ authenticationId: record?.authenticationId })
  })
})

describe('a directory server', () => {
  /** Starts a server that passes its connections to `react`. */
  async function raw(react: (socket: Socket) => void): Promise<{ server: Server; url: string }> {
    const server = createServer(react)
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ds` }
  }
  const answered = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`

  it.each([
    ['closes the connection when it has the request', undefined, { problem: 502 }],
    ['answers 503', 'HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n', { problem: 502 }],
    ['answers no JSON', answered('<html>'), { answer: { error_no: '511' } }],
    ['answers too much', answered('x'.repeat(70_000)), { answer: { error_no: '511' } }],
    [
      'redirects',
      'HTTP/1.1 302 Found\r\nlocation: http://x\r\ncontent-length: 0\r\n\r\n',
      { answer: { error_no: '511' } },
    ],
  ] as const)('that %s', async (_, text, expected) => {
    let requests = 0
    const { server, url } = await raw(socket => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        requests += 1
        if (text === undefined) socket.destroy()
        else socket.end(text)
      })
    })
    const contract = await bundle.addContract({ directoryUrl: url })
    const found = await lookup(bundle.ports, CALLER, lookupBody(contract.contractId, CARD.Y))
    expect(found).toMatchObject(expected)
    expect(requests).toBe(1)
    await new Promise(done => server.close(done))
  })

  it('that can not be reached is tried twice, nothing is sent, and the caller is told so', async () => {
    const { server, url } = await raw(() => undefined)
    await new Promise(done => server.close(done))
    const contract = await bundle.addContract({ directoryUrl: url })
    const key = { idempotencyKey: 'away' }
    expect(await lookup(bundle.ports, CALLER, lookupBody(contract.contractId, CARD.Y), key)).toMatchObject({
      problem: 501,
    })
    expect(await bundle.ports.authentications.findByKey(CALLER.clientId, 'away')).toMatchObject({ state: 'OPEN' })
  })

  it('is asked again only where nothing was sent', async () => {
    for (const [kind, sent, tries, answer] of [
      ['unreachable', false, 2, 'unreachable'],
      ['timeout', false, 2, 'unreachable'],
      ['forbidden', false, 1, 'unreachable'],
      ['unreachable', true, 1, 'unknown'],
      ['timeout', true, 1, 'unknown'],
      ['protocol', true, 1, 'malformed'],
    ] as const) {
      let requests = 0
      const outbound = {
        request: async () => {
          requests += 1
          throw new OutboundError(kind, sent)
        },
      }
      const areq = new Secret({ threeDSServerTransID: 'id', messageVersion: '2.2.0' })
      const server = openDirectoryServer('https://ds.example', { outbound, timeoutMs: 1 })
      expect(await server.authenticate(areq)).toEqual({ kind: answer })
      expect(requests, `${kind} ${sent}`).toBe(tries)
    }
  })

  it('that answers for another transaction has not answered', async () => {
    const { server, port } = await listen(async body => ({
      ...(body as object),
      messageType: 'ARes',
      threeDSServerTransID: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      dsTransID: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      acsTransID: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      transStatus: 'N',
    }))
    const contract = await bundle.addContract({ directoryUrl: `http://127.0.0.1:${port}/ds` })
    const found = await lookup(bundle.ports, CALLER, lookupBody(contract.contractId, CARD.Y))
    expect(found).toMatchObject({ answer: { error_no: '511' } })
    server.closeAllConnections()
    await new Promise(done => server.close(done))
  })
})
