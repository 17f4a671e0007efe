// Jobs that failed for good, kept for people to look at: a queue `failed-<kind>` that nobody works. A copy has an id of
// its own, so that the job's own id is free for the next try. It doesn't decide what has failed.
import { createHash } from 'node:crypto'
import type { Queues, ReceivedJob } from './engine.ts'

/** As the line writes it; `jobId` is the failed job's own id. */
export interface FailedCopy {
  jws: string
  block?: string
  kind: string
  code: string
  attempt: number
  /** Milliseconds since the epoch. */
  failedAt: number
  jobId: string
}

export interface FailedJob extends FailedCopy {
  /** The copy's id. */
  id: string
  /** Card data were taken out of it. */
  scrubbed: boolean
}

type Stored = FailedCopy & { scrubbed?: true }

const COPIES_MAX = 10_000
const AGE_MS_MAX = 7 * 24 * 3_600_000
const PAGE = 20

const queueOf = (kind: string) => `failed-${kind}`

/** Keeps a copy of `job` and answers its id. Called before the handler answers `failed`, which takes the job itself off. */
export async function moveToFailed(
  queues: Queues,
  kind: string,
  job: Pick<ReceivedJob, 'id' | 'enqueuedAt'>,
  copy: FailedCopy,
): Promise<string> {
  // The same life of the same job gives the same copy: a crash between copy and removal doesn't make two.
  const digest = createHash('sha256').update(`${job.id}\n${job.enqueuedAt}`).digest('base64url')
  const id = `f_${digest}`
  await queues.add(queueOf(kind), { id, data: copy })
  return id
}

/** Oldest first; `start` and `end` inclusive. */
export async function failedList(queues: Queues, kind: string, start = 0, end = COPIES_MAX - 1): Promise<FailedJob[]> {
  const jobs = await queues.list(queueOf(kind), ['waiting'], start, end)
  return jobs.map(({ id, data }) => {
    const { scrubbed, ...copy } = data as Stored
    return { ...copy, id, scrubbed: scrubbed === true }
  })
}

/** Sends a failed job again under its own id. False if there is no such copy. */
export async function failedRetry(queues: Queues, kind: string, id: string): Promise<boolean> {
  const found = await queues.get(queueOf(kind), id)
  if (found === undefined) return false
  const { jws, block, jobId } = found.data as Stored
  await queues.add(kind, { id: jobId, data: { jws, ...(block !== undefined && { block }) } })
  await queues.remove(queueOf(kind), id)
  return true
}

/** Takes card data out of copies older than `olderThanMs` by the caller's `scrub`; answers how many. */
export async function scrubFailed(
  queues: Queues,
  kind: string,
  olderThanMs: number,
  scrub: (copy: FailedCopy) => FailedCopy,
): Promise<number> {
  const before = Date.now() - olderThanMs
  // Copies lie in order of age and are scrubbed oldest first, so that the scrubbed ones are always a prefix of the
  // queue: from the newest backwards, the first scrubbed one ends the search, also after a crash in the middle.
  const due: string[] = []
  const { waiting } = await queues.depth(queueOf(kind))
  search: for (let end = waiting - 1; end >= 0; end -= PAGE) {
    const page = await queues.list(queueOf(kind), ['waiting'], Math.max(0, end - PAGE + 1), end)
    for (const { id, data, timestamp } of page.reverse()) {
      if ((data as Stored).scrubbed) break search
      if (timestamp <= before) due.push(id)
    }
  }
  let count = 0
  for (const id of due.reverse()) {
    const found = await queues.get(queueOf(kind), id)
    if (found === undefined || (found.data as Stored).scrubbed) continue
    if (await queues.update(queueOf(kind), id, { ...scrub(found.data as Stored), scrubbed: true })) count += 1
  }
  return count
}

/** Removes copies beyond 10,000, oldest first, and those older than 7 days; answers how many. */
export async function trimFailed(
  queues: Queues,
  kind: string,
  bounds: { countMax?: number; ageMsMax?: number } = {},
): Promise<number> {
  const { countMax = COPIES_MAX, ageMsMax = AGE_MS_MAX } = bounds
  const before = Date.now() - ageMsMax
  let { waiting } = await queues.depth(queueOf(kind))
  let count = 0
  for (;;) {
    const page = await queues.list(queueOf(kind), ['waiting'], 0, PAGE - 1)
    const due = page.filter(({ timestamp }, i) => timestamp <= before || waiting - i > countMax)
    let removed = 0
    for (const { id } of due) if (await queues.remove(queueOf(kind), id)) removed += 1
    count += removed
    waiting -= due.length
    if (removed < PAGE) return count
  }
}
