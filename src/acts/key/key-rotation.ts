// Replaces a data key in two steps, which may be far apart: a new version is stored PENDING, so that every process loads it;
// once all live ones have, it becomes ACTIVE. Each step locks the purpose's keys, so that two rotations make one new version.
import { assert } from '../../errors.ts'
import { BEAT } from '../../store/access/beat.ts'
import * as dataKeys from '../../store/access/data-keys.ts'
import * as processes from '../../store/access/processes.ts'
import * as installation from '../../store/installation.ts'
import { type Db, LostRace, type Store } from '../../store/pool.ts'
import type { KeyProvider } from '../../vault/kek/provider.ts'
import { makeDataKeys, type Purpose } from '../../vault/ring/key-ring.ts'
import { SHARED_PURPOSES } from '../../vault/ring/shared-keys.ts'
import { type ActResult, type By, type Decided, perform } from '../act.ts'

export const ROTATE = 'data-key.rotate'

export interface Begun {
  version: number
  /** The version in use until then. */
  former: number
  /** False: an earlier run of the command began this rotation. */
  isNew: boolean
}

/** Stores a new PENDING version, unless there is one. Throws `LostRace` if `kek` isn't the current one any more. */
export async function beginRotation(
  { store, kek }: { store: Store; kek: KeyProvider },
  purpose: Purpose,
  by: By,
): Promise<Begun> {
  const found = await findRotation(store, purpose)
  if (found.pending !== undefined) return { version: found.pending, former: found.active, isNew: false }
  // Wrapped before the transaction: a provider may be slow.
  const version = found.newest + 1
  const [key] = await makeDataKeys(kek, [purpose], version)
  const result = await perform<Begun, 'raced'>(store, { action: ROTATE, subject: purpose }, by, async db => {
    // Otherwise the new key could be wrapped by a key-encryption key that was replaced meanwhile, which then couldn't be
    // forgotten. The installation's row is locked first, as in a rotation of the key-encryption key.
    if (key && key.kekId !== (await installation.lockKek(db))) throw new LostRace('the key-encryption key was replaced')
    const now = rotationOf(purpose, await dataKeys.lockPurpose(db, purpose))
    if (!key || now.newest !== found.newest) return { refused: 'raced' }
    await dataKeys.insert(db, { ...key, state: 'PENDING' })
    return { done: { version, former: now.active, isNew: true }, detail: { step: 'begin', version } }
  })
  return 'done' in result ? result.done : beginRotation({ store, kek }, purpose, by)
}

interface Rotation {
  active: number
  newest: number
  pending: number | undefined
}

async function findRotation(store: Db, purpose: Purpose): Promise<Rotation> {
  const keys = await dataKeys.list(store)
  return rotationOf(
    purpose,
    keys.filter(key => key.purpose === purpose),
  )
}

function rotationOf(purpose: Purpose, keys: readonly dataKeys.DataKeyLife[]): Rotation {
  const active = keys.find(key => key.state === 'ACTIVE')
  if (!active) throw new Error(`broken law: ${purpose} has an ACTIVE key`)
  return {
    active: active.version,
    newest: Math.max(...keys.map(key => key.version)),
    pending: keys.find(key => key.state === 'PENDING')?.version,
  }
}

/** Whether a version that was PENDING was dropped: somebody else may have it (compromise.ts). */
export async function isDropped(store: Db, purpose: Purpose, version: number): Promise<boolean> {
  const keys = await dataKeys.list(store)
  return keys.some(key => key.purpose === purpose && key.version === version && key.state === 'DESTROYED')
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
  store: Store,
  { purpose, version, without = [] }: Finish,
  by: By,
): Promise<ActResult<{ former: number }, 'lacking' | 'finished'>> {
  assert(purpose !== 'fingerprint', 'the fingerprint key turns in phases')
  return perform(store, { action: ROTATE, subject: purpose }, by, async db => {
    const { active, pending } = rotationOf(purpose, await dataKeys.lockPurpose(db, purpose))
    if (pending !== version) return { refused: 'finished' }
    const lacking = await listLacking(db, purpose, version)
    const gateways = await listLackingGateways(db, { purpose, version }, without)
    if (lacking.length + gateways.length > 0) return { refused: 'lacking' }
    await dataKeys.retire(db, purpose, active)
    await dataKeys.activate(db, purpose, version)
    const decided: Decided<{ former: number }, 'lacking'> = {
      done: { former: active },
      detail: { step: 'finish', version, former: active, ...(without.length > 0 ? { without } : {}) },
    }
    return decided
  })
}
