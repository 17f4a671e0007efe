// Reversals that tokenmill signs itself: those that workers owe, and those that an operator confirms. A reversal that a stolen key
// signed after the theft is done by nobody; a copy of it stays in the failed set, so that an operator can say it was honest.
import { askersOf } from '../job/answer/askers.ts'
import { envelopeDigest } from '../job/envelope/digest.ts'
import { Claims, peek, type SigningKey, sign, verify } from '../job/envelope/envelope.ts'
import { jobId } from '../job/envelope/ids.ts'
import { Reversal } from '../job/system/reversal.ts'
import type { Queues } from '../queue/engine.ts'
import { type FailedJob, failedCopies, failedDiscard } from '../queue/failed.ts'
import * as clients from '../store/access/clients.ts'
import { isProved } from '../store/job/receipt.ts'
import * as receipts from '../store/job/receipts.ts'
import type { Db, Store } from '../store/pool.ts'
import { importPublicJwk } from '../vault/client-key.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from './act.ts'
import { isClientKeyGranted } from './grants.ts'

export const CONFIRM = 'reversal.confirm'

/** The fault's code in the copy of a reversal that a stolen key signed. */
export const STOLEN = 'key_stolen'

/** A network's outage may last for days. */
export const LIFETIME_S = 7 * 86_400

export interface Signing {
  signingKey: SigningKey
  audience: string
  /** ms since the epoch. */
  now: number
}

/** Queues a reversal on a client's behalf. A repeat with the same jti does no harm. */
export async function sendReversal(
  queues: Queues,
  client: Pick<clients.Client, 'clientId' | 'userId'> & { entityId: string },
  { jti, request }: { jti: string; request: Reversal },
  { signingKey, audience, now }: Signing,
): Promise<void> {
  const claims: Claims = {
    iss: signingKey.clientId,
    client_id: client.clientId,
    aud: audience,
    sub: client.userId,
    entity_id: client.entityId,
    roles: [],
    iat: now / 1000,
    exp: now / 1000 + LIFETIME_S,
    jti,
    kind: 'reversal',
    request: { ...request },
  }
  const data = { jws: sign(claims, signingKey) }
  await queues.add('reversal', { id: jobId(client.clientId, jti), data, priority: 0 })
}

/**
 * Whether a worker has verified each envelope that the reversal names, as one of a gateway's own: else whoever has a stolen
 * key could undo what another sender did, or keep a job from ever taking effect.
 */
export async function isOfGateway(
  db: Db,
  { receipt_id: receiptId, envelope, earlier = [] }: Reversal,
): Promise<boolean> {
  const receipt = await receipts.find(db, receiptId)
  if (receipt?.iss !== 'gateway') return false
  const asked = askersOf(receipt)
  return [envelope, ...earlier].every(name => name in asked)
}

/** A reversal that a stolen key signed after the theft, as a copy in the failed set says. */
export interface Withheld {
  /** SHA-256 of its JWS, base64url: its name. */
  envelope: string
  clientId: string
  request: Reversal
  /** ms since the epoch, as its signer says. */
  signedAt: number
  copy: FailedJob
}

/** Newest first. Nothing of them is verified. */
export async function listWithheld(queues: Queues): Promise<Withheld[]> {
  const found: Withheld[] = []
  for await (const copy of failedCopies(queues, 'reversal')) {
    const withheld = copy.code === STOLEN ? read(copy) : undefined
    if (withheld) found.push(withheld)
  }
  return found
}

function read(copy: FailedJob): Withheld | undefined {
  const peeked = peek(copy.jws)
  const claims = typeof peeked === 'string' ? undefined : Claims.safeParse(peeked.payload).data
  const request = Reversal.safeParse(claims?.request).data
  if (!claims || !request || claims.kind !== 'reversal') return undefined
  const { client_id: clientId = claims.iss, iat } = claims
  return { envelope: envelopeDigest(copy.jws).toString('base64url'), clientId, request, signedAt: iat * 1000, copy }
}

/** `unknown`: no such reversal. `unsigned`: no stolen key signed it. `foreign`: it undoes what no gateway asked for. */
export type ConfirmRefusal = 'unknown' | 'unsigned' | 'foreign' | 'unproved' | 'client_unknown'

/**
 * Signs the reversal anew and queues it. The audit row is committed first: after a crash in between the copy is still there, and
 * the operator can repeat the act.
 */
export async function confirmReversal(
  { store, queues, ring }: { store: Store; queues: Queues; ring: KeyRing },
  envelope: string,
  by: By,
  signing: Signing,
): Promise<ActResult<Withheld, ConfirmRefusal>> {
  const withheld = (await listWithheld(queues)).find(one => one.envelope === envelope)
  let client: (clients.Client & { entityId: string }) | undefined
  const verdict = await perform<Withheld, ConfirmRefusal>(
    store,
    { action: CONFIRM, subject: envelope },
    by,
    async db => {
      if (!withheld) return { refused: 'unknown' }
      const { clientId, request, signedAt } = withheld
      if (!(await isSignedByStolen(db, ring, withheld.copy.jws))) return { refused: 'unsigned' }
      const receipt = await receipts.find(db, request.receipt_id)
      if (receipt?.clientId !== clientId || !(await isOfGateway(db, request))) return { refused: 'foreign' }
      if (!isProved(ring, receipt)) return { refused: 'unproved' }
      const found = await clients.find(db, clientId)
      const entityId = receipt.entityId ?? found?.entities[0]
      if (!found || entityId === undefined) return { refused: 'client_unknown' }
      client = { ...found, entityId }
      const { kind, jti } = receipt
      const detail = { client_id: clientId, receipt_id: request.receipt_id, kind, jti, signed_at: signedAt }
      return { done: withheld, detail, entityId }
    },
  )
  if ('done' in verdict && client) {
    await sendReversal(queues, client, { jti: `confirmed-${envelope}`, request: verdict.done.request }, signing)
    await failedDiscard(queues, 'reversal', verdict.done.copy.id)
  }
  return verdict
}

async function isSignedByStolen(db: Db, ring: KeyRing, jws: string): Promise<boolean> {
  const peeked = peek(jws)
  if (typeof peeked === 'string') return false
  const keys = await clients.findClientKeys(db, peeked.iss)
  const key = keys.find(({ kid, state }) => kid === peeked.kid && state === 'STOLEN')
  if (!key || key.alg !== peeked.alg || !isClientKeyGranted(ring, key)) return false
  return verify(jws, { alg: key.alg, publicKey: importPublicJwk(key.publicJwk).key })
}
