// Refuses a run of `submit` while another one sends the same file: it would discard the other's answers and take new
// ones away from it. The other run is found by its listener on the results queue, so this works between hosts, and
// nothing stays behind after a crash. It isn't a lock: two runs that begin in the same moment don't see each other.
import { setTimeout as pause } from 'node:timers/promises'
import type { Queues } from '../../src/queue/engine.ts'
import { untilSent } from '../client/bulk.ts'
import { FileError } from '../rows/file-error.ts'

// The queue server may still count the listener of a run that has just ended.
const LOOKS = 5
const LOOK_MS = 200

export interface OtherRun {
  file: string
  /** The results queue, whose name is computed from the file's content. */
  queue: string
  signal: AbortSignal
}

/**
 * Throws a FileError if somebody listens on the results queue. Says nothing if this user may not see listeners. Waits
 * while the queue server is away.
 */
export async function refuseOtherRun(
  queues: Pick<Queues, 'workersOf'>,
  { file, queue, signal }: OtherRun,
): Promise<void> {
  for (let look = 1; look <= LOOKS; look += 1) {
    if (look > 1) await pause(LOOK_MS)
    const listening = await untilSent(() => queues.workersOf(queue), signal).catch(() => undefined)
    if (!listening) return
  }
  const next = `Wait until it has ended, or stop it, and run the same command again. Nobody else may read the results queue ${queue} meanwhile.`
  throw new FileError('output', `Another run sends ${file}, or a file of the same content.`, next)
}
