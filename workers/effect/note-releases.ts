// For owners whose source references are removed: stores a keyed hash of each owner's ids, and an event for each client
// of the entity that is subscribed to it. Why they are removed is decided elsewhere.
import type { Clock } from '../../src/clock.ts'
import { assert } from '../../src/errors.ts'
import { releaseId } from '../../src/job/envelope/ids.ts'
import type { Coder } from '../../src/store/codes.ts'
import * as endpoints from '../../src/store/event/endpoints.ts'
import type { Event } from '../../src/store/event/events.ts'
import { tellAll } from '../../src/store/event/tell.ts'
import type { Db } from '../../src/store/pool.ts'
import * as released from '../../src/store/reference/released-references.ts'
import type { RemovedReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { ownerKey } from '../../src/token/on-file.ts'
import { reuseTokenOf } from '../../src/token/token.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

export interface ReleaseDeps {
  clock: Clock
  ring: Pick<KeyRing, 'ownerHash' | 'ownerHashes' | 'ownerVersions'> & Coder
}

/** A reference that was removed, and the token that it named. */
export interface Release {
  reference: RemovedReference
  token: Pick<StoredToken, 'tokenId' | 'thirdParty'>
  /** The receipt of the job that removed it. */
  receiptId: string
}

/** Removes the references to tokens that this transaction deletes, and notes their releases. */
export async function releaseOwnersOf(db: Db, deleted: readonly StoredToken[], deps: ReleaseDeps): Promise<void> {
  const removed = await references.removeOf(
    db,
    deleted.map(({ tokenId }) => tokenId),
  )
  const tokens = new Map(deleted.map(token => [token.tokenId, token]))
  const releases = removed.map(reference => {
    const token = tokens.get(reference.tokenId)
    assert(token?.lastReceipt, 'a token that is deleted names the job that deletes it')
    return { reference, token, receiptId: token.lastReceipt }
  })
  await noteReleases(db, releases, 'TOKEN_DELETED', deps)
}

/** A card may have very many owners. */
const AT_ONCE = 1_000

/** Notes releases in the transaction that removes the references. */
export async function noteReleases(
  db: Db,
  releases: readonly Release[],
  cause: released.ReleaseCause,
  { clock, ring }: ReleaseDeps,
): Promise<void> {
  if (releases.length === 0) return
  const scopes = new Set(releases.map(({ reference }) => reference.tokenScope))
  const subscribed = await endpoints.findSubscribedIn(db, [...scopes], 'reference.released')
  const about = { subscribed, cause, releasedAt: clock(), ring }
  for (let from = 0; from < releases.length; from += AT_ONCE)
    await noteSome(db, releases.slice(from, from + AT_ONCE), about)
}

interface About extends Pick<ReleaseDeps, 'ring'> {
  subscribed: Awaited<ReturnType<typeof endpoints.findSubscribedIn>>
  cause: released.ReleaseCause
  releasedAt: number
}

async function noteSome(db: Db, releases: readonly Release[], { subscribed, cause, releasedAt, ring }: About) {
  const noted = releases.map(release => {
    const { reference, receiptId } = release
    // One after the other, without a pause: both are made by the same key.
    const { hash: ownerHash, keyVersion } = ring.ownerHash(ownerKey(reference))
    const { hash: cardHash } = ring.ownerHash(ownerKey({ ...reference, customerId: '' }))
    assert(reference.referenceNo, 'a reference that was removed was stored')
    return {
      ...release,
      row: { ownerHash, cardHash, keyVersion, cause, receiptId, releasedAt, referenceNo: reference.referenceNo },
    }
  })
  const told = noted.flatMap(({ row, reference, token }): Event[] => {
    const ofScope = subscribed.filter(({ tokenScope }) => tokenScope === reference.tokenScope)
    const about = {
      type: 'reference.released',
      subject: releaseId(row.ownerHash.toString('hex'), row.receiptId, row.referenceNo),
      revision: 1,
      data: dataOf(reference, token, cause),
    } as const
    return [...new Set(ofScope.map(({ clientId }) => clientId))].map(clientId => ({ ...about, clientId }))
  })
  const rows = noted.map(({ row }) => row)
  await Promise.all([
    released.insertAll(db, rows),
    tellAll(db, ring, told, [...new Map(subscribed.map(endpoint => [endpoint.endpointId, endpoint])).values()]),
  ])
}

function dataOf(reference: RemovedReference, token: Release['token'], cause: released.ReleaseCause) {
  return {
    token_scope: reference.tokenScope,
    provider: reference.provider,
    ...(reference.providerAccount === '' ? {} : { provider_account: reference.providerAccount }),
    ...(reference.customerId === '' ? {} : { customer_id: reference.customerId }),
    card_id: reference.cardId,
    reuse_token: reuseTokenOf(token),
    cause,
  }
}
