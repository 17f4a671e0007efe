// An act of a person on a batch: whether the person may do it to this batch, and whether the batch is still as the person saw it.
// Then it is the act of the command (src/acts/batch.ts).
import { performIn } from '../../src/acts/act.ts'
import { BATCH_DEEDS, type BatchAct } from '../../src/acts/batch.ts'
import { assert, refuse } from '../../src/errors.ts'
import { has } from '../../src/job/system/act-row.ts'
import { BATCH_ACTS, BatchParameters, batchActOf, batchRefusal } from '../../src/job/system/batch-act.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { seenOf, stateOf } from '../../src/store/batch/batch-state.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Person } from '../../src/store/person/persons.ts'
import type { DoAct } from './prove.ts'

export const actOnBatch: DoAct = async (db, { person, request, by, deed, refused }, { clock, ring }) => {
  const { act, subject, parameters, seen } = request
  assert(has(BATCH_ACTS, act), 'its row says that it is on a batch')
  const { client_id: clientId } = BatchParameters.parse(parameters)
  const batch = await batches.find(db, clientId, subject)
  if (!batch || !mayMeet(person, batch)) return refused('batch_not_found', 'subject')
  const { lock, decide }: BatchAct = BATCH_DEEDS[act]
  const row = await lock(db, batch.batchNo, ring)
  const { entityId, pausedAt } = row
  if (batchActOf(act).states !== 'any' && seen !== seenOf(row)) return refused('changed_meanwhile', 'seen', entityId)
  const now = clock()
  const wrong = batchRefusal(act, { state: stateOf(row, now), pausedAt })
  const ended = await performIn(db, deed, by, async () => (wrong ? { refused: wrong, entityId } : decide(db, row, now)))
  return 'refused' in ended ? refuse('act_state', 'body.act') : ended
}

/** A batch of nobody is known to people for all entities only. */
export function mayMeet({ entities }: Pick<Person, 'entities'>, { entityId }: Pick<Batch, 'entityId'>): boolean {
  return entities === null || (entityId !== null && entities.includes(entityId))
}
