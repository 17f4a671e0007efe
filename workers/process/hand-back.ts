// Hands the jobs of worker processes that ended back to their queues, so that the other processes needn't wait until
// locks run out. While the queue server is away it tries again, and after a success it looks again: what the process had sent
// before its end may reach a server with a load on it afterwards, and take another job. It never decides that a process has ended: the
// supervisor has seen it.
import { setTimeout as pause } from 'node:timers/promises'
import { describeError, type Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'

/** A process that has ended; `kinds`: those that it worked. */
export interface EndedProcess {
  processId: string
  kinds: readonly string[]
}

/** Connects to the queues, gives them to `work` and disconnects. */
export type WithQueues = <T>(work: (queues: Pick<Queues, 'handBack'>) => Promise<T>) => Promise<T>

interface HandBackOptions {
  withQueues: WithQueues
  log: Logger
  /** Between two tries, in ms. */
  retryMs?: number
  /** How long after a success it looks again, each time, in ms. */
  againMs?: readonly number[]
}

/** After so many tries the locks have run out. */
const TRIES_MAX = 60
const AGAIN_MS = [1_000, 5_000, 20_000, 60_000] as const

export interface HandBack {
  /** Hands back the jobs of a process, and tries again after a failure. */
  begin(ended: EndedProcess): void
  /** Ends the trying, and resolves once the try under way has ended. */
  close(): Promise<void>
}

export function openHandBack({ withQueues, log, retryMs = 1_000, againMs = AGAIN_MS }: HandBackOptions): HandBack {
  /** Processes whose jobs must be handed back, and how often that failed. */
  const owed = new Map<EndedProcess, number>()
  /** How often the jobs of a process were handed back. */
  const looks = new WeakMap<EndedProcess, number>()
  const later = new Set<NodeJS.Timeout>()
  const closing = new AbortController()
  let running: Promise<void> | undefined

  async function handBackAll(queues: Pick<Queues, 'handBack'>): Promise<void> {
    for (const ended of owed.keys()) {
      const { processId, kinds } = ended
      const counts = await Promise.all(kinds.map(kind => queues.handBack(kind, processId)))
      owed.delete(ended)
      lookAgain(ended)
      const jobs = counts.reduce((sum, count) => sum + count, 0)
      if (jobs > 0) log.warn({ jobs }, 'the jobs of a worker process that ended were handed back to their queues')
    }
  }

  function lookAgain(ended: EndedProcess): void {
    const done = looks.get(ended) ?? 0
    const ms = againMs[done]
    if (ms === undefined || closing.signal.aborted) return
    looks.set(ended, done + 1)
    const timer = setTimeout(() => {
      later.delete(timer)
      begin(ended)
    }, ms)
    timer.unref()
    later.add(timer)
  }

  function begin(ended: EndedProcess): void {
    owed.set(ended, 0)
    running ??= run()
  }

  function noteFailure(error: unknown): void {
    for (const [ended, failures] of owed) {
      if (failures + 1 < TRIES_MAX && !closing.signal.aborted) owed.set(ended, failures + 1)
      else owed.delete(ended)
    }
    const next = owed.size > 0 ? 'trying again' : 'their locks must run out'
    log.warn({ error: describeError(error), next }, 'the jobs of a worker process that ended could not be handed back')
  }

  async function run(): Promise<void> {
    while (owed.size > 0) {
      try {
        await withQueues(handBackAll)
      } catch (error) {
        noteFailure(error)
        if (owed.size > 0) await pause(retryMs, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
    running = undefined
  }

  return {
    begin,
    async close() {
      closing.abort()
      for (const timer of later) clearTimeout(timer)
      await running
    },
  }
}
