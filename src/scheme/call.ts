// One call to a provider. The call waits for a permit of the rate limiter, is held back while the circuit breaker is
// open, and reports its end to both. The connector interprets the answer; nothing is repeated here.
import type { Clock } from '../clock.ts'
import { type OutboundAnswer, OutboundError } from '../outbound.ts'
import type { Overload } from './aimd.ts'
import { admit, type Breaker, type BreakerLimits, newBreaker, transition } from './breaker.ts'
import type { Urgency } from './provider.ts'
import { openRateLimiter, type RateLimiter } from './rate-limiter.ts'
import { noteSign, type Signs, type Slowdown, slowdownOf } from './slowdown.ts'

type Called =
  | { called: 'answered'; answer: OutboundAnswer }
  /** No readable answer arrived. `sent`: the call may have had an effect. */
  | { called: 'failed'; sent: boolean }
  /** The call was held back and never sent. */
  | { called: 'kept'; afterMs: number }

export interface Caller extends Pick<RateLimiter, 'rate' | 'part' | 'limit' | 'load'> {
  /**
   * Makes one call. `overloadOf` says whether an answer is a sign of overload; without it a 429 and the 5xx of a
   * gateway are.
   */
  call(
    urgency: Urgency,
    request: () => Promise<OutboundAnswer>,
    overloadOf?: (answer: OutboundAnswer) => Overload,
  ): Promise<Called>
  /** The breaker is open: calls are held back, because too many failed. */
  isResting(): boolean
  /** How the provider slows this process; undefined if it doesn't. */
  slowdown(): Slowdown | undefined
  close(): void
}

interface CallerOptions {
  ratePerSecond: number
  connections: number
  clock: Clock
}

const BREAKER_LIMITS: BreakerLimits = { failuresMax: 10, restMs: 2_000, restMsMax: 60_000 }
const WAITING_MAX = { interactive: 1_000, bulk: 10_000 }
const WAIT_MS_MAX = { interactive: 10_000, bulk: 120_000 }
/** After how long to try again a call that found its queue full. */
const LATER_MS = 1_000

export function openCaller({ ratePerSecond, connections, clock }: CallerOptions): Caller {
  const limiter = openRateLimiter({
    ratePerSecond,
    inFlightMax: connections,
    clock,
    waitingMax: WAITING_MAX,
    waitMsMax: WAIT_MS_MAX,
  })
  let breaker: Breaker = newBreaker(BREAKER_LIMITS)
  let signs: Signs | undefined
  const isResting = () => breaker.state !== 'closed'
  const present = () => ({ isResting: isResting(), isBelowLimit: limiter.part() < 1 })
  const note = (sign: Signs['last']) => {
    signs = noteSign(signs, sign, present(), clock())
  }
  const recordEvent = (event: 'success' | 'failure') => {
    breaker = transition(breaker, event, BREAKER_LIMITS, clock())
  }
  return {
    call: async (urgency, request, overloadOf = () => 'none') => {
      const early = admit(breaker, BREAKER_LIMITS, clock())
      if (!early.admitted) return { called: 'kept', afterMs: early.afterMs }
      const ours = await limiter.acquire(urgency)
      if (ours === undefined) return { called: 'kept', afterMs: LATER_MS }
      // Asks the breaker again: it may have opened while the call waited.
      const admission = admit(breaker, BREAKER_LIMITS, clock())
      breaker = admission.breaker
      if (!admission.admitted) {
        ours.end('none')
        return { called: 'kept', afterMs: admission.afterMs }
      }
      try {
        const answer = await request()
        const overload = overloadOfStatus(answer.status) ?? overloadOf(answer)
        recordEvent(overload === 'failing' ? 'failure' : 'success')
        if (overload !== 'none') note(overload)
        ours.end(overload)
        return { called: 'answered', answer }
      } catch (error) {
        recordEvent('failure')
        if (isResting()) note('failing')
        // One call without an answer isn't a sign of overload; the breaker counts such calls.
        ours.end('none')
        if (!(error instanceof OutboundError)) throw error
        return { called: 'failed', sent: error.sent }
      }
    },
    rate: limiter.rate,
    part: limiter.part,
    limit: limiter.limit,
    load: limiter.load,
    isResting,
    slowdown: () => slowdownOf(signs, present(), clock()),
    close: limiter.close,
  }
}

function overloadOfStatus(status: number): Overload | undefined {
  if (status === 429) return 'throttled'
  return status >= 502 && status <= 504 ? 'failing' : undefined
}

/** The `Retry-After` of an answer, in ms, at most one hour; undefined if it isn't a number of seconds. */
export function retryAfterMs(answer: OutboundAnswer): number | undefined {
  const seconds = Number(answer.headers['retry-after'])
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3_600) * 1_000 : undefined
}
