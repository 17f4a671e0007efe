// Takes jobs from one queue, calls the handler for each, and disposes of the job as the handler's return value says. It
// recovers by itself from trouble with the server. What a job means is unknown here.
import { DelayedError, type Job, UnrecoverableError } from 'bullmq'
import { assert, Fault } from '../errors.ts'
import type { EngineBackend } from './backend.ts'
import { retryDeadlocks, settlesWithin } from './bounded-call.ts'
import { Consumer } from './consumer.ts'
import { STALLED_MAX, watchDamage } from './damage.ts'
import type { Disposition, Handler, ReceivedJob, Worker, WorkOptions } from './engine.ts'
import type { Places } from './places.ts'

const RESTART_MS = 500
const ABORTED_MS_MAX = 2_000
/** The delay after which a job is repeated if its disposition failed. */
const MISHAP_MS = 1_000
const PROGRESS_MS = 1_000
/** Which failed jobs that a handler keeps stay in the queue's failed set; `age` in seconds. */
const KEPT = { age: 7 * 86_400, count: 1_000 } as const

/** Thrown to end an attempt that will be repeated after `delayMs`. */
class RetryLater extends Error {
  readonly delayMs: number

  /** `code`: BullMQ stores it on the job, where it tells senders what the job waits for. */
  constructor(delayMs: number, code = 'retry') {
    super(codeOnly(code))
    this.delayMs = delayMs
  }
}

interface WorkerOptions extends WorkOptions {
  places: Places
  lockMs: number
  onClosed: () => void
}

/** The beginning of the lock tokens of a process. BullMQ makes the rest, which no other worker has. */
export const lockPrefixOf = (processId: string) => `${processId}.`

export function openWorker(backend: EngineBackend, queue: string, handler: Handler, options: WorkerOptions): Worker {
  const { places, lockMs, stalledMs = Math.min(30_000, lockMs), onDefect = () => {} } = options
  const { onError = () => {}, onDamaged = () => {}, processId } = options
  let consumer: Consumer | undefined
  let closing: Promise<void> | undefined
  let { paused = false } = options
  let listens = false
  let active = 0
  const damage = watchDamage(() => backend.discardDamaged(queue), onDamaged)
  const listening = Promise.withResolvers<void>()
  const stopped = new AbortController()

  async function attempt(received: ReceivedJob, job: Job, token?: string, signal?: AbortSignal): Promise<{ ok: 1 }> {
    assert(token !== undefined && signal !== undefined, 'a job comes with token and signal')
    if (received.tied) await backend.sever(queue, received.id)
    active += 1
    const leave = places.take(received)
    limit()
    try {
      return await dispose(job, token, await answer(received, signal))
    } finally {
      active -= 1
      leave()
      limit()
    }
  }

  function limit(): void {
    if (consumer) consumer.concurrency = places.most()
  }

  async function answer(received: ReceivedJob, signal: AbortSignal): Promise<Disposition> {
    try {
      return await handler(received, signal)
    } catch (error) {
      onDefect(error, received)
      return { failed: true, code: 'defect' }
    }
  }

  function open(): Consumer {
    const { connection, backend: bullBackend } = backend.consumer()
    const opened: Consumer = new Consumer(
      queue,
      // The function must have three parameters, or BullMQ passes no signal.
      (job, token, signal) => attempt(receive(job, opened), job, token, signal),
      {
        connection: connection as never,
        prefix: backend.prefix,
        autorun: false,
        concurrency: places.most(),
        lockDuration: lockMs,
        lockRenewTime: lockMs / 2,
        stalledInterval: stalledMs,
        maxStalledCount: STALLED_MAX,
        drainDelay: backend.idleSeconds,
        runRetryDelay: RESTART_MS,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
        settings: {
          backoffStrategy: (_made, _type, error) => (error instanceof RetryLater ? error.delayMs : MISHAP_MS),
        },
      },
      bullBackend as never,
    )
    opened.on('error', error => {
      damage.note(error)
      onError(error)
    })
    if (processId !== undefined) opened.lockPrefix = lockPrefixOf(processId)
    opened.onUnfinishable = async id => {
      if (await backend.discard(queue, id)) onDamaged(1)
    }
    opened.on('lockRenewalFailed', ids => {
      for (const id of ids) opened.cancelJob(id, 'lock lost')
    })
    return opened
  }

  // A consumer whose first connection fails never recovers, so it is replaced. A consumer that listens reconnects by
  // itself.
  async function run(): Promise<void> {
    const closed = new Promise<void>(resolve => stopped.signal.addEventListener('abort', () => resolve()))
    while (!stopped.signal.aborted) {
      consumer = open()
      try {
        await consumer.waitUntilReady()
        if (stopped.signal.aborted) return
        if (paused) await consumer.pause(true)
        const running = consumer.run()
        listens = true
        listening.resolve()
        await Promise.race([closed, running.then(() => closed)])
      } catch (error) {
        onError(error)
      }
      if (stopped.signal.aborted) return
      await settlesWithin(ABORTED_MS_MAX, consumer.close(true))
      await settlesWithin(RESTART_MS, closed)
    }
  }
  async function close(deadlineMs: number): Promise<void> {
    stopped.abort()
    listening.reject(new Fault('queue_away', new Error('closed before it listened')))
    // Closing a consumer while it connects would leave its connection open.
    if (consumer && !listens) await settlesWithin(Math.max(deadlineMs, ABORTED_MS_MAX), consumer.waitUntilReady())
    const ending = consumer?.close() ?? Promise.resolve()
    if (!(await settlesWithin(deadlineMs, ending))) {
      consumer?.cancelAllJobs('shutdown')
      if (!(await settlesWithin(ABORTED_MS_MAX, ending))) await consumer?.abandon().catch(onError)
    }
    options.onClosed()
  }

  listening.promise.catch(() => {})
  void run()
  return {
    queue,
    ready: listening.promise,
    active: () => active,
    async pause() {
      paused = true
      await consumer?.pause(true)
    },
    async resume() {
      paused = false
      await consumer?.resume()
    },
    close(deadlineMs) {
      closing ??= close(deadlineMs)
      return closing
    },
  }
}

function receive(job: Job, consumer: Consumer): ReceivedJob {
  const { tied, exhausted, readable } = consumer.flagsOf(job)
  return {
    id: job.id ?? '',
    data: readable ? job.data : undefined,
    attempt: count(job.attemptsMade) + 1,
    stalled: count(job.stalledCounter),
    exhausted,
    tied,
    enqueuedAt: count(job.timestamp),
    isBackground: count(job.priority) > 0,
    progress: progressOf(job),
  }
}

function progressOf(job: Job): (done: Record<string, number>) => void {
  let shownAt = Number.NEGATIVE_INFINITY
  return done => {
    if (performance.now() - shownAt < PROGRESS_MS) return
    shownAt = performance.now()
    job.updateProgress(done).catch(() => {})
  }
}

/** A counter of the stored job, or 0 if it isn't a positive whole number: the producer could have written anything. */
function count(stored: number): number {
  return Number.isSafeInteger(stored) && stored > 0 ? stored : 0
}

/** Returns or throws as BullMQ requires. BullMQ stores the message of an error in clear, so messages are only codes. */
async function dispose(job: Job, token: string, disposition: Disposition): Promise<{ ok: 1 }> {
  if ('done' in disposition) return { ok: 1 }
  if ('retryInMs' in disposition) throw new RetryLater(disposition.retryInMs, disposition.code)
  if ('deferMs' in disposition) {
    await retryDeadlocks(() => job.moveToDelayed(Date.now() + disposition.deferMs, token))
    throw new DelayedError()
  }
  if (disposition.keep) job.opts.removeOnFail = KEPT
  throw new UnrecoverableError(codeOnly(disposition.code))
}

function codeOnly(code: string): string {
  return /^[a-z_]{1,64}$/.test(code) ? code : 'defect'
}
