// The failed set: copies of jobs that failed for good, in a queue `failed-<kind>` that no worker reads. A copy has its
// own id, so that the job's id is free when the job is sent again. The workers decide when a job has failed for good.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ListedJob, Queues, ReceivedJob } from './engine.ts'

/** The copy of a failed job, as a worker writes it. */
const FailedCopy = z.object({
  jws: z.string(),
  block: z.string().exactOptional(),
  kind: z.string(),
  /** The fault's code. */
  code: z.string().regex(/^[a-z_]{1,40}$/),
  attempt: z.number(),
  /** Milliseconds since the epoch. */
  failedAt: z.number(),
  /** The failed job's own id. */
  jobId: z.string(),
  /** The client that sent the job. */
  clientId: z.string(),
  /** Absent if a name could hold a card number; so is the reference. */
  jti: z.string().exactOptional(),
  reference: z.string().exactOptional(),
})
export type FailedCopy = z.infer<typeof FailedCopy>
const COPY_ID = /^f_[A-Za-z0-9_-]{43}$/
/** The copy as the queue stores it. */
const StoredCopy = z.object({
  id: z.string().regex(COPY_ID),
  data: FailedCopy.extend({ scrubbed: z.literal(true).optional() }),
})

export interface FailedJob extends FailedCopy {
  /** The copy's id. */
  id: string
  /** Card data were removed from it. */
  scrubbed: boolean
}

const COPIES_MAX = 10_000
const AGE_MS_MAX = 7 * 24 * 3_600_000
const PAGE = 20
/** By how much a copy may be older than one that arrived before it, in ms. */
const DISORDER_MS_MAX = 3_600_000
/** Of copies that hold a block, which may be megabytes. */
const BLOCK_PAGE = 2
/** Of the sweeps, which keep nothing of a page but ids. */
const SWEEP_PAGE = 50
/** How many copies are removed at the same time. */
const HANDS = 10

const queueOf = (kind: string) => `failed-${kind}`
/**
 * Made of the job's id and the time when the job was queued. A job that is queued again and fails again gets another
 * copy.
 */
const copyId = ({ id, enqueuedAt }: Pick<ReceivedJob, 'id' | 'enqueuedAt'>) =>
  `f_${createHash('sha256').update(`${id}\n${enqueuedAt}`).digest('base64url')}`
/**
 * Undefined for a job without the form of a copy: anybody who may write to the server can add a job to this queue. A
 * job of the right form is still no proof of who wrote it, but its id and its code are safe to print.
 */
const storedCopyOf = ({ id, data }: Pick<ListedJob, 'id' | 'data'>) => StoredCopy.safeParse({ id, data }).data?.data
/** The size of a sweep's next page. How large copies are is known once some were read. */
const sweepPageAfter = (jobs: readonly ListedJob[]) =>
  jobs.some(({ data }) => (data as { block?: unknown } | undefined)?.block !== undefined) ? BLOCK_PAGE : SWEEP_PAGE

/**
 * Makes a copy of `job` and returns the copy's id. The worker calls it before its handler returns `failed`, which
 * removes the job itself.
 */
export async function moveToFailed(
  queues: Queues,
  kind: string,
  job: Pick<ReceivedJob, 'id' | 'enqueuedAt'>,
  copy: FailedCopy,
): Promise<string> {
  // If the worker crashes between copy and removal, the job fails again with the same id and time, so there is still
  // one copy.
  const id = copyId(job)
  await queues.add(queueOf(kind), { id, data: copy })
  return id
}

function failedJobOf(job: Pick<ListedJob, 'id' | 'data'>): FailedJob | undefined {
  const stored = storedCopyOf(job)
  if (!stored) return undefined
  const { scrubbed, ...copy } = stored
  return { ...copy, id: job.id, scrubbed: scrubbed === true }
}

/** Copies, oldest first; `start` and `end` are inclusive. */
export async function failedList(queues: Queues, kind: string, start = 0, end = COPIES_MAX - 1): Promise<FailedJob[]> {
  const jobs = await queues.list(queueOf(kind), ['waiting'], start, end)
  return jobs.flatMap(job => failedJobOf(job) ?? [])
}

/** A copy and how many older ones there were when it was read. */
export interface PlacedCopy {
  copy: FailedJob
  older: number
}

/**
 * Yields each copy once, newest first. Copies hold whole jobs, so only one page is in memory. Going from the newest
 * backwards skips no copy when older ones are removed meanwhile. `before`: leaves out those that failed at this moment or
 * later, in ms since the epoch; copies are in about the order in which the jobs failed. `oldest`: leaves out all but so
 * many of the oldest.
 */
export async function* failedPlaces(
  queues: Queues,
  kind: string,
  { before, oldest = Number.POSITIVE_INFINITY }: { before?: number | undefined; oldest?: number | undefined } = {},
): AsyncGenerator<PlacedCopy> {
  const seen = new Set<string>()
  const waiting = Math.min(oldest, (await queues.depth(queueOf(kind))).waiting)
  const count = before === undefined ? waiting : await countBefore(queues, kind, { waiting, before })
  // How large copies are is known once some were read.
  let size = BLOCK_PAGE
  for (let end = count - 1; end >= 0; ) {
    const start = Math.max(0, end - size + 1)
    const jobs = await queues.list(queueOf(kind), ['waiting'], start, end)
    const page = jobs.map((job, i) => ({ copy: failedJobOf(job), older: start + i }))
    size = page.some(({ copy }) => copy?.block !== undefined) ? BLOCK_PAGE : PAGE
    end = start - 1
    for (const { copy, older } of page.reverse()) {
      if (!copy || seen.has(copy.id)) continue
      seen.add(copy.id)
      yield { copy, older }
    }
  }
}

/** The copies of `failedPlaces`. */
export async function* failedCopies(
  queues: Queues,
  kind: string,
  bounds: { before?: number | undefined } = {},
): AsyncGenerator<FailedJob> {
  for await (const { copy } of failedPlaces(queues, kind, bounds)) yield copy
}

/** How many of the oldest copies failed before a moment, found by halving. */
async function countBefore(
  queues: Queues,
  kind: string,
  { waiting, before }: { waiting: number; before: number },
): Promise<number> {
  let [low, high] = [0, waiting]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [job] = await queues.list(queueOf(kind), ['waiting'], middle, middle)
    if (job && (storedCopyOf(job)?.failedAt ?? job.timestamp) < before) low = middle + 1
    else high = middle
  }
  return low
}

export async function failedFind(queues: Queues, kind: string, id: string): Promise<FailedJob | undefined> {
  // Under another id the server may hold something that is no job at all.
  if (!COPY_ID.test(id)) return undefined
  const job = await queues.get(queueOf(kind), id)
  return job && failedJobOf(job)
}

/**
 * Whether the worker that made this copy still has the job: it removes the job after it made the copy. Adding the job
 * in between would do nothing, and then both job and copy would be gone.
 */
export async function isInWork(queues: Queues, kind: string, { id, jobId }: FailedJob): Promise<boolean> {
  const job = await queues.get(kind, jobId)
  return job !== undefined && copyId({ id: jobId, enqueuedAt: job.timestamp }) === id
}

/**
 * Sends a failed job again under its own id, then removes the copy. A crash in between leaves both, and the call may be
 * repeated. Returns undefined, or the word for why the job wasn't sent.
 */
export async function failedRetry(
  queues: Queues,
  kind: string,
  id: string,
): Promise<'gone' | 'emptied' | 'in_work' | undefined> {
  const copy = await failedFind(queues, kind, id)
  if (!copy) return 'gone'
  const { jws, block, jobId } = copy
  if (jws === '') return 'emptied'
  if (await isInWork(queues, kind, copy)) return 'in_work'
  await queues.add(kind, { id: jobId, data: { jws, ...(block !== undefined && { block }) } })
  await queues.remove(queueOf(kind), id)
  return undefined
}

/** Removes a copy; false if there is no such copy. */
export function failedDiscard(queues: Queues, kind: string, id: string): Promise<boolean> {
  return queues.remove(queueOf(kind), id)
}

/**
 * Removes card data from copies older than `olderThanMs` by the caller's `scrub`. Removes jobs of that age that don't
 * have the form of a copy, because nobody knows what they hold. Returns how many copies were scrubbed.
 */
export async function scrubFailed(
  queues: Queues,
  kind: string,
  olderThanMs: number,
  scrub: (copy: FailedCopy) => FailedCopy,
): Promise<number> {
  const due = await findDue(queues, kind, Date.now() - olderThanMs)
  let count = 0
  for (const id of due.reverse()) {
    const found = await queues.get(queueOf(kind), id)
    const stored = found && storedCopyOf(found)
    if (found && !stored) await queues.remove(queueOf(kind), id)
    if (!stored || stored.scrubbed) continue
    if (await queues.update(queueOf(kind), id, { ...scrub(stored), scrubbed: true })) count += 1
  }
  return count
}

/**
 * The ids of copies from before `before` that aren't scrubbed, and of other jobs of that age, newest first. The queue lists
 * copies in the order of their arrival, and they are scrubbed oldest first, so the scrubbed ones are at the old end of the
 * queue; that also holds after a crash in the middle. The search goes from the newest backwards and ends at a scrubbed
 * copy, but not at a young one: copies of several processes may arrive in another order than they were made.
 */
async function findDue(queues: Queues, kind: string, before: number): Promise<string[]> {
  const due: string[] = []
  const { waiting } = await queues.depth(queueOf(kind))
  let size = BLOCK_PAGE
  for (let end = waiting - 1; end >= 0; ) {
    const start = Math.max(0, end - size + 1)
    const page = await queues.list(queueOf(kind), ['waiting'], start, end)
    size = sweepPageAfter(page)
    end = start - 1
    for (const job of page.reverse()) {
      const isScrubbed = storedCopyOf(job)?.scrubbed === true
      if (isScrubbed && job.timestamp <= before - DISORDER_MS_MAX) return due
      if (!isScrubbed && job.timestamp <= before) due.push(job.id)
    }
  }
  return due
}

/**
 * Removes the oldest copies beyond `countMax` (10,000), and all that are older than `ageMsMax` (7 days); returns how
 * many.
 */
export async function trimFailed(
  queues: Queues,
  kind: string,
  bounds: { countMax?: number; ageMsMax?: number } = {},
): Promise<number> {
  const { countMax = COPIES_MAX, ageMsMax = AGE_MS_MAX } = bounds
  const before = Date.now() - ageMsMax
  let { waiting } = await queues.depth(queueOf(kind))
  let count = 0
  let size = BLOCK_PAGE
  for (;;) {
    const page = await queues.list(queueOf(kind), ['waiting'], 0, size - 1)
    size = sweepPageAfter(page)
    const due = page.filter(({ timestamp }, i) => timestamp <= before || waiting - i > countMax)
    const left = due.values()
    let removed = 0
    const remove = async () => {
      for (const { id } of left) if (await queues.remove(queueOf(kind), id)) removed += 1
    }
    await Promise.all(Array.from({ length: HANDS }, remove))
    count += removed
    waiting -= due.length
    // The others stay, or another process removes them.
    if (page.length === 0 || removed < page.length) return count
  }
}
