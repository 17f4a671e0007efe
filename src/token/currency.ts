// The currencies of ISO 4217 and the number of digits of their minor units. The platform's own table (Intl) isn't used,
// because it differs from ISO for 16 current currencies.
import currencyCodes from 'currency-codes'

// The package dates from June 2024 and still has Cuba's convertible peso, which was withdrawn in June 2021. Changes
// since June 2024: the Caribbean guilder replaced the Antillean guilder, the Arab accounting dinar was added, the euro
// replaced the lev.
const ADDED: Readonly<Record<string, number>> = { XCG: 2, XAD: 2 }
const WITHDRAWN: ReadonlySet<string> = new Set(['ANG', 'BGN', 'CUC'])

/**
 * Metals, bond units, drawing rights and codes for "no currency" have no minor unit; the package gives them 0 digits.
 */
const UNITLESS: ReadonlySet<string> = new Set(['XDR', 'XSU', 'XUA'])

function currentCodes(): ReadonlyMap<string, number | undefined> {
  const known = currencyCodes.data.filter(({ code }) => !WITHDRAWN.has(code))
  return new Map([
    ...known.map(({ code, digits, countries }) => {
      const unitless = UNITLESS.has(code) || countries.some(country => country.startsWith('Zz'))
      return [code, unitless ? undefined : digits] as const
    }),
    ...Object.entries(ADDED),
  ])
}

const CURRENT = currentCodes()

/** Old codes that a GET may still answer. BTC was never an ISO code, but the interface lists it. */
const LEGACY: Readonly<Record<string, number>> = {
  ...minorUnits(0, 'BYR'),
  ...minorUnits(2, 'LTL LVL MRO STD USS VEF ZMK'),
  ...minorUnits(8, 'BTC'),
  // Currencies that the euro replaced.
  ...minorUnits(0, 'BEF ESP GRD ITL LUF PTE'),
  ...minorUnits(2, 'ATS BGN CYP DEM EEK FIM FRF HRK IEP MTL NLG SIT SKK'),
  // Currencies withdrawn since 2020.
  ...minorUnits(2, 'ANG CUC SLL ZWL'),
}

function minorUnits(digits: number, codes: string): Record<string, number> {
  return Object.fromEntries(codes.split(' ').map(code => [code, digits]))
}

/** `current`: codes that PUT and PATCH may hold; `with-legacy`: codes that GET may answer. */
export type CurrencyList = 'current' | 'with-legacy'

export function isCurrency(code: string, list: CurrencyList): boolean {
  return CURRENT.has(code) || (list === 'with-legacy' && Object.hasOwn(LEGACY, code))
}

/** Digits of the minor unit: 0, 2, 3 or 4 for current codes; undefined for unknown codes and codes without a minor unit. */
export function minorUnit(code: string): number | undefined {
  return CURRENT.has(code) ? CURRENT.get(code) : Object.hasOwn(LEGACY, code) ? LEGACY[code] : undefined
}

/** The codes of a list, sorted. */
export function currencies(list: CurrencyList = 'current'): string[] {
  return [...new Set([...CURRENT.keys(), ...(list === 'with-legacy' ? Object.keys(LEGACY) : [])])].sort()
}

const ADDED_NUMBERS: Readonly<Record<string, string>> = { XCG: '532', XAD: '396' }

/** The three-digit number of ISO 4217 for a code of the current list; undefined for any other code. */
export function currencyNumber(code: string): string | undefined {
  if (!CURRENT.has(code)) return undefined
  return ADDED_NUMBERS[code] ?? currencyCodes.code(code)?.number
}
