// What may be asked of a scheme token in which state, and what is shown of it to whom.
import { describe, expect, it } from 'vitest'
import {
  isLive,
  renderScheme,
  SCHEME_ACTIONS,
  SCHEME_STATES,
  type SchemeRow,
  SUSPENDED_BY_US,
  stepOf,
} from '../../src/token/scheme.ts'

const row: SchemeRow = {
  provisionId: 'p',
  tokenId: 't',
  tokenScope: 's',
  clientId: 'c',
  provider: 'mdes',
  current: true,
  version: 1,
  background: false,
  state: 'ACTIVE',
  reference: 'r',
  suspendedBy: [],
  lastFour: '4321',
  expiryMonth: 12,
  expiryYear: 2032,
  par: '50012345678901234567890123456',
  refusal: null,
  retiredAt: null,
}
const merchant = { par: true, networkTokens: true, requestor: 'MERCHANT' } as const

describe('what is asked of a scheme token', () => {
  it.each([
    ['none', undefined, ['PROVISION', 'absent', 'absent']],
    ['pending', { ...row, state: 'PENDING' }, ['PROVISION', 'absent', 'retire']],
    ['void', { ...row, state: 'VOID' }, ['PROVISION', 'absent', 'absent']],
    ['inactive', { ...row, state: 'INACTIVE' }, ['stays', 'absent', 'retire']],
    ['active', row, ['stays', 'SUSPEND', 'retire']],
    [
      'suspended by us',
      { ...row, state: 'SUSPENDED', suspendedBy: ['ISSUER', SUSPENDED_BY_US] },
      ['RESUME', 'stays', 'retire'],
    ],
    ['suspended by others', { ...row, state: 'SUSPENDED', suspendedBy: ['ISSUER'] }, ['stays', 'SUSPEND', 'retire']],
    ['deleted', { ...row, state: 'DELETED' }, ['PROVISION', 'absent', 'stays']],
    ['on its way out', { ...row, retiredAt: 1 }, ['PROVISION', 'absent', 'stays']],
  ] as const)('follows from its standing: %s', (_, standing, steps) => {
    expect(SCHEME_ACTIONS.map(action => stepOf(standing as SchemeRow | undefined, action))).toEqual(steps)
  })

  it('is nothing more once nothing of it is at the network', () => {
    expect(SCHEME_STATES.filter(state => isLive({ state, retiredAt: null }))).toEqual([
      'PENDING',
      'INACTIVE',
      'ACTIVE',
      'SUSPENDED',
    ])
    expect(isLive({ state: 'ACTIVE', retiredAt: 5 })).toBe(false)
  })
})

describe('what is shown of a scheme token', () => {
  it('is VALID where the interface says so and ACTIVE where it says that', () => {
    expect(renderScheme({ row, support: merchant }, 'VALID')).toEqual({
      network_token: '************4321',
      status: 'VALID',
      expiry_month: 12,
      expiry_year: 2032,
      payment_account_reference: row.par,
    })
    expect(renderScheme({ row, support: merchant }, 'ACTIVE')?.status).toBe('ACTIVE')
  })

  it('keeps to the lengths of the interface', () => {
    const shown = renderScheme({ row, support: merchant }, 'VALID')
    expect(shown?.network_token?.length).toBeGreaterThanOrEqual(12)
    expect(shown?.network_token?.length).toBeLessThanOrEqual(16)
    expect(shown?.payment_account_reference).toHaveLength(29)
  })

  it('is its status only to who isn’t the merchant, and when it is deleted', () => {
    expect(renderScheme({ row, support: { ...merchant, requestor: 'PSP' } }, 'VALID')).toEqual({ status: 'VALID' })
    expect(renderScheme({ row: { ...row, retiredAt: 1 }, support: merchant }, 'VALID')).toEqual({ status: 'DELETED' })
  })

  it('is nothing while there is nothing', () => {
    for (const state of ['PENDING', 'VOID'] as const)
      expect(renderScheme({ row: { ...row, state, reference: null }, support: merchant }, 'VALID')).toBeUndefined()
  })

  it('is SUSPENDED while the network waits for its cardholder', () => {
    expect(renderScheme({ row: { ...row, state: 'INACTIVE' }, support: merchant }, 'VALID')?.status).toBe('SUSPENDED')
  })
})
