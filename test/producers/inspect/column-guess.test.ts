// What a column seems to hold, and how sure that is.
import { expect, it } from 'vitest'
import { guessColumn, settledForm } from '../../../producers/inspect/column-guess.ts'

const VISA = '4111111111111111'

it('knows card numbers by their values, whatever the column is called, and counts separators', () => {
  expect(guessColumn('field 7', [VISA, '4111 1111 1111 1111', '5555-5555-5555-4444', ''])).toEqual({
    name: 'field 7',
    meaning: 'card_number',
    sure: 1,
    filled: 3,
    separated: 2,
  })
  expect(guessColumn('phone', ['4930123456789', '4930123456780']).meaning).toBeUndefined()
})

it('tells ids, names and parts of dates by their names, and how many values have the form', () => {
  expect(guessColumn('card.id', ['card_1'])).toMatchObject({ meaning: 'card_id' })
  expect(guessColumn('customer_id', ['c1'])).toMatchObject({ meaning: 'customer_id' })
  expect(guessColumn('Expiration Month', ['1', '12', '13', 'x'])).toMatchObject({ meaning: 'expiry_month', sure: 0.5 })
  expect(guessColumn('Card Holder Name', ['A'])).toMatchObject({ meaning: 'cardholder_name' })
  expect(guessColumn('transaction_link_id', ['A'.repeat(22), 'short'])).toMatchObject({ sure: 0.5 })
  expect(guessColumn('note', ['x'])).toMatchObject({ meaning: undefined })
})

it('never looks at a security code', () => {
  expect(guessColumn('cvv', ['123'])).toEqual({ name: 'cvv', meaning: 'security_code', sure: 1, filled: 1 })
})

it('settles the form of an expiry by what only one form reads', () => {
  const months = guessColumn('expiry', ['1229', '0130', '0731', '1128'])
  expect(months).toMatchObject({ meaning: 'expiry', forms: { MMYY: 4 }, ambiguous: 0 })
  expect(settledForm(months)).toBe('MMYY')
  expect(settledForm(guessColumn('expiry', ['2912', '3001']))).toBe('YYMM')
  expect(settledForm(guessColumn('expiry', ['12/2030', '1/2031']))).toBe('MM/YYYY')
})

it('settles nothing where more than one value in twenty could be either', () => {
  const clear = Array.from({ length: 19 }, () => '1229')
  expect(settledForm(guessColumn('expiry', [...clear, '1011']))).toBe('MMYY')
  expect(settledForm(guessColumn('expiry', [...clear.slice(0, 18), '1011']))).toBeUndefined()
  expect(settledForm(guessColumn('expiry', ['soon']))).toBeUndefined()
})
