// Lifecycle notifications of the simulated network, and invalid ones.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Notification } from '../../src/scheme/notification.ts'
import { until } from '../support/until.ts'
import { card, newId, numberedPan, openSchemeBundle, outcomePan, type SchemeBundle, tokenOf } from './bundle.ts'

let bundle: SchemeBundle
const received: { authorization: string | undefined; body: { encryptedPayload: Record<string, string> } }[] = []
let answers: number[] = []
const server = createServer((request, response) => {
  void readBody(request).then(text => {
    received.push({
      authorization: request.headers.authorization,
      body: JSON.parse(text) as { encryptedPayload: Record<string, string> },
    })
    response.writeHead(answers.shift() ?? 200).end('{}')
  })
})

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  bundle = await openSchemeBundle({ notifyUrl: `http://127.0.0.1:${port}/oidc/scheme-notifications/mdes` })
})
afterAll(async () => {
  await bundle?.close()
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

function read(authorization: string | undefined, body: unknown): Notification {
  const { readNotification } = bundle.schemes
  if (readNotification === undefined) throw new Error('there is no network')
  return readNotification(authorization, body)
}

async function provision(pan: string): Promise<string> {
  return tokenOf(await bundle.mdes.provision(newId(), card(pan), 'interactive')).reference
}

/** What came since `index`, as we read it. */
async function next(index: number): Promise<Notification> {
  const last = await until(() => received[index], { what: 'a notification' })
  return read(last.authorization, last.body)
}

describe('a notification', () => {
  it.each([
    [
      'suspend',
      { do: 'suspend', by: 'ISSUER' },
      { state: 'SUSPENDED', suspendedBy: ['ISSUER'], reason: 'SUSPECTED_FRAUD' },
    ],
    [
      'a phone that is locked',
      { do: 'suspend', by: 'MOBILE_PIN_LOCKED' },
      { state: 'SUSPENDED', suspendedBy: ['OTHER'] },
    ],
    ['a new expiry', { do: 'expiry', expiry: '0731' }, { state: 'ACTIVE', expiryMonth: 7, expiryYear: 2031 }],
    ['delete', { do: 'delete' }, { state: 'DEACTIVATED', suspendedBy: [], reason: 'ACCOUNT_CLOSED' }],
  ])('of %s says what the token is now', async (_, deed, expected) => {
    const reference = await provision(numberedPan(1))
    const index = received.length
    expect(await bundle.control(reference, deed)).toBe(200)
    const notification = await next(index)
    expect(notification).toMatchObject({ notified: 'tokens', tokens: [{ reference, ...expected }] })
    if (notification.notified === 'tokens')
      expect(Math.abs(Date.now() - (notification.tokens[0]?.at ?? 0))).toBeLessThan(60_000)
  })

  it('of the first of two suspensions lifted says who still suspends', async () => {
    const reference = await provision(numberedPan(2))
    await bundle.control(reference, { do: 'suspend', by: 'ISSUER' })
    await bundle.control(reference, { do: 'suspend', by: 'CARDHOLDER' })
    const index = received.length
    await bundle.control(reference, { do: 'resume', by: 'ISSUER' })
    expect(await next(index)).toMatchObject({ tokens: [{ state: 'SUSPENDED', suspendedBy: ['CARDHOLDER'] }] })
    await bundle.control(reference, { do: 'resume', by: 'CARDHOLDER' })
    expect(await next(index + 1)).toMatchObject({ tokens: [{ state: 'ACTIVE', suspendedBy: [] }] })
  })

  it('comes late, comes twice under one id, and comes again until it is taken', async () => {
    const index = received.length
    const reference = await provision(outcomePan(11))
    expect(tokenOf(await bundle.mdes.get(newId(), reference, 'interactive')).state).toBe('ACTIVE')
    expect(await next(index)).toMatchObject({ tokens: [{ reference, state: 'SUSPENDED' }] })
    answers = [503]
    await bundle.control(reference, { do: 'notify', times: 2 })
    const [first, second, third] = [await next(index + 1), await next(index + 2), await next(index + 3)]
    expect([second, third]).toEqual([first, first])
    expect(received).toHaveLength(index + 4)
  })

  it('that is not sent leaves the store to drift: the network knows better', async () => {
    const reference = await provision(numberedPan(3))
    const index = received.length
    await bundle.control(reference, { do: 'suspend', notify: false })
    expect(received).toHaveLength(index)
    expect(tokenOf(await bundle.mdes.get(newId(), reference, 'bulk'))).toMatchObject({ suspendedBy: ['ISSUER'] })
  })

  it('without the secret, or with another, is nobody’s', async () => {
    const { authorization, body } = await sample()
    for (const wrong of [undefined, '', 'Bearer', `${authorization}x`, authorization?.slice(0, -1), 'Basic abc'])
      expect(read(wrong, body)).toEqual({ notified: 'unauthenticated' })
  })

  it('that can’t be opened, or is for another requestor, is malformed', async () => {
    const { authorization, body } = await sample()
    const bodies = [
      {},
      null,
      'x',
      { ...body, requestId: '' },
      { ...body, encryptedPayload: { ...body.encryptedPayload, encryptedKey: 'ab'.repeat(256) } },
      { ...body, encryptedPayload: { ...body.encryptedPayload, oaepHashingAlgorithm: undefined } },
      { ...body, encryptedPayload: { ...body.encryptedPayload, encryptedData: 'zz' } },
    ]
    for (const wrong of bodies) expect(read(authorization, wrong)).toEqual({ notified: 'malformed' })
  })

  async function sample() {
    const reference = await provision(numberedPan(4))
    const index = received.length
    await bundle.control(reference, { do: 'notify' })
    return await until(() => received[index])
  }
})
