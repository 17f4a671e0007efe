// `manifest-total`: computes one part of the total of a migration. Only workers send it; the store holds what the total is
// of, and its key.
import { z } from 'zod'
import { uuid } from '../envelope/text.ts'
import { kind } from '../kind-entry.ts'
import { fromOutcome } from '../stored-answer.ts'

export const ManifestTotal = z.strictObject({
  total_id: uuid(),
  /** Digests the rows of some chunks; the last part merges the others. */
  part: z.int().min(0),
})
export type ManifestTotal = z.infer<typeof ManifestTotal>

/** How a part ended. `GONE`: the total isn't wanted any more, or the part was done before. */
export type PartOutcome = 'DIGESTED' | 'MERGED' | 'REFUSED' | 'GONE'

export const manifestTotalKind = kind({
  request: ManifestTotal,
  description: 'Computes one part of the total of a migration. System clients only.',
  role: null,
  bulk: true,
  systemClients: ['worker'],
  systemOnly: true,
  retell: fromOutcome('part_outcome'),
})

/** The number of rows, and the SHA-256 over their sorted digests, lower-case hex. */
export const TotalSum = z.strictObject({ rows: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })
export type TotalSum = z.infer<typeof TotalSum>

/**
 * The result of the last part: the sum of all rows, and the sums of brands that have so many rows that a sum shows
 * nothing about a card.
 */
export const TotalSums = TotalSum.extend({ by_brand: z.record(z.string(), TotalSum) })
export type TotalSums = z.infer<typeof TotalSums>

export const BRAND_ROWS_MIN = 1_000

/** Why both sides leave a row out: what the vault holds now isn't what the row gave. */
export const LEFT_OUT_REASONS = [
  'no_token',
  'token_deleted',
  'number_differs',
  'owner_moved',
  'expiry_differs',
  'no_number',
] as const
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number]
