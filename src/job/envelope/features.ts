// Features: words for members of envelopes and requests that not every release understands. A worker of an older
// release refuses an unknown member. So a sender uses such a member only while every live worker announces its word.
import { KINDS } from '../catalogue.ts'

export const FEATURES = [
  /** The claim `traceparent`. */
  'traceparent',
  /** The member `on_file` of requests and records, and its policies. */
  'on_file',
  /** The policy `newest`, and source times. */
  'newest',
  /** The claim `knows_key`. */
  'knows_key',
  /** Blocks of the form `columns`. */
  'columns',
  /** The member `columns` of a chunk of transactions. */
  'ledger_columns',
  /** The claim `result_sets`. */
  'result_sets',
  /** The claim `result_columns`. */
  'result_columns',
] as const
export type Feature = (typeof FEATURES)[number]

/** What a worker process announces about itself, every five seconds. */
export interface Speaking {
  kinds: readonly string[]
  features: readonly string[]
  /** How long ago it last announced itself. */
  silentMs: number
}

export const SPEAKING = {
  /**
   * Two intervals. A process that was silent for longer hangs or is dead, and nobody can tell whether it still listens.
   */
  freshMs: 10_000,
  /**
   * How long a silent process is counted. Until then a process that is silent may still listen; afterwards a listener
   * without an announcement counts as a worker of an older release.
   */
  countedMs: 60_000,
} as const

/**
 * The features that every live worker understands: those that all announce. None if one of them was silent for longer
 * than `SPEAKING.freshMs`, and none unless each queue has exactly as many listeners as announced processes. More
 * listeners mean that a worker of an older release, which announces nothing, is among them. Fewer listeners mean that a
 * process announces itself without listening, which could hide such a worker. `workers`: the processes that announced
 * themselves within `SPEAKING.countedMs` and didn't announce their end.
 */
export async function commonFeatures(
  queues: { workersOfAll(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> },
  workers: readonly Speaking[],
): Promise<string[]> {
  if (workers.some(({ silentMs }) => silentMs > SPEAKING.freshMs)) return []
  const [first, ...others] = workers
  const common = (first?.features ?? []).filter(word => others.every(({ features }) => features.includes(word)))
  // There is nothing to check, so the queue server isn't asked.
  if (common.length === 0) return []
  // All kinds are checked: an older worker may be the only listener of one queue.
  const kinds = [...new Set([...KINDS, ...workers.flatMap(({ kinds }) => kinds)])]
  const listening = await queues.workersOfAll(kinds)
  const speaking = (kind: string) => workers.filter(({ kinds }) => kinds.includes(kind)).length
  return kinds.every(kind => listening?.get(kind) === speaking(kind)) ? common : []
}
