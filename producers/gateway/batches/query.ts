// The query of a request that starts a batch: the kind of its records, their scope, the policies. The records are in
// the body.
import { randomBytes, randomUUID } from 'node:crypto'
import { type Refusal, refuse } from '../../../src/errors.ts'
import type { RecordKind } from '../../../src/job/choices.ts'
import type { BlockForm } from '../../../src/job/record-columns.ts'
import { batchLayout, CHUNK, type ON_CONFLICT, type ON_EXPIRED } from '../../../src/job/token-batch.ts'
import type { BatchQuery } from '../../http/messages/batches.ts'
import { batchIdOf } from '../server/idempotency-key.ts'

export interface BatchRequest {
  batchId: string
  recordKind: BatchQuery['kind']
  tokenScope: string | undefined
  policy: { on_conflict?: (typeof ON_CONFLICT)[number]; on_expired?: (typeof ON_EXPIRED)[number] }
  dryRun: boolean
}

/** Makes the batch's request from the query. Refuses parameters that exclude each other. */
export function batchRequestOf(query: BatchQuery, idempotencyKey: string | undefined): BatchRequest | Refusal {
  const { kind, token_scope: tokenScope, on_conflict, on_expired, dry_run, batch_id } = query
  const dryRun = dry_run === 'true'
  if (kind === 'token-create' && tokenScope === undefined) return refuse('field_required', 'query.token_scope')
  if (kind !== 'token-create') {
    const stray = (['token_scope', 'on_conflict', 'on_expired'] as const).find(name => query[name] !== undefined)
    if (stray) return refuse('field_conflict', `query.${stray}`)
  }
  // A dry run stores nothing from which a repeat could be answered.
  if (dryRun && batch_id !== undefined) return refuse('field_conflict', 'query.batch_id')
  return {
    batchId: dryRun ? `dry-${randomBytes(12).toString('hex')}` : (batch_id ?? nameOf(idempotencyKey)),
    recordKind: kind,
    tokenScope,
    policy: { ...(on_conflict && { on_conflict }), ...(on_expired && { on_expired }) },
    dryRun,
  }
}

function nameOf(idempotencyKey: string | undefined): string {
  return idempotencyKey === undefined ? `h-${randomUUID()}` : batchIdOf(idempotencyKey)
}

/** The fields that all chunks of the batch have in common, in a fixed order. */
export function layoutOf({ recordKind, tokenScope, policy }: BatchRequest): Record<string, unknown> {
  const request = {
    record_kind: recordKind,
    token_scope: tokenScope,
    chunk_records: CHUNK.recordsDefault,
    policy,
  }
  return batchLayout(request, formOf(recordKind))
}

/** The form of the chunks. */
export function formOf(recordKind: RecordKind): BlockForm {
  return recordKind === 'token-create' ? 'columns' : 'rows'
}
