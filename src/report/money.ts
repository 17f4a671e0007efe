// Money as text: whole minor units, shown with the decimals of their currency. No floating-point numbers are used.
import { minorUnit } from '../token/currency.ts'

/** `-1234` in EUR: `-12.34`; in JPY: `-1234`. Undefined for an unknown currency or one without a minor unit. */
export function decimal(minor: bigint, currency: string): string | undefined {
  const digits = minorUnit(currency)
  if (digits === undefined) return undefined
  const sign = minor < 0n ? '-' : ''
  const text = (minor < 0n ? -minor : minor).toString().padStart(digits + 1, '0')
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`
}

/** The amount with commas between thousands, for people: `-1,234,567.89`. */
export function grouped(amount: string): string {
  return amount.replace(/^(-?)(\d+)/, (_, sign: string, whole: string) => sign + whole.replace(/\B(?=(\d{3})+$)/g, ','))
}
