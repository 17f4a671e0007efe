// The part of `tokenmill key compromise` for `fingerprint`: replaces this key in phases. It lists what a version
// exposed after the last process has ceased to write under the version, and before workers remove the fingerprints
// under it.
import type { By } from '../../../src/acts/act.ts'
import { ROTATE } from '../../../src/acts/key/key-rotation.ts'
import { beginReseal, RESEAL } from '../../../src/acts/key/reseal.ts'
import type { LivesKeeper } from '../../../src/acts/turn-lives.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { Stop } from '../../exit.ts'
import type { Terminal } from '../../terminal.ts'
import { begin, follow } from './rotate-fingerprint.ts'

const PURPOSE = 'fingerprint'

interface Replacing {
  by: (action: string) => Promise<By>
  /** Lists what the version exposed, once. */
  list: () => Promise<void>
}

/**
 * Replaces the key until no card is written under the version, and the phase is SINGLE. If the command was killed, it
 * continues in the phase that was reached. If a rotation was under way, it ends that rotation.
 */
export async function replaceInPhases(
  terminal: Terminal,
  vault: LivesKeeper,
  version: number,
  { by, list }: Replacing,
): Promise<void> {
  for (;;) {
    const { phase, writes } = (await vault.lives.read()).phase
    const isWritten = writes.includes(version)
    if (!isWritten) {
      await list()
      await letRemove(vault.store, by)
      if (phase === 'SINGLE') return
    }
    if (phase === 'SINGLE') await begin(terminal, vault, await by(ROTATE))
    else await follow(terminal, vault, await by(ROTATE), phase === 'BOTH' ? 'NEW' : 'SINGLE')
  }
}

/** Lets the workers remove the former fingerprints, which waited for the list. */
async function letRemove(store: Store, by: Replacing['by']): Promise<void> {
  if ((await reseals.find(store, PURPOSE))?.state !== 'CANCELLED') return
  const begun = await beginReseal(store, PURPOSE, await by(RESEAL))
  if ('refused' in begun && begun.refused === 'lacking')
    throw new Stop('a process does not hold the fingerprint key in use; `tokenmill status` names it. Run this again.')
}
