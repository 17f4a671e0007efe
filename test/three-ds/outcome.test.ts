import { describe, expect, it } from 'vitest'
import {
  ECI_CASES,
  ECIS,
  type EciCase,
  type LiabilityFacts,
  liabilityOf,
  type Network,
  networkOf,
} from '../../src/three-ds/outcome.ts'
import { detectBrand } from '../../src/token/brand.ts'

// The expected ECI for each network and case, with a payment and without one.
const MOST = ['05', '06', '07', '07', '07', '07', '07', '05']
const MASTERCARD = ['02', '01', '00', '00', '00', '04', '06', '07']
const MASTERCARD_OTHER = ['N2', 'N0', 'N0', 'N0', 'N0', 'N0', 'N0', 'N2']
const ECI: Record<Network, Record<'01' | '02', string[]>> = {
  VISA: { '01': MOST, '02': MOST },
  AMEX: { '01': MOST, '02': MOST },
  JCB: { '01': MOST, '02': MOST },
  DINERS: { '01': MOST, '02': MOST },
  DISCOVER: { '01': MOST, '02': MOST },
  UPI: { '01': MOST, '02': MOST },
  MASTERCARD: { '01': MASTERCARD, '02': MASTERCARD_OTHER },
  MAESTRO: { '01': MASTERCARD, '02': MASTERCARD_OTHER },
}
const NETWORKS = Object.keys(ECI) as Network[]

describe('the ECI where the directory server named none', () => {
  it('is there for every network, category and case', () => {
    for (const network of NETWORKS)
      for (const category of ['01', '02'] as const)
        expect(
          ECI_CASES.map((one: EciCase) => ECIS[network][category][one]),
          `${network} ${category}`,
        ).toEqual(ECI[network][category])
    expect(Object.keys(ECIS).sort()).toEqual(NETWORKS.sort())
  })
})

const facts = (more: Partial<LiabilityFacts> = {}): LiabilityFacts => ({
  network: 'VISA',
  outcome: 'Y',
  eci: '05',
  hasValue: true,
  isCb: false,
  askedForNone: false,
  challenged: false,
  ...more,
})
const OUTCOMES = ['Y', 'A', 'N', 'U', 'R'] as const
const CODES = ['00', '01', '02', '04', '05', '06', '07', '80', undefined]

describe('liability', () => {
  it.each(NETWORKS)(
    'with %s is the issuer’s for the pairs of outcome and ECI that its network names alone',
    network => {
      const isMastercards = network === 'MASTERCARD' || network === 'MAESTRO'
      const issuers = isMastercards ? ['Y/02', 'Y/07', 'A/01'] : ['Y/05', 'A/06']
      for (const outcome of OUTCOMES)
        for (const eci of CODES)
          expect(liabilityOf(facts({ network, outcome, eci })), `${outcome}/${eci}`).toBe(
            issuers.includes(`${outcome}/${eci}`) ? 'ISSUER' : 'MERCHANT',
          )
    },
  )

  it.each(NETWORKS)('with %s is the merchant’s for every pair without a value', network => {
    for (const outcome of OUTCOMES)
      for (const eci of CODES) expect(liabilityOf(facts({ network, outcome, eci, hasValue: false }))).toBe('MERCHANT')
  })

  it('is nobody’s while a challenge is under way, and where the authentication was for no payment', () => {
    expect(liabilityOf(facts({ outcome: 'C', eci: undefined }))).toBeUndefined()
    for (const eci of ['N2', 'N0'])
      for (const outcome of OUTCOMES)
        expect(liabilityOf(facts({ network: 'MASTERCARD', outcome, eci }))).toBeUndefined()
  })

  it('with Cartes Bancaires is the merchant’s where he asked for no challenge and there was none', () => {
    const cb = { isCb: true, askedForNone: true, challenged: false }
    for (const card of [facts(), facts({ network: 'MASTERCARD', eci: '02' })]) {
      expect(liabilityOf({ ...card, ...cb })).toBe('MERCHANT')
      for (const more of [{ isCb: false }, { askedForNone: false }, { challenged: true }])
        expect(liabilityOf({ ...card, ...cb, ...more })).toBe('ISSUER')
    }
  })
})

describe('Cartes Bancaires', () => {
  it.each([
    ['4000000000003006', 'VISA'],
    ['5200000000003001', 'MASTERCARD'],
  ] as const)('follows its co-badge: %s is of %s', (pan, network) => {
    expect(networkOf(detectBrand(pan))).toBe(network)
  })

  it('without a co-badge is on no network', () => {
    expect(networkOf(undefined)).toBeUndefined()
    expect(networkOf('CB')).toBeUndefined()
  })
})
