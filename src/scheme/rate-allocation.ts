// Divides the rate that a provider grants an installation between its processes: how much a process wants, how much is
// due to it, how much of that is free now, and which processes are gone. Pure: it reads no clock and no store.

import type { Urgency } from './provider.ts'
import type { Load } from './rate-limiter.ts'

export interface Claim {
  process: string
  /** The process serves interactive kinds, and has a larger floor. */
  interactive: boolean
  /** Calls per second. */
  wants: Record<Urgency, number>
  /** The most that the process may be using now, calls per second. */
  holds: number
}

/** A process stops using a share that it couldn't renew for this long. Without the store it could record no call anyway. */
export const HOLD_MS = 5_000
/** Other processes take a share this long after its last renewal that they saw: later than HOLD_MS, as steady clocks drift. */
const SILENT_MS = 6_000

/** The fraction of a granted rate that idle processes keep, for all of a sort together, so that each can begin at once. */
const FLOORS = { interactive: 0.03, bulk: 0.005 } as const
/** The fraction of a granted rate that interactive calls may take from bulk calls. */
const INTERACTIVE_MOST = 0.5

/** The rate due to each process; the sum never exceeds `granted`. */
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

/** Each gets what it needs; those that can't get all they need get equal parts. */
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

/** The part of what is due to `ours` that is free now: others may not have given back their surplus yet. */
export function shareOf(granted: number, ours: Claim, others: readonly Claim[]): number {
  const target = targetsOf(granted, [...others, ours]).get(ours.process) ?? 0
  const free = granted - sum(others.map(({ holds }) => holds))
  // Rounded down: shares that are all rounded up would exceed the grant.
  return Math.floor(Math.max(0, Math.min(target, free)) * 1_000) / 1_000
}

/** A process's row for one provider in `tokenmill.scheme_rate`, which all processes read. */
export interface RateClaim extends Claim {
  provider: string
  /** Counts the renewals of its process. */
  beat: number
}

interface Renewal {
  seen: Seen
  /** Processes that are gone: their rows are to be deleted. */
  silent: string[]
  /** The rows of all other processes. */
  others: RateClaim[]
  /** This process's rows, to be written. */
  ours: RateClaim[]
  /** What this process may use once its rows are written, by provider. */
  shares: ReadonlyMap<string, number>
}

/**
 * The next rows and shares, from the rows that were read under the lock. `ours`: a row per provider with what this
 * process uses now; `now`: its steady clock, read after the rows. A process whose share shrinks still holds the old share
 * in its row until its next renewal: nobody takes a rate that is still in use, even if the answer to this write is lost.
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
    // A process without a row held nothing.
    const held = lines.some(one => isOurs(one) && same(one)) ? line.holds : 0
    return { ...line, holds: Math.max(held, share) }
  })
  return { seen, silent, others, ours: written, shares }
}

/** The last renewal seen of each process, and since when, in ms of this process's steady clock: no wall clock counts. */
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
  /** Calls started per second, a moving average. */
  used: Record<Urgency, number>
  started: Record<Urgency, number>
}

/** Recent use is multiplied by this, because the next moment may need more. */
const HEADROOM = { interactive: 1.5, bulk: 1.25 } as const
/** Seconds of the moving average: bulk comes in chunks, and ends suddenly. */
const LATELY = { interactive: 3, bulk: 0.25 } as const
/** Waiting calls shall have started within this many seconds. */
const WAIT = 0.25

export const NO_DEMAND: Demand = {
  wants: { interactive: 0, bulk: 0 },
  used: { interactive: 0, bulk: 0 },
  started: { interactive: 0, bulk: 0 },
}

/** `seconds` after `before`, above 0. */
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
