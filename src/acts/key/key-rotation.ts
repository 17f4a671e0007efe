// Replaces a data key in two steps, which may be far apart: a new version is stored PENDING, so that every process loads it;
// once all live ones have, it becomes ACTIVE. Of two rotations at once the later one sees what the other has done.
import { assert } from '../../errors.ts'
import { BEAT } from '../../store/access/beat.ts'
import * as dataKeys from '../../store/access/data-keys.ts'
import * as processes from '../../store/access/processes.ts'
import * as installation from '../../store/installation.ts'
import { type Db, LostRace } from '../../store/pool.ts'
import { activating, adding, type KeyLife, livesOf, withKeys } from '../../vault/ring/key-lives.ts'
import { makeDataKeys, type Purpose, type WrappedKey } from '../../vault/ring/key-ring.ts'
import { SHARED_PURPOSES } from '../../vault/ring/shared-keys.ts'
import type { ActResult, By, Decided } from '../act.ts'
import { type LivesKeeper, turnLives } from '../turn-lives.ts'

export const ROTATE = 'data-key.rotate'

export interface Begun {
  version: number
  /** The version in use until then. */
  former: number
  /** False: an earlier run of the command began this rotation. */
  isNew: boolean
}

/** Stores a new PENDING version, unless there is one. Throws `LostRace` if the KEK was replaced meanwhile. */
export async function beginRotation(keeper: LivesKeeper, purpose: Purpose, by: By): Promise<Begun> {
  const begun = async (): Promise<Begun | undefined> => {
    const { pending, active } = rotationOf(purpose, livesOf(await keeper.lives.read(), purpose))
    return pending === undefined ? undefined : { version: pending, former: active, isNew: false }
  }
  const found = await begun()
  if (found) return found
  let key: WrappedKey | undefined
  const result = await turnLives<Begun, 'begun'>(keeper, { action: ROTATE, subject: purpose }, by, {
    plan: async now => {
      const { newest, pending } = rotationOf(purpose, livesOf(now, purpose))
      if (pending !== undefined)
        return 'begun'
        // Wrapped before the transaction: a provider may be slow.
      ;[key] = await makeDataKeys(keeper.keks.current, [purpose], newest + 1)
      return withKeys(now, purpose, adding(purpose, newest + 1))
    },
    effect: async (db, { before }) => {
      assert(key, 'it was planned')
      // Otherwise the new key could be wrapped by a key-encryption key that was replaced meanwhile, which then couldn't be
      // forgotten.
      if (key.kekId !== (await installation.lockKek(db))) throw new LostRace('the key-encryption key was replaced')
      await dataKeys.insert(db, { ...key, state: 'PENDING' })
      const { active } = rotationOf(purpose, livesOf(before, purpose))
      const { version } = key
      return { done: { version, former: active, isNew: true }, detail: { step: 'begin', version } }
    },
  })
  if ('done' in result) return result.done
  return (await begun()) ?? beginRotation(keeper, purpose, by)
}

interface Rotation {
  active: number
  newest: number
  pending: number | undefined
}

function rotationOf(purpose: Purpose, keys: readonly KeyLife[]): Rotation {
  const active = keys.find(key => key.state === 'ACTIVE')
  if (!active) throw new Error(`broken law: ${purpose} has an ACTIVE key`)
  return {
    active: active.version,
    newest: Math.max(...keys.map(key => key.version)),
    pending: keys.find(key => key.state === 'PENDING')?.version,
  }
}

/** Whether a version that was PENDING was dropped: somebody else may have it (compromise.ts). */
export async function isDropped(
  { lives }: Pick<LivesKeeper, 'lives'>,
  purpose: Purpose,
  version: number,
): Promise<boolean> {
  return livesOf(await lives.read(), purpose).some(key => key.version === version && key.state === 'DESTROYED')
}

/** The live processes that open the vault and don't hold this version. */
export function listLacking(db: Db, purpose: string, version: number): Promise<processes.ProcessRow[]> {
  return processes.listLacking(db, `${purpose}/${version}`, BEAT.deadMs)
}

/** Gateways for which nobody waits: those with these process ids, or all. */
export type WithoutGateways = readonly string[] | 'all'

/**
 * The live gateways that don't say that they hold this version, of a purpose whose keys gateways may know. A gateway's host is
 * less trusted than a worker's: whoever has it can say so for ever. Therefore only an operator's rotation asks for them, and
 * the operator can go on without them. A gateway reads a version that it lacks for the first request that needs it.
 */
export async function listLackingGateways(
  db: Db,
  { purpose, version }: { purpose: string; version: number },
  without: WithoutGateways = [],
): Promise<processes.ProcessRow[]> {
  if (without === 'all' || !SHARED_PURPOSES.some(name => name === purpose)) return []
  const lacking = await processes.listLacking(db, `${purpose}/${version}`, BEAT.deadMs, ['gateway'])
  return lacking.filter(({ processId }) => !without.includes(processId))
}

interface Finish {
  purpose: Purpose
  version: number
  without?: WithoutGateways
}

/** Makes the PENDING version ACTIVE, and the former one DECRYPT_ONLY. Refused if a live process lacks the new version. */
export function finishRotation(
  keeper: LivesKeeper,
  { purpose, version, without = [] }: Finish,
  by: By,
): Promise<ActResult<{ former: number }, 'lacking' | 'finished'>> {
  assert(purpose !== 'fingerprint', 'the fingerprint key turns in phases')
  return turnLives<{ former: number }, 'lacking' | 'finished'>(keeper, { action: ROTATE, subject: purpose }, by, {
    plan: now =>
      rotationOf(purpose, livesOf(now, purpose)).pending === version
        ? withKeys(now, purpose, activating(version))
        : 'finished',
    effect: async (db, { before }): Promise<Decided<{ former: number }, 'lacking'>> => {
      const lacking = await listLacking(db, purpose, version)
      const gateways = await listLackingGateways(db, { purpose, version }, without)
      if (lacking.length + gateways.length > 0) return { refused: 'lacking' }
      const former = rotationOf(purpose, livesOf(before, purpose)).active
      return {
        done: { former },
        detail: { step: 'finish', version, former, ...(without.length > 0 ? { without } : {}) },
      }
    },
  })
}
