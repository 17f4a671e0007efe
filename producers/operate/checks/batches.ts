// Whether open batches make progress, and if not, why.

import { BATCH_STATES } from '../../../src/job/choices.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { ALL } from '../../../src/store/sight.ts'
import { count } from '../../../src/units.ts'
import { type Verdict, warning, well } from '../check.ts'
import { explainStalls } from '../stalled-batches.ts'
import { wholeStallReader } from '../whole-reader.ts'
import type { WorkSources } from './work.ts'

const LISTED_MAX = 200
const SHOWN_MAX = 3

export async function askBatches({ store, queues, now }: Omit<WorkSources, 'scheduleLateMs'>): Promise<Verdict> {
  const db = await store()
  const listed = await batchList.list(ALL, db, { order: 'newest', state: 'open', limit: LISTED_MAX, now }, WHOLE_BATCH)
  const open = listed.map(batch => ({ batch, state: stateOf(batch, now) })).filter(({ state }) => state !== 'ABANDONED')
  if (open.length === 0) return well('no batch is open')
  const counts = BATCH_STATES.map(state => ({ state, n: open.filter(one => one.state === state).length }))
  const says = counts.flatMap(({ state, n }) => (n === 0 ? [] : [`${n} ${state}`])).join(', ')
  const stalled = open.filter(({ state }) => state === 'STALLED')
  if (stalled.length === 0) return well(`${count(open.length, 'open batch', 'open batches')}: ${says}`)
  const shown = stalled.slice(0, SHOWN_MAX).map(({ batch }) => batch)
  const reasons = (await explainStalls(shown, { reader: wholeStallReader(db), queues, now })).map(
    ({ isRevoked, why }, at) => ({
      isRevoked,
      words: `${shown[at]?.batchId}: ${why}`,
    }),
  )
  const cancel = reasons.some(({ isRevoked }) => isRevoked)
    ? '; `tokenmill batch cancel ID` for a revoked client’s'
    : ''
  return warning(`${says}; ${reasons.map(({ words }) => words).join('; ')}`, `\`tokenmill batch show ID\`${cancel}`)
}
