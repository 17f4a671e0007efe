// What one run of a mix measured.
import type { Line } from '../line.ts'
import type { FormCounts } from './forms.ts'

/** `processor` and `perSecond` are the mix's; `case` begins with `content`. */
export interface ContentLine extends Line {
  perSecond: number
  basePerSecond: number
  baseProcessor: Line['processor']
  barePerSecond: number
  /** One job and `INSERT` a card, with 50 jobs at once; on Redis, and of this checkout. */
  naivePerSecond: number | undefined
  /** Undefined in a checkout whose workers don't count them. */
  forms: FormCounts | undefined
}
