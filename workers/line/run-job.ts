// Decides what happens to a job after an attempt: done, repeated later, or failed for good, with an answer to the
// caller. The verdicts come from the table of faults.
import { setTimeout as pause } from 'node:timers/promises'
import { FAULTS, Fault, toFault } from '../../src/errors.ts'
import { chunkSizeOf } from '../../src/job/envelope/chunk-size.ts'
import { panNameRefusal } from '../../src/job/envelope/names.ts'
import { describeError } from '../../src/logger.ts'
import { type Disposition, heldUp, type ReceivedJob } from '../../src/queue/engine.ts'
import { type FailedCopy, moveToFailed } from '../../src/queue/failed.ts'
import { levelOfFailure } from '../../src/server-error.ts'
import * as storeServer from '../../src/store/server.ts'
import type { End, Selection, Work } from '../work.ts'
import { attempt, type Identified, identify } from './attempt.ts'
import { findFailing } from './bisect.ts'
import type { LineDeps } from './deps.ts'
import { namesOf as namesInLog } from './job-trace.ts'
import { recallForCopy } from './recall.ts'
import { answerFault } from './refuse.ts'

export const RETRY = { attemptsMax: 8, firstMs: 500, mostMs: 300_000 } as const

/** Full jitter: a random delay from zero up to a delay that doubles with each attempt, at most `mostMs`. */
export function backoffMs(attemptNo: number): number {
  return Math.round(Math.random() * Math.min(RETRY.firstMs * 2 ** (attemptNo - 1), RETRY.mostMs))
}

const NONE: ReadonlySet<number> = new Set()
const AWAY_MS = 500

/** A job in progress. */
interface Run {
  job: ReceivedJob
  signal: AbortSignal
  /** Set as soon as an attempt has found out whose job it is. */
  identified: Identified | undefined
  /** The indexes of a chunk's records that are left out. */
  skipped: ReadonlySet<number>
  isBisected: boolean
  /** The key ring was read again for this job. */
  isReloaded: boolean
}

/** Works a job. Never throws. `skipped`: indexes of a chunk's records that are known to make it fail. */
export async function runJob(
  job: ReceivedJob,
  signal: AbortSignal,
  deps: LineDeps,
  skipped: ReadonlySet<number> = NONE,
): Promise<Disposition> {
  const startedAt = performance.now()
  const run: Run = { job, signal, identified: undefined, skipped, isBisected: false, isReloaded: false }
  for (;;) {
    try {
      const end = await attempt(job, deps, { skipped: run.skipped }, identified => {
        run.identified = identified
      })
      report(job, run.identified, end, startedAt, deps)
      return end.end === 'later' ? { deferMs: end.ms } : { done: true }
    } catch (error) {
      const fault = await afterReload(run, toFault(error), deps)
      const disposition = fault && (await afterFault(run, fault, deps))
      if (disposition) return disposition
    }
  }
}

/**
 * Reads the key ring again, once, for a job that needs a key which this process doesn't hold: another process may already
 * use a newer key. Undefined: the job is tried again at once.
 */
async function afterReload(run: Run, fault: Fault, { ring }: LineDeps): Promise<Fault | undefined> {
  if (fault.code !== 'key_unavailable' || run.isReloaded) return fault
  try {
    await ring.refresh()
  } catch (error) {
    // The key ring couldn't be read. If the store is away, the job waits for it.
    return toFault(error)
  }
  run.isReloaded = true
  return undefined
}

/** What happens to a job whose attempt failed. Undefined: it is tried again at once. */
async function afterFault(run: Run, fault: Fault, deps: LineDeps): Promise<Disposition | undefined> {
  const { job, signal, identified } = run
  const { verdict } = FAULTS[fault.code]
  // Of a server that refuses, the store or the queue has logged the cause, once for all jobs.
  deps.log[fault.code === 'defect' ? 'error' : levelOfFailure(fault)](
    {
      kind: identified?.kind,
      ...(identified ? namesInLog(identified.work) : {}),
      attempt: job.attempt,
      fault: fault.code,
      cause: describeError(fault.cause ?? fault),
    },
    'attempt failed',
  )
  if (signal.aborted) return { deferMs: AWAY_MS }
  if (verdict === 'pause') {
    job.progress?.(heldUp(fault.code))
    await untilServersAreBack(deps, signal)
    return undefined
  }
  if (verdict === 'retry' && job.attempt < RETRY.attemptsMax) {
    return retry(job, identified, fault, deps)
  }
  const found = await findFailingRecords(run, fault, deps)
  // Store or queue failed during the bisection, which says nothing about any record.
  if (found instanceof Fault) {
    await untilServersAreBack(deps, signal)
    return retry(job, identified, found, deps)
  }
  if (!found || found.length === 0) return giveUp(job, identified, fault, deps, signal)
  run.skipped = new Set([...run.skipped, ...found])
  run.isBisected = true
  return undefined
}

function retry(job: ReceivedJob, known: Identified | undefined, { code }: Fault, { metrics }: LineDeps): Disposition {
  metrics.retries.inc({ kind: known?.kind ?? 'unknown', fault: code })
  return { retryInMs: backoffMs(job.attempt), code }
}

/**
 * Finds the records that make a chunk fail. Done only once per job: if the chunk also fails without them, it fails as a
 * whole.
 */
async function findFailingRecords(
  { job, identified, isBisected }: Run,
  fault: Fault,
  deps: LineDeps,
): Promise<number[] | Fault | undefined> {
  const size = identified && chunkSizeOf(identified.work.entry, identified.work.request)
  if (size === undefined || isBisected || (fault.code !== 'defect' && fault.code !== 'data')) return undefined
  return bisect(job, size, deps).catch(toFault)
}

/** Throws a Fault if store or queue fail meanwhile. */
async function bisect(job: ReceivedJob, size: number, deps: LineDeps): Promise<number[] | undefined> {
  return findFailing(size, async (from, to) => {
    const isWorking = await works(job, { from, to }, deps)
    if (isWorking === 'unknown') throw new Fault('store_busy')
    return isWorking
  })
}

/**
 * Whether these records of a chunk can be worked; nothing is stored. `unknown`: store or queue failed, not the records.
 */
export async function works(
  job: ReceivedJob,
  probe: NonNullable<Selection['probe']>,
  deps: LineDeps,
): Promise<boolean | 'unknown'> {
  try {
    await attempt(job, deps, { skipped: NONE, probe }, () => {})
    return true
  } catch (error) {
    const { code } = toFault(error)
    return code === 'defect' || code === 'data' ? false : 'unknown'
  }
}

/**
 * Ends a job that failed for good: answers the sender 500, makes a copy for the failed set, frees the job's id. If
 * another copy of the job has left a receipt meanwhile, that receipt is the answer. Never throws. `identified`:
 * undefined if no attempt got that far.
 */
export async function giveUp(
  job: ReceivedJob,
  identified: Identified | undefined,
  fault: Fault,
  deps: LineDeps,
  signal: AbortSignal,
): Promise<Disposition> {
  let answered = false
  for (;;) {
    try {
      // The sender is answered even if no attempt found out who it is.
      const known = identified ?? (await identify(job, deps))
      if (!known) return { failed: true, code: fault.code }
      const { kind, work } = known
      if (!answered) {
        const copy = await recallForCopy(work, deps)
        if (copy !== 'none') return afterCopy(copy, known, job, deps)
        // The answer is made only once, because the sender would get each one.
        await answerFault(work, deps)
        answered = true
      }
      const { jws, block } = job.data as { jws: string; block?: string }
      // The copy is kept for days. If the job's names could hold a card number, it is kept without them.
      const isKept = panNameRefusal(work.claims, work.client.names) === undefined
      const copy = {
        jws: isKept ? jws : '',
        ...(block === undefined || !isKept ? {} : { block }),
        kind,
        code: fault.code,
        attempt: job.attempt,
        failedAt: deps.clock(),
        jobId: job.id,
        ...namesOf(work),
      }
      await moveToFailed(deps.queues, kind, job, copy)
      deps.metrics.jobs.inc({ kind, outcome: 'FAULT' })
      deps.metrics.minuteWork.noteEnd(kind, 'FAULT')
      const said = { kind, ...namesInLog(work), attempt: job.attempt, fault: fault.code }
      deps.log.error(said, 'job failed for good')
      return { failed: true, code: fault.code }
    } catch (error) {
      const again = toFault(error)
      if (FAULTS[again.code].verdict !== 'pause' || signal.aborted) return retry(job, identified, again, deps)
      await untilServersAreBack(deps, signal)
    }
  }
}

function afterCopy(copy: End | 'again', { kind, work }: Identified, job: ReceivedJob, deps: LineDeps): Disposition {
  if (copy === 'again') return { retryInMs: backoffMs(job.attempt) }
  const outcome = copy.end === 'later' ? 'LATER' : copy.outcome
  deps.metrics.jobs.inc({ kind, outcome })
  const said = { kind, ...namesInLog(work), outcome, attempt: job.attempt }
  deps.log.info(said, 'the job could not be done; another copy of it has ended')
  return copy.end === 'later' ? { deferMs: copy.ms } : { done: true }
}

/**
 * The names of a job for its copy, which outlives the envelope. Names that look like a card number are left out,
 * whatever the client's rule: the job's card wasn't decrypted to compare them.
 */
function namesOf({ claims, client }: Work<unknown>): Pick<FailedCopy, 'clientId' | 'jti' | 'reference'> {
  const { jti, reference } = claims
  if (panNameRefusal(claims, 'checked') !== undefined) return { clientId: client.clientId }
  return { clientId: client.clientId, jti, ...(reference === undefined ? {} : { reference }) }
}

/**
 * Waits until store and queue server answer, so that the job uses up no attempt while they are away. It waits at least
 * half a second: a server that answers this check may still refuse what the job needs.
 */
export async function untilServersAreBack({ store, queues }: LineDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(AWAY_MS, undefined, { signal }).catch(() => {})
    const isBack = await Promise.all([storeServer.tryWrites(store), queues.ping()]).then(
      () => true,
      () => false,
    )
    if (isBack) return
  }
}

function report(
  job: ReceivedJob,
  known: Identified | undefined,
  end: End,
  startedAt: number,
  { metrics, log, clock }: LineDeps,
): void {
  const seconds = (performance.now() - startedAt) / 1000
  const kind = known?.kind ?? 'unknown'
  const outcome = end.end === 'later' ? 'LATER' : end.outcome
  metrics.jobs.inc({ kind, outcome })
  metrics.attemptSeconds.observe({ kind }, seconds)
  if (known) metrics.recentAttempts.note(known.kind, seconds * 1000)
  if (known) noteWait(known, outcome, Math.max(0, clock() / 1000 - seconds - known.work.acceptedAt / 1000), metrics)
  const level = outcome === 'DROPPED' ? 'debug' : known?.work.entry.bulk ? 'debug' : 'info'
  log[level](
    { kind, ...(known ? namesInLog(known.work) : {}), outcome, attempt: job.attempt, ms: Math.round(seconds * 1000) },
    'attempt',
  )
}

/** `seconds`: from the making of the job to the start of the attempt. */
function noteWait({ kind }: Identified, outcome: string, seconds: number, metrics: LineDeps['metrics']): void {
  metrics.waitSeconds.observe({ kind }, seconds)
  metrics.minuteWork.noteWait(kind, seconds * 1000)
  metrics.minuteWork.noteEnd(kind, outcome)
}
