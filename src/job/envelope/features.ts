// What workers understand beyond every release: words for members of envelopes and requests. A worker of an older release
// refuses a member that it doesn't know, so that a sender uses one only while every live worker says its word.
import { KINDS } from '../catalogue.ts'

export const FEATURES = [
  /** The claim `traceparent`. */
  'traceparent',
  /** The member `on_file` of requests and records, and its policies. */
  'on_file',
] as const
export type Feature = (typeof FEATURES)[number]

/** What a worker process says of itself, every five seconds. */
export interface Speaking {
  kinds: readonly string[]
  features: readonly string[]
  /** How long ago it last said so. */
  silentMs: number
}

export const SPEAKING = {
  /** Two beats: whoever was silent for longer hangs or is dead, and nobody can tell whether it listens. */
  freshMs: 10_000,
  /** Until then it may still listen. After that a listener without a fresh word is one too many. */
  countedMs: 60_000,
} as const

/**
 * What every live worker understands: what all say of themselves, and nothing at all unless each queue has as many
 * listeners as have said so. With more of them a worker of a release that doesn't say it is among them, and with fewer
 * somebody says it who doesn't listen, which could hide such a worker. `workers`: those that were silent for
 * `SPEAKING.countedMs` at most and didn't say that they end.
 */
export async function commonFeatures(
  queues: { workersOfAll(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> },
  workers: readonly Speaking[],
): Promise<string[]> {
  if (workers.some(({ silentMs }) => silentMs > SPEAKING.freshMs)) return []
  const [first, ...others] = workers
  const common = (first?.features ?? []).filter(word => others.every(({ features }) => features.includes(word)))
  // Then the queue server needn't be asked.
  if (common.length === 0) return []
  // All kinds: an older worker may be the only one that listens to one of them.
  const kinds = [...new Set([...KINDS, ...workers.flatMap(({ kinds }) => kinds)])]
  const listening = await queues.workersOfAll(kinds)
  const speaking = (kind: string) => workers.filter(({ kinds }) => kinds.includes(kind)).length
  return kinds.every(kind => listening?.get(kind) === speaking(kind)) ? common : []
}
