// Calls waiting for their turn: two bounded queues, interactive first, and the timer that the pace asks for. It makes
// no call itself.
import type { Clock } from '../clock.ts'
import { newPace, type Pace, type PaceLimits, type Strain, settle, start } from './pace.ts'
import type { Urgency } from './provider.ts'

export interface Turn {
  /** Must be called once, when the call has ended. */
  end(strain: Strain): void
}

export interface Pacer {
  /** Waits for a turn; undefined: the queue is full, the wait was too long, or the pacer closes. */
  turn(urgency: Urgency): Promise<Turn | undefined>
  /** Calls per second at present. */
  rate(): number
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
  let pace: Pace = newPace(options, clock())
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const queues: Record<Urgency, Waiting[]> = { interactive: [], bulk: [] }

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
        const next = start(pace, options, urgency, now)
        pace = next.pace
        if (!next.started) {
          waitMs = Math.min(waitMs, next.waitMs)
          break
        }
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
        pace = settle(pace, options, urgency, strain, clock())
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
    rate: () => pace.rate,
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const urgency of URGENCIES) for (const waiting of queues[urgency].splice(0)) waiting.settle(undefined)
    },
  }
}
