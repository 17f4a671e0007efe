// The preview of the first cards before they are sent.
import { expect, it } from 'vitest'
import { firstCards, previewOf, sentenceOf } from '../../../../producers/rows/outcome/preview.ts'
import { rejectRow, skipRow } from '../../../../producers/rows/record.ts'
import type { Row } from '../../../../producers/rows/rows.ts'

const card: Row = {
  line: 2,
  reference: 'card_1',
  json: '{"line":2,"reference":"card_1","request":{"card":{"cardNumber":"4111 1111 1111 1111","expiryMonth":3,"expiryYear":2030}}}',
  rejected: undefined,
  number: '4111 1111 1111 1111',
  echo: undefined,
  repairs: ['number_separators'],
}

it('shows the last four digits, the expiry as it was read, and what was repaired', () => {
  expect(sentenceOf(previewOf(card))).toBe(
    'line 2: card ending 1111, expires 03/2030, reference card_1, repaired: number_separators',
  )
})

it('says of a row without a card why it has none', () => {
  expect(sentenceOf(previewOf({ ...skipRow(7, 'no_card'), item: '2.3' }))).toBe('line 7, card 2.3: skipped (no_card)')
  expect(sentenceOf(previewOf(rejectRow(8, 'row_json', 'r8')))).toBe('line 8: rejected (row_json), reference r8')
})

it('never shows a number, and ten cards at most', () => {
  const lines = firstCards('square', [skipRow(1, 'no_card'), ...Array.from({ length: 12 }, () => card)])
  expect(lines.filter(line => line.startsWith('  line 2'))).toHaveLength(10)
  expect(lines.join()).not.toMatch(/\d{12}|4111 1111/)
})

it('shows no reference that could be a card number', () => {
  const { reference } = previewOf({ ...card, reference: '5555 5555 5555 4444' })
  expect(reference).toBe('(not shown: it could be a card number)')
})
