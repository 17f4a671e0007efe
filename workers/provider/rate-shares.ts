// This process's shares of the rate limits that providers grant to the whole installation. A share is renewed in the
// store about once a second, sooner if demand shifts. It ends if it isn't renewed for too long, and is given back when
// the process stops. src/scheme/rate-allocation.ts computes the shares.
import { randomInt, randomUUID } from 'node:crypto'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import type { SchemeRate } from '../../src/scheme/open.ts'
import {
  type Demand,
  demandOf,
  HOLD_MS,
  NO_DEMAND,
  type RateClaim,
  renew,
  type Seen,
  shareOf,
} from '../../src/scheme/rate-allocation.ts'
import type { Store } from '../../src/store/pool.ts'
import * as schemeRates from '../../src/store/provider/scheme-rates.ts'
import type { WorkerMetrics } from '../metrics/metrics.ts'

export interface SharesOptions {
  /** A UUID. The process that had it before is dead, and this process takes over its shares. */
  place?: string | undefined
  /** Whether the process serves interactive kinds. */
  interactive: boolean
  log: Logger
  metrics: Pick<WorkerMetrics, 'schemeShare' | 'schemeRate' | 'breakerOpen'>
}

export interface Shares {
  /** Gives the shares back; no provider may be called after that. */
  close(): Promise<void>
}

const LOOK_MS = 100
const RENEW_MS = 1_000
/** How often a process with unmet demand reads the shares and demands of the others. */
const READ_MS = 200
/** Demand measured over a shorter time isn't meaningful. */
const DEMAND_MS = 100
/** The share of a granted rate from which on an early renewal is worth its cost. */
const WORTH = 0.02

const paceOf = ({ granted, part, slowdown }: SchemeRate): schemeRates.Pace => ({
  granted,
  rate: granted * part(),
  slowdown: slowdown(),
})

/** Opens the shares. Resolves when every provider has its first share. */
export async function openShares(
  rates: readonly SchemeRate[],
  store: Store,
  { place, interactive, log, metrics }: SharesOptions,
): Promise<Shares> {
  const process = place ?? randomUUID()
  // A steady clock: an operator may change the wall clock.
  const clock = () => performance.now()
  const granted = new Map(rates.map(({ name, granted: rate }) => [name, rate]))
  const shares = new Map<string, number>()
  const demands = new Map<string, Demand>()
  let others: readonly RateClaim[] = []
  let seen: Seen = new Map()
  // Random: if it went on from the predecessor's number, other processes could believe that this process is silent.
  let beat = randomInt(2 ** 40)
  let measuredAt = Number.NEGATIVE_INFINITY
  let renewedAt = Number.NEGATIVE_INFINITY
  let readAt = Number.NEGATIVE_INFINITY
  let end: NodeJS.Timeout | undefined

  function use(given: ReadonlyMap<string, number>): void {
    for (const rate of rates) {
      shares.set(rate.name, given.get(rate.name) ?? 0)
      rate.limit(given.get(rate.name) ?? 0)
    }
  }

  function measure(): void {
    const seconds = Math.min(10, (clock() - measuredAt) / 1_000)
    if (seconds * 1_000 < DEMAND_MS) return
    measuredAt = clock()
    for (const { name, load } of rates) demands.set(name, demandOf(demands.get(name) ?? NO_DEMAND, load(), seconds))
  }

  const lineOf = ({ name }: SchemeRate): RateClaim => ({
    provider: name,
    process,
    interactive,
    wants: (demands.get(name) ?? NO_DEMAND).wants,
    holds: shares.get(name) ?? 0,
    beat,
  })

  const isUnmet = (rate: SchemeRate) => {
    const { wants, holds } = lineOf(rate)
    return wants.interactive + wants.bulk > holds + rate.granted * WORTH
  }

  /** Whether an exchange would change our share enough, judging by what is known of the other processes. */
  function isShifting(rate: SchemeRate): boolean {
    const ours = lineOf(rate)
    const theirs = others.filter(({ provider }) => provider === rate.name)
    return Math.abs(shareOf(rate.granted, ours, theirs) - ours.holds) > rate.granted * WORTH
  }

  async function exchange(): Promise<boolean> {
    beat += 1
    const sentAt = clock()
    renewedAt = sentAt
    const ours = rates.map(lineOf)
    const paces = new Map(rates.map(rate => [rate.name, paceOf(rate)]))
    const renewal = await store.transaction(async db => {
      await schemeRates.hold(db)
      const lines = await schemeRates.findAll(db)
      const next = renew(granted, ours, { lines, seen, now: clock() })
      await schemeRates.removeOf(db, next.silent)
      await schemeRates.writeAll(db, next.ours, paces)
      return next
    })
    seen = renewal.seen
    others = renewal.others
    const left = sentAt + HOLD_MS - clock()
    if (left <= 0) return false
    use(renewal.shares)
    clearTimeout(end)
    end = setTimeout(() => {
      log.warn('no share of a scheme rate could be renewed; nothing is called until it can')
      use(new Map())
    }, left)
    return ours.some(({ provider, holds }) => (renewal.shares.get(provider) ?? 0) < holds)
  }

  async function renewAll(): Promise<void> {
    // A second exchange lets the other processes use at once what this process has just given up.
    if (await exchange()) await exchange()
  }

  async function look(): Promise<void> {
    measure()
    if (clock() - readAt >= READ_MS && rates.some(isUnmet)) {
      // Read without the lock, because shares change only in an exchange.
      readAt = clock()
      others = (await schemeRates.findAll(store)).filter(line => line.process !== process)
    }
    if (clock() - renewedAt >= RENEW_MS || (clock() - renewedAt >= READ_MS && rates.some(isShifting))) await renewAll()
    for (const { name, rate, isResting } of rates) {
      metrics.schemeShare.set({ provider: name }, shares.get(name) ?? 0)
      metrics.schemeRate.set({ provider: name }, rate())
      metrics.breakerOpen.set({ provider: name }, isResting() ? 1 : 0)
    }
  }

  use(new Map())
  measure()
  await renewAll()
  const stop = every(LOOK_MS, look, { log })
  return {
    close: async () => {
      await stop()
      clearTimeout(end)
      use(new Map())
      await schemeRates.removeOf(store, [process])
    },
  }
}
