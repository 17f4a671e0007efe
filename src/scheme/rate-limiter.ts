// Calls waiting for their turn: two bounded queues, interactive first, and the timer that the pace asks for. Its limit may
// change at any time; what it should be is somebody else's affair. It makes no call itself.
import type { Clock } from '../clock.ts'
import { isFull, newPace, type Pace, type PaceLimits, rateOf, refill, type Strain, settle, start } from './aimd.ts'
import type { Urgency } from './provider.ts'

export interface Turn {
  /** Must be called once, when the call has ended. */
  end(strain: Strain): void
}

/** What a higher limit would be used for. */
export interface Load {
  /** Calls that were started, since ever. */
  started: Record<Urgency, number>
  /** Those that wait for their turn, and not for the end of others. */
  waiting: Record<Urgency, number>
}

export interface Pacer {
  /** Waits for a turn; undefined: the queue is full, the wait was too long, or the pacer closes. */
  turn(urgency: Urgency): Promise<Turn | undefined>
  /** Calls per second at present. */
  rate(): number
  /** From now on at most so many calls per second; 0: none. */
  limit(ratePerSecond: number): void
  load(): Load
  close(): void
}

export interface PacerOptions extends PaceLimits {
  clock: Clock
  waitingMax: Record<Urgency, number>
  waitMsMax: Record<Urgency, number>
}

interface Waiting {
  since: number
  settle(turn: Turn | undefined): void
}

const URGENCIES = ['interactive', 'bulk'] as const satisfies readonly Urgency[]
/** Ends of calls wake the queues; this is for those that have waited long enough. */
const LOOK_MS_MAX = 500

export function openPacer(options: PacerOptions): Pacer {
  const { clock } = options
  let limits: PaceLimits = { ratePerSecond: options.ratePerSecond, inFlightMax: options.inFlightMax }
  let pace: Pace = newPace(limits, clock())
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
        queue.shift()?.settle(undefined)
      while (queue.length > 0) {
        const next = start(pace, limits, urgency, now)
        pace = next.pace
        if (!next.started) {
          waitMs = Math.min(waitMs, next.waitMs)
          break
        }
        started[urgency] += 1
        queue.shift()?.settle(turnOf(urgency))
      }
    }
    if (queues.interactive.length + queues.bulk.length > 0) timer = setTimeout(pump, waitMs)
  }

  function turnOf(urgency: Urgency): Turn {
    let ended = false
    return {
      end: strain => {
        if (ended) return
        ended = true
        pace = settle(pace, limits, urgency, strain, clock())
        pump()
      },
    }
  }

  return {
    turn: urgency =>
      new Promise(resolve => {
        const queue = queues[urgency]
        if (closed || queue.length >= options.waitingMax[urgency]) return resolve(undefined)
        queue.push({ since: clock(), settle: resolve })
        pump()
      }),
    rate: () => rateOf(pace, limits),
    limit: ratePerSecond => {
      if (closed || ratePerSecond === limits.ratePerSecond) return
      // What has come until now came at the old one.
      pace = refill(pace, limits, clock())
      limits = { ...limits, ratePerSecond }
      pump()
    },
    load: () => {
      const waiting = (urgency: Urgency) => (isFull(pace, limits, urgency) ? 0 : queues[urgency].length)
      return { started: { ...started }, waiting: { interactive: waiting('interactive'), bulk: waiting('bulk') } }
    },
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const urgency of URGENCIES) for (const waiting of queues[urgency].splice(0)) waiting.settle(undefined)
    },
  }
}
