// Signs a caller's request as the system client `gateway`, on behalf of the caller's client. Sending is done elsewhere.
import type { Clock } from '../../../src/clock.ts'
import type { Refusal } from '../../../src/errors.ts'
import type { SigningKey } from '../../../src/job/envelope/envelope.ts'
import { traceparentOf } from '../../../src/trace/context.ts'
import type { Span } from '../../../src/trace/tracer.ts'
import { type Signed, signAsk } from '../../envelope.ts'
import type { Caller } from '../app.ts'

export interface SignOptions {
  jti: string
  expiresInMs?: number | undefined
  /** False: the result goes to the common results queue of the gateways. */
  listens?: boolean
  /** The span that the job continues. */
  span?: Span | undefined
}

export type Sign = (
  caller: Caller,
  kind: string,
  request: Record<string, unknown>,
  options: SignOptions,
) => Promise<Signed | Refusal>

export interface SignDeps {
  audience: string
  signingKey: SigningKey
  /** The name of this process's results queue. */
  replyTo: string
  clock: Clock
}

export function openSign({ audience, signingKey, replyTo, clock }: SignDeps): Sign {
  return (caller, kind, request, { jti, expiresInMs, listens = true, span }) => {
    const { client, userId, entityId, onlyEntity, roles } = caller
    // Names were checked when the request arrived. Here a repeat of a stored name can't be told from a new name, so
    // nothing is refused for its name.
    const names = 'numeric' as const
    const identity = { userId, entityId, onlyEntity, roles, audience, signingKey, names, onBehalfOf: client.clientId }
    const traceparent = span && traceparentOf(span.context)
    // The gateways of an installation may be of several releases, so only the process's own queue gets sets.
    const to = listens ? { replyTo, resultSets: true } : {}
    const options = { jti, expiresInMs, traceparent, ...to }
    return signAsk(identity, { kind, request }, options, clock())
  }
}
