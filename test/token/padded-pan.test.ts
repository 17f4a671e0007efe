// Card numbers with zeros in front, as columns of fixed width hold them: refused as cards, and known in texts either way.
import { describe, expect, it } from 'vitest'
import { masked } from '../../producers/rows/outcome/mask.ts'
import { refusePanLookalikes } from '../../producers/rows/pan-lookalikes.ts'
import { holdsOwnNumber, isWholeNumber, type Row, rejectRow } from '../../producers/rows/record.ts'
import { isRefusal } from '../../src/errors.ts'
import { tokenId } from '../../src/job/envelope/text.ts'
import { clearNumbersOf, nameRefusal } from '../../src/job/pan-in-names.ts'
import { checkCard } from '../../src/token/card.ts'
import { formsOf, panFault, withoutPadding } from '../../src/token/pan.ts'
import { openPanLookalikes } from '../../src/token/pan-lookalike.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'

const PAN = '4111111111111111'
const AMEX = '378282246310005'
const PADDED = ['0004111111111111111', '04111111111111111', '0000378282246310005', `${'0'.repeat(24)}${PAN}`]

describe('a number that begins with 0', () => {
  it.each([...PADDED, '0000000000000000', '000000000000', '0004111111111111112', '012345678901'])(
    '%s is no card',
    number => {
      const card = checkCard({ cardNumber: number }, 'body.card')
      expect(isRefusal(card) && card.reason).toBe('pan_padded')
    },
  )

  it('is no other fault where it has no form of a number', () => {
    for (const number of [
      '0411111111',
      '00004111 1111 1111 1111',
      '0'.repeat(41),
      '0x4111111111111111',
      '４'.repeat(16),
    ])
      expect(panFault(number), number).toBe('pan_format')
    expect(panFault(PAN)).toBeUndefined()
  })

  it('loses its zeros down to twelve digits', () => {
    expect(PADDED.map(withoutPadding)).toEqual([PAN, PAN, AMEX, PAN])
    expect(withoutPadding('0000000000000000')).toBe('000000000000')
    expect(withoutPadding('0123456789012')).toBe('123456789012')
    expect(formsOf(PAN)).toEqual([PAN])
  })
})

describe('a text', () => {
  it.each(PADDED)('holds the card of %s with its zeros and without them', number => {
    const bare = withoutPadding(number)
    const cards = openPanLookalikes()
    cards.add(number)
    for (const text of [`x-${bare}`, `${bare.slice(0, 4)} ${bare.slice(4)}`, `ref ${number}`, `0${bare}/2`]) {
      expect(holdsOwnNumber(text, number), text).toBe(true)
      expect(cards.isIn(text), text).toBe(true)
      expect(masked(text, number)).not.toMatch(/\d/)
      expect(nameRefusal({ reference: text }, clearNumbersOf({ card: { cardNumber: number } })), text).toMatchObject({
        reason: 'reference_pan',
      })
    }
    expect(cards.isIn(`ref ${bare.slice(0, -1)}${bare.at(-1) === '9' ? 8 : 9}`)).toBe(false)
  })

  it('is a possible card number with zeros in front, too, and no reuse token', () => {
    for (const number of PADDED) {
      expect(holdsPossiblePan(`k-${number}`), number).toBe(true)
      expect(tokenId().safeParse(number).success, number).toBe(false)
    }
    expect(holdsPossiblePan('0000411111111111')).toBe(false)
  })
})

describe('a row with such a number', () => {
  const rowOf = (changes: Partial<Row>): Row => ({
    ...rejectRow(1, 'pan_padded', undefined, undefined, PADDED[0]),
    ...changes,
  })

  it('has a whole card number, of which the rejects show the ends', () => {
    for (const number of PADDED) expect(isWholeNumber(number), number).toBe(true)
  })

  it('keeps other rows of its chunk from naming its card, refused as it is', () => {
    const other: Row = { ...rowOf({ rejected: undefined }), line: 2, number: AMEX, reference: `p ${PAN}` }
    const [, named] = refusePanLookalikes([rowOf({}), other], { stored: false })
    expect(named).toMatchObject({ rejected: 'reference_pan', reference: undefined })
  })
})
