// Finds the tokens of cards, under whichever version of the fingerprint key they are known, and gives each row the
// fingerprints that it should have now: a row that is saved then is known under the present versions, too.
import { Fault } from '../../src/errors.ts'
import type { Db } from '../../src/store/pool.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { CardFacts } from '../../src/token/decide.ts'
import type { Fingerprints } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'

/** What a job knows of a card. */
export type CardAsked = Pick<CardFacts, 'fingerprints' | 'bin' | 'lastFour'>

/** Stands for a card within one job. */
export function keyOf({ kept }: Pick<Fingerprints, 'kept'>): string {
  return kept[0] ?? ''
}

/** The live tokens of these cards, by `keyOf` of the card; cards without one are left out. */
export async function findByCards(db: Db, asked: readonly CardAsked[]): Promise<Map<string, StoredToken>> {
  return matchCards(await tokens.findByCards(db, [...new Set(fingerprintsOf(asked))]), asked)
}

const fingerprintsOf = (asked: readonly CardAsked[]) => asked.flatMap(({ fingerprints }) => fingerprints.known)

/** The rows of these cards' tokens, by `keyOf` of the card. */
export function matchCards(rows: readonly StoredToken[], asked: readonly CardAsked[]): Map<string, StoredToken> {
  const found = new Map<string, StoredToken>()
  if (rows.length === 0) return found
  const keys = new Map(asked.flatMap(card => card.fingerprints.known.map(fp => [fp, card] as const)))
  for (const row of rows) {
    for (const fp of row.cards) {
      const card = keys.get(fp)
      if (!card) continue
      assertSame(row, card)
      found.set(keyOf(card.fingerprints), renewed(row, card.fingerprints))
    }
  }
  return found
}

/** The live token of this card. */
export async function findByCard(
  card: CardAsked,
  { lookUps }: Pick<Deps, 'lookUps'>,
): Promise<StoredToken | undefined> {
  return matchCards(await lookUps.tokensOfCard(fingerprintsOf([card])), [card]).get(keyOf(card.fingerprints))
}

/** The row lacks a fingerprint under which its card should be known, so it should be saved even if nothing else changes. */
export function isRenewed({ cards, storedCards }: StoredToken): boolean {
  return storedCards !== undefined && cards !== storedCards
}

function renewed(row: StoredToken, link: Fingerprints): StoredToken {
  // A row without a number may get that of the card; then its fingerprints must be those of the present turn.
  if (link.kept.every(fp => row.cards.includes(fp))) return row.sealed === null ? { ...row, link } : row
  return { ...row, cards: link.kept, link }
}

/**
 * A fingerprint has 128 bits. Should two cards ever have the same fingerprint, one card's token must not be taken for
 * the other's.
 */
function assertSame({ bin, lastFour }: StoredToken, asked: CardAsked): void {
  const digits = Math.min(bin?.length ?? 0, asked.bin.length)
  if (bin?.slice(0, digits) === asked.bin.slice(0, digits) && lastFour === asked.lastFour) return
  throw new Fault('defect', new Error('two cards have the same fingerprint'))
}
