// After a database was restored from a backup, or a standby was promoted that lost an act on keys: the stored lives of the keys
// are older than those that processes have seen, and these refuse them. This act says that the stored ones hold: it gives
// them an epoch above all that anybody has seen.
import { BEAT } from '../../store/access/beat.ts'
import * as keyLives from '../../store/access/key-lives.ts'
import { type KeyLife, type KeyLives, proveLives } from '../../vault/ring/key-lives.ts'
import type { KnownLives } from '../../vault/ring/known-lives.ts'
import { type ActResult, type By, perform } from '../act.ts'
import type { UseConfirmation } from '../confirmation.ts'
import type { LivesKeeper } from '../turn-lives.ts'

export const RESTORED = 'key-lives.restored'

/** Acts that processes elsewhere have seen, and this host hasn't. */
const MARGIN = 1_000

export interface Backward {
  /** A key whose life goes back, and how: `seal/2 DECRYPT_ONLY → ACTIVE`. */
  key: string
  /** A destroyed key would come back. */
  isUndestroyed: boolean
}

/** What the stored lives take back of those that this host has seen. */
export function listBackward(seen: Pick<KeyLives, 'keys'>, stored: Pick<KeyLives, 'keys'>): Backward[] {
  const nameOf = ({ purpose, version }: KeyLife) => `${purpose}/${version}`
  const now = new Map(stored.keys.map(key => [nameOf(key), key]))
  return seen.keys.flatMap(key => {
    const other = now.get(nameOf(key))
    if (wordsOf(key) === wordsOf(other)) return []
    const isUndestroyed = key.state === 'DESTROYED' && other !== undefined && other.state !== 'DESTROYED'
    return [{ key: `${nameOf(key)} ${wordsOf(key)} → ${wordsOf(other)}`, isUndestroyed }]
  })
}

function wordsOf(key: KeyLife | undefined): string {
  if (!key) return 'not there'
  const mark = key.ended ? ', compromise ended' : key.compromised === undefined ? '' : ', compromised'
  return `${key.state}${mark}`
}

/** Refused (`current`) if nobody has seen later lives. */
export async function restoreLives(
  { store, keks, installationId, lives }: LivesKeeper,
  { seen, useConfirmation }: { seen: KnownLives; useConfirmation: UseConfirmation },
  by: By,
): Promise<ActResult<{ epoch: number }, 'current' | 'moved' | 'unconfirmed'>> {
  const stored = await lives.read()
  const former = lives.current()?.row.proof ?? Buffer.alloc(0)
  await seen.read().catch(() => undefined)
  const known = seen.current()?.lives
  const highest = Math.max(known?.epoch ?? 0, await keyLives.findHighest(store, BEAT.deadMs))
  const isOlder = highest > stored.epoch || seen.trouble() === 'older'
  const epoch = Math.max(highest, stored.epoch) + MARGIN
  const row = await proveLives(keks.current, installationId, { ...stored, epoch })
  const back = known ? listBackward(known, stored) : []
  return perform<{ epoch: number }, 'current' | 'moved' | 'unconfirmed'>(
    store,
    { action: RESTORED, subject: installationId },
    by,
    async db => {
      if (!isOlder) return { refused: 'current' }
      const confirmed = back.some(one => one.isUndestroyed) ? await useConfirmation(db) : { detail: {} }
      if (!confirmed) return { refused: 'unconfirmed' }
      if (!(await keyLives.replace(db, row, former))) return { refused: 'moved' }
      return { done: { epoch }, detail: { epoch, takes_back: back.map(({ key }) => key), ...confirmed.detail } }
    },
  )
}
