// From one attempt to what becomes of the job: done, later, or failed for good with an answer to the caller. The
// verdicts are those of the table of faults; nothing here knows a kind's rules.
import { setTimeout as pause } from 'node:timers/promises'
import { FAULTS, Fault, toFault } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/catalogue.ts'
import { chunkSizeOf } from '../../src/job/chunk-size.ts'
import { panNameRefusal } from '../../src/job/envelope/names.ts'
import { describeError } from '../../src/log.ts'
import type { Disposition, ReceivedJob } from '../../src/queue/engine.ts'
import { moveToFailed } from '../../src/queue/failed.ts'
import * as storeServer from '../../src/store/server.ts'
import type { Deps } from '../deps.ts'
import { attempt, identify, type Known } from './attempt.ts'
import { findPoison } from './bisect.ts'
import { answerFault } from './refuse.ts'
import type { End, Selection } from './work.ts'

export const RETRY = { attemptsMax: 8, firstMs: 500, mostMs: 300_000 } as const

/** Full jitter: anywhere between nothing and the doubled delay. */
export function backoffMs(attemptNo: number): number {
  return Math.round(Math.random() * Math.min(RETRY.firstMs * 2 ** (attemptNo - 1), RETRY.mostMs))
}

const NONE: ReadonlySet<number> = new Set()
const AWAY_MS = 500

/** A job and what is known of it so far. */
interface Tried {
  job: ReceivedJob
  signal: AbortSignal
  /** Who it is from, as soon as that is known. */
  known: Known | undefined
  /** Records of a chunk, by index, that are left out. */
  poison: ReadonlySet<number>
  isBisected: boolean
}

/** Never throws. `poison`: records of a chunk, by index, that are known to crash us. */
export async function runJob(
  job: ReceivedJob,
  signal: AbortSignal,
  deps: Deps,
  poison: ReadonlySet<number> = NONE,
): Promise<Disposition> {
  const startedAt = performance.now()
  const tried: Tried = { job, signal, known: undefined, poison, isBisected: false }
  for (;;) {
    try {
      const end = await attempt(job, deps, { poison: tried.poison }, seen => {
        tried.known = seen
      })
      report(job, tried.known, end, startedAt, deps)
      return end.end === 'later' ? { deferMs: end.ms } : { done: true }
    } catch (error) {
      const disposition = await afterFault(tried, toFault(error), deps)
      if (disposition) return disposition
    }
  }
}

/** What becomes of a job whose attempt failed; undefined: it is tried once more, at once. */
async function afterFault(tried: Tried, fault: Fault, deps: Deps): Promise<Disposition | undefined> {
  const { job, signal, known } = tried
  const { verdict } = FAULTS[fault.code]
  deps.log[fault.code === 'defect' ? 'error' : 'warn'](
    {
      kind: known?.kind,
      receipt: known?.work.receiptId,
      attempt: job.attempt,
      fault: fault.code,
      cause: describeError(fault.cause ?? fault),
    },
    'attempt failed',
  )
  if (signal.aborted) return { deferMs: AWAY_MS }
  if (verdict === 'pause') {
    await untilStoreIsBack(deps, signal)
    return undefined
  }
  if (verdict === 'retry' && job.attempt < RETRY.attemptsMax) {
    deps.metrics.retries.inc({ kind: known?.kind ?? 'unknown', fault: fault.code })
    return { retryInMs: backoffMs(job.attempt) }
  }
  const found = await findGuilty(tried, fault, deps)
  // The world failed in the midst of it: that says nothing of any record.
  if (found instanceof Fault) {
    await untilStoreIsBack(deps, signal)
    return { retryInMs: backoffMs(job.attempt) }
  }
  if (!found) return giveUp(job, known, fault, deps, signal)
  tried.poison = new Set([...tried.poison, ...found])
  tried.isBisected = true
  return undefined
}

/** The records of a chunk that make it fail, where it does so by what it holds. Once: what fails without them is bad as a whole. */
async function findGuilty(
  { job, known, isBisected }: Tried,
  fault: Fault,
  deps: Deps,
): Promise<number[] | Fault | undefined> {
  const size = known && chunkSizeOf(known.kind, known.work.request)
  if (size === undefined || isBisected || (fault.code !== 'defect' && fault.code !== 'data')) return undefined
  return bisect(job, size, deps).catch(toFault)
}

/** A chunk that fails by a defect: which of its records do. Throws where the world fails meanwhile. */
async function bisect(job: ReceivedJob, size: number, deps: Deps): Promise<number[] | undefined> {
  return findPoison(size, async (from, to) => {
    const told = await works(job, { from, to }, deps)
    if (told === 'unknown') throw new Fault('store_busy')
    return told
  })
}

/** Whether these records of a chunk can be worked, tried with nothing kept. `unknown`: the world failed, not they. */
export async function works(
  job: ReceivedJob,
  probe: NonNullable<Selection['probe']>,
  deps: Deps,
): Promise<boolean | 'unknown'> {
  try {
    await attempt(job, deps, { poison: NONE, probe }, () => {})
    return true
  } catch (error) {
    const { code } = toFault(error)
    return code === 'defect' || code === 'data' ? false : 'unknown'
  }
}

/**
 * The end of a job that can't be done: the caller is answered 500, a copy is kept, its id is free again. Never throws.
 * `seen`: who it is from, where that is known.
 */
export async function giveUp(
  job: ReceivedJob,
  seen: Known | undefined,
  fault: Fault,
  deps: Deps,
  signal: AbortSignal,
): Promise<Disposition> {
  let answered = false
  for (;;) {
    try {
      // Whoever sent it is answered, however early it went wrong.
      const known = seen ?? (await identify(job, deps))
      if (!known) return { failed: true, code: fault.code }
      const { kind, work } = known
      // Once: each answer is told.
      if (!answered) await answerFault(work, deps)
      answered = true
      const { jws, block } = job.data as { jws: string; block?: string }
      // A copy lies here for days: of a job that would be refused for its name only what is no name is kept.
      const isKept = panNameRefusal(work.claims, work.client.names) === undefined
      const copy = {
        jws: isKept ? jws : '',
        ...(block === undefined || !isKept ? {} : { block }),
        kind,
        code: fault.code,
        attempt: job.attempt,
        failedAt: deps.clock(),
        jobId: job.id,
      }
      await moveToFailed(deps.queues, kind, job, copy)
      deps.metrics.jobs.inc({ kind, outcome: 'FAULT' })
      deps.log.error({ kind, receipt: work.receiptId, attempt: job.attempt, fault: fault.code }, 'job failed for good')
      return { failed: true, code: fault.code }
    } catch (error) {
      if (FAULTS[toFault(error).code].verdict !== 'pause' || signal.aborted)
        return { retryInMs: backoffMs(job.attempt) }
      await untilStoreIsBack(deps, signal)
    }
  }
}

/**
 * While the store or the queue server is away no attempt is used up: the job waits here, for a moment at least, since a
 * server that answers this may still refuse what the job needs.
 */
export async function untilStoreIsBack({ store, queues }: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(AWAY_MS, undefined, { signal }).catch(() => {})
    const [writable] = await Promise.all([storeServer.isWritable(store), queues.ping().then(() => true)]).catch(() => [
      false,
    ])
    if (writable) return
  }
}

function report(
  job: ReceivedJob,
  known: Known | undefined,
  end: End,
  startedAt: number,
  { metrics, log, clock }: Deps,
): void {
  const seconds = (performance.now() - startedAt) / 1000
  const kind = known?.kind ?? 'unknown'
  const outcome = end.end === 'later' ? 'LATER' : end.outcome
  metrics.jobs.inc({ kind, outcome })
  metrics.attemptSeconds.observe({ kind }, seconds)
  if (known) metrics.waitSeconds.observe({ kind }, Math.max(0, clock() / 1000 - seconds - known.work.acceptedAt / 1000))
  const level = outcome === 'DROPPED' ? 'debug' : known && CATALOGUE[known.kind].bulk ? 'debug' : 'info'
  log[level](
    { kind, receipt: known?.work.receiptId, outcome, attempt: job.attempt, ms: Math.round(seconds * 1000) },
    'attempt',
  )
}
