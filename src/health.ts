// Whether a process can work: the servers that it needs answer, and nothing else keeps it from working. A ping of a
// server has a time limit, so that a server that hangs makes this process "not ready" and doesn't make the check hang.
import type { MetricsRegistry, Snapshot } from './metrics.ts'
import { type Cause, causeOf, type Trouble } from './server-error.ts'

export interface Health {
  /** What is wrong, one line each; empty: the process is ready. Throws only if `others` does. */
  reasons(): Promise<string[]>
  /** The process's metrics, after the gauges were measured again. */
  snapshot(): Promise<Snapshot>
}

/** A server that the process needs. */
interface Asked {
  /** Rejects if the server doesn't answer or doesn't take a small write. */
  ping(): Promise<unknown>
  /** What it refused this process lately. */
  trouble?(): Trouble | undefined
}

/** The servers that the process needs; a server that it doesn't need is left out. */
export interface Needs {
  store?: Asked & {
    /** The pool's number of connections by state. */
    connections(): Record<string, number>
    writableServers(): number
  }
  queue?: Asked
  /** How far this host's clock is ahead of the store's, in ms: of a process that signs or checks times. */
  clock?: { aheadMs(): number }
  /** Further reasons why the process can't work. */
  others?: () => Promise<string[]>
  /** Measures further gauges. Doesn't throw. */
  collect?: () => Promise<void>
}

export const ASKED_MS_MAX = 3_000
const SILENT = { store: 'the store does not answer', queue: 'the queue server does not answer' } as const
const NAMES = { store: 'the store', queue: 'the queue server' } as const
type Server = keyof typeof SILENT

export function openHealth(registry: MetricsRegistry, { store, queue, clock, others, collect }: Needs): Health {
  const up = registry.gauge('dependency_up', '1 if the server answered when last asked, else 0.', { dependency: [] })
  const pool = store && registry.gauge('store_connections', 'Connections of the store pool.', { state: [] })
  const writable =
    store && registry.gauge('store_writable_servers', 'Servers of DATABASE_URL that took writes when last asked.')

  const refuses = registry.gauge('dependency_refuses', '1 while the server answers with an error of this code.', {
    dependency: [],
    code: [],
  })
  const skew = clock && registry.gauge('clock_skew_seconds', 'The clock of this host minus the clock of the store.')
  const shown = new Map<Server, string>()

  async function ask(dependency: Server, { ping, trouble }: Asked): Promise<string[]> {
    const failure = await within(ASKED_MS_MAX, ping()).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    const cause = (failure && causeOf(failure.error)) ?? trouble?.()
    up.set({ dependency }, failure && !cause ? 0 : 1)
    show(dependency, cause)
    if (cause) return [`${NAMES[dependency]}: ${cause.says}`]
    return failure ? [SILENT[dependency]] : []
  }

  function show(dependency: Server, cause: Cause | undefined): void {
    const before = shown.get(dependency)
    if (before !== undefined && before !== cause?.code) refuses.remove({ dependency, code: before })
    shown.delete(dependency)
    if (!cause) return
    refuses.set({ dependency, code: cause.code }, 1)
    shown.set(dependency, cause.code)
  }

  async function reasons(): Promise<string[]> {
    const asked = [
      ...(store ? [ask('store', store)] : []),
      ...(queue ? [ask('queue', queue)] : []),
      ...(others ? [others()] : []),
    ]
    const lines = (await Promise.all(asked)).flat()
    return clock ? [...lines, ...clockReasons(clock.aheadMs())] : lines
  }

  return {
    reasons,
    async snapshot() {
      for (const [state, n] of Object.entries(store?.connections() ?? {})) pool?.set({ state }, n)
      if (store) writable?.set(store.writableServers())
      if (clock) skew?.set(clock.aheadMs() / 1000)
      await Promise.all([reasons(), collect?.()])
      return registry.snapshot()
    },
  }
}

/** A process whose clock is further off than this is not ready, and a worker takes no jobs, in ms. */
export const SKEW_MS_MAX = 5_000

/** Why a process whose clock is so far ahead of the store's is not ready. */
export function clockReasons(aheadMs: number): string[] {
  return Math.abs(aheadMs) > SKEW_MS_MAX ? [`the clock is ${Math.round(aheadMs / 1000)} s off the store's`] : []
}

/** What sets some series of gauges, and what removes them. */
export interface Measure {
  /** Asks the server. What it returns sets the series. */
  ask(): Promise<() => void>
  forget(): void
}

/**
 * Measures one figure. If the server doesn't answer in time, the figure has no value: the old value may be wrong by now, and
 * zero would mean that all is well. An answer that comes later is dropped.
 */
export async function measureOrForget({ ask, forget }: Measure): Promise<void> {
  await within(ASKED_MS_MAX, ask()).then(
    set => set(),
    () => forget(),
  )
}

/** Rejects if `asked` takes longer than `ms`. */
async function within<T>(ms: number, asked: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
