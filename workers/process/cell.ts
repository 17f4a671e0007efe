// A job whose worker vanished once is run in a process of its own, a cell: if the job crashes its process, no other job
// is lost with it. If a chunk crashes it, the records that cause the crash are found by probes, each in a cell; if none
// does, the crash came from outside, and the chunk is tried again. A job that can't be done is answered 500.
import { type ChildProcess, fork } from 'node:child_process'
import { Fault } from '../../src/errors.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import { chunkSizeOf } from '../../src/job/envelope/chunk-size.ts'
import { peek } from '../../src/job/envelope/envelope.ts'
import { describeError } from '../../src/logger.ts'
import type { Disposition, ReceivedJob } from '../../src/queue/engine.ts'
import { findFailing } from '../line/bisect.ts'
import type { LineDeps } from '../line/deps.ts'
import { backoffMs, giveUp, RETRY, untilServersAreBack } from '../line/run-job.ts'
import { CELL_ENV } from './worker-settings.ts'

/** A request to a cell; a worker sends one at a time. `probe`: only try these records of a chunk. */
export interface CellRequest {
  job: ReceivedJob
  poison: number[]
  probe?: { from: number; to: number }
  /** After so long, in ms, the cell waits for no server any more: it gives the job back. */
  forMs: number
}

/** `unknown`: the probe failed, but not because of its records. */
export type CellReply = { ready: true } | { disposition: Disposition } | { ok: boolean | 'unknown' }

export interface Cell {
  /** Runs a job in a cell. Never throws. */
  run(job: ReceivedJob, signal: AbortSignal, deps: LineDeps): Promise<Disposition>
}

/** A job that takes longer, in ms, hangs. A report of a whole ledger may take hours; its own process has a limit, too. */
const HUNG_MS = { other: 30 * 60_000, report: 6 * 3_600_000 } as const
/** So much earlier, in ms, a job that only waits for a server is given back. */
const GIVEN_BACK_MS = 60_000

/**
 * Opens cells. `script` opens what a worker opens, and replies to one request after another. A request that isn't answered
 * within `hungMs` counts as one that crashes its process.
 */
export function openCell(script: string, env: NodeJS.ProcessEnv, { hungMs }: { hungMs?: number } = {}): Cell {
  let child: ChildProcess | undefined
  /** Settles when the last job has ended: jobs are run one after the other. */
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0

  /** Sends a request to the cell; undefined if the request crashed the cell, or hung until it was ended. */
  async function ask(request: Omit<CellRequest, 'forMs'>): Promise<CellReply | undefined> {
    const asked = child ?? (await begin())
    return new Promise(resolve => {
      // Otherwise all jobs behind it would wait for ever, and nobody would be answered.
      const forMs = hungMs ?? (isReport(request.job) ? HUNG_MS.report : HUNG_MS.other)
      const hung = setTimeout(() => asked.kill('SIGKILL'), forMs)
      const end = () => {
        clearTimeout(hung)
        resolve(undefined)
      }
      asked.once('exit', end)
      asked.once('message', (reply: CellReply) => {
        asked.off('exit', end)
        clearTimeout(hung)
        resolve(reply)
      })
      // A process that accepts no message is about to exit.
      const sent: CellRequest = { ...request, forMs: Math.max(0, forMs - GIVEN_BACK_MS) }
      asked.send(sent, () => {})
    })
  }

  function begin(): Promise<ChildProcess> {
    const started = fork(script, {
      env: { ...env, ...CELL_ENV },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    child = started
    return new Promise((resolve, reject) => {
      started.once('message', () => resolve(started))
      // A process that couldn't be started emits only this event.
      started.on('error', () => {
        if (started.pid !== undefined) return
        if (child === started) child = undefined
        reject(new Fault('store_busy'))
      })
      started.once('exit', () => {
        if (child === started) child = undefined
        reject(new Fault('store_busy'))
      })
    })
  }

  function end(): void {
    child?.kill()
    child = undefined
  }

  async function run(job: ReceivedJob, signal: AbortSignal, deps: LineDeps): Promise<Disposition> {
    try {
      // If a cell can't start, it is tried again once store and queue server are back.
      child ??= await begin().catch(() => untilServersAreBack(deps, signal).then(begin))
      const reply = await ask({ job, poison: [] })
      if (reply) return 'disposition' in reply ? reply.disposition : { retryInMs: backoffMs(job.attempt) }
      deps.log.error({ job: job.id }, 'a job crashed the process that worked it alone')
      const poison = await findPoison(job, deps)
      if (poison?.length === 0) throw new Fault('crashed')
      const withoutPoison = poison && (await ask({ job, poison }))
      if (withoutPoison && 'disposition' in withoutPoison) return withoutPoison.disposition
    } catch (error) {
      deps.log.warn({ job: job.id, error: describeError(error) }, 'a job could not be worked alone')
      if (signal.aborted) return { deferMs: backoffMs(1) }
      if (job.attempt < RETRY.attemptsMax) return { retryInMs: backoffMs(job.attempt) }
    }
    return giveUp(job, undefined, new Fault('crashed'), deps, signal)
  }

  /** The records of a chunk that crash its process; undefined if they can't be found. */
  async function findPoison(job: ReceivedJob, { catalogue }: LineDeps): Promise<number[] | undefined> {
    const size = chunkSize(job, catalogue)
    if (size === undefined) return undefined
    return findFailing(size, async (from, to) => {
      const reply = await ask({ job, poison: [], probe: { from, to } })
      if (reply && 'ok' in reply && reply.ok === 'unknown') throw new Fault('store_busy')
      return reply !== undefined && 'ok' in reply && reply.ok === true
    })
  }

  return {
    // A function can't be sent to another process.
    run({ progress: _, ...job }, signal, deps) {
      waiting += 1
      const disposition = last.then(() => run(job, signal, deps))
      last = disposition.finally(() => {
        waiting -= 1
        if (waiting === 0) end()
      })
      return disposition
    },
  }
}

function payloadOf({ data }: ReceivedJob): Readonly<Record<string, unknown>> {
  const peeked = peek((data as { jws?: string } | undefined)?.jws ?? '')
  return typeof peeked === 'string' ? {} : peeked.payload
}

const isReport = (job: ReceivedJob) => payloadOf(job)['kind'] === 'report'

function chunkSize(job: ReceivedJob, catalogue: Catalogue): number | undefined {
  const { kind, request } = payloadOf(job)
  const size = chunkSizeOf(catalogue.find(kind), request)
  return size === 1 ? undefined : size
}
