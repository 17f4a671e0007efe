// Replaces a data key that has made its share of seals, as `tokenmill key rotate` does. Every worker looks; the locks of
// the rotation's steps make sure that only one of them does it.
import { hostname } from 'node:os'
import type { By } from '../../src/acts/act.ts'
import { listDue } from '../../src/acts/key/due-keys.ts'
import { beginRotation, finishRotation } from '../../src/acts/key/key-rotation.ts'
import { shareKeys } from '../../src/acts/role-keys.ts'
import type { LivesKeeper } from '../../src/acts/turn-lives.ts'
import { systemClock } from '../../src/clock.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import type { LiveRing, Purpose } from '../../src/vault/ring/key-ring.ts'

const LOOK_MS = 60_000

interface Rotating extends LivesKeeper {
  ring: LiveRing
  log: Logger
}

/** Returns a function that ends it. */
export function watchFullKeys(rotating: Rotating): () => Promise<void> {
  return every(LOOK_MS, () => replaceFullKeys(rotating), rotating)
}

/** Begins or finishes the rotation of each full key. It ends in a later call if a process doesn't hold the new key yet. */
export async function replaceFullKeys(rotating: Rotating): Promise<void> {
  const due = await listDue(rotating.store, systemClock())
  const actor = { kind: 'machine', id: `worker@${hostname()}` } as const
  const by: By = { actor, reason: 'it has made its share of seals', isAutomatic: true }
  for (const { purpose } of due.filter(({ why, turns }) => turns && why === 'seals'))
    await replace(rotating, purpose, by)
}

async function replace(rotating: Rotating, purpose: Purpose, by: By): Promise<void> {
  const { store, ring, log } = rotating
  const { version, isNew } = await beginRotation(rotating, purpose, by)
  if (isNew) log.info({ purpose, version }, 'a data key has made its share of seals; a new one is made')
  await ring.refresh()
  await shareKeys(store, ring)
  // A gateway's word must not keep a full key in use: no operator is here who could go on without that gateway.
  const ended = await finishRotation(rotating, { purpose, version, without: 'all' }, by)
  if ('done' in ended) log.info({ purpose, version }, 'a data key was replaced')
}
