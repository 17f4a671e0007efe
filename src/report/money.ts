// Money as text: whole minor units, shown with the digits of their currency. Never a floating-point number.
import { minorUnit } from '../token/currency.ts'

/** `-1234` in EUR: `-12.34`; in JPY: `-1234`. Undefined for a currency without a minor unit. */
export function decimal(minor: bigint, currency: string): string | undefined {
  const digits = minorUnit(currency)
  if (digits === undefined) return undefined
  const sign = minor < 0n ? '-' : ''
  const text = (minor < 0n ? -minor : minor).toString().padStart(digits + 1, '0')
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`
}

/** With a thin grouping of thousands, for a reader's eye: `-1,234,567.89`. */
export function grouped(amount: string): string {
  return amount.replace(/^(-?)(\d+)/, (_, sign: string, whole: string) => sign + whole.replace(/\B(?=(\d{3})+$)/g, ','))
}
