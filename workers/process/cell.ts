// A job whose worker vanished once is run in a process of its own, so that if it is the one that crashes us it takes
// nobody with it. A chunk is bisected the same way, probe by probe; what can't be done is answered.
import { type ChildProcess, fork } from 'node:child_process'
import { Fault } from '../../src/errors.ts'
import { chunkSizeOf } from '../../src/job/chunk-size.ts'
import { peek } from '../../src/job/envelope/envelope.ts'
import { describeError } from '../../src/log.ts'
import type { Disposition, ReceivedJob } from '../../src/queue/engine.ts'
import type { Deps } from '../deps.ts'
import { findFailing } from '../line/bisect.ts'
import { backoffMs, giveUp, RETRY, untilServersAreBack } from '../line/run-job.ts'
import { CELL_ENV } from './worker-settings.ts'

/** What is asked of the child, one at a time. */
export interface Asked {
  job: ReceivedJob
  poison: number[]
  probe?: { from: number; to: number }
}

/** `unknown`: the probe failed, but not by its records. */
export type Told = { ready: true } | { disposition: Disposition } | { ok: boolean | 'unknown' }

export interface Cell {
  /** Never throws. */
  run(job: ReceivedJob, signal: AbortSignal, deps: Deps): Promise<Disposition>
}

/** `script` opens what a worker opens and answers one `Asked` after another. */
export function openCell(script: string, env: NodeJS.ProcessEnv): Cell {
  let child: ChildProcess | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let inLine = 0

  /** Undefined where the child died of it. */
  async function ask(asked: Asked): Promise<Told | undefined> {
    const asking = child ?? (await begin())
    return new Promise(resolve => {
      const ended = () => resolve(undefined)
      asking.once('exit', ended)
      asking.once('message', (told: Told) => {
        asking.off('exit', ended)
        resolve(told)
      })
      // One that can't be spoken to any more is about to exit.
      asking.send(asked, () => {})
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
      // Not started at all: nothing else will be heard of it.
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

  function leave(): void {
    child?.kill()
    child = undefined
  }

  async function run(job: ReceivedJob, signal: AbortSignal, deps: Deps): Promise<Disposition> {
    try {
      // What it couldn't open when it began, it may be able to when all is back.
      child ??= await begin().catch(() => untilServersAreBack(deps, signal).then(begin))
      const first = await ask({ job, poison: [] })
      if (first) return 'disposition' in first ? first.disposition : { retryInMs: backoffMs(job.attempt) }
      deps.log.error({ job: job.id }, 'a job crashed the process that worked it alone')
      const second = await askWithoutPoison(job)
      if (second && 'disposition' in second) return second.disposition
    } catch (error) {
      deps.log.warn({ job: job.id, error: describeError(error) }, 'a job could not be worked alone')
      if (signal.aborted) return { deferMs: backoffMs(1) }
      if (job.attempt < RETRY.attemptsMax) return { retryInMs: backoffMs(job.attempt) }
    }
    return giveUp(job, undefined, new Fault('crashed'), deps, signal)
  }

  /** A chunk, its bad records left out; undefined where there are none to be told apart. */
  async function askWithoutPoison(job: ReceivedJob): Promise<Told | undefined> {
    const size = chunkSize(job)
    if (size === undefined) return undefined
    const poison = await findFailing(size, async (from, to) => {
      const told = await ask({ job, poison: [], probe: { from, to } })
      if (told && 'ok' in told && told.ok === 'unknown') throw new Fault('store_busy')
      return told !== undefined && 'ok' in told && told.ok === true
    })
    return poison && ask({ job, poison })
  }

  return {
    // A function can't go to another process.
    run({ progress: _, ...job }, signal, deps) {
      inLine += 1
      const mine = turn.then(() => run(job, signal, deps))
      turn = mine.finally(() => {
        inLine -= 1
        if (inLine === 0) leave()
      })
      return mine
    },
  }
}

function chunkSize(job: ReceivedJob): number | undefined {
  const peeked = peek((job.data as { jws: string }).jws)
  if (typeof peeked === 'string') return undefined
  const size = chunkSizeOf(peeked.payload['kind'], peeked.payload['request'])
  return size === 1 ? undefined : size
}
