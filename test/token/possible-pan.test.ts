// Names may not be card numbers (PCI DSS 3.5.1), but random names such as UUIDs must not count as one.
import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { submitName } from '../../producers/submit/submit.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { testPan } from '../support/test-pan.ts'

const VISA = '4111111111111111'
const AMEX = '378282246310005'
const DINERS = '30569309025904'

const sha256 = (text: string) => createHash('sha256').update(text).digest()

describe('a possible card number', () => {
  it.each([
    ['Visa', VISA],
    ['Visa of 13 digits', '4222222222222'],
    ['Visa of 19 digits', '4111111111111111110'],
    ['Mastercard', '5555555555554444'],
    ['Mastercard of the newer range', '2223003122003222'],
    ['American Express', AMEX],
    ['Diners Club', DINERS],
    ['Discover', '6011111111111117'],
    ['JCB', '3530111333300000'],
    ['UnionPay', '6200000000000005'],
    ['Maestro', '6759649826438453'],
  ])('is a number of %s', (_network, pan) => {
    expect(holdsPossiblePan(pan)).toBe(true)
    expect(holdsPossiblePan(`order-${pan}`)).toBe(true)
    expect(holdsPossiblePan(`order${pan}x`)).toBe(true)
  })

  it.each([
    '4111-1111-1111-1111',
    '4111 1111 1111 1111',
    '3782-822463-10005',
    '3782 822463 10005',
    '3056-930902-5904',
    '4111-1111-1111-1111-7',
    '12-4111-1111-1111-1111',
    '1234-4111-1111-1111-1111',
    `${VISA}-12`,
    `1-${VISA}`,
    `code${VISA}`,
    `UUID ${randomUUID()} ${VISA}`,
    [...VISA].map(digit => String.fromCodePoint(0xff10 + Number(digit))).join(''),
    '4111–1111–1111–1111',
  ])('is found in %s', name => {
    expect(holdsPossiblePan(name)).toBe(true)
  })

  it.each([
    ['a digit beside it', `${VISA}1`],
    ['a digit before it', `1${VISA}`],
    ['a wrong check digit', '4111111111111112'],
    ['a prefix of no network', '1234567812345670'],
    ['a length that its network does not issue', '411111111111116'],
    ['twelve digits', '676770000003'],
    ['separators that are no card’s grouping', '411-11111-1111-1111'],
    ['separators that are doubled', '4111--1111--1111--1111'],
    ['another separator', '4111.1111.1111.1111'],
    ['a day and a time', '20261121120000123'],
    ['milliseconds', '1763769600000'],
    ['hexadecimal with a letter', `a${VISA}`],
    ['nothing', ''],
  ])('is not what has %s', (_what, name) => {
    expect(holdsPossiblePan(name)).toBe(false)
  })

  it('is no UUID and no digest, whatever their digits', () => {
    expect(holdsPossiblePan('41111111-1111-1111-1111-411111111111')).toBe(false)
    expect(holdsPossiblePan(`${VISA}${'f'.repeat(16)}`)).toBe(false)
    expect(holdsPossiblePan(`0x${VISA}a1${'0'.repeat(14)}`)).toBe(false)
    const hex = (length: number) =>
      fc.array(fc.constantFrom(...'0123456789'.repeat(8), ...'abcdef'), { minLength: length, maxLength: length })
    fc.assert(
      fc.property(hex(64), fc.constantFrom(16, 32, 40, 64), fc.nat({ max: 9_999_999 }), (digits, length, n) => {
        const digest = digits.join('').slice(0, length)
        const names = [`${digest}f`, `m-${digest}f-${n}`, submitName(digits.join(''), n)]
        expect(names.filter(holdsPossiblePan)).toEqual([])
      }),
      { numRuns: 2_000 },
    )
    fc.assert(
      fc.property(fc.uuid(), fc.nat(), (uuid, n) => !holdsPossiblePan(uuid) && !holdsPossiblePan(`h-${uuid}-${n}`)),
    )
  })

  it('is none of the names that this product and its callers make by chance', () => {
    const refused: string[] = []
    for (let index = 0; index < 20_000; index += 1) {
      const digest = sha256(`${index}`)
      const hex = digest.toString('hex')
      const names = [randomUUID(), hex, digest.toString('base64url'), `m-${hex.slice(0, 32)}-${index}`]
      refused.push(...[...names, submitName(hex, index)].filter(holdsPossiblePan))
    }
    expect(refused).toEqual([])
  })

  it('is every number of a card, in one piece and in its groups', () => {
    fc.assert(
      fc.property(fc.nat({ max: 999_999_999 }), fc.constantFrom('', '-', ' '), (index, separator) => {
        expect(holdsPossiblePan(testPan(index).replace(/(....)(?=.)/g, `$1${separator}`))).toBe(true)
      }),
    )
  })
})
