// What a later release of this major may add, and what workers and senders of two releases owe each other. It is said
// here alone.
//
// - What doesn't decide goes into the envelope's member `optional`: a worker ignores what it doesn't know there.
// - What decides is a member of its own, and has a word, a *feature*. A worker of an older release refuses the member
//   before a receipt. A sender uses it only while every live worker announces its word, and falls back once where a worker
//   refuses it nevertheless, because an older worker may have started since: the same job is sent without the member. A
//   job that was on the queue twice may have been done in the new form and be refused in the other one as another request;
//   the first form then gets the answer from the receipt (producers/client/in-form.ts).
// - Results, events and error bodies of a newer release may have members, reasons, outcomes and types that aren't known
//   here. Readers pass on what they can, and treat the rest as unknown.
// - The schema of the store may be of a later release (src/store/schema.ts).

/** The words that workers of this release announce. Of 1.0 every worker knows the same, so it needs none. */
export const FEATURES: readonly string[] = []

/** What to do where workers refuse what a command sends. */
export const UPGRADE_WORKERS = 'The workers are of an older release than this command: have them upgraded first.'

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
 * themselves within `SPEAKING.countedMs` and didn't announce their end;
 * `known`: all kinds of this release.
 */
export async function commonFeatures(
  queues: { workersOfAll(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> },
  workers: readonly Speaking[],
  known: readonly string[],
): Promise<string[]> {
  if (workers.some(({ silentMs }) => silentMs > SPEAKING.freshMs)) return []
  const [first, ...others] = workers
  const common = (first?.features ?? []).filter(word => others.every(({ features }) => features.includes(word)))
  // There is nothing to check, so the queue server isn't asked.
  if (common.length === 0) return []
  // All kinds are checked: an older worker may be the only listener of one queue.
  const kinds = [...new Set([...known, ...workers.flatMap(({ kinds }) => kinds)])]
  const listening = await queues.workersOfAll(kinds)
  const speaking = (kind: string) => workers.filter(({ kinds }) => kinds.includes(kind)).length
  return kinds.every(kind => listening?.get(kind) === speaking(kind)) ? common : []
}
