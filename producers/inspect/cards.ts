// Counts what the rows of a file hold, before anything is sent: cards, equal cards, brands, expiry years, and rows that
// would be rejected because of their content. It doesn't ask the store; `migrate --dry-run` does.
import { z } from 'zod'
import { isRefusal } from '../../src/errors.ts'
import { detectBrand, isPossibleLength } from '../../src/token/brand.ts'
import { type CardInput, checkCard, isExpired } from '../../src/token/card.ts'
import type { Row } from '../rows/record.ts'
import { OwnedBy, type OwnerFindings, openOwnerInspection } from './owners.ts'
import { openTally } from './tally.ts'

export interface CardFindings {
  rows: number
  /** Rows that would be sent and whose content would be accepted. */
  cards: number
  /** Undefined if the cards are encrypted, because their content isn't known here. */
  distinctCards: number | undefined
  encrypted: number
  /** `rows`: how many rows have a reference; `repeated`: how many references occur in more than one row. */
  references: { rows: number; repeated: number }
  /** How many references there are beyond one per card; undefined if rows have no reference. */
  sharing: number | undefined
  /** Undefined if no row names an owner. */
  owners: OwnerFindings | undefined
  expired: number
  withoutExpiry: number
  brands: Record<string, number>
  expiryYears: Record<string, number>
  rejected: Record<string, number>
  skipped: Record<string, number>
  repairs: Record<string, number>
}

export interface CardInspection {
  see(row: Row): void
  end(): CardFindings
  close(): void
}

const Sent = z.object({
  request: z.object({
    card: z.record(z.string(), z.unknown()).optional(),
    encrypted_card: z.string().optional(),
    on_file: OwnedBy.optional(),
  }),
})

/** `at`, ms since the epoch: cards count as expired if their expiry date was over at this time. */
export function openCardInspection(at: number): CardInspection {
  const numbers = openTally()
  const references = openTally()
  // A number with two references counts as one card with two names.
  const pairs = openTally()
  const owners = openOwnerInspection()
  let unnamed = 0
  const findings = {
    rows: 0,
    cards: 0,
    encrypted: 0,
    expired: 0,
    withoutExpiry: 0,
    brands: {},
    expiryYears: {},
    rejected: {},
    skipped: {},
    repairs: {},
  }

  function seeCard(row: Row, raw: Record<string, unknown>, onFile: OwnedBy | undefined): void {
    const card = checkCard(raw, 'card')
    if (isRefusal(card)) count(findings.rejected, card.reason)
    else if (!isPossibleLength(card.pan.reveal(), detectBrand(card.pan.reveal())))
      count(findings.rejected, 'pan_length')
    else {
      seeSound(row, card)
      if (onFile) owners.see(onFile, card.pan.reveal())
    }
  }

  function seeSound(row: Row, card: CardInput): void {
    const pan = card.pan.reveal()
    findings.cards += 1
    numbers.add(pan)
    if (row.reference === undefined) unnamed += 1
    else pairs.add(`${pan} ${row.reference}`)
    count(findings.brands, detectBrand(pan) ?? 'unknown')
    if (card.expiryYear === undefined) findings.withoutExpiry += 1
    else count(findings.expiryYears, String(card.expiryYear))
    if (isExpired(card, at)) findings.expired += 1
  }

  return {
    see(row) {
      findings.rows += 1
      for (const repair of row.repairs ?? []) count(findings.repairs, repair)
      if (row.skipped !== undefined) return count(findings.skipped, row.skipped)
      if (row.reference !== undefined) references.add(row.reference)
      if (row.rejected !== undefined) return count(findings.rejected, row.rejected)
      const { card, encrypted_card: encrypted, on_file: onFile } = Sent.parse(JSON.parse(row.json)).request
      if (card) seeCard(row, card, onFile)
      else if (encrypted !== undefined) {
        findings.cards += 1
        findings.encrypted += 1
      } else count(findings.rejected, 'field_required')
    },
    end() {
      const named = references.end()
      const all = numbers.end()
      return {
        ...findings,
        distinctCards: findings.encrypted > 0 ? undefined : all.distinct,
        references: { rows: named.added, repeated: named.repeated },
        owners: owners.end(),
        sharing: unnamed > 0 || findings.encrypted > 0 ? undefined : pairs.end().distinct - all.distinct,
      }
    },
    close() {
      for (const tally of [numbers, references, pairs]) tally.close()
      owners.close()
    },
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
