// Signs a caller's request as the system client `gateway`, on behalf of the caller's client. Sending is done elsewhere.
import type { Clock } from '../../../src/clock.ts'
import type { Refusal } from '../../../src/errors.ts'
import type { Kind } from '../../../src/job/catalogue.ts'
import type { SigningKey } from '../../../src/job/envelope/envelope.ts'
import { traceparentOf } from '../../../src/trace/context.ts'
import type { Span } from '../../../src/trace/tracer.ts'
import { type Signed, signAsk } from '../../envelope.ts'
import type { LiveFeatures } from '../../live-features.ts'
import type { Caller } from '../app.ts'

export interface SignOptions {
  jti: string
  expiresInMs?: number | undefined
  /** False: the result goes to the common results queue of the gateways. */
  listens?: boolean
  /**
   * True: the answer may come in a result set, if all workers understand the claim. Only for an envelope that can be
   * signed again without it: a worker of an older release, which may get a stored envelope days later, refuses the claim.
   */
  inSets?: boolean | undefined
  /**
   * The span that the job continues. Only for work that somebody waits for: a stored envelope may reach workers of an
   * older release.
   */
  span?: Span | undefined
}

export type Sign = (
  caller: Caller,
  kind: Kind,
  request: Record<string, unknown>,
  options: SignOptions,
) => Promise<Signed | Refusal>

export interface SignDeps {
  audience: string
  signingKey: SigningKey
  /** The name of this process's results queue. */
  replyTo: string
  clock: Clock
  /** What workers understand; undefined if the sender uses no feature. */
  features: Pick<LiveFeatures, 'has'> | undefined
}

export function openSign({ audience, signingKey, replyTo, clock, features }: SignDeps): Sign {
  return (caller, kind, request, { jti, expiresInMs, listens = true, inSets = false, span }) => {
    const { client, userId, entityId, onlyEntity, roles } = caller
    // Names were checked when the request arrived. Here a repeat of a stored name can't be told from a new name, so
    // nothing is refused for its name.
    const names = 'numeric' as const
    const identity = { userId, entityId, onlyEntity, roles, audience, signingKey, names, onBehalfOf: client.clientId }
    const traceparent = span && features?.has('traceparent') ? traceparentOf(span.context) : undefined
    // The gateways of an installation may be of several releases, so only the process's own queue gets sets.
    const resultSets = listens && inSets && features?.has('result_sets')
    const options = { jti, expiresInMs, replyTo: listens ? replyTo : undefined, traceparent, resultSets }
    return signAsk(identity, { kind, request }, options, clock())
  }
}
