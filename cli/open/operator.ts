// Who acts, for a command's audit row: the operator whose client file is given and who signs each act; otherwise the
// account of this machine, which proves nothing.
import { hostname, userInfo } from 'node:os'
import { readCredentials } from '../../producers/client-file.ts'
import type { Actor, By, Deed } from '../../src/acts/act.ts'
import { proveOperator, signAct } from '../../src/acts/operator.ts'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/store/pool.ts'

export interface OperatorOptions {
  operator?: string
  reason?: string
}

/** The actor and the reason. Throws `ConfigError` for an operator who may not do this. */
export async function byOf(deed: Deed, { operator, reason }: OperatorOptions, db: Db): Promise<By> {
  return { actor: operator === undefined ? machineActor() : await signed(deed, operator, reason, db), reason }
}

async function signed(deed: Deed, path: string, reason: string | undefined, db: Db): Promise<Actor> {
  const { signingKey, audience } = await readCredentials(path)
  const now = systemClock()
  return proveOperator(db, signAct({ ...deed, reason, audience }, signingKey, now), deed, now)
}

function machineActor(): Actor {
  return { kind: 'machine', id: `${userName()}@${hostname()}` }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // An account may have no name, as in containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
