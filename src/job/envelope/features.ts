// What workers understand beyond every release: words for members of envelopes and requests. A worker of an older release
// refuses a member that it doesn't know, so that a sender uses one only while every live worker says its word.
export const FEATURES = [
  /** The claim `traceparent`. */
  'traceparent',
] as const
export type Feature = (typeof FEATURES)[number]

/** What a worker process says of itself. */
export interface Speaking {
  kinds: readonly string[]
  features: readonly string[]
}

/** A worker that hangs still counts for as long as its jobs stay its own. */
export const BELIEVED_MS = 60_000

/**
 * What every live worker understands: what all say of themselves, and nothing at all while a queue has more listeners
 * than have said so, for then a worker of a release that doesn't say it is among them.
 */
export async function commonFeatures(
  queues: { workersOf(queue: string): Promise<number | undefined> },
  workers: readonly Speaking[],
): Promise<string[]> {
  const [first, ...others] = workers
  const common = (first?.features ?? []).filter(word => others.every(({ features }) => features.includes(word)))
  // Then the queue server needn't be asked.
  if (common.length === 0) return []
  for (const kind of new Set(workers.flatMap(({ kinds }) => kinds))) {
    const listening = await queues.workersOf(kind)
    if (listening === undefined || listening > workers.filter(({ kinds }) => kinds.includes(kind)).length) return []
  }
  return common
}
