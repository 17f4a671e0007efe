import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { masked } from '../../../../producers/rows/outcome/mask.ts'
import { testPan } from '../../../support/test-pan.ts'

const UUID = '6f9619ff-8b86-4011-b42d-00cf4fc964ff'
const pan = fc.nat({ max: 999_999_999 }).map(testPan)
/** What may stand between the digits of a number: anything but a letter, of any script. */
const separator = fc.constantFrom('', ' ', '-', '.', '/', '\t', '\u00a0', '\u2009', '_', ' - ', '"', "'", '\u200b')
const around = fc.string({ unit: fc.constantFrom('a', ' ', 'é', '-', '7', '\n', '漢'), maxLength: 8 })
const SCRIPTS = ['0', '\uff10', '\u0660', '\u0966', '\ud835\udfce'].map(zero => zero.codePointAt(0) ?? 48)

describe('masking', () => {
  it('leaves no digit of a card number, whatever stands around or between its digits, in any script', () => {
    fc.assert(
      fc.property(
        ...([pan, separator, around, around, fc.constantFrom(...SCRIPTS)] as const),
        (number, between, before, after, zero) => {
          const written = [...number].map(digit => String.fromCodePoint(zero + Number(digit))).join(between)
          const text = masked(before + written + after, '')
          expect(text).not.toMatch(/\p{N}/u)
          expect(text).toContain('*')
        },
      ),
    )
  })

  it('finds the number of its own row between letters, too, and in a UUID', () => {
    fc.assert(
      fc.property(pan, fc.constantFrom('x', 'card', ' no '), (number, between) => {
        expect(masked(`${[...number].join(between)}`, number)).not.toMatch(/\p{N}/u)
      }),
    )
    const number = '4111111111111111'
    expect(masked('41111111-1111-1111-1111-111111111111', number)).not.toMatch(/\d/)
  })

  it('changes nothing else, and is done once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), text => {
        const once = masked(text, '')
        expect(masked(once, '')).toBe(once)
        if (!/\p{N}/u.test(text.normalize('NFKC'))) expect(once).toBe(text)
      }),
    )
    for (const text of ['', 'cus_1', '12345678901', '2030-12-31', UUID, `ref ${UUID}`, 'tel 555 and 1234567'])
      expect(masked(text, '')).toBe(text)
    expect(masked('no. 4111 1111-1111.1111 (old)', '')).toBe('no. **** ****-****.**** (old)')
    expect(masked('123456789012', '')).toBe('************')
  })
})
