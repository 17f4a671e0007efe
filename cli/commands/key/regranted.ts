// What commands say of rows that were coded anew.
import type { Regranted } from '../../../src/acts/grants.ts'

const SHOWN_MAX = 5

export function regrantedText({ done, ungranted }: Regranted): string {
  const anew = `${done} rows that grant rights got codes under the key in use.`
  if (ungranted.length === 0) return anew
  const more = ungranted.length > SHOWN_MAX ? ` and ${ungranted.length - SHOWN_MAX} more` : ''
  return `${anew} ${ungranted.length} got none, because their codes were wrong: ${ungranted.slice(0, SHOWN_MAX).join(', ')}${more}. Find out who writes to the database; workers ignore these rows.`
}
