// Signs an ask with its client's key. The result is the job as it is put on the queue. Sending is done elsewhere.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { ROLES, type Role } from '../src/job/catalogue.ts'
import { askedOf } from '../src/job/envelope/digest.ts'
import {
  Claims,
  ENVELOPE,
  type JobData,
  lifetimeOf,
  type Optional,
  type SigningKey,
  sign,
} from '../src/job/envelope/envelope.ts'
import { jobId } from '../src/job/envelope/ids.ts'
import { type NameRule, panNameRefusal } from '../src/job/envelope/names.ts'
import { clearNumbersOf, nameRefusal } from '../src/job/pan-in-names.ts'
import { parse } from '../src/job/refusal.ts'
import type { Ask } from './ask.ts'

/** The sender that signs, and the client on whose behalf it signs. */
export interface Identity {
  /** The user, as a UUID. */
  userId: string
  entityId: string
  /** The roles that the job claims; default: all. Only roles that the client was granted take effect. */
  roles?: readonly Role[] | undefined
  /** The only entity that the caller acts for; default: all of the client's. */
  onlyEntity?: string | undefined
  /** The client whose job this is, if a system client signs the job. */
  onBehalfOf?: string | undefined
  /** The installation's name; default `tokenmill`. */
  audience?: string | undefined
  signingKey: SigningKey
  /** The rule for names that the client chooses; default `checked`. */
  names?: NameRule | undefined
}

export interface EnvelopeOptions {
  jti: string
  reference?: string | undefined
  sequence?: number | undefined
  /** The job must start within this many ms from now. Default: 24 h; 1 h with an encrypted card. */
  expiresInMs?: number | undefined
  replyTo?: string | undefined
  traceparent?: string | undefined
  /** The announced key that the reader of the results knows. */
  knowsKey?: string | undefined
  /** Every reader of the results queue reads result sets. */
  resultSets?: boolean | undefined
  /** Every reader of the results queue reads records in columns. */
  resultColumns?: boolean | undefined
}

export interface Signed {
  /** The BullMQ job id. */
  id: string
  data: JobData
  /** The digest of what the job asks for, base64url: its answer has it in `answers`. */
  answers: string
  /** ms since the epoch. */
  issuedAt: number
  /** No worker starts the job after this time, ms since the epoch. */
  expiresAt: number
}

/** Signs `ask`; `now`: ms since the epoch. Refuses an ask that every worker would refuse. */
export async function signAsk(
  identity: Identity,
  ask: Ask,
  options: EnvelopeOptions,
  now: number,
): Promise<Signed | Refusal> {
  const { onBehalfOf } = identity
  const { jti, reference, sequence, expiresInMs, replyTo } = options
  // Clients send whole seconds. System clients send fractions, because their time-outs are short.
  const whole = onBehalfOf === undefined
  const iat = whole ? Math.floor(now / 1000) : now / 1000
  const lifetimeS = expiresInMs === undefined ? undefined : expiresInMs / 1000
  const claims = parse(
    Claims,
    defined({
      iss: identity.signingKey.clientId,
      client_id: onBehalfOf,
      aud: identity.audience ?? 'tokenmill',
      sub: identity.userId,
      entity_id: identity.entityId,
      roles: identity.roles ?? ROLES,
      only_entity: identity.onlyEntity,
      iat,
      exp: lifetimeS === undefined ? undefined : iat + (whole ? Math.ceil(lifetimeS) : lifetimeS),
      jti,
      kind: ask.kind,
      request: ask.request,
      reference,
      sequence,
      reply_to: replyTo,
      optional: optionalOf(options),
    }),
    'body',
  )
  if (isRefusal(claims)) return claims
  const { names = 'checked' } = identity
  const named = nameRefusal({ jti, reference }, clearNumbersOf(ask.request)) ?? panNameRefusal(claims.value, names)
  if (named) return named
  const { exp, lifetimeMsMax } = lifetimeOf(claims.value, holdsCard(ask))
  const lifetimeMs = exp - iat * 1000
  if (lifetimeMs <= 0 || lifetimeMs > lifetimeMsMax) return refuse('envelope_lifetime', 'body.exp')
  const answers = answersOf(claims.value)
  if (answers === undefined) return refuse('field_characters', 'body')
  const jws = sign(claims.value, identity.signingKey)
  if (jws.length > ENVELOPE.jwsBytesMax) return refuse('field_length', 'body')
  if (ask.block !== undefined && ask.block.length > ENVELOPE.blockBytesMax) return refuse('field_length', 'body.block')
  return {
    id: jobId(onBehalfOf ?? identity.signingKey.clientId, jti),
    data: ask.block === undefined ? { jws } : { jws, block: ask.block },
    answers,
    issuedAt: iat * 1000,
    expiresAt: exp,
  }
}

/** Undefined if the request has a text that isn't well-formed Unicode: such a request has no canonical form. */
function answersOf({ kind, request }: Claims): string | undefined {
  try {
    return askedOf(kind, request).digest()?.toString('base64url')
  } catch {
    return undefined
  }
}

/** Undefined if there is nothing to say. */
function optionalOf({ traceparent, knowsKey, resultSets, resultColumns }: EnvelopeOptions): Optional | undefined {
  const optional: Optional = defined({
    traceparent,
    knows_key: knowsKey,
    result_sets: resultSets ? true : undefined,
    result_columns: resultColumns ? true : undefined,
  })
  return Object.keys(optional).length > 0 ? optional : undefined
}

/** Whether the ask holds card data, which has a shorter lifetime. */
export function holdsCard(ask: Pick<Ask, 'request'>): boolean {
  return ask.request['encrypted_card'] !== undefined
}

function defined(claims: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
}
