// The queues on one server, of either engine: the operations for producers, sweepers and commands. Workers are in
// worker.ts. Kinds of jobs and their content are unknown here.
import { Queue as BullQueue, Job, type JobType } from 'bullmq'
import { assert, Fault } from '../errors.ts'
import { describeError } from '../logger.ts'
import { causeOf, openTroubles } from '../server-error.ts'
import { openAvailability } from './availability.ts'
import type { EngineBackend } from './backend.ts'
import { retryDeadlocks, toQueueFault, withTimeout } from './bounded-call.ts'
import type { JobState, ListedJob, QueuedJob, QueueOptions, Queues, Worker } from './engine.ts'
import { openPlaces } from './places.ts'
import { lockPrefixOf, openWorker } from './worker.ts'

/** A server that refuses says so at once; one that answers late may only be busy, as the whole host is. */
const CALL_MS = 15_000
const BULK_MS = 30_000
/** Up to this number of jobs, `addBulk` has the time limit of a single job. */
const FEW_JOBS = 100
const OBLITERATE_MS = 120_000
/** How many queues stay open at once; each has a few listeners on the shared connection. */
const OPEN_MAX = 1_000
/**
 * The largest data of a job, in bytes of JSON: an envelope of 1 MiB and a block of 4 MiB, with room for the JSON around
 * them.
 */
const DATA_BYTES_MAX = 5.5 * 1024 * 1024
/** One line a minute about the same trouble between workers and the server, whichever queue it is. */
const ERROR_SILENCE_MS = 60_000

const STATES: Record<JobState, JobType[]> = {
  waiting: ['waiting', 'prioritized'],
  active: ['active'],
  delayed: ['delayed'],
  failed: ['failed'],
}

const JOB_STATES = Object.keys(STATES) as JobState[]

export function openQueues(backend: EngineBackend, options: QueueOptions): Queues {
  const { log, lockMs } = options
  const open = new Map<string, BullQueue>()
  const workers = new Set<Worker>()
  const placesFor = openPlaces()
  const troubles = openTroubles(log)
  const said = new Map<string, number>()
  const availability = openAvailability(backend.ping)
  backend.onTrouble(availability.suspect)
  availability.on('away', () => log.warn('the queue server is away'))
  availability.on('back', () => log.info('the queue server is back'))

  function queueOf(name: string): BullQueue {
    assert(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name), 'a queue name has no colon and no blank')
    const queue = open.get(name) ?? openQueue(name)
    open.delete(name) // The map's order is the order of last use.
    open.set(name, queue)
    const [oldest] = open.keys()
    if (oldest !== undefined && open.size > OPEN_MAX) forget(oldest)
    return queue
  }
  function openQueue(name: string): BullQueue {
    const { connection, backend: bullBackend } = backend.producer()
    const opened = new BullQueue(
      name,
      { connection: connection as never, prefix: backend.prefix, streams: { events: { maxLen: 10 } } },
      bullBackend as never,
    )
    opened.on('error', () => availability.suspect())
    // A queue whose first connection fails never recovers: it is forgotten, and the next call opens another.
    opened.waitUntilReady().catch(() => open.get(name) === opened && forget(name))
    return opened
  }
  function forget(name: string): void {
    const queue = open.get(name)
    open.delete(name)
    queue?.close().catch(() => {})
  }
  async function call<T>(ms: number, work: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(ms, retryDeadlocks(work))
    } catch (error) {
      const meaning = toQueueFault(error)
      troubles.note(meaning)
      if (meaning instanceof Fault && meaning.code === 'queue_away') availability.suspect()
      throw meaning
    }
  }
  async function list(queue: string, states: JobState[], start: number, end: number): Promise<ListedJob[]> {
    const { list: own } = backend
    if (own) return (await Promise.all(states.map(state => own(queue, state, start, end)))).flat()
    const types = states.flatMap(state => STATES[state])
    try {
      return (await queueOf(queue).getJobs(types, start, end, true)).filter(job => job !== undefined).map(describe)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      const ids = await queueOf(queue).getRanges(types, start, end, true)
      return (await Promise.all(ids.map(id => find(queue, id)))).filter(job => job !== undefined)
    }
  }
  /** A job whose data isn't JSON has none, and counts as old: nobody of ours wrote it. */
  async function find(queue: string, id: string): Promise<ListedJob | undefined> {
    try {
      const job = await queueOf(queue).getJob(id)
      return job && describe(job)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return { id, data: undefined, timestamp: 0 }
    }
  }

  return {
    engine: backend.engine,
    add: (queue, job) =>
      call(CALL_MS, async () => {
        const { name, data, opts } = bullJobOf(queue, job)
        await queueOf(queue).add(name, data, opts)
      }),
    addBulk: (queue, jobs) =>
      call(jobs.length > FEW_JOBS ? BULK_MS : CALL_MS, async () => {
        const added = await queueOf(queue).addBulk(jobs.map(job => bullJobOf(queue, job)))
        const taken = added.length === jobs.length && added.every((job, i) => job.id === jobs[i]?.id)
        if (!taken) throw new Fault('queue_away', new Error('not every job of the chunk was taken'))
      }),
    tick: queue =>
      call(CALL_MS, async () => {
        const template = { name: queue, data: {}, opts: LEAVING }
        // BullMQ's own worker would schedule the next tick by data in the server. Ours doesn't, so the receiver
        // requests each tick.
        await queueOf(queue).upsertJobScheduler('tick', EVERY_MINUTE, template)
      }),
    work(queue, handler, workOptions) {
      assert(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(queue), 'a queue name has no colon and no blank')
      backend.admit()
      const onError = (error: unknown) => {
        availability.suspect()
        troubles.note(error)
        workOptions.onError?.(error)
        if (causeOf(error)) return
        const { name, code } = describeError(error)
        const key = `${name} ${code}`
        if (Date.now() - (said.get(key) ?? 0) < ERROR_SILENCE_MS) return
        said.set(key, Date.now())
        log.warn({ queue, err: error }, 'trouble between worker and queue server')
      }
      const onClosed = () => {
        if (workers.delete(worker)) backend.dismiss()
      }
      const worker = openWorker(backend, queue, handler, {
        ...workOptions,
        onError,
        lockMs,
        onClosed,
        places: placesFor(workOptions.concurrency),
      })
      workers.add(worker)
      return worker
    },
    depth: queue =>
      call(BULK_MS, async () => {
        const n = await queueOf(queue).getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed')
        const of = (state: JobState) => STATES[state].reduce((sum, type) => sum + (n[type] ?? 0), 0)
        return { waiting: of('waiting'), active: of('active'), delayed: of('delayed'), failed: of('failed') }
      }),
    oldestMs: queue =>
      call(CALL_MS, async () => {
        const first = await list(queue, ['waiting'], 0, 0)
        if (first.length === 0) return undefined
        return Math.max(0, Date.now() - Math.min(...first.map(job => job.timestamp)))
      }),
    has: (queue, id) => call(CALL_MS, () => backend.has(queue, id)),
    list: (queue, states, start, end) => call(BULK_MS, () => list(queue, states, start, end)),
    get: (queue, id) => call(CALL_MS, () => find(queue, id)),
    stateOf: (queue, id) =>
      call(CALL_MS, async () => {
        const state = await queueOf(queue).getJobState(id)
        return JOB_STATES.find(name => STATES[name].some(type => type === state))
      }),
    update: (queue, id, data) =>
      call(CALL_MS, async () => {
        const job = await queueOf(queue).getJob(id)
        await job?.updateData(data)
        return job !== undefined
      }),
    remove: (queue, id) =>
      call(CALL_MS, async () => (await backend.has(queue, id)) && (await queueOf(queue).remove(id)) > 0),
    handBack: (queue, processId) =>
      call(BULK_MS, async () => {
        const { handedBack, counted } = await backend.endLocks(queue, lockPrefixOf(processId))
        for (const { id, token } of counted) await putBack(queueOf(queue), id, token)
        return handedBack + counted.length
      }),
    obliterate: queue =>
      call(OBLITERATE_MS, async () => {
        await queueOf(queue).obliterate({ force: true })
        forget(queue) // The queue's settings are gone with it; the next use writes them again.
      }),
    workersOf: async queue => (await call(CALL_MS, () => backend.workersOf([queue])))?.get(queue),
    workersOfAll: names => call(CALL_MS, () => backend.workersOf(names)),
    claimInstallation: id => call(CALL_MS, () => backend.claim(id)),
    setNotice: (name, text, lifeMs) => call(CALL_MS, () => backend.setNotice(name, text, lifeMs)),
    notice: name => call(CALL_MS, () => backend.notice(name)),
    ping: () => call(CALL_MS, () => backend.probe()).then(troubles.worked),
    trouble: troubles.now,
    on: availability.on,
    async close() {
      availability.close()
      await Promise.all([...workers].map(worker => worker.close(0)))
      for (const name of [...open.keys()]) forget(name)
      await backend.close()
    },
  }
}

const EVERY_MINUTE = { pattern: '* * * * *', tz: 'UTC' }
const LEAVING = { attempts: 1, removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0 } as const
const REDELIVERED = { attempts: 1_000_000, backoff: { type: 'fixed', delay: 5_000 }, removeOnFail: false } as const

function bullJobOf(queue: string, job: QueuedJob) {
  assert(/^[A-Za-z_][A-Za-z0-9_-]{0,127}$/.test(job.id), 'a job id is deterministic, has no colon and is no number')
  const opts = {
    jobId: job.id,
    ...(job.redeliver ? REDELIVERED : { attempts: 1, removeOnFail: true }),
    removeOnComplete: true,
    stackTraceLimit: 0,
    sizeLimit: DATA_BYTES_MAX,
    ...(job.priority && { priority: job.priority }),
  }
  return { name: queue, data: job.data, opts }
}

/** BullMQ's codes of a job that has gone, and of one whose lock has ended or is another's. */
const NOT_HELD: readonly unknown[] = [-1, -2, -6]

/** Puts a job in work back in its queue if `token` still locks it. Its data, which may be damaged, aren't read. */
async function putBack(queue: BullQueue, id: string, token: string): Promise<void> {
  try {
    await new Job(queue, queue.name, undefined, {}, id).moveToWait(token)
  } catch (error) {
    if (!NOT_HELD.includes((error as { code?: unknown }).code)) throw error
  }
}

function describe(job: Job): ListedJob {
  const { id = '', data, timestamp, failedReason, progress } = job
  const shown = typeof progress === 'object' ? { progress: progress as Record<string, number> } : {}
  return { id, data, timestamp, ...(failedReason && { failedReason }), ...shown }
}
