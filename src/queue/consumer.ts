// BullMQ's worker, made safe: whoever may write to the server sets a job's options, and they would win over the
// worker's own, so that they are replaced before anything reads them. The data are checked elsewhere.
import { type IQueueBackend, type Job, type JobJson, type JobsOptions, Worker } from 'bullmq'
import { retryDeadlocks } from './bounded-call.ts'
import { isDamage } from './damage.ts'

/** The options of every job, whatever is stored. `attempts` only has to be unreachable: the handler decides. */
const OPTIONS: JobsOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'disposition' },
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 0,
}
const FETCH_RETRY_MS = 250
const FETCH_NOTHING = () => false

interface JobFlags {
  tied: boolean
  exhausted: boolean
  readable: boolean
}

type Base = Worker<unknown, { ok: 1 }, string, IQueueBackend>
type Completed = Parameters<Base['handleCompleted']>
type Failed = Parameters<Base['handleFailed']>

export class Consumer extends Worker<unknown, { ok: 1 }, string, IQueueBackend> {
  readonly #flags = new WeakMap<Job, JobFlags>()
  /** Removes a job that can't be finished. */
  onUnfinishable: (id: string) => Promise<void> = async () => {}

  flagsOf(job: Job): JobFlags {
    return this.#flags.get(job) ?? { tied: true, exhausted: true, readable: false }
  }

  /** Called first for each job, before BullMQ would continue its schedule or apply its stored failure. */
  protected override createJob(json: JobJson, id: string): Job {
    const { parent, parentKey, repeatJobKey, deduplicationId, debounceId, deferredFailure, ...rest } = json
    const opts: JobsOptions & { repeat?: unknown } = json.opts ?? {}
    const tied = Boolean(parent || parentKey || repeatJobKey || opts.parent || opts.repeat)
    const clean = { ...rest, opts: { ...OPTIONS }, failedReason: '', stacktrace: '[]', returnvalue: 'null' }
    const flags = { tied, exhausted: Boolean(deferredFailure), readable: true }
    let job: Job
    try {
      job = super.createJob(clean, id)
    } catch {
      // Data that aren't JSON would throw at each fetch, for ever.
      flags.readable = false
      job = super.createJob({ ...clean, data: 'null' }, id)
    }
    this.#flags.set(job, flags)
    return job
  }

  /**
   * Fetches nothing that would delay a pause or an end. A server that refuses (loading, out of memory, read-only) is
   * asked again after a while, not in a busy loop.
   */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    if (this.paused || this.closing) return undefined as unknown as Job
    try {
      return await retryDeadlocks(() => super.moveToActive(token, name))
    } catch (error) {
      // A damaged job is no fault of the server.
      if (!isDamage(error) && !this.closing) await this.delay(FETCH_RETRY_MS)
      throw error
    }
  }

  /**
   * On PostgreSQL one transaction finishes a job and fetches the next, and two such transactions deadlock over jobs
   * whose delay has ended. The loser is a finished job that would be run again: it is finished once more, alone.
   */
  protected override handleCompleted(...[result, job, token, fetchNext, span]: Completed): Promise<Job> {
    return this.#finish(job, mayFetch =>
      super.handleCompleted(result, job, token, mayFetch ? fetchNext : FETCH_NOTHING, span),
    )
  }

  protected override handleFailed(...[error, job, token, , span]: Failed): Promise<Job> {
    return this.#finish(job, () => super.handleFailed(error, job, token, FETCH_NOTHING, span))
  }

  /**
   * The next job may be the damaged one: then this job is finished alone. A job whose own attempts can't be counted
   * can't be finished at all: it was worked, and would come again or keep its id for ever.
   */
  async #finish(job: Job, finish: (mayFetch: boolean) => Promise<Job>): Promise<Job> {
    try {
      return await retryDeadlocks(time => finish(time === 1))
    } catch (error) {
      if (!isDamage(error)) throw error
      this.emit('error', error as Error)
      const finished = retryDeadlocks(() => finish(false))
      return finished.catch(() => this.onUnfinishable(job.id ?? '')) as Promise<Job>
    }
  }

  /** Stops renewing the locks of abandoned jobs, and disconnects from the server. */
  async abandon(): Promise<void> {
    await this.lockManager.close()
    await this.backend.close(true)
  }
}
