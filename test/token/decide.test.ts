import { describe, expect, it } from 'vitest'
import { addType } from '../../src/token/card-fields.ts'
import { create, type Given, update } from '../../src/token/decide.ts'
import type { TokenType } from '../../src/token/token.ts'
import {
  batchLine,
  context,
  decided,
  facts,
  NOW,
  printsOf,
  reasonOf,
  rowOf,
  SCOPE,
  stored,
  TOKEN_ID,
} from './samples.ts'

const FULL: Given = {
  expiryMonth: 4,
  expiryYear: 2029,
  cardHolderName: 'A. Holder',
  cardSequence: '1',
  startMonth: 1,
  startYear: 2020,
  cardBrand: 'CB',
  tokenExpiryDate: '2030-01-01',
}
const LATER = { now: NOW + 1000, receiptId: 'receipt-2' }
const put = (row: Parameters<typeof create>[0], given: Given = {}, over: Parameters<typeof facts>[0] = {}) =>
  decided(create(row, given, facts(over), context(LATER)))

describe('the type of a token', () => {
  const law: Record<TokenType, Record<TokenType, TokenType>> = {
    REUSE: { REUSE: 'REUSE', ANALYTICS: 'REUSE_AND_ANALYTICS', REUSE_AND_ANALYTICS: 'REUSE_AND_ANALYTICS' },
    ANALYTICS: { REUSE: 'REUSE_AND_ANALYTICS', ANALYTICS: 'ANALYTICS', REUSE_AND_ANALYTICS: 'REUSE_AND_ANALYTICS' },
    REUSE_AND_ANALYTICS: {
      REUSE: 'REUSE_AND_ANALYTICS',
      ANALYTICS: 'REUSE_AND_ANALYTICS',
      REUSE_AND_ANALYTICS: 'REUSE_AND_ANALYTICS',
    },
  }
  const cells = Object.entries(law).flatMap(([held, row]) =>
    Object.entries(row).map(([given, next]) => [held, given, next]),
  )
  it.each(cells as [TokenType, TokenType, TokenType][])('%s and %s make %s', (held, given, next) => {
    expect(addType(held, given)).toBe(next)
  })
})

describe('a create', () => {
  it('with a token_expiry_date of yesterday is refused, of today it isn’t', () => {
    const refusal = create(undefined, { tokenExpiryDate: '2026-11-20' }, facts(), context())
    expect(refusal).toEqual({ refused: true, reason: 'expiry_past', field: 'body.token_expiry_date' })
    expect(reasonOf(create(undefined, { tokenExpiryDate: '2026-11-21' }, facts(), context()))).toBeUndefined()
  })

  it('of an expired card is accepted', () => {
    expect(put(undefined, { expiryMonth: 1, expiryYear: 2020 })).toMatchObject({
      outcome: 'CREATED',
      row: { status: 'ACTIVE' },
    })
  })

  it('makes an ACTIVE token of version 1 that is to be sealed', () => {
    const verdict = decided(create(undefined, FULL, facts({ brand: 'CB' }), context()))
    expect(verdict).toMatchObject({ outcome: 'CREATED', changed: true, touched: false, marked: false, needsSeal: true })
    expect(verdict.row).toEqual({
      tokenId: TOKEN_ID,
      tokenScope: SCOPE,
      status: 'ACTIVE',
      suspendedReason: null,
      tokenType: 'REUSE',
      cards: facts().fingerprints.kept,
      link: facts().fingerprints,
      sealed: null,
      bin: '41111111',
      lastFour: '1111',
      ...FULL,
      cardHolderEmail: null,
      brand: 'CB',
      binRange: -1,
      analyticsToken: null,
      thirdParty: null,
      createdAt: NOW,
      updatedAt: NOW,
      version: 1,
      lastReceipt: 'receipt-1',
      mark: null,
      givenAt: null,
    })
  })

  it('of a third party’s token keeps no PAN, and takes no other card', () => {
    const thirdParty = { type: 'THIRD_PARTY_1', token: 'ext_0123456789' }
    const made = decided(create(undefined, FULL, facts({ brand: 'CB' }), { ...context(), thirdParty }))
    expect(made).toMatchObject({ needsSeal: false, row: { thirdParty, sealed: null } })
    expect(decided(update(made.row, { cardHolderName: 'B' }, context()))).toMatchObject({
      changed: true,
      row: { thirdParty },
    })
    for (const fingerprints of [facts().fingerprints, printsOf(7)])
      expect(update(made.row, { card: facts({ fingerprints }) }, context())).toMatchObject({
        reason: 'third_party_card',
      })
  })

  it('for ANALYTICS keeps no PAN; without its analytics token it is a defect', () => {
    const verdict = put(undefined, { tokenType: 'ANALYTICS' })
    expect(verdict.needsSeal).toBe(false)
    expect(verdict.row.analyticsToken).toBe(facts().analyticsToken)
    const { analyticsToken: _, ...without } = facts()
    expect(() => create(undefined, { tokenType: 'ANALYTICS' }, without, context())).toThrow('broken law')
  })

  it('of a card that is known, with the same data, changes nothing but the receipt', () => {
    const row = rowOf(FULL)
    const verdict = put(row, FULL)
    expect(verdict).toMatchObject({ outcome: 'UNCHANGED', changed: false, touched: true, needsSeal: false })
    expect(verdict.row).toEqual({ ...row, lastReceipt: 'receipt-2' })
  })

  it('of a card that is known replaces what is given and leaves what is absent', () => {
    const row = rowOf(FULL, { mark: { batchNo: 7, created: true, line: 3, lines: null } })
    const verdict = put(row, { cardHolderName: 'B. Holder' })
    expect(verdict).toMatchObject({ outcome: 'UPDATED', changed: true, touched: false, needsSeal: false })
    const now = { version: 2, updatedAt: LATER.now, lastReceipt: 'receipt-2', mark: null }
    expect(verdict.row).toEqual({ ...row, cardHolderName: 'B. Holder', ...now })
    expect(row.cardHolderName).toBe('A. Holder')
  })

  it('adds REUSE to a token for ANALYTICS, which then is to be sealed', () => {
    const verdict = put(stored(put(undefined, { tokenType: 'ANALYTICS' }).row), { tokenType: 'REUSE' })
    expect(verdict).toMatchObject({ outcome: 'UPDATED', needsSeal: true, row: { tokenType: 'REUSE_AND_ANALYTICS' } })
  })

  it('adds ANALYTICS to a token for REUSE and never takes it away', () => {
    const both = put(rowOf(), { tokenType: 'ANALYTICS' })
    expect(both.row).toMatchObject({ tokenType: 'REUSE_AND_ANALYTICS', analyticsToken: facts().analyticsToken })
    expect(put(both.row, { tokenType: 'REUSE' }).outcome).toBe('UNCHANGED')
  })

  it('leaves a suspended token suspended', () => {
    for (const suspendedReason of ['REQUEST', 'EXPIRED', 'CARD_EXPIRED'] as const) {
      const row = rowOf({}, { status: 'SUSPENDED', suspendedReason })
      expect(put(row, { cardHolderName: 'B' }).row).toMatchObject({ status: 'SUSPENDED', suspendedReason })
    }
  })

  it('with a new token_expiry_date wakes a token that had expired, and no other', () => {
    const wake = (suspendedReason: 'REQUEST' | 'EXPIRED' | 'CARD_EXPIRED') =>
      put(rowOf({}, { status: 'SUSPENDED', suspendedReason, tokenExpiryDate: '2026-01-01' }), {
        tokenExpiryDate: '2027-01-01',
      }).row
    expect(wake('EXPIRED')).toMatchObject({ status: 'ACTIVE', suspendedReason: null })
    expect([wake('REQUEST').status, wake('CARD_EXPIRED').status]).toEqual(['SUSPENDED', 'SUSPENDED'])
  })

  it('keeps a stated brand until another is stated', () => {
    const row = put(undefined, { cardBrand: 'CB' }, { brand: 'CB' }).row
    expect(put(row, { cardHolderName: 'B' }, { brand: 'VISA' }).row).toMatchObject({ brand: 'CB', cardBrand: 'CB' })
    expect(put(row, { cardBrand: 'VISA' }, { brand: 'VISA' }).row).toMatchObject({ brand: 'VISA', cardBrand: 'VISA' })
  })

  it('in a batch judges dates by the moment of acceptance', () => {
    const batch = batchLine(1, { acceptedAt: Date.UTC(2026, 10, 20, 23) })
    const verdict = create(undefined, { tokenExpiryDate: '2026-11-20' }, facts(), context({ batch }))
    expect(reasonOf(verdict)).toBeUndefined()
  })
})

describe('an update', () => {
  const patch = (row: Parameters<typeof update>[0], given: Parameters<typeof update>[1]) =>
    decided(update(row, given, LATER))
  const other = facts({
    fingerprints: printsOf(2),
    bin: '55555555',
    lastFour: '4444',
    brand: 'MASTERCARD',
    binRange: -6,
  })

  it('of a deleted token is a 404; a past date is refused', () => {
    expect(reasonOf(update(rowOf({}, { status: 'DELETED' }), {}, LATER))).toBe('token_not_found')
    expect(reasonOf(update(rowOf(), { tokenExpiryDate: '2026-11-20' }, LATER))).toBe('expiry_past')
  })

  it('with nothing in it changes nothing but the receipt', () => {
    const row = rowOf(FULL)
    const verdict = patch(row, {})
    expect(verdict).toMatchObject({ outcome: 'UNCHANGED', changed: false, touched: true })
    expect(verdict.row).toEqual({ ...row, lastReceipt: 'receipt-2' })
  })

  it('may give one half of a date', () => {
    expect(patch(rowOf(FULL), { expiryMonth: 5 }).row).toMatchObject({ expiryMonth: 5, expiryYear: 2029, version: 2 })
  })

  it('takes an e-mail address', () => {
    expect(patch(rowOf(), { cardHolderEmail: 'a@example.org' })).toMatchObject({
      outcome: 'UPDATED',
      row: { cardHolderEmail: 'a@example.org' },
    })
  })

  it('with the same PAN is an ordinary one', () => {
    expect(patch(rowOf(), { card: facts() })).toMatchObject({ outcome: 'UNCHANGED', needsSeal: false })
    expect(patch(rowOf({ cardBrand: 'CB' }), { card: facts(), cardHolderName: 'B' }).row.cardBrand).toBe('CB')
  })

  it('with a new PAN keeps the token and takes over all that follows from the card', () => {
    const row = rowOf({ ...FULL, tokenType: 'REUSE_AND_ANALYTICS' })
    const verdict = patch(row, { card: { ...other, analyticsToken: 'aB' }, expiryMonth: 4, expiryYear: 2031 })
    expect(verdict).toMatchObject({ outcome: 'UPDATED', needsSeal: true })
    expect(verdict.row).toEqual({
      ...row,
      cards: other.fingerprints.kept,
      link: other.fingerprints,
      bin: '55555555',
      lastFour: '4444',
      brand: 'MASTERCARD',
      cardBrand: null,
      binRange: -6,
      analyticsToken: 'aB',
      sealed: null,
      expiryMonth: 4,
      expiryYear: 2031,
      cardSequence: null,
      startMonth: null,
      startYear: null,
      version: 2,
      updatedAt: LATER.now,
      lastReceipt: 'receipt-2',
      givenAt: verdict.row.givenAt,
    })
  })

  it('with a new PAN alone clears what the former card had, and keeps the name', () => {
    const row = rowOf({ ...FULL, cardHolderEmail: 'a@example.org' })
    const bare = { expiryMonth: null, expiryYear: null, cardSequence: null, startMonth: null, startYear: null }
    expect(patch(row, { card: other }).row).toMatchObject({ ...bare, cards: other.fingerprints.kept })
    expect(patch(row, { card: other }).row).toMatchObject({
      cardHolderName: row.cardHolderName,
      cardHolderEmail: 'a@example.org',
      tokenExpiryDate: row.tokenExpiryDate,
    })
    expect(patch(row, { card: other, cardHolderName: 'B' }).row).toMatchObject({ ...bare, cardHolderName: 'B' })
    expect(patch(row, { card: other, startMonth: 1, startYear: 2020 }).row).toMatchObject({
      ...bare,
      startMonth: 1,
      startYear: 2020,
    })
    expect(patch(row, { card: facts() }).row).toMatchObject({
      expiryMonth: row.expiryMonth,
      expiryYear: row.expiryYear,
    })
  })

  it('with a new PAN takes no half of a date, whose other half would be the former card’s', () => {
    for (const [given, field] of [
      [{ expiryMonth: 5 }, 'body.expiry_year'],
      [{ expiryYear: 2031 }, 'body.expiry_month'],
    ] as const)
      expect(update(rowOf(FULL), { card: other, ...given }, LATER)).toMatchObject({ reason: 'field_required', field })
  })

  it('clears name, e-mail address and the token’s date by null, and is then the same again', () => {
    const row = rowOf({ ...FULL, cardHolderEmail: 'a@example.org', tokenExpiryDate: '2090-01-01' })
    const none = { cardHolderName: null, cardHolderEmail: null, tokenExpiryDate: null }
    const cleared = patch(row, none)
    expect(cleared).toMatchObject({ outcome: 'UPDATED', row: none })
    expect(patch(stored(cleared.row), none).outcome).toBe('UNCHANGED')
    const expired = rowOf({}, { status: 'SUSPENDED', suspendedReason: 'EXPIRED', tokenExpiryDate: '2027-01-01' })
    expect(patch(expired, { tokenExpiryDate: null }).row).toMatchObject({ status: 'ACTIVE', tokenExpiryDate: null })
  })

  it('with a new PAN seals nothing where the token is for ANALYTICS only, and keeps no analytics token where it isn’t', () => {
    const analytics = stored(put(undefined, { tokenType: 'ANALYTICS' }).row)
    expect(patch(analytics, { card: { ...other, analyticsToken: 'aB' } })).toMatchObject({
      needsSeal: false,
      row: { sealed: null, analyticsToken: 'aB' },
    })
    expect(patch(rowOf(), { card: { ...other, analyticsToken: 'aB' } }).row.analyticsToken).toBeNull()
  })

  it('wakes a token that had expired', () => {
    const row = rowOf({}, { status: 'SUSPENDED', suspendedReason: 'EXPIRED', tokenExpiryDate: '2027-01-01' })
    expect(patch(row, { tokenExpiryDate: '2027-01-01' })).toMatchObject({
      outcome: 'UPDATED',
      row: { status: 'ACTIVE' },
    })
  })
})
