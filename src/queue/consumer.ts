// BullMQ's worker, made safe. Anybody who may write to the queue server can set a job's options, and BullMQ would
// prefer those to the worker's own. So they are replaced before anything reads them. A job's data are checked
// elsewhere.
import { type IQueueBackend, type Job, type JobJson, type JobsOptions, Worker } from 'bullmq'
import { retryDeadlocks } from './bounded-call.ts'
import { isDamage } from './damage.ts'

/**
 * The options that every job gets, whatever is stored. No job reaches this number of `attempts`: the handler decides
 * when a job has failed.
 */
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
  /** Called to remove a job that can't be finished. */
  onUnfinishable: (id: string) => Promise<void> = async () => {}
  /** The locks of its jobs begin with it. */
  lockPrefix = ''

  flagsOf(job: Job): JobFlags {
    return this.#flags.get(job) ?? { tied: true, exhausted: true, readable: false }
  }

  /** BullMQ calls this first for each job, before it would continue the job's schedule or apply its stored failure. */
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
      // BullMQ would parse data that aren't JSON at each fetch, and throw each time.
      flags.readable = false
      job = super.createJob({ ...clean, data: 'null' }, id)
    }
    this.#flags.set(job, flags)
    return job
  }

  /**
   * Fetches a job. Returns at once if the worker is pausing or closing. If the fetch fails (the server is loading, out
   * of memory, read-only), waits before the caller fetches again. After the error of a damaged job it doesn't wait.
   */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    if (this.paused || this.closing) return undefined as unknown as Job
    try {
      return await retryDeadlocks(() => super.moveToActive(this.#own(token), name))
    } catch (error) {
      // A damaged job isn't a fault of the server, so the next fetch needn't wait.
      if (!isDamage(error) && !this.closing) await this.delay(FETCH_RETRY_MS)
      throw error
    }
  }

  /** A job that is fetched while another one is finished gets that one's token, which has the prefix. */
  #own(token: string): string {
    return token.startsWith(this.lockPrefix) ? token : `${this.lockPrefix}${token}`
  }

  /**
   * On PostgreSQL one transaction finishes a job and fetches the next. Two such transactions can deadlock over jobs
   * whose delay has ended. PostgreSQL rolls one back, and its finished job would run again; so that job is finished
   * once more, without a fetch.
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
   * Finishes a job. If the fetched next job is damaged, this job is finished without a fetch. A job whose own counter
   * of attempts is damaged can't be finished at all, and would come again or keep its id for ever: it is removed.
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

  /** Stops renewing the locks of jobs that are still in work, and disconnects from the server. */
  async abandon(): Promise<void> {
    await this.lockManager.close()
    await this.backend.close(true)
  }
}
