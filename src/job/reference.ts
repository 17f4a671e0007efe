// `reference`: takes one owner's claim on a token away.
import { z } from 'zod'
import { ON_ORPHAN } from './choices.ts'
import { uuid } from './envelope/text.ts'
import { ownerFields } from './on-file.ts'

export const Reference = z.strictObject({
  token_scope: uuid(),
  ...ownerFields,
  action: z.enum(['RELEASE']),
  on_orphan: z.enum(ON_ORPHAN).optional(),
})
export type Reference = z.infer<typeof Reference>

/** The batch may name the scope for all its records. */
export const ReferenceRecord = Reference.extend({ token_scope: uuid().optional() })
export type ReferenceRecord = z.infer<typeof ReferenceRecord>
