// Country codes of the interface: ISO 3166-1 alpha-3, and ZZZ for "unknown". Country names aren't needed.
import { iso31661 } from 'iso-3166'

export const UNKNOWN_COUNTRY = 'ZZZ'
const COUNTRIES: ReadonlySet<string> = new Set([...iso31661.map(({ alpha3 }) => alpha3), UNKNOWN_COUNTRY])

export function isCountry(alpha3: string): boolean {
  return COUNTRIES.has(alpha3)
}

const NUMBERS: ReadonlyMap<string, string> = new Map(
  iso31661.flatMap(({ alpha2, alpha3, numeric }) => [
    [alpha2, numeric],
    [alpha3, numeric],
  ]),
)

/** The three-digit number of ISO 3166-1 for an alpha-2 or alpha-3 code; undefined for an unknown code. */
export function countryNumber(code: string): string | undefined {
  return NUMBERS.get(code)
}
