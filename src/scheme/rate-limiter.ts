// A rate limiter: calls wait for a permit in two bounded queues; interactive calls go first. aimd.ts computes the rate;
// its limit may change at any time (rate-allocation.ts computes the limit). The limiter itself makes no calls.
import type { Clock } from '../clock.ts'
import {
  type AimdState,
  endCall,
  isFull,
  newAimdState,
  type Overload,
  type RateLimits,
  rateOf,
  refill,
  start,
} from './aimd.ts'
import type { Urgency } from './provider.ts'

interface Permit {
  /** Ends the permit. Must be called once, when the call has ended. */
  end(overload: Overload): void
}

/** The figures that show how much a higher limit would be used. */
export interface Load {
  /** The number of calls started so far. */
  started: Record<Urgency, number>
  /** Calls that wait because of the rate. Calls that wait for others to end aren't counted. */
  waiting: Record<Urgency, number>
}

export interface RateLimiter {
  /** Waits for a permit. Undefined if the queue is full, the wait was too long, or the limiter closes. */
  acquire(urgency: Urgency): Promise<Permit | undefined>
  /** The current rate, in calls per second. */
  rate(): number
  /** The fraction of the limit that is used at present, above 0 and at most 1. */
  part(): number
  /** Sets the limit in calls per second; 0: no calls. */
  limit(ratePerSecond: number): void
  load(): Load
  close(): void
}

export interface RateLimiterOptions extends RateLimits {
  clock: Clock
  waitingMax: Record<Urgency, number>
  waitMsMax: Record<Urgency, number>
}

interface Waiting {
  since: number
  resolve(permit: Permit | undefined): void
}

const URGENCIES = ['interactive', 'bulk'] as const satisfies readonly Urgency[]
/** The end of a call starts waiting calls. This timer also looks, for calls that have waited too long. */
const LOOK_MS_MAX = 500

export function openRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { clock } = options
  let limits: RateLimits = { ratePerSecond: options.ratePerSecond, inFlightMax: options.inFlightMax }
  let state: AimdState = newAimdState(limits, clock())
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const queues: Record<Urgency, Waiting[]> = { interactive: [], bulk: [] }
  const started: Record<Urgency, number> = { interactive: 0, bulk: 0 }

  function pump(): void {
    clearTimeout(timer)
    timer = undefined
    const now = clock()
    let waitMs = LOOK_MS_MAX
    for (const urgency of URGENCIES) {
      const queue = queues[urgency]
      while (queue[0] !== undefined && now - queue[0].since > options.waitMsMax[urgency])
        queue.shift()?.resolve(undefined)
      while (queue.length > 0) {
        const next = start(state, limits, urgency, now)
        state = next.state
        if (!next.started) {
          waitMs = Math.min(waitMs, next.waitMs)
          break
        }
        started[urgency] += 1
        queue.shift()?.resolve(permitOf(urgency))
      }
    }
    if (queues.interactive.length + queues.bulk.length > 0) timer = setTimeout(pump, waitMs)
  }

  function permitOf(urgency: Urgency): Permit {
    let ended = false
    return {
      end: overload => {
        if (ended) return
        ended = true
        state = endCall(state, limits, urgency, overload, clock())
        pump()
      },
    }
  }

  return {
    acquire: urgency =>
      new Promise(resolve => {
        const queue = queues[urgency]
        if (closed || queue.length >= options.waitingMax[urgency]) return resolve(undefined)
        queue.push({ since: clock(), resolve })
        pump()
      }),
    // The rate also rises while no calls are made, so it is computed for the present time.
    rate: () => rateOf(refill(state, limits, clock()), limits),
    part: () => refill(state, limits, clock()).part,
    limit: ratePerSecond => {
      if (closed || ratePerSecond === limits.ratePerSecond) return
      // The tokens up to now accrue at the old rate.
      state = refill(state, limits, clock())
      limits = { ...limits, ratePerSecond }
      pump()
    },
    load: () => {
      const waiting = (urgency: Urgency) => (isFull(state, limits, urgency) ? 0 : queues[urgency].length)
      return { started: { ...started }, waiting: { interactive: waiting('interactive'), bulk: waiting('bulk') } }
    },
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const urgency of URGENCIES) for (const waiting of queues[urgency].splice(0)) waiting.resolve(undefined)
    },
  }
}
