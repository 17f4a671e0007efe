import { describe, expect, it } from 'vitest'
import {
  isCavv,
  MEANINGS,
  type Network,
  networkOf,
  OUTCOMES,
  type Outcome,
  shiftsLiability,
} from '../../src/three-ds/outcome.ts'
import { provesEnough } from '../../src/three-ds/settle.ts'
import { detectBrand } from '../../src/token/brand.ts'
import { makeRecord } from './samples.ts'

// Written down from the facts, cell by cell: brand → ECI of Y, A, N, U, R.
const ECI: Record<Network, Record<Exclude<Outcome, 'C'>, string>> = {
  VISA: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  AMEX: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  JCB: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  DINERS: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  DISCOVER: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  UPI: { Y: '05', A: '06', N: '07', U: '07', R: '07' },
  MASTERCARD: { Y: '02', A: '01', N: '00', U: '00', R: '00' },
  MAESTRO: { Y: '02', A: '01', N: '00', U: '00', R: '00' },
}
const CELLS = Object.entries(ECI).flatMap(([network, by]) =>
  Object.entries(by).map(
    ([outcome, eci]) => ({ network, outcome, eci }) as { network: Network; outcome: 'Y'; eci: string },
  ),
)

describe('the meaning of an outcome', () => {
  it('is there for every network and outcome', () => {
    expect(Object.keys(MEANINGS).sort()).toEqual(Object.keys(ECI).sort())
    for (const meanings of Object.values(MEANINGS)) expect(Object.keys(meanings).sort()).toEqual([...OUTCOMES].sort())
  })

  it.each(CELLS)('of $outcome with $network has ECI $eci', ({ network, outcome, eci }) => {
    expect(MEANINGS[network][outcome].eci).toBe(eci)
  })

  it.each(CELLS)('of $outcome with $network has a CAVV and shifts liability only with Y and A', cell => {
    const isProven = ['Y', 'A'].includes(cell.outcome)
    const meaning = MEANINGS[cell.network][cell.outcome]
    expect(meaning.cavv).toBe(isProven)
    expect(meaning.liability).toBe(isProven ? 'ISSUER' : 'MERCHANT')
    expect(shiftsLiability({ enrolled: 'Y', signature: 'Y', outcome: cell.outcome })).toBe(isProven)
    expect(meaning.advice).toBe((cell.outcome as string) === 'R' ? 'NEVER' : 'AUTHORISE')
  })

  it('of a challenge under way is nothing yet', () => {
    for (const network of Object.keys(ECI) as Network[])
      expect(MEANINGS[network].C).toMatchObject({ eci: undefined, cavv: false, liability: undefined, advice: 'WAIT' })
  })

  it('shifts no liability without enrolment and signature', () => {
    for (const outcome of ['Y', 'A'])
      for (const [enrolled, signature] of [
        ['N', 'Y'],
        ['U', 'Y'],
        ['B', 'Y'],
        ['Y', 'N'],
      ] as const)
        expect(shiftsLiability({ enrolled, signature, outcome })).toBe(false)
    expect(shiftsLiability({ enrolled: 'Y', outcome: 'Y' })).toBe(false)
  })
})

describe('Cartes Bancaires', () => {
  it.each([
    ['4000000000003006', 'VISA', '05'],
    ['5200000000003001', 'MASTERCARD', '02'],
  ] as const)('follows its co-badge: %s has the ECI of %s', (pan, network, eci) => {
    const found = networkOf(detectBrand(pan))
    expect(found).toBe(network)
    expect(MEANINGS[network].Y.eci).toBe(eci)
  })

  it('without a co-badge is on no network', () => {
    expect(networkOf(undefined)).toBeUndefined()
    expect(networkOf('CB')).toBeUndefined()
  })
})

describe('a CAVV', () => {
  it('is 20 bytes (or 24) in base64 or hex, and nothing else', () => {
    for (const bytes of [20, 24]) {
      expect(isCavv(Buffer.alloc(bytes, 1).toString('base64'))).toBe(true)
      expect(isCavv(Buffer.alloc(bytes, 1).toString('hex'))).toBe(true)
    }
    for (const wrong of [
      '',
      'AA==',
      Buffer.alloc(21).toString('base64'),
      `${'A'.repeat(27)}\n`,
      'g'.repeat(40),
      'a'.repeat(39),
    ])
      expect(isCavv(wrong), wrong).toBe(false)
  })

  it('must come with Y and A of a payment, may come with them otherwise, and is asked of no other outcome', () => {
    const payment = makeRecord()
    const other = makeRecord({ messageCategory: '02' })
    for (const outcome of ['Y', 'A'] as const) {
      expect(provesEnough(payment, outcome, undefined)).toBe(false)
      expect(provesEnough(payment, outcome, 'short')).toBe(false)
      expect(provesEnough(other, outcome, undefined)).toBe(true)
      expect(provesEnough(other, outcome, 'short')).toBe(false)
    }
    for (const outcome of ['N', 'U', 'R', 'C', 'I'] as const)
      expect(provesEnough(payment, outcome, undefined)).toBe(true)
  })
})
