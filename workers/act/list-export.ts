// `list.exported`: a person takes a list as CSV. It has no effect but its row in the audit, and the console sends no line before
// it has this answer. No passkey is asked for, so the row says that it isn't proved: the console's word is all there is.
import { performIn } from '../../src/acts/act.ts'
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Act } from '../../src/job/system/act.ts'
import { ExportParameters } from '../../src/job/system/list-exports.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Work } from '../work.ts'
import { mayMeet } from './batch.ts'
import { livePerson, useNonce } from './prove.ts'
import type { ActDeps } from './trust.ts'

export async function recordExport(
  db: Db,
  { request, receiptId }: Work<Act>,
  deps: ActDeps,
): Promise<{ auditId: number } | Refusal> {
  const { subject } = request
  const person = await livePerson(db, request, deps)
  if ('refused' in person) return person
  const repeated = await useNonce(db, request, receiptId)
  if (repeated) return repeated
  const parameters = ExportParameters.parse(request.parameters)
  let entityId: string | null = null
  if (parameters.list === 'refused') {
    const batch = await batches.find(db, parameters.client_id, subject)
    if (!batch || !mayMeet(person, batch)) return refuse('batch_not_found', 'body.subject')
    entityId = batch.entityId
  } else if (subject !== parameters.list) return refuse('field_value', 'body.subject')
  if ((await auditChain.tooLongAway(db)) !== undefined) return refuse('audit_away', 'body.act')
  const by = { actor: { kind: 'person', id: person.personId, unproved: true } as const, reason: undefined }
  const deed = { action: 'list.exported', subject }
  return performIn(db, deed, by, async () => ({ done: undefined, detail: parameters, entityId }))
}
