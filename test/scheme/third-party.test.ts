// The third-party connector: against the simulator, and against a provider that spells everything differently.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { openOutbound } from '../../src/outbound.ts'
import { openCaller } from '../../src/scheme/call.ts'
import type { SchemeProvider } from '../../src/scheme/provider.ts'
import { openThirdParty } from '../../src/scheme/third-party.ts'
import { fillTemplate, ThirdPartyFormat } from '../../src/scheme/third-party-format.ts'
import { Secret } from '../../src/secret.ts'
import { CONTRACT } from '../../src/simulate/scheme/keys.ts'
import { card, newId, numberedPan, openSchemeBundle, outcomePan, type SchemeBundle, SHORT_MS } from './bundle.ts'

const NOBODY = { card: undefined, taken: [] }
const theirs = (reference: unknown, state = 'ACTIVE') => expect.objectContaining({ reference, state })

let bundle: SchemeBundle
let hasty: SchemeBundle
let provider: SchemeProvider
beforeAll(async () => {
  ;[bundle, hasty] = await Promise.all([openSchemeBundle(), openSchemeBundle({ timeoutMs: SHORT_MS })])
  provider = providerOf(bundle)
})
afterAll(() => Promise.all([bundle?.close(), hasty?.close()]))

function providerOf({ schemes }: SchemeBundle): SchemeProvider {
  const found = schemes.thirdParty({ type: 'THIRD_PARTY_1', contract: CONTRACT, entityId: CONTRACT })
  if (found === undefined) throw new Error('there is no such contract')
  return found.provider
}

describe('a third-party token', () => {
  it('is made once per id, found by it, and gone when deleted', async () => {
    const id = newId()
    const made = await provider.provision(id, card(numberedPan(1)), 'interactive')
    expect(made).toEqual({ answer: 'done', value: theirs(expect.stringMatching(/^ext_[0-9a-f]{32}$/)) })
    expect(await provider.provision(id, card(numberedPan(1)), 'interactive')).toEqual(made)
    expect(await provider.find(id, NOBODY, 'interactive')).toEqual(made)
    const token = made.answer === 'done' ? made.value.reference : ''
    expect(await provider.get(id, token, 'bulk')).toEqual(made)
    for (let time = 0; time < 2; time += 1)
      expect(await provider.delete(id, token, 'bulk')).toEqual({ answer: 'done', value: theirs(token, 'DEACTIVATED') })
    expect(await provider.get(id, token, 'bulk')).toEqual({ answer: 'refused', reason: 'token_unknown' })
    expect(await provider.find(id, NOBODY, 'bulk')).toEqual({ answer: 'done', value: undefined })
    expect((await bundle.stats()).thirdParty).toMatchObject({ all: 1, live: 0 })
  })

  it.each([
    ['4000000000000036', { answer: 'refused', reason: 'card_ineligible' }],
    ['4000000000000051', { answer: 'refused', reason: 'card_declined' }],
    ['5100000000000040', { answer: 'refused', reason: 'request_invalid' }],
    [outcomePan(16), { answer: 'again', once: false }],
    [outcomePan(9), { answer: 'again', once: false }],
  ])('%s ends as the configured table says', async (pan, expected) => {
    const id = newId()
    expect(await provider.provision(id, card(pan), 'interactive')).toMatchObject(expected)
    expect(await provider.find(id, NOBODY, 'interactive')).toEqual({ answer: 'done', value: undefined })
  })

  it('whose answer was lost is unknown, and found if it was made', async () => {
    const [made, unmade] = [newId(), newId()]
    const provider = providerOf(hasty)
    expect(await provider.provision(made, card(outcomePan(2)), 'interactive')).toEqual({ answer: 'unknown' })
    expect(await provider.find(made, NOBODY, 'interactive')).toMatchObject({
      answer: 'done',
      value: { reference: expect.any(String) },
    })
    expect(await provider.provision(unmade, card(outcomePan(3)), 'interactive')).toEqual({ answer: 'unknown' })
    expect(await provider.find(unmade, NOBODY, 'interactive')).toEqual({ answer: 'done', value: undefined })
    expect((await hasty.stats()).thirdParty.cardsWithSeveralLiveTokens).toBe(0)
  })
})

describe('a provider of another format', () => {
  const requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  let answer: { status: number; body: string }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      response.writeHead(answer.status).end(answer.body)
    })
  })
  const outbound = openOutbound({ privateHosts: ['127.0.0.1'], connections: 2 })
  let other: SchemeProvider

  beforeAll(async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const settings = {
      contract: CONTRACT,
      type: 'THIRD_PARTY_1',
      baseUrl: `http://127.0.0.1:${port}/v3`,
      ratePerSecond: 1_000,
      timeoutMs: 1_000,
      connections: 2,
      credentials: { header: 'x-api-key', value: new Secret('s3cret') },
      format: ThirdPartyFormat.parse({
        create: { method: 'PUT', path: '/vault/{id}' },
        find: { method: 'GET', path: '/vault?merchant-ref={id}' },
        delete: { method: 'POST', path: '/vault/{token}/remove' },
        body: {
          type: 'card',
          pan: '{pan}',
          exp: '{expiry_month}{expiry_yy}',
          tags: ['ref:{id}'],
          name: '{card_holder_name}',
        },
        token: '/data/alias',
        found: '/items/0',
        error: '/problem/~1code',
        errors: { E17: 'card_declined', E99: 'once' },
      }),
    }
    const caller = openCaller({ ratePerSecond: 1_000, connections: 2, clock: Date.now })
    other = openThirdParty(outbound, caller, settings, openLog('silent'))
  })
  afterAll(async () => {
    await other.close()
    await outbound.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })

  it('is asked in its own words', async () => {
    answer = { status: 201, body: JSON.stringify({ data: { alias: 'alias-0123456789' } }) }
    expect(await other.provision('a b/c', card('4111111111111111'), 'bulk')).toEqual({
      answer: 'done',
      value: theirs('alias-0123456789'),
    })
    const sent = requests.at(-1)
    expect(sent).toMatchObject({ method: 'PUT', url: '/v3/vault/a%20b%2Fc' })
    expect(sent?.headers).toMatchObject({ 'x-api-key': 's3cret', 'idempotency-key': 'a b/c' })
    expect(JSON.parse(sent?.body ?? '')).toEqual({
      type: 'card',
      pan: '4111111111111111',
      exp: '1230',
      tags: ['ref:a b/c'],
      name: 'TEST CARD',
    })
    answer = { status: 200, body: JSON.stringify({ items: [{ data: { alias: 'alias-0123456789' } }] }) }
    expect(await other.find('x', NOBODY, 'bulk')).toEqual({ answer: 'done', value: theirs('alias-0123456789') })
    answer = { status: 200, body: '{"items":[]}' }
    expect(await other.find('x', NOBODY, 'bulk')).toEqual({ answer: 'done', value: undefined })
    expect(await other.delete('x', 'alias/1', 'bulk')).toMatchObject({ answer: 'done' })
    expect(requests.at(-1)).toMatchObject({ method: 'POST', url: '/v3/vault/alias%2F1/remove' })
  })

  it('is not believed where a page for people comes in its place', async () => {
    answer = { status: 200, body: '<html><body>Down for maintenance</body></html>' }
    const later = { answer: 'again', once: false }
    expect(await other.find('x', NOBODY, 'bulk')).toEqual(later)
    expect(await other.get('x', 'alias-0123456789', 'bulk')).toEqual(later)
    expect(await other.delete('x', 'alias-0123456789', 'bulk')).toEqual(later)
    answer = { status: 200, body: '' }
    expect(await other.find('x', NOBODY, 'bulk')).toEqual({ answer: 'done', value: undefined })
    answer = { status: 200, body: 'OK' }
    expect(await other.delete('x', 'alias-0123456789', 'bulk')).toMatchObject({ answer: 'done' })
  })

  it.each([
    [422, '{"problem":{"/code":"E17"}}', { answer: 'refused', reason: 'card_declined' }],
    [400, '{"problem":{"/code":"E99"}}', { answer: 'again', once: true }],
    [400, '{"problem":{"/code":"E1"}}', { answer: 'refused', reason: 'request_invalid' }],
    [401, '', { answer: 'again', once: false }],
    [429, '', { answer: 'again', once: false }],
    [500, 'oops', { answer: 'unknown' }],
    [200, '{"data":{}}', { answer: 'unknown' }],
    [200, 'no JSON', { answer: 'unknown' }],
    [200, '{"data":{"alias":"short"}}', { answer: 'unknown' }],
    // Neither the PAN itself is a token, nor what could be taken for a card or for one of the vault's own.
    [200, '{"data":{"alias":"5555555555554444"}}', { answer: 'unknown' }],
    [200, '{"data":{"alias":"t01ARZ3NDEKTSV4RRFFQ69G5FAV"}}', { answer: 'unknown' }],
    [200, '{"data":{"alias":"4111111111111111"}}', { answer: 'unknown' }],
    [302, '', { answer: 'unknown' }],
  ])('%s %s is never taken for a token', async (status, body, expected) => {
    answer = { status, body }
    expect(await other.provision(newId(), card('4111111111111111'), 'bulk')).toMatchObject(expected)
  })
})

describe('a body', () => {
  it('is filled in, and leaves out fields whose value is absent', () => {
    const template = { a: '{pan}', b: '{card_holder_name}', c: [1, null, '{nobody}'], d: { e: 'x{card_holder_name}y' } }
    expect(fillTemplate(template, { pan: '1', card_holder_name: undefined })).toEqual({
      a: '1',
      c: [1, null, '{nobody}'],
      d: { e: 'xy' },
    })
  })

  it('takes what is filled in as text, not as a template', () => {
    expect(fillTemplate({ name: '{card_holder_name}', pan: '{pan}' }, { card_holder_name: '{pan}', pan: '1' })).toEqual(
      {
        name: '{pan}',
        pan: '1',
      },
    )
  })
})
