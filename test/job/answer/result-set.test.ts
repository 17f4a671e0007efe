// Result sets: what a reader finds in one is what it would find in single deliveries, and nothing but a set that the
// installation signed for it is one.
import { createPrivateKey, createPublicKey, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLIENT, JWS, RESULTS } from '../../../cli/docs/golden-result-set.ts'
import { schemas } from '../../../cli/docs/schema.ts'
import { type InstallationKey, openResult, type ResultData, sealResult } from '../../../src/job/answer/result.ts'
import { openDelivery, RESULT_SET, ResultSet, sealResultSet } from '../../../src/job/answer/result-set.ts'
import type { InstallationKeys } from '../../../src/job/envelope/installation-jws.ts'
import { makeSigningKey } from '../../../src/vault/client-key.ts'

/** A key for this test only: Ed25519 of 32 bytes 0x07, so that the golden signature is always the same. */
const SEED = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)])
const PRIVATE = createPrivateKey({ key: SEED, format: 'der', type: 'pkcs8' })
const KEY: InstallationKey = { kid: 'golden', alg: 'EdDSA', privateKey: PRIVATE }
const KEYS: InstallationKeys = new Map([['golden', { alg: 'EdDSA', publicKey: createPublicKey(PRIVATE) }]])

const anyText = fc.string({ unit: 'grapheme', maxLength: 40 })
const anyResult = fc
  .record({ jti: anyText, revision: fc.integer({ min: 0, max: 9 }), record: fc.dictionary(anyText, fc.jsonValue()) })
  .map(some => ({ v: 1, type: 'result', result_id: randomUUID(), receipt_id: randomUUID(), ...some }))
const anyResults = fc.array(anyResult, { minLength: 1, maxLength: 12 })
const textsOf = (results: readonly object[]) => results.map(result => JSON.stringify(result))

describe('a result set', () => {
  it('holds what single deliveries of the same results hold, in the same order', () => {
    fc.assert(
      fc.property(anyResults, results => {
        const singles = results.map(result => {
          const about = { clientId: CLIENT, resultId: result.result_id, revision: result.revision }
          const opened = openResult(sealResult(JSON.stringify(result), about, KEY), CLIENT, KEYS)
          return 'result' in opened ? opened.result : opened
        })
        const sent = JSON.parse(JSON.stringify(sealResultSet(textsOf(results), CLIENT, KEY, ['statement']))) as unknown
        expect(openDelivery(sent, CLIENT, KEYS)).toEqual({
          refused: undefined,
          results: singles,
          newKeys: ['statement'],
        })
      }),
    )
  })

  it('has the form and the signature of the example in docs/schema', () => {
    const data = sealResultSet(textsOf(RESULTS), CLIENT, KEY)
    expect(data).toEqual({ body: JSON.stringify(RESULTS), jws: JWS })
    const [head = '', payload = ''] = data.jws.split('.').map(part => Buffer.from(part, 'base64url').toString())
    expect(head).toBe('{"alg":"EdDSA","kid":"golden","typ":"tokenmill-result-set+jwt"}')
    expect(payload).toBe(`{"aud":"${CLIENT}","results":2,"sha256":"SqJHuUcFrxQxBjYpJUfde4QUivBILjrckTAzWK2M7bg"}`)
    expect(ResultSet.parse(JSON.parse(data.body))).toEqual(RESULTS)
    const published = schemas()['result-set'] as { 'x-delivery': unknown; 'x-key': { x: string } }
    expect(published['x-delivery']).toEqual(data)
    const { x } = createPublicKey(PRIVATE).export({ format: 'jwk' })
    expect(published['x-key']).toEqual({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', kid: 'golden', x })
  })

  it('is refused if it was changed, is for another client, or is signed for something else', () => {
    const texts = textsOf(RESULTS)
    const good = sealResultSet(texts, CLIENT, KEY)
    const [head = '', payload = '', signature = ''] = good.jws.split('.')
    const stranger = makeSigningKey()
    const strange = {
      ...KEY,
      privateKey: createPrivateKey({ key: stranger.privateJwk.reveal(), format: 'jwk' } as never),
    }
    const single = sealResult(
      texts[0] ?? '',
      { clientId: CLIENT, resultId: RESULTS[0]?.result_id ?? '', revision: 1 },
      KEY,
    )
    const otherCount = Buffer.from(
      Buffer.from(payload, 'base64url').toString().replace('"results":2', '"results":1'),
    ).toString('base64url')
    const forged: unknown[] = [
      { ...good, body: good.body.replace('"code":204', '"code":200') },
      { ...good, body: texts[0] },
      { ...good, body: `${good.body} ` },
      { ...good, jws: single.jws },
      { ...single, jws: good.jws },
      { ...single, body: `[${single.body}]` },
      { ...good, jws: `${head}.${otherCount}.${signature}` },
      { ...good, jws: `${head}.${payload}` },
      sealResultSet(texts, 'cother', KEY),
      sealResultSet(texts, CLIENT, strange),
      sealResultSet([], CLIENT, KEY),
      { ...sealResultSet(['1'], CLIENT, KEY), body: '{}' },
      null,
      'text',
      {},
    ]
    for (const data of forged)
      expect(openDelivery(data, CLIENT, KEYS), JSON.stringify(data)).toEqual({ refused: 'forged' })
    expect(openDelivery(good, CLIENT, KEYS)).toMatchObject({ refused: undefined })
  })

  it('by a key that the reader does not know yet may be genuine', () => {
    const unknown = sealResultSet(textsOf(RESULTS), CLIENT, { ...KEY, kid: 'next' }, ['statement'])
    expect(openDelivery(unknown, CLIENT, KEYS)).toEqual({ refused: 'unknown_key', newKeys: ['statement'] })
  })

  it('is no result in columns, which has a signature of its own form', () => {
    const [text = ''] = textsOf(RESULTS)
    const about = { clientId: CLIENT, resultId: RESULTS[0]?.result_id ?? '', revision: 1 }
    const data = sealResult(text, { ...about, inColumns: true }, KEY, ['statement'])
    const rows = sealResult(text, about, KEY)
    expect(openDelivery(data, CLIENT, KEYS)).toMatchObject({ refused: undefined, results: [JSON.parse(text)] })
    expect(openDelivery(data, CLIENT, new Map())).toEqual({ refused: 'unknown_key', newKeys: ['statement'] })
    const [head] = data.jws.split('.')
    const [, ...rest] = rows.jws.split('.')
    expect(openDelivery({ ...rows, jws: [head, ...rest].join('.') }, CLIENT, KEYS)).toEqual({ refused: 'forged' })
    const typ = JSON.parse(Buffer.from(head ?? '', 'base64url').toString()).typ
    expect(typ).toBe('tokenmill-result-columns+jwt')
  })

  it('is forged for a reader that knows single results only', () => {
    const data: ResultData = sealResultSet(textsOf(RESULTS), CLIENT, KEY)
    expect(openResult(data, CLIENT, KEYS)).toEqual({ refused: 'forged' })
    expect(RESULT_SET.resultsMax).toBe(100)
  })
})
