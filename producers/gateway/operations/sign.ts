// Signs a caller's request as the system client `gateway`, on behalf of the caller's client. It sends nothing.
import type { Clock } from '../../../src/clock.ts'
import type { Refusal } from '../../../src/errors.ts'
import type { Kind } from '../../../src/job/catalogue.ts'
import type { SigningKey } from '../../../src/job/envelope/envelope.ts'
import { type Signed, signAsk } from '../../envelope.ts'
import type { Caller } from '../app.ts'

export interface SignOptions {
  jti: string
  expiresInMs?: number | undefined
  /** False: the result goes to the common results queue of the gateways. */
  listens?: boolean
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
  /** The results queue of this process. */
  replyTo: string
  clock: Clock
}

export function openSign({ audience, signingKey, replyTo, clock }: SignDeps): Sign {
  return (caller, kind, request, { jti, expiresInMs, listens = true }) => {
    const { client, userId, entityId, roles } = caller
    // Names were judged where they came in. Here a repeat of a stored name can't be told from a new one.
    const names = 'numeric' as const
    const identity = { userId, entityId, roles, audience, signingKey, names, onBehalfOf: client.clientId }
    return signAsk(identity, { kind, request }, { jti, expiresInMs, replyTo: listens ? replyTo : undefined }, clock())
  }
}
