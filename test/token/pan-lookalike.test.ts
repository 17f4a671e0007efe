// References and echoed columns may be long numbers, but must not look like a card of their chunk.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { refusePanLookalikes } from '../../producers/rows/pan-lookalikes.ts'
import { type Row, rejectRow } from '../../producers/rows/record.ts'
import { couldLookLikeCard, openPanLookalikes } from '../../src/token/pan-lookalike.ts'
import { guesses } from '../security/canary.ts'
import { testPan } from '../support/test-pan.ts'

const CARDS = Array.from({ length: 1000 }, (_, index) => testPan(index * 977))
const CARD = testPan(977)

const cards = openPanLookalikes()
for (const card of CARDS) cards.add(card)

describe('a text looks like a card of many', () => {
  it.each([
    CARD,
    `order ${CARD}`,
    `c${CARD}`,
    `1${CARD}1`,
    CARD.replace(/(....)/g, '$1-'),
    CARD.replace(/(....)/g, '$1.'),
    [...CARD].map(digit => String.fromCodePoint(0xff10 + Number(digit))).join(''),
  ])('where it holds the digits of one, whatever but a letter stands between them: %s', text => {
    expect(couldLookLikeCard(text)).toBe(true)
    expect(cards.isIn(text)).toBe(true)
  })

  it('by first six, last four and length alone: nobody can search for a number', () => {
    const candidates = guesses(CARD.slice(0, 6), CARD.slice(-4), 200)
    expect(candidates.every(cards.isIn)).toBe(true)
  })

  it.each(['', 'r-1', CARD.slice(1), `${CARD.slice(0, 8)}x${CARD.slice(8)}`, '5555555555554444', '20261121120000123'])(
    'and no other text does: %s',
    text => {
      expect(cards.isIn(text)).toBe(false)
    },
  )

  it('and no UUID does, whatever its digits', () => {
    fc.assert(
      fc.property(fc.uuid(), uuid => !couldLookLikeCard(uuid) && !cards.isIn(uuid)),
      { numRuns: 2_000 },
    )
    expect(cards.isIn(`${CARD.slice(0, 8)}-${CARD.slice(8, 12)}-${CARD.slice(12)}-1111-111111111111`)).toBe(false)
  })
})

describe('rows of a file', () => {
  const row = (line: number, number: string, more: Partial<Row> = {}): Row => ({
    line,
    number,
    reference: `r${line}`,
    json: '{}',
    rejected: undefined,
    echo: undefined,
    ...more,
  })
  const told = (rows: Row[]) => rows.map(({ reference, rejected, echo }) => ({ reference, rejected, echo }))

  it('stay the very rows where none names another’s card', () => {
    const rows = [row(2, CARD), row(3, '', { reference: '5555555555554444', echo: ['5555555555554444'] })]
    expect(refusePanLookalikes(rows, { stored: true })).toEqual(rows)
  })

  it('are refused for an echoed column that looks like another row’s card, which is then told by nothing', () => {
    const rows = [row(2, CARD), row(3, '5555555555554444', { echo: ['fine', `old ${CARD}`] })]
    expect(told(refusePanLookalikes(rows, { stored: false }))[1]).toEqual({
      reference: 'r3',
      rejected: 'echo_pan',
      echo: undefined,
    })
  })

  it('stay the same records, but repeat no text that could be a card where their own number is none', () => {
    const shifted = { reference: `${CARD} 12/27`, echo: ['VISA', '6212345678901234'] }
    const rows = [row(2, 'visa', shifted), row(3, `${CARD}|123`, shifted), row(4, 'visa', { echo: ['city'] })]
    const bare = { reference: undefined, echo: undefined }
    const [two, three, four] = rows
    expect(refusePanLookalikes(rows, { stored: false })).toEqual([{ ...two, ...bare }, { ...three, ...bare }, four])
  })

  it('are refused for a reference that would be stored before a worker could judge it', () => {
    const rows = [row(2, CARD), row(3, '5555555555554444', { reference: CARD })]
    const refused = { reference: undefined, rejected: 'reference_pan', echo: undefined }
    expect(told(refusePanLookalikes(rows, { stored: true }))[1]).toEqual(refused)
    // For rows that aren't stored yet the worker decides, so that the chunks of a file stay the same.
    expect(refusePanLookalikes(rows, { stored: false })).toEqual(rows)
    const unseen = [rejectRow(2, 'expiry_format', 'r2', undefined, CARD), rows[1] as Row]
    expect(told(refusePanLookalikes(unseen, { stored: false }))[1]).toEqual(refused)
  })
})
