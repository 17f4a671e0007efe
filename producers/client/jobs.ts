// The jobs that wait for their result: kept until it is found on the results queue, sent again while it isn't.
// It doesn't know how a result travels.
import type { Refusal } from '../../src/errors.ts'
import type { Result } from '../../src/job/result.ts'
import type { ClientKind } from '../ask.ts'
import type { Signed } from '../envelope.ts'
import { ClosedError, UnansweredError } from './errors.ts'

/** What a caller holds of a job that it sent. Both fields may be stored, and asked about by a later process. */
export interface Handle {
  jti: string
  receiptId: string
}

export interface Job {
  handle: Handle
  kind: ClientKind
  /** What makes two requests under one jti the same. */
  digest: string
  signed: Signed
  priority?: number | undefined
  /** Signs the same request anew; absent where that isn't ours to decide. */
  sign?: () => Promise<Signed | Refusal>
}

type Waiter = PromiseWithResolvers<Result>

interface Entry {
  job?: Job
  /** When it is sent again, ms since the epoch. */
  dueAt: number
  waiters: Set<Waiter>
  /** Nobody asks for the result later. */
  transient: boolean
}

export interface Jobs {
  /** Adds `job`, unless one of its receipt is unanswered: that one is returned. `fleeting`: nobody asks for the result later. */
  join(job: Job, options: { fleeting: boolean }): Job | undefined
  /** Sends it no more; with an error, whoever awaits it gets that. */
  drop(receiptId: string, error?: Error): void
  /** The result, now or when it comes. */
  await(handle: Handle, timeoutMs?: number): Promise<Result>
  /** False if nothing here waits for it. A lower revision than one that was found changes nothing. */
  resolve(result: Result): boolean
  /** Rejects every wait for a result. Fleeting jobs are dropped; the others are still sent: somebody may ask later. */
  rejectAll(error: Error): void
  /** Whether there is any. */
  isWaiting(): boolean
  /** Jobs to be sent again as of `now`; each is due again `resendMs` later. */
  due(now: number): Job[]
  close(): void
}

const RESULTS_MAX = 1_000
/** A jti that comes again after its answer is sent once more so soon. */
const REPEAT_MS = 250
const ANSWERED_MAX = 50_000

/** `onAnswered` is told once per job, when its first result is found or it is dropped. */
export function openJobs(resendMs: number, clock: () => number, onAnswered: () => void): Jobs {
  const open = new Map<string, Entry>()
  const results = new Map<string, Result>()
  // Receipts whose result was found, so that its repeats are known as ours.
  const answered = new Set<string>()

  function entryOf(receiptId: string): Entry {
    const entry = open.get(receiptId) ?? { dueAt: 0, waiters: new Set<Waiter>(), transient: true }
    open.set(receiptId, entry)
    return entry
  }
  function keep(receiptId: string, result: Result): void {
    results.delete(receiptId)
    results.set(receiptId, result)
    trim(results, RESULTS_MAX)
  }
  function giveUp(receiptId: string, entry: Entry, waiter: Waiter): void {
    entry.waiters.delete(waiter)
    if (!entry.job && entry.waiters.size === 0 && open.get(receiptId) === entry) open.delete(receiptId)
  }

  return {
    join(job, { fleeting }) {
      const entry = entryOf(job.handle.receiptId)
      entry.transient &&= fleeting
      if (entry.job) return entry.job
      entry.job = job
      // The job that was answered may still be leaving the queue, which then swallows this one of the same id.
      entry.dueAt = clock() + (answered.has(job.handle.receiptId) ? Math.min(REPEAT_MS, resendMs) : resendMs)
      // Sent again, so to be answered again: what was found before may not be the answer to this one.
      results.delete(job.handle.receiptId)
      return undefined
    },
    drop(receiptId, error) {
      const entry = open.get(receiptId)
      if (!entry?.job) return
      delete entry.job
      onAnswered()
      if (error) for (const waiter of entry.waiters) waiter.reject(error)
      if (error || entry.waiters.size === 0) open.delete(receiptId)
    },
    async await({ jti, receiptId }, timeoutMs) {
      const found = results.get(receiptId)
      if (found) return found
      const entry = entryOf(receiptId)
      const waiter = Promise.withResolvers<Result>()
      entry.waiters.add(waiter)
      if (timeoutMs === undefined) return waiter.promise
      const timer = setTimeout(() => {
        giveUp(receiptId, entry, waiter)
        waiter.reject(new UnansweredError(jti, timeoutMs))
      }, timeoutMs)
      return waiter.promise.finally(() => clearTimeout(timer))
    },
    resolve(result) {
      const { receipt_id: receiptId, revision } = result
      const entry = open.get(receiptId)
      const found = results.get(receiptId)
      if (found && revision > found.revision) keep(receiptId, result)
      if (!entry) return answered.has(receiptId)
      if (entry.job && isOfOlderEnvelope(result, entry.job)) {
        entry.dueAt = Math.min(entry.dueAt, clock() + REPEAT_MS)
        return true
      }
      open.delete(receiptId)
      answered.add(receiptId)
      trim(answered, ANSWERED_MAX)
      if (!(entry.job && entry.transient)) keep(receiptId, result)
      for (const waiter of entry.waiters) waiter.resolve(result)
      if (entry.job) onAnswered()
      return true
    },
    rejectAll(error) {
      for (const [receiptId, entry] of open) {
        for (const waiter of entry.waiters) waiter.reject(error)
        entry.waiters.clear()
        if (entry.job && !entry.transient) continue
        open.delete(receiptId)
        if (entry.job) onAnswered()
      }
    },
    isWaiting: () => open.size > 0,
    due(now) {
      const jobs: Job[] = []
      for (const entry of open.values()) {
        if (!entry.job || entry.dueAt > now) continue
        entry.dueAt = now + resendMs
        jobs.push(entry.job)
      }
      return jobs
    },
    close() {
      for (const { waiters } of open.values()) for (const waiter of waiters) waiter.reject(new ClosedError())
      open.clear()
    },
  }
}

/** What was sent before this one lay there until its time was over, and kept this one out of the queue. */
function isOfOlderEnvelope({ status, error, accepted_at: acceptedAt }: Result, { signed }: Job): boolean {
  const isExpired = Object.values(error?.details ?? {}).some(({ code }) => code === 'envelope_expired')
  return status === 'FAILED' && isExpired && Date.parse(acceptedAt) < signed.issuedAt
}

/** Lets the entries go that have been there longest. */
function trim(kept: Map<string, unknown> | Set<string>, max: number): void {
  const [oldest] = kept.keys()
  if (kept.size > max && oldest !== undefined) kept.delete(oldest)
}
