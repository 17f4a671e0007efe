// What people do to copies in the failed set from the console. The worker that checks the act records it in one transaction: an
// audit row for each copy, and a row that says what is to be done. Workers then do it, copy by copy, each as often as needed until
// its end is known. So a crash leaves nothing undone that was recorded, and does nothing that wasn't.
import { type FailedActName, isAble } from '../job/system/failed-act.ts'
import type { Queues } from '../queue/engine.ts'
import type { RetryRefusal } from '../queue/failed/copy.ts'
import type { SelectedCopy } from '../queue/failed/selection.ts'
import { failedDiscard, failedFind, failedRetry } from '../queue/failed.ts'
import * as audits from '../store/access/audits.ts'
import type { DueFailedAct } from '../store/person/failed-acts.ts'
import * as failedActs from '../store/person/failed-acts.ts'
import type { Db, Store } from '../store/pool.ts'
import { type By, recordAll } from './act.ts'
import { detailOf } from './failed.ts'

export interface FailedActs {
  nonce: string
  action: FailedActName
  kind: string
  /** In the order in which they are done. */
  copies: readonly SelectedCopy[]
}

/** Records the act on each copy, in the caller's transaction. A copy that can't be sent again stays, and the row says why. */
export async function recordFailed(
  db: Db,
  { nonce, action, kind, copies }: FailedActs,
  by: By,
): Promise<ReadonlyMap<string, number>> {
  const able = copies.filter(copy => isAble(copy, action))
  const subjects = able.map(copy => ({ subject: copy.id, detail: detailOf(kind, copy) }))
  const auditIds = await recordAll(db, { action, by }, subjects)
  const rows = copies.map(({ id, whyNot }) => {
    const auditId = auditIds.get(id) ?? null
    return { copyId: id, auditId, outcome: auditId === null ? (whyNot ?? null) : null }
  })
  await failedActs.insertAll(db, { nonce, action, kind, copies: rows })
  return auditIds
}

interface Doing {
  store: Store
  queues: Queues
}

/** How long a copy is tried whose job a worker still has, in ms, and the pause between. */
const IN_WORK = { ms: 60_000, againMs: 2_000 }

/** So many at most are done in one turn: a worker that stops waits for the end of its turn. */
const TURN = 100

/** Does what is recorded and due, a turn of it. Throws if the queues are away: then it is due again later. */
export async function doFailedActs(doing: Doing, now: () => number): Promise<void> {
  for (let n = 0; n < TURN; n += 1) {
    const due = await failedActs.begin(doing.store)
    if (!due) return
    await doOne(due, doing, now())
  }
}

async function doOne(due: DueFailedAct, doing: Doing, now: number): Promise<void> {
  const { store } = doing
  const said = await attempt(due, doing)
  if (said === 'in_work' && now - due.begunAt < IN_WORK.ms)
    return failedActs.postpone(store, due.actNo, IN_WORK.againMs)
  // A worker that died in an earlier try has done it, unless another act took the copy meanwhile.
  const isByEarlier = said === 'gone' && due.tries > 1 && !(await failedActs.isTaken(store, due))
  const outcome = isByEarlier ? 'done' : said
  await store.transaction(async db => {
    const isFirst = await failedActs.end(db, due.actNo, outcome)
    if (!isFirst || outcome === 'done') return
    // The audit says since the beginning that it is done. That it isn't is said by a further row.
    const { actor, action, copyId: subject, kind, auditId } = due
    const detail = { kind, why: outcome, of_audit_id: auditId }
    await audits.insert(db, { actor, action, subject, detail, outcome: 'failed' })
  })
}

async function attempt(
  { actNo, action, kind, copyId }: DueFailedAct,
  { store, queues }: Doing,
): Promise<'done' | RetryRefusal> {
  try {
    if (!(await failedFind(queues, kind, copyId))) return 'gone'
  } catch (error) {
    // Nothing was done, so a later try must not take this one for the one that did it.
    await failedActs.uncount(store, actNo)
    throw error
  }
  if (action === 'failed.discard') return (await failedDiscard(queues, kind, copyId)) ? 'done' : 'gone'
  const refused = await failedRetry(queues, kind, copyId)
  return refused === 'emptied' ? 'card_data_removed' : (refused ?? 'done')
}
