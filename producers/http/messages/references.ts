// What is asked about the owners of cards, and the answers.
import { z } from 'zod'
import { text, uuid } from '../../../src/job/envelope/text.ts'
import { OnFileRequest, ownerFields } from '../../../src/job/on-file.ts'
import { REFERENCE_OUTCOMES } from '../../../src/token/on-file.ts'
import { PatchRecord } from './cards.ts'

const LOOKUP_MAX = 1_000
const PAGE_MAX = 1_000

export const Reference = z.strictObject(OnFileRequest.shape)
export const PageQuery = z.strictObject({
  after: z.coerce.number().int().min(1).optional().describe('`next` of the page before.'),
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_MAX).describe('How many at most.'),
})
export const Page = z.strictObject({
  references: z.array(Reference),
  next: z.int().optional(),
})
export const Lookup = z.strictObject({
  token_scope: uuid(),
  references: z.array(z.strictObject(ownerFields)).min(1).max(LOOKUP_MAX),
})
export const Added = PatchRecord.extend({
  // Absent where another job has changed the owner since the answer that is repeated.
  reference_outcome: z.enum(REFERENCE_OUTCOMES).optional(),
  previous_token: text(14, 255).optional(),
})
export const Found = Reference.extend({
  found: z.literal(true),
  reuse_token: text(14, 255).optional(),
  token_status: z.enum(['ACTIVE', 'SUSPENDED']),
})
export const Absent = z.strictObject({ found: z.literal(false) })
