// Limits how often somebody may begin to sign in, and fail to sign in or to enrol: by address (IPv6 by its /64) and by
// passkey, in this process. Behind a proxy all people share the proxy's address, because no header is trusted to name another.
// So only what fails is counted as an attempt, and only that is refused: nobody's failures keep out a right passkey or link.
import type { FastifyRequest } from 'fastify'
import type { ConsoleApp } from '../app.ts'

const MINUTE_MS = 60_000
/** Challenges by address. Each is a row of the store until it is swept. */
const BEGUN = 600
const FAILED = 60
const FAILED_WITH_PASSKEY = 10

export interface Attempts {
  /** Counts a challenge that is asked for. Resolves with whether it is one too many. */
  isTooManyBegun(request: FastifyRequest): Promise<boolean>
  /**
   * Counts an attempt that failed. Resolves with whether it is one too many. `passkey`: the credential's id, where the
   * request names one.
   */
  isTooManyFailed(request: FastifyRequest, passkey?: string): Promise<boolean>
}

export function openAttempts(app: ConsoleApp): Attempts {
  const named = new WeakMap<FastifyRequest, string>()
  // Without a `keyGenerator` the key is the address.
  const begun = app.createRateLimit({ max: BEGUN, timeWindow: MINUTE_MS })
  const failed = app.createRateLimit({ max: FAILED, timeWindow: MINUTE_MS })
  const failedWithPasskey = app.createRateLimit({
    max: FAILED_WITH_PASSKEY,
    timeWindow: MINUTE_MS,
    keyGenerator: request => named.get(request) ?? '',
  })
  const exceeds = async (limit: typeof begun, request: FastifyRequest) => {
    const counted = await limit(request)
    return !counted.isAllowed && counted.isExceeded
  }
  return {
    isTooManyBegun: request => exceeds(begun, request),
    async isTooManyFailed(request, passkey) {
      if (await exceeds(failed, request)) return true
      if (passkey === undefined) return false
      named.set(request, passkey)
      return exceeds(failedWithPasskey, request)
    },
  }
}
