// The claims of plain records on source references. In columns only new references are added: a record whose owner has one
// already, or is another record's owner, too, is decided by the rules.
import { openCache } from '../../../src/cache.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { StoredReference } from '../../../src/store/reference/source-references.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import { type Claim, type OwnerId, ownerKey } from '../../../src/token/on-file.ts'
import type { OwnerReleases } from '../older-claims.ts'
import type { AddedClaim } from '../save-claims.ts'
import type { PlainRecords } from './records.ts'

const BATCHES_MAX = 1_000
/**
 * By batch: whether this process has met an owner of the batch who already had a reference, or expects one
 * (`expectKnownOwners`).
 */
const hasKnown = openCache<boolean>({ max: BATCHES_MAX })

/**
 * The references of plain records' owners, by `ownerKey`. After a chunk whose owners had none, the next chunks of the
 * batch aren't looked up. If an insert then meets a reference, the chunk isn't written, and is decided again with a
 * look-up. Without a `batch` they are always looked up.
 */
export async function findReferences(
  db: Db,
  owners: readonly OwnerId[],
  batch: string | undefined,
): Promise<ReadonlyMap<string, StoredReference>> {
  if (owners.length === 0 || (batch !== undefined && hasKnown.get(batch) === false)) return new Map()
  const known = await references.findByOwners(db, owners)
  if (batch !== undefined) hasKnown.set(batch, known.size > 0 || hasKnown.get(batch) === true)
  return known
}

/** A chunk of the batch wasn't written: from now on owners are looked up. */
export function expectKnownOwners(batch: string): void {
  if (hasKnown.get(batch) === false) hasKnown.set(batch, true)
}

/** The places of records with an owner whom another record has, too. `others`: the records beside the plain ones. */
export function repeatedOwners({ claims }: PlainRecords, others: readonly { claim: Claim | undefined }[]): number[] {
  const keys = claims.map(keyOf)
  const counts = new Map<string, number>()
  for (const key of [...keys, ...others.map(({ claim }) => keyOf(claim))])
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  return keys.flatMap((key, place) => (key !== undefined && (counts.get(key) ?? 0) > 1 ? place : []))
}

function keyOf(claim: Claim | undefined): string | undefined {
  return claim && ownerKey(claim.owner)
}

/** Those of these places whose owners were released later than the record was given. */
export function placesOfReleased(
  { claims, givers }: PlainRecords,
  places: readonly number[],
  releases: OwnerReleases,
): number[] {
  return places.filter(place => {
    const [claim, giver] = [claims[place], givers[place]]
    return claim !== undefined && giver !== undefined && releases.isLate(claim.owner, giver)
  })
}

/** The owners of the records at these places. */
export function ownersAt({ claims }: PlainRecords, places: readonly number[]): OwnerId[] {
  return places.flatMap(place => claims[place]?.owner ?? [])
}

/** Those of these places whose owners have references. `references`: by `ownerKey`. */
export function placesOfKnownOwners(
  { claims }: PlainRecords,
  places: readonly number[],
  references: ReadonlyMap<string, StoredReference>,
): number[] {
  return references.size === 0 ? [] : places.filter(place => references.has(keyOf(claims[place]) ?? ''))
}

/** The claims on new tokens. `tokenIds`: of the records at these places. */
export function addedClaims(
  { claims, lines, givers }: PlainRecords,
  places: readonly number[],
  tokenIds: readonly string[],
): AddedClaim[] {
  return places.flatMap((place, index) => {
    const claim = claims[place]
    return claim ? { line: lines[place] ?? 0, claim, tokenId: tokenIds[index] ?? '', giver: givers[place] } : []
  })
}
