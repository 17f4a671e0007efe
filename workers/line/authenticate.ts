// The first step of the line: checks that a job comes from a known client, is signed by a live key and is meant for
// this installation. Any other job is dropped: it gets no receipt and no result, and is only counted. Roles and times
// are checked later, and refused with an answer.
import { createHash } from 'node:crypto'
import type { KindEntry } from '../../src/job/catalogue.ts'
import { clientId, type Drop, ENVELOPE, Identity, JobData, peek, verify } from '../../src/job/envelope/envelope.ts'
import { actsForClients } from '../../src/job/system-clients.ts'
import { BlockDigest } from '../../src/job/token-batch.ts'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Deps, Settings } from '../deps.ts'
import type { Directory, KnownKey } from '../directory.ts'

export type AuthenticateDeps = Pick<Deps, 'directory' | 'catalogue'> & { settings: Pick<Settings, 'audience'> }

export interface Authentic {
  jws: string
  block: string | undefined
  /** Verified, but the form of the claims isn't checked yet. */
  payload: Record<string, unknown>
  iss: string
  jti: string
  client: Client
  /** Somebody else has the key that signed it: when it says that it was signed, before the theft or after. */
  theft: Theft | undefined
}

type Theft = 'before' | 'after'

export async function authenticate(
  job: ReceivedJob,
  { settings: { audience }, directory, catalogue }: AuthenticateDeps,
): Promise<Authentic | Drop> {
  if (job.tied) return 'tied'
  const data = JobData.safeParse(job.data)
  if (!data.success) return 'malformed'
  const { jws, block } = data.data
  if (block !== undefined && block.length > ENVELOPE.blockBytesMax) return 'oversized'
  const signed = await verified(jws, directory)
  if (typeof signed === 'string') return signed
  const { payload, sender, theft } = signed
  if (payload['aud'] !== audience) return 'audience'
  const identity = Identity.safeParse(payload)
  if (!identity.success) return 'claims'
  const { iss, jti, client_id: onBehalf } = identity.data
  if (onBehalf !== undefined && !actsForClients(iss)) return 'claims'
  const client = onBehalf === undefined ? sender : (await directory.client(onBehalf))?.client
  const entry = catalogue.find(payload['kind'])
  const servesRevoked = onBehalf !== undefined && entry?.servesRevoked
  if (!client || (client.revokedAt !== null && !servesRevoked)) return 'unknown_client'
  if (!blockBelongs(block, payload, entry)) return 'block'
  return { jws, block, payload, iss, jti, client, theft }
}

/** The client that a dropped job claims, if it exists. Nobody has proved the claim. */
export async function claimedClient(job: ReceivedJob, directory: Directory): Promise<string | undefined> {
  const data = JobData.safeParse(job.data)
  const peeked = data.success ? peek(data.data.jws) : 'malformed'
  if (typeof peeked === 'string') return undefined
  const onBehalf = clientId().safeParse(peeked.payload['client_id'])
  const claimed = actsForClients(peeked.iss) && onBehalf.success ? onBehalf.data : peeked.iss
  return (await directory.client(claimed))?.client.clientId
}

/** The payload, and the client that signed it with a live key, or with one that was stolen later. */
async function verified(
  jws: string,
  directory: Directory,
): Promise<{ payload: Record<string, unknown>; sender: Client; theft: Theft | undefined } | Drop> {
  const peeked = peek(jws)
  if (typeof peeked === 'string') return peeked
  const sender = await directory.client(peeked.iss)
  if (!sender) return 'unknown_client'
  const key = sender.keys.find(({ kid }) => kid === peeked.kid)
  if (!key) return 'unknown_key'
  const theft = key.live ? undefined : theftOf(key, peeked.payload)
  if (sender.client.revokedAt !== null || !(key.live || theft)) return 'revoked'
  if (key.alg !== peeked.alg || !verify(jws, key)) return 'signature'
  key.noteVerified?.()
  return { payload: peeked.payload, sender: sender.client, theft }
}

/**
 * Of what a stolen key signed only reversals count, which wait for up to seven days: those that say that they were signed before
 * the theft, and later ones if an operator confirms them. workers/reversal.ts asks more, because a thief can say so, too.
 * Undefined for anything else.
 */
function theftOf({ stolenAt }: KnownKey, { kind, iat }: Record<string, unknown>): Theft | undefined {
  if (stolenAt === undefined || kind !== 'reversal' || typeof iat !== 'number') return undefined
  return iat * 1000 <= stolenAt ? 'before' : 'after'
}

/**
 * Whether the block belongs to the envelope, which names it by its digest. A kind without blocks must have none. If the
 * request names no block correctly, the signer made the mistake and gets an answer.
 */
function blockBelongs(
  block: string | undefined,
  payload: Record<string, unknown>,
  entry: KindEntry | undefined,
): boolean {
  if (!entry?.hasBlock) return block === undefined
  const named = (payload['request'] as { block?: { sha256?: unknown } } | null)?.block?.sha256
  if (!BlockDigest.safeParse(named).success) return true
  if (block === undefined) return false
  const digest = createHash('sha256').update(block).digest()
  if (digest.toString('hex') !== named && digest.toString('base64url') !== named) return false
  const header = headerOf(block)
  return header?.['iss'] === payload['iss'] && header?.['jti'] === payload['jti']
}

function headerOf(jwe: string): Record<string, unknown> | null | undefined {
  try {
    return JSON.parse(Buffer.from(jwe.slice(0, jwe.indexOf('.')), 'base64url').toString('utf8')) as Record<
      string,
      unknown
    >
  } catch {
    return undefined
  }
}
