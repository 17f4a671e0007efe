// Opens what the total of a migration needs: the store, and on the embedded engine workers, because perhaps no other
// process works jobs there.
import type { TotalDeps, TotalProgress } from '../../producers/pack/total.ts'
import { openCommandStore, type Session } from '../open/open.ts'
import { actor, say, type Terminal } from '../terminal.ts'
import { startLocalWorkers } from './local-workers.ts'

export async function openTotal(session: Session, signal?: AbortSignal): Promise<TotalDeps> {
  const { store, database } = await openCommandStore(session)
  if (database.embedded) await startLocalWorkers(session, ['bulk'])
  return { store, actor: actor(), signal }
}

const SAY_EVERY_MS = 5_000

/** Tells the person at the terminal how far the total is. */
export function tellChunks(terminal: Terminal, clock: () => number): (progress: TotalProgress) => void {
  let saidAt = clock()
  return ({ chunks, chunksDone }) => {
    if (clock() - saidAt < SAY_EVERY_MS) return
    saidAt = clock()
    say(terminal, `total: ${chunksDone} of ${chunks} chunks`)
  }
}
