// The texts of a compact JWS: one for the same bytes, and strict JSON in them.
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCompact, signText, verify } from '../../../src/job/envelope/envelope.ts'
import { readObject } from '../../../src/job/envelope/strict-json.ts'

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
const HEADER = Buffer.from('{"alg":"EdDSA"}').toString('base64url')
const encoded = (text: string) => Buffer.from(text).toString('base64url')

describe('a compact JWS', () => {
  it('is read from the one text that its bytes have, and from no other', () => {
    const letter = fc.constantFrom(...ALPHABET)
    const inner = fc.string({ unit: fc.constantFrom('a', '"', ' ', 'é', '日'), maxLength: 6 })
    fc.assert(
      fc.property(inner, fc.option(letter, { nil: undefined }), fc.nat(3), (text, last, cut) => {
        const right = encoded(JSON.stringify({ text }))
        const body = last === undefined ? right : right.slice(0, right.length - cut) + last
        const isOne = Buffer.from(body, 'base64url').toString('base64url') === body
        const expected = isOne ? readObject(Buffer.from(body, 'base64url')) : undefined
        expect(readCompact(`${HEADER}.${body}.c2ln`)?.payload).toEqual(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it('has strict JSON in UTF-8', () => {
    expect(readObject(Buffer.from('{"a":"é","b":"日"}'))).toEqual({ a: 'é', b: '日' })
    expect(readObject(Buffer.from('\ufeff{"a":1}'))).toEqual({ a: 1 })
    for (const bytes of [Buffer.from('{"a":"\u0000"}'), Buffer.from([0x7b, 0x22, 0xe9, 0x22, 0x3a, 0x31, 0x7d])])
      expect(readObject(bytes)).toBeUndefined()
    for (const text of ['{"a":1,"a":1}', '{"a":1, "\\u0061":2}', '[]', '"a"', '', '{"a":"é","a":"é"}'])
      expect(readObject(Buffer.from(text)), text).toBeUndefined()
  })

  it('is verified only with a header of the alphabet', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const jws = signText('{}', { kid: 'k', alg: 'EdDSA', privateKey }, 'x')
    const key = { alg: 'EdDSA', publicKey } as const
    expect(verify(jws, key)).toBe(true)
    expect(verify(`=${jws}`, key)).toBe(false)
    expect(verify(jws.slice(jws.indexOf('.')), key)).toBe(false)
  })
})
