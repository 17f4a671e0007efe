// Divides the rate that a provider grants an installation among its processes. It computes how much a process wants,
// what its share is, how much of the share is free now, and which processes are gone. Pure: it reads no clock and no
// store.

import type { Urgency } from './provider.ts'
import type { Load } from './rate-limiter.ts'

export interface Claim {
  process: string
  /** The process serves interactive kinds, so it keeps a larger minimum share. */
  interactive: boolean
  /** The rate that the process could use, in calls per second. */
  wants: Record<Urgency, number>
  /** The rate that the process may be using now at most, in calls per second. */
  holds: number
}

/**
 * A process stops using a share that it couldn't renew for this long. Without the store it couldn't record a call
 * anyway.
 */
export const HOLD_MS = 5_000
/**
 * Other processes take a process's share this long after they last saw it renewed. This is longer than HOLD_MS, because
 * steady clocks drift.
 */
const SILENT_MS = 6_000

/** The fraction of a granted rate that all idle processes of one sort keep together, so that each can begin at once. */
const FLOORS = { interactive: 0.03, bulk: 0.005 } as const
/** The largest fraction of a granted rate that interactive calls may take from bulk calls. */
const INTERACTIVE_MOST = 0.5

/** The share of each process. The sum never exceeds `granted`. */
export function targetsOf(granted: number, claims: readonly Claim[]): Map<string, number> {
  const interactive = claims.filter(claim => claim.interactive).length
  const floors = claims.map(claim =>
    claim.interactive
      ? (granted * FLOORS.interactive) / interactive
      : (granted * FLOORS.bulk) / (claims.length - interactive),
  )
  const beyond = (index: number, wanted: number) => Math.max(0, wanted - (floors[index] ?? 0))
  const urgent = claims.map(({ wants }, index) => beyond(index, wants.interactive))
  const bulk = claims.map(({ wants }, index) => beyond(index, wants.interactive + wants.bulk) - (urgent[index] ?? 0))
  const room = granted - sum(floors)
  const first = fillEqually(urgent, Math.min(room, granted * INTERACTIVE_MOST))
  const second = fillEqually(bulk, room - sum(first))
  const rest = fillEqually(
    urgent.map((need, index) => need - (first[index] ?? 0)),
    room - sum(first) - sum(second),
  )
  const parts = [floors, first, second, rest]
  return new Map(claims.map(({ process }, index) => [process, sum(parts.map(part => part[index] ?? 0))]))
}

/**
 * Divides `room` by needs: each process gets what it needs. If `room` is too small, the processes with large needs get
 * equal parts.
 */
function fillEqually(needs: readonly number[], room: number): number[] {
  const filled = needs.map(() => 0)
  let left = Math.max(0, room)
  const order = needs.map((need, index) => ({ need, index })).sort((a, b) => a.need - b.need)
  for (const [at, { need, index }] of order.entries()) {
    const part = Math.min(need, left / (order.length - at))
    filled[index] = part
    left -= part
  }
  return filled
}

/** The part of the share of `ours` that is free now. Others may still hold more than their share. */
export function shareOf(granted: number, ours: Claim, others: readonly Claim[]): number {
  const target = targetsOf(granted, [...others, ours]).get(ours.process) ?? 0
  const free = granted - sum(others.map(({ holds }) => holds))
  // Rounded down, because shares that were rounded up could exceed the grant.
  return Math.floor(Math.max(0, Math.min(target, free)) * 1_000) / 1_000
}

/** One process's row for one provider in `tokenmill.scheme_rate`. All processes read these rows. */
export interface RateClaim extends Claim {
  provider: string
  /** A number that the process increases each time it renews its rows. */
  beat: number
}

interface Renewal {
  seen: Seen
  /** Processes that are gone. Their rows are to be deleted. */
  silent: string[]
  /** The rows of all other processes. */
  others: RateClaim[]
  /** This process's new rows, to be written. */
  ours: RateClaim[]
  /** The rate that this process may use once its rows are written, by provider. */
  shares: ReadonlyMap<string, number>
}

/**
 * Computes the next rows and shares from the rows that were read under the lock. `ours`: one row per provider with what
 * this process uses now; `now`: its steady clock, read after the rows. If the share of a process shrinks, its row keeps
 * the old share until its next renewal: so nobody takes a rate that is still in use, even if the answer to this write
 * is lost.
 */
export function renew(
  granted: ReadonlyMap<string, number>,
  ours: readonly RateClaim[],
  { lines, seen: before, now }: { lines: readonly RateClaim[]; seen: Seen; now: number },
): Renewal {
  const isOurs = ({ process }: RateClaim) => process === ours[0]?.process
  const seen = observe(
    before,
    lines.filter(line => !isOurs(line)),
    now,
  )
  const silent = [...seen].filter(([, { since }]) => now - since >= SILENT_MS).map(([process]) => process)
  const others = lines.filter(line => !isOurs(line) && !silent.includes(line.process))
  const shares = new Map<string, number>()
  const written = ours.map(line => {
    const same = ({ provider }: RateClaim) => provider === line.provider
    const share = shareOf(granted.get(line.provider) ?? 0, line, others.filter(same))
    shares.set(line.provider, share)
    // A process that had no row held nothing.
    const held = lines.some(one => isOurs(one) && same(one)) ? line.holds : 0
    return { ...line, holds: Math.max(held, share) }
  })
  return { seen, silent, others, ours: written, shares }
}

/**
 * The last renewal that was seen of each process, and since when, in ms of this process's steady clock. Wall clocks
 * play no part.
 */
export type Seen = ReadonlyMap<string, { beat: number; since: number }>

function observe(seen: Seen, lines: readonly RateClaim[], now: number): Seen {
  return new Map(
    lines.map(({ process, beat }) => {
      const before = seen.get(process)
      return [process, before?.beat === beat ? before : { beat, since: now }]
    }),
  )
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

export interface Demand {
  wants: Record<Urgency, number>
  /** Calls started per second, as a moving average. */
  used: Record<Urgency, number>
  started: Record<Urgency, number>
}

/** The recent rate is multiplied by this factor, because the next moment may need more. */
const HEADROOM = { interactive: 1.5, bulk: 1.25 } as const
/** The time constant of the moving average, in seconds. Bulk calls come in chunks and end suddenly. */
const LATELY = { interactive: 3, bulk: 0.25 } as const
/** The wanted rate is high enough to start all waiting calls within this many seconds. */
const WAIT = 0.25

export const NO_DEMAND: Demand = {
  wants: { interactive: 0, bulk: 0 },
  used: { interactive: 0, bulk: 0 },
  started: { interactive: 0, bulk: 0 },
}

/** The demand `seconds` after `before`; `seconds` is above 0. */
export function demandOf(before: Demand, load: Load, seconds: number): Demand {
  const used = (urgency: Urgency) => {
    const weight = 1 - Math.exp(-seconds / LATELY[urgency])
    const now = (load.started[urgency] - before.started[urgency]) / seconds
    return before.used[urgency] + weight * (now - before.used[urgency])
  }
  const recent = { interactive: used('interactive'), bulk: used('bulk') }
  const want = (urgency: Urgency) => recent[urgency] * HEADROOM[urgency] + load.waiting[urgency] / WAIT
  return { used: recent, started: load.started, wants: { interactive: want('interactive'), bulk: want('bulk') } }
}
