import { describe, expect, it } from 'vitest'
import type { BinRange } from '../../src/token/bin.ts'
import { renderGet, renderLifecycle, renderPatch, renderPut } from '../../src/token/render.ts'
import { formatReuseToken } from '../../src/token/token.ts'
import { facts, rowOf, SCOPE, TOKEN_ID } from './samples.ts'

const RANGE: BinRange = {
  id: 1,
  prefix: '411111',
  brand: 'VISA',
  issuerName: 'A Bank',
  issuerCountry: 'LTU',
  type: 'DEBIT',
  variant: 'CLASSIC',
  currency: 'LTL',
}
const row = rowOf({
  expiryMonth: 4,
  expiryYear: 2029,
  cardHolderName: 'A. Holder',
  cardHolderEmail: 'a@example.org',
  tokenType: 'REUSE_AND_ANALYTICS',
  tokenExpiryDate: '2030-01-01',
})
const DETAILS = {
  bin: '41111111',
  brand: 'VISA',
  issuer_country: 'LTU',
  issuer_name: 'A Bank',
  last_four: '1111',
  type: 'DEBIT',
  variant: 'CLASSIC',
}
const COMMON = {
  bin: '41111111',
  expiry_month: 4,
  expiry_year: 2029,
  last_four: '1111',
  card_holder_name: 'A. Holder',
  issuer_country: 'LTU',
  bin_details: DETAILS,
  updated_at: '2026-11-21',
  created_at: '2026-11-21',
  token_expiry_date: '2030-01-01',
  token_status: 'ACTIVE',
}
const NAMES = {
  reuse_token: formatReuseToken(TOKEN_ID),
  analytics_token: facts().analyticsToken,
  reuse_token_type: 'INTERNAL',
  token_scope: SCOPE,
}

describe('a token record', () => {
  it('of PUT holds no e-mail address, no top-level brand and no currency that isn’t current', () => {
    expect(renderPut(row, RANGE)).toStrictEqual({ ...NAMES, ...COMMON })
    expect(renderPut(row, { ...RANGE, currency: 'EUR' })).toStrictEqual({ ...NAMES, ...COMMON, currency: 'EUR' })
  })

  it('names a third party’s token as the third party does, and says whose it is', () => {
    const theirs = { ...row, thirdParty: { type: 'THIRD_PARTY_2', token: 'ext_0123456789' } }
    for (const record of [renderPut(theirs, RANGE), renderGet(theirs, RANGE)])
      expect(record).toMatchObject({ reuse_token: 'ext_0123456789', reuse_token_type: 'THIRD_PARTY_2' })
    expect(renderLifecycle(theirs)).toMatchObject({ id: 'ext_0123456789' })
  })

  it('of GET adds brand and issuer, and legacy currencies', () => {
    const { brand, issuer_name, type, variant } = DETAILS
    expect(renderGet(row, RANGE)).toStrictEqual({
      ...NAMES,
      ...COMMON,
      brand,
      issuer_name,
      type,
      variant,
      currency: 'LTL',
    })
  })

  it('of PATCH is a subset that names no token', () => {
    expect(renderPatch(row, { ...RANGE, currency: 'EUR' })).toStrictEqual({
      ...COMMON,
      card_holder_email: 'a@example.org',
      currency: 'EUR',
    })
  })

  it('of a lifecycle job is the id and the status', () => {
    expect(renderLifecycle(row)).toStrictEqual({ id: NAMES.reuse_token, token_status: 'ACTIVE' })
  })

  it('names a token as its type allows', () => {
    const named = (tokenType: 'REUSE' | 'ANALYTICS') => {
      const { reuse_token, analytics_token } = renderGet(rowOf({ tokenType }), undefined)
      return [reuse_token, analytics_token]
    }
    expect(named('REUSE')).toEqual([NAMES.reuse_token, undefined])
    expect(named('ANALYTICS')).toEqual([undefined, NAMES.analytics_token])
  })

  it('leaves out what isn’t known, but for the issuer’s country, which is ZZZ then', () => {
    const bare = rowOf({}, { brand: null, binRange: null })
    expect(renderPatch(bare, undefined)).toStrictEqual({
      bin: '41111111',
      last_four: '1111',
      issuer_country: 'ZZZ',
      bin_details: { bin: '41111111', issuer_country: 'ZZZ', last_four: '1111' },
      updated_at: '2026-11-21',
      created_at: '2026-11-21',
      token_status: 'ACTIVE',
    })
  })

  it('has issuer_country ZZZ where the BIN table has a range without a country', () => {
    const { issuerCountry: _, ...range } = RANGE
    for (const render of [renderPut, renderPatch, renderGet])
      expect(render(row, range)).toMatchObject({
        issuer_country: 'ZZZ',
        bin_details: { issuer_country: 'ZZZ', issuer_name: 'A Bank' },
      })
  })

  it('of a token that has no card any more names no country', () => {
    const gone = rowOf({}, { status: 'DELETED', bin: null, lastFour: null, brand: null, binRange: null })
    expect(renderGet(gone, undefined)).not.toHaveProperty('issuer_country')
  })
})
