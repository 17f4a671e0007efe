// Looks every few seconds whether all is well, as `status` does, and writes it to the store, where the console reads it. The
// scheduler runs it. Checks that need a key of the vault or a file of a host are left to `status`.
import { type Catalogue, FAILED_QUEUE } from '../../src/job/catalogue.ts'
import type { Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { RedisInfo } from '../../src/queue/redis-info.ts'
import { every } from '../../src/recurring.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Store } from '../../src/store/pool.ts'
import * as watched from '../../src/store/watch/watched.ts'
import * as workMinutes from '../../src/store/watch/work-minutes.ts'
import { askAll, type Question } from './check.ts'
import type { WorkSources } from './checks/work.ts'
import { CHECKS, PATIENCE, type StatusSources } from './status.ts'

export interface WatchSources {
  store: Store
  queues: Queues
  catalogue: Catalogue
  /** Undefined if the queues are on PostgreSQL. */
  redis: (() => Promise<RedisInfo[]>) | undefined
  scheduleLateMs: number
  /** ms since the epoch. */
  clock: () => number
}

/** Between two looks. A look takes some ms, and up to `PATIENCE.lastMs` while a server is away or slow. */
export const WATCH_MS = 3_000
/** How long the memory of Redis is taken as it was, in ms. */
const MEMORY_MS = 30_000
/**
 * The more rows wait, the longer it takes to count them. So an answer is taken as it was for 20 times as long as it took; for
 * this long at most, in ms. The oldest unpublished result is known by its moment, so an answer that is old names too great an
 * age, never one too small. Counts are shown with the moment of the look: with the next look they are within 10 s.
 */
const REST = { share: 20, unpublishedMs: 30_000, depthMs: 6_000 } as const
/** Of this host alone, or with a key that a scheduler has not. The page sees for itself whether a scheduler looks. */
const NOT_HERE = ['schema', 'vault keys', 'certificate', 'disk', 'scheduler']

export const WATCHED_CHECKS: readonly Question<StatusSources>[] = CHECKS.filter(({ name }) => !NOT_HERE.includes(name))

/** Looks until the returned function is called. */
export function startWatch(sources: WatchSources & { log: Logger }): () => Promise<void> {
  const redis = sources.redis && kept(MEMORY_MS, sources.redis)
  const stops = [
    every(WATCH_MS, openLook({ ...sources, redis }), { ...sources, firstMs: 0 }),
    every(WATCH_MS, () => workMinutes.fold(sources.store), { ...sources, firstMs: 0 }),
  ]
  return async () => {
    await Promise.all(stops.map(stop => stop()))
  }
}

/** What is expensive to ask. */
interface Asks {
  queues: Queues
  unpublished: NonNullable<WorkSources['unpublished']>
}

/** Returns a function that looks once. It isn't called while a look is under way. */
export function openLook(sources: WatchSources): () => Promise<void> {
  const { store, queues } = sources
  const asks = {
    // Redis knows the depth of a queue without counting.
    queues: queues.engine === 'redis' ? queues : restedDepths(queues),
    unpublished: rested(REST.unpublishedMs, () => outbox.pendingAnswers(store)),
  }
  return () => look(sources, { queues: measuredOnce(asks.queues), unpublished: askedOnce(asks.unpublished) })
}

/** Looks once. What the queue server doesn't answer is left as it was, and gets old. */
async function look(
  { store, catalogue, redis, scheduleLateMs, clock }: WatchSources,
  { queues: measured, unpublished }: Asks,
): Promise<void> {
  const sources: StatusSources = {
    store: async () => store,
    queues: async () => measured,
    catalogue,
    redis,
    now: clock(),
    scheduleLateMs,
    unpublished,
    tls: undefined,
    reportsUrl: undefined,
    openKeys: () => Promise.reject(new Error('the scheduler has no key')),
  }
  const measuring = Promise.all(catalogue.kinds.map(kind => queueOf(measured, kind))).catch(() => undefined)
  const checks = await askAll(WATCHED_CHECKS, sources, PATIENCE)
  await watched.writeChecks(
    store,
    checks.map(({ name, state, says, next = null }) => ({ name, state, says, next })),
  )
  const isAway = checks.some(({ name, state }) => name === 'queues' && state === 'critical')
  // A queue server that is away would be awaited for seconds.
  const depths = isAway ? undefined : await measuring
  if (depths) await watched.writeQueues(store, depths)
  const [first] = await unpublished()
  const outboxMs = first ? Math.max(0, clock() - first.oldest) : 0
  await watched.writeMinute(store, { outboxMs, queued: depths && totalsOf(depths, catalogue) })
}

type Depths = Awaited<ReturnType<typeof queueOf>>[]

function totalsOf(depths: Depths, catalogue: Catalogue): { interactiveMs: number; failed: number } {
  const waits = depths.map(({ kind, oldestMs }) => (catalogue.entry(kind).urgent ? (oldestMs ?? 0) : 0))
  return { interactiveMs: Math.max(0, ...waits), failed: depths.reduce((sum, { failed }) => sum + failed, 0) }
}

async function queueOf(queues: Pick<Queues, 'depth' | 'oldestMs'>, kind: string) {
  const [{ waiting, active, delayed }, failed] = await Promise.all([
    queues.depth(kind),
    queues.depth(FAILED_QUEUE(kind)),
  ])
  const oldestMs = waiting === 0 ? null : ((await queues.oldestMs(kind)) ?? null)
  return { kind, waiting, active, delayed, oldestMs, failed: failed.waiting }
}

/** The queues for one look: several checks ask the same. */
function measuredOnce(queues: Queues): Queues {
  const depths = new Map<string, ReturnType<Queues['depth']>>()
  const ages = new Map<string, ReturnType<Queues['oldestMs']>>()
  const once = <T>(known: Map<string, Promise<T>>, queue: string, ask: (queue: string) => Promise<T>) => {
    const asked = known.get(queue) ?? ask(queue)
    known.set(queue, asked)
    return asked
  }
  return {
    ...queues,
    depth: queue => once(depths, queue, queues.depth),
    oldestMs: queue => once(ages, queue, queues.oldestMs),
  }
}

function askedOnce<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  return () => {
    answer ??= ask()
    return answer
  }
}

function restedDepths(queues: Queues): Queues {
  const asks = new Map<string, () => ReturnType<Queues['depth']>>()
  return {
    ...queues,
    depth: queue => {
      const ask = asks.get(queue) ?? rested(REST.depthMs, () => queues.depth(queue))
      asks.set(queue, ask)
      return ask()
    },
  }
}

/** The answer of `ask`, kept for 20 times as long as it took, and `mostMs` at most. A failure is kept, too. */
function rested<T>(mostMs: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  let restUntil = 0
  return () => {
    if (answer && performance.now() < restUntil) return answer
    const began = performance.now()
    const rest = () => {
      const ended = performance.now()
      restUntil = ended + Math.min(mostMs, (ended - began) * REST.share)
    }
    restUntil = Number.POSITIVE_INFINITY
    answer = ask()
    answer.then(rest, rest)
    return answer
  }
}

/** The answer of `ask`, kept for `ms`. A failure is kept, too. */
function kept<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  let askedAt = 0
  return () => {
    if (!answer || performance.now() - askedAt > ms) {
      answer = ask()
      askedAt = performance.now()
      answer.catch(() => {})
    }
    return answer
  }
}
