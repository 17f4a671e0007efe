// The claims of plain records on source references. In columns only new references are added: a record whose owner has one
// already, or is another record's owner, too, is decided by the rules.
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import { type Claim, type OwnerId, ownerKey } from '../../src/token/on-file.ts'
import type { PlainRecords } from './plain.ts'
import type { AddedClaim } from './save-claims.ts'

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
  { claims, lines }: PlainRecords,
  places: readonly number[],
  tokenIds: readonly string[],
): AddedClaim[] {
  return places.flatMap((place, index) => {
    const claim = claims[place]
    return claim ? { line: lines[place] ?? 0, claim, tokenId: tokenIds[index] ?? '' } : []
  })
}
