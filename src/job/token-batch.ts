// `token-batch`: one chunk of a batch. The records are in the job's `block`; this file has their schemas, too.
import { z } from 'zod'
import { REASONS, type Reason } from '../errors.ts'
import { CHUNK, ON_CONFLICT, ON_EXPIRED, ON_ORPHAN, RECORD_KINDS, RECORD_ROLES, type RecordKind } from './choices.ts'
import { CHUNK_NUMBER_MAX, extentMembers } from './envelope/batch-extent.ts'
import { alias, encryptedCard, sourceTime, text, tokenId, uuid } from './envelope/text.ts'
import type { MemberRole, Sent } from './kind-entry.ts'
import { OnFileRecord } from './on-file.ts'
import type { BlockForm } from './record-columns.ts'
import { ReferenceRecord } from './reference.ts'
import { createFields } from './token-create.ts'
import { TokenLifecycle } from './token-lifecycle.ts'
import { updateFields } from './token-update.ts'

export { CHUNK, ON_CONFLICT, ON_EXPIRED, ON_ORPHAN } from './choices.ts'

export const Policy = z.strictObject({
  on_conflict: z.enum(ON_CONFLICT).optional(),
  on_expired: z.enum(ON_EXPIRED).optional(),
  on_orphan: z.enum(ON_ORPHAN).optional(),
  /**
   * If the card of a known reference has another number, the reference keeps its token, which is linked to that number.
   */
  relink: z.boolean().optional(),
  /** With `newest`, and only there: when the data of those records was given that have no source time of their own. */
  source_time: sourceTime().optional(),
  /** With `newest`, and only there: a digest of the input, which decides between data of the same time. */
  input_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
})

/** SHA-256 of a block's text: lower-case hex, or base64url. */
export const BlockDigest = z.string().regex(/^([0-9a-f]{64}|[A-Za-z0-9_-]{43})$/)

export const TokenBatch = z.strictObject({
  batch_id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  chunk: z.int().min(0).max(CHUNK_NUMBER_MAX),
  chunk_records: z.int().min(1).max(CHUNK.recordsMax),
  record_kind: z.enum(RECORD_KINDS),
  token_scope: uuid().optional(),
  /** `iat` of the batch's first chunk, seconds since the epoch. */
  accepted_at: z.number().min(0).max(253_402_300_799),
  policy: Policy.optional(),
  dry_run: z.boolean().optional(),
  ...extentMembers,
  block: z.strictObject({
    sha256: BlockDigest,
    records: z.int().min(1).max(CHUNK.recordsMax),
    public_key_alias: alias(),
  }),
})
export type TokenBatch = z.infer<typeof TokenBatch>

/**
 * A batch needs the role of its records; a dry run also answers about tokens, which needs TOKEN_READ. Moving the last owner
 * away can suspend or delete a token, which needs TOKEN_LIFECYCLE. What single records need beside, their kind says.
 */
export const BATCH_ROLES: readonly MemberRole[] = [
  ...RECORD_KINDS.map(kind => ({
    role: RECORD_ROLES[kind],
    member: 'record_kind',
    asks: (request: Sent) => request['record_kind'] === kind,
  })),
  { role: 'TOKEN_READ', member: 'dry_run', asks: ({ dry_run }) => dry_run === true },
  { role: 'TOKEN_LIFECYCLE', member: 'policy.on_orphan', asks: ({ policy }) => endsTokens(policy) },
]

function endsTokens(policy: unknown): boolean {
  const { on_orphan = 'keep' } = (policy ?? {}) as { on_orphan?: unknown }
  return on_orphan !== 'keep'
}

/** How many records a request states, even if it is malformed. */
export function recordsInBlock({ block }: { block?: unknown }): unknown {
  return (block as { records?: unknown } | null | undefined)?.records
}

/** The values that every chunk of a batch must have in common. `form`: that of its block. */
export function batchLayout(
  request: Pick<TokenBatch, 'record_kind' | 'token_scope' | 'chunk_records' | 'policy'>,
  form: BlockForm = 'rows',
): Record<string, unknown> {
  const { on_conflict = 'update', on_expired = 'import', on_orphan = 'keep', relink = false } = request.policy ?? {}
  const { source_time, input_sha256 } = request.policy ?? {}
  return {
    record_kind: request.record_kind,
    record_form: form,
    token_scope: request.token_scope ?? null,
    chunk_records: request.chunk_records,
    on_conflict,
    on_expired,
    on_orphan,
    relink,
    source_time: source_time ?? null,
    input_sha256: input_sha256 ?? null,
  }
}

// Only the types and lengths of a clear card's parts are checked here; src/token/card.ts checks their values and gives
// the reasons.
const cardPart = () => z.union([z.string().max(256), z.number()]).optional()
const ClearCard = z.strictObject({
  cardNumber: z.union([z.string().max(64), z.number()]),
  expiryMonth: cardPart(),
  expiryYear: cardPart(),
  cardholderName: z.string().max(256).optional(),
  sequenceNumber: cardPart(),
  startMonth: cardPart(),
  startYear: cardPart(),
})

const cardOf = {
  card: ClearCard.optional(),
  encrypted_card: encryptedCard().optional(),
  public_key_alias: alias().optional(),
}

/** The `request` of a record, by record kind. That of `scheme-token` is handed in by who has such records. */
export const RECORD_REQUESTS = {
  'token-create': z.strictObject({
    token_scope: uuid().optional(),
    ...cardOf,
    ...createFields,
    on_file: OnFileRecord.optional(),
    source_time: sourceTime().optional(),
  }),
  'token-update': z.strictObject({ id: tokenId(), ...cardOf, ...updateFields, on_file: OnFileRecord.optional() }),
  'token-lifecycle': TokenLifecycle,
  reference: ReferenceRecord,
} as const satisfies Record<Exclude<RecordKind, 'scheme-token'>, z.ZodType>
export type CreateRecord = z.infer<(typeof RECORD_REQUESTS)['token-create']>
export type UpdateRecord = z.infer<(typeof RECORD_REQUESTS)['token-update']>

const reason = z.string().refine((word): word is Reason => Object.hasOwn(REASONS, word))

/** The parts of a record around its request. */
export const RecordHead = z.strictObject({
  line: z.int().min(1).max(2_147_483_647),
  reference: text(0, 128).optional(),
  // Parsed by its kind's schema later: parsing it twice would cost as much as the card's hash.
  request: z.unknown().optional(),
  rejected: z
    .strictObject({
      reason,
      field: z
        .string()
        .regex(/^[a-z_.]{1,64}$/)
        .optional(),
    })
    .optional(),
})
export type RecordHead = z.infer<typeof RecordHead>
