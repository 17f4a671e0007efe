// A job whose worker vanished once is run in a process of its own, so that if it is the one that crashes us it takes
// nobody with it. A chunk is bisected the same way, probe by probe; what can't be done is answered.
import { type ChildProcess, fork } from 'node:child_process'
import { Fault } from '../src/errors.ts'
import type { Kind } from '../src/job/catalogue.ts'
import { peek } from '../src/job/envelope.ts'
import type { Disposition, ReceivedJob } from '../src/queue/engine.ts'
import { identify } from './attempt.ts'
import type { Deps } from './deps.ts'
import { findPoison } from './poison.ts'
import { giveUp } from './run-job.ts'

/** What is asked of the child, one at a time. */
export interface Asked {
  job: ReceivedJob
  poison: number[]
  probe?: { from: number; to: number }
}

export type Told = { ready: true } | { disposition: Disposition } | { ok: boolean }

export interface Cell {
  run(job: ReceivedJob, signal: AbortSignal, deps: Deps): Promise<Disposition>
}

/** `script` opens what a worker opens and answers one `Asked` after another. */
export function openCell(script: string, env: NodeJS.ProcessEnv): Cell {
  let child: ChildProcess | undefined
  let turn: Promise<unknown> = Promise.resolve()

  async function ask(asked: Asked): Promise<Told | undefined> {
    child ??= await begin()
    const asking = child
    return new Promise(resolve => {
      const ended = () => {
        child = undefined
        resolve(undefined)
      }
      asking.once('exit', ended)
      asking.once('message', (told: Told) => {
        asking.off('exit', ended)
        resolve(told)
      })
      asking.send(asked)
    })
  }

  function begin(): Promise<ChildProcess> {
    const started = fork(script, {
      env: { ...env, TOKENMILL_CELL: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    return new Promise((resolve, reject) => {
      started.once('message', () => resolve(started))
      started.once('exit', () => reject(new Fault('store_busy')))
    })
  }

  async function run(job: ReceivedJob, signal: AbortSignal, deps: Deps): Promise<Disposition> {
    const first = await ask({ job, poison: [] })
    if (first) return 'disposition' in first ? first.disposition : { retryInMs: 1000 }
    deps.log.error({ job: job.id }, 'a job crashed the process that worked it alone')
    const size = chunkSize(job)
    const poison =
      size === undefined
        ? undefined
        : await findPoison(size, async (from, to) => {
            const told = await ask({ job, poison: [], probe: { from, to } })
            return told !== undefined && 'ok' in told && told.ok
          })
    const second = poison && (await ask({ job, poison }))
    if (second && 'disposition' in second) return second.disposition
    return giveUp(job, await identify(job, deps), new Fault('crashed'), deps, signal)
  }

  return {
    run(job, signal, deps) {
      const mine = turn.then(() => run(job, signal, deps).finally(() => leave()))
      turn = mine.catch(() => {})
      return mine
    },
  }

  function leave(): void {
    child?.kill()
    child = undefined
  }
}

function chunkSize(job: ReceivedJob): number | undefined {
  const peeked = peek((job.data as { jws: string }).jws)
  if (typeof peeked === 'string' || (peeked.payload['kind'] as Kind) !== 'token-batch') return undefined
  const size = (peeked.payload['request'] as { block?: { records?: unknown } } | undefined)?.block?.records
  return typeof size === 'number' && Number.isInteger(size) && size > 1 && size <= 1000 ? size : undefined
}
