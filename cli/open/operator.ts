// Finds who acts, for a command's audit row: the operator whose client file is given, who signs the act; otherwise the
// account of this machine, which proves nothing.
import { hostname } from 'node:os'
import { readCredentials } from '../../producers/client/client-file.ts'
import { type Actor, type By, type Deed, recordEnd } from '../../src/acts/act.ts'
import { proveOperator, signAct } from '../../src/acts/operator.ts'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import { userName } from '../terminal.ts'

export interface OperatorOptions {
  operator?: string
  reason?: string
}

/**
 * The actor and the reason. Throws `ConfigError` for an operator who may not do this. `ring`: given by a command that has
 * the vault's keys, so that the operator's row is checked, too.
 */
export async function byOf(deed: Deed, options: OperatorOptions, db: Db, ring?: KeyRing): Promise<By> {
  const { operator, reason } = options
  if (operator === undefined) return { actor: machineActor(), reason }
  try {
    return { actor: await signed(deed, operator, reason, { db, ring }), reason }
  } catch (error) {
    const { kind, id } = machineActor()
    await recordEnd(db, { actor: `${kind}:${id}`, ...deed, detail: { operator } }, error)
    throw error
  }
}

async function signed(
  deed: Deed,
  path: string,
  reason: string | undefined,
  { db, ring }: { db: Db; ring: KeyRing | undefined },
): Promise<Actor> {
  const { signingKey, audience } = await readCredentials(path)
  const now = systemClock()
  return proveOperator(db, signAct({ ...deed, reason, audience }, signingKey, now), deed, now, ring)
}

/** The account of this machine, which proves nothing. */
export function machineActor(): Actor {
  return { kind: 'machine', id: `${userName()}@${hostname()}` }
}
