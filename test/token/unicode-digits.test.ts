// The table of digits beyond ASCII against Node's own Unicode data, and the count against the normal form of whole texts.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { digitsOf, hasDigits } from '../../src/token/pan.ts'
import { countDigits } from '../../src/token/unicode-digits.ts'

it('counts the digits of each character of Unicode', () => {
  const wrong: string[] = []
  let beyond = 0
  for (let code = 0; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const text = String.fromCodePoint(code)
    const digits = digitsOf(text).length
    if (code > 0x7f && digits > 0) beyond += 1
    if (countDigits(text) !== digits) wrong.push(code.toString(16))
  }
  expect(wrong).toEqual([])
  expect(beyond).toBe(302)
})

it('counts those of a text as its normal form has them, whatever stands beside them', () => {
  const unit = fc.oneof(
    fc.constantFrom('0', '7', '１', '²', '⑫', '⅒', '𝟗', '\u0301', '\u20e3', '\ud835', 'é', '-', ' ', '漢', '\u200d'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 40 }), fc.nat(20), (text, least) => {
      expect(countDigits(text)).toBe(digitsOf(text).length)
      expect(hasDigits(text, least)).toBe(digitsOf(text).length >= least)
    }),
    { numRuns: 20_000 },
  )
})
