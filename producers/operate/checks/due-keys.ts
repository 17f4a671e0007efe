// What `status` says of keys that should be replaced.
import type { DueKey } from '../../../src/acts/key/due-keys.ts'
import type { ExpiringKey } from '../../../src/acts/key/expiring-keys.ts'
import { dateOf } from '../../../src/clock.ts'
import { type Verdict, warning, well } from '../check.ts'

const ROTATIONS = { kek: 'key rotate kek --to ID', 'signing-key': 'key rotate signing' } as const

/** `says`: what is said if no key is due. `expiring`: of its data keys `due` says more. */
export function judgeDue(due: readonly DueKey[], expiring: readonly ExpiringKey[], says: string): Verdict {
  const others = expiring.flatMap(({ key, kind, replaceBy }) => (kind === 'data-key' ? [] : [{ key, kind, replaceBy }]))
  if (due.length + others.length === 0) return well(says)
  const words = due.map(({ purpose, version, why, replaceBy }) =>
    why === 'seals'
      ? `${purpose}/${version} has made half of the seals that a key may make`
      : `${purpose}/${version} should be replaced by ${dateOf(replaceBy)}`,
  )
  words.push(...others.map(({ key, replaceBy }) => `${key} should be replaced by ${dateOf(replaceBy)}`))
  const turning = due.filter(({ turns }) => turns).map(({ purpose }) => `\`tokenmill key rotate ${purpose}\``)
  turning.push(...others.map(({ kind }) => `\`tokenmill ${ROTATIONS[kind]}\``))
  return warning(words.join('; '), turning.join(', ') || 'a later release can replace it')
}
