// Limits how often somebody may try to sign in or to enrol, by address and by passkey, in this process. Behind a proxy all
// people share the proxy's address, because no header is trusted to name another; so the limit by address is the wider one.
import type { FastifyRequest } from 'fastify'
import type { ConsoleApp } from '../app.ts'

const MINUTE_MS = 60_000
const BY_ADDRESS = 60
const BY_PASSKEY = 10

/** Whether the request is one too many. `passkey`: the credential's id, where the request names one. */
export type IsTooMany = (request: FastifyRequest, passkey?: string) => Promise<boolean>

export function openAttempts(app: ConsoleApp): IsTooMany {
  const named = new WeakMap<FastifyRequest, string>()
  const byAddress = app.createRateLimit({ max: BY_ADDRESS, timeWindow: MINUTE_MS, keyGenerator: ({ ip }) => ip })
  const byPasskey = app.createRateLimit({
    max: BY_PASSKEY,
    timeWindow: MINUTE_MS,
    keyGenerator: request => named.get(request) ?? '',
  })
  const exceeds = async (limit: typeof byAddress, request: FastifyRequest) => {
    const counted = await limit(request)
    return !counted.isAllowed && counted.isExceeded
  }
  return async (request, passkey) => {
    if (await exceeds(byAddress, request)) return true
    if (passkey === undefined) return false
    named.set(request, passkey)
    return exceeds(byPasskey, request)
  }
}
