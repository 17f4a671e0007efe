// Keyed digests: what they are, and where they lie.
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DIGEST_BYTES, keyedDigest } from '../../../../producers/rows/spill/partitions.ts'

it('digests by HMAC-SHA-256, whatever the text and its length', () => {
  const key = Buffer.from('c0ffee'.repeat(10), 'hex')
  const digestOf = keyedDigest(key)
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), text => {
      const expected = createHmac('sha256', key).update(text).digest().subarray(0, DIGEST_BYTES)
      expect(digestOf(text)).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})

it('has another key each time', () => {
  expect(keyedDigest()('a')).not.toEqual(keyedDigest()('a'))
})
