// An act of a person on a batch: whether the person may do it to this batch, and whether the batch is still as the person saw it.
// Then it is the act of the command (src/acts/batch.ts).
import { performIn, recordRefusal } from '../../src/acts/act.ts'
import { BATCH_ACTS, type BatchAct } from '../../src/acts/batch.ts'
import { type Reason, type Refusal, refuse } from '../../src/errors.ts'
import { BatchParameters } from '../../src/job/system/act.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { seenOf } from '../../src/store/batch/batch-state.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Person, PersonRole } from '../../src/store/person/persons.ts'
import type { DoAct } from './prove.ts'

const ROLES: Record<keyof typeof BATCH_ACTS, readonly PersonRole[]> = {
  'batch.pause': ['OPERATOR', 'ADMIN'],
  'batch.resume': ['OPERATOR', 'ADMIN'],
  'batch.cancel': ['ADMIN'],
  'batch.note': ['OPERATOR', 'ADMIN'],
}

const isBatchAct = (name: string): name is keyof typeof BATCH_ACTS => Object.hasOwn(BATCH_ACTS, name)

export const actOnBatch: DoAct = async (db, { person, actor }, { request }, { clock }) => {
  const { act, subject, parameters, seen, reason } = request
  const by = { actor, reason: reason ?? undefined }
  const deed = { action: act, subject }
  const refused = async (word: Reason, field: string, entityId?: string | null): Promise<Refusal> => {
    await recordRefusal(db, deed, by, { why: word, entityId })
    return refuse(word, `body.${field}`)
  }
  if (!isBatchAct(act) || !ROLES[act].some(role => person.roles.includes(role))) return refused('act_forbidden', 'act')
  const { client_id: clientId } = BatchParameters.parse(parameters)
  const batch = await batches.find(db, clientId, subject)
  if (!batch || !mayMeet(person, batch)) return refused('batch_not_found', 'subject')
  const { lock, decide }: BatchAct = BATCH_ACTS[act]
  const row = await lock(db, batch.batchNo)
  // A note changes nothing, so it is right whatever the batch did meanwhile.
  if (act !== 'batch.note' && seen !== seenOf(row)) return refused('changed_meanwhile', 'seen', row.entityId)
  const ended = await performIn(db, deed, by, () => decide(db, row, clock()))
  return 'refused' in ended ? refuse('act_state', 'body.act') : ended
}

/** A batch of nobody is known to people for all entities only. */
export function mayMeet({ entities }: Pick<Person, 'entities'>, { entityId }: Pick<Batch, 'entityId'>): boolean {
  return entities === null || (entityId !== null && entities.includes(entityId))
}
