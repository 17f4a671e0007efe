// Decides which fingerprints a row gets when a reversal puts it back: those of the versions that are written now, not
// those of its copy.
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { type Fingerprints, isSameCard } from '../../src/token/token.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

/**
 * The row to write. `row`: as it is stored; `next`: what the reversal makes of it. Undefined if it can't be put back: it
 * keeps no number, and its fingerprints aren't of the versions that are written now, so that its card would get a second
 * token. `cardVersions`: the versions of the fingerprints of `next`.
 */
export function putBack(
  row: StoredToken,
  next: StoredToken,
  cardVersions: readonly number[] | undefined,
  ring: KeyRing,
): StoredToken | undefined {
  const base = { ...next, storedCards: row.storedCards, link: undefined }
  if (next.status === 'DELETED') return { ...base, cards: [], sealVersion: null }
  const getsNumber = row.sealed === null && next.sealed !== null
  if (!getsNumber && isSameCard(row.cards, next.cards)) return { ...base, cards: row.cards }
  const link = linkOf(next, cardVersions, ring)
  return link && { ...base, cards: link.kept, link }
}

function linkOf(
  { sealed, sealVersion, tokenId, tokenScope, cards }: StoredToken,
  cardVersions: readonly number[] | undefined,
  ring: KeyRing,
): Fingerprints | undefined {
  if (sealed !== null && sealVersion !== null)
    return ring.fingerprints(ring.open(sealed, sealVersion, tokenId, tokenScope), tokenScope)
  const { turn, writes } = ring.cardPhase()
  if (cardVersions?.length !== writes.length || !writes.every(version => cardVersions.includes(version)))
    return undefined
  return { kept: cards, versions: cardVersions, known: cards, turn }
}
