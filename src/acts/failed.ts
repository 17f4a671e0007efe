// What an operator does to a copy in the failed set. The copy is in a queue, outside the store's transaction: so the
// audit row is committed first, and then the act is done. After a crash in between the copy is still there, and the
// operator can repeat the act.
import type { Queues } from '../queue/engine.ts'
import { type RetryRefusal, whyNot } from '../queue/failed/copy.ts'
import { type FailedJob, failedDiscard, failedFind, failedRetry, isInWork } from '../queue/failed.ts'
import * as clients from '../store/access/clients.ts'
import type { Store } from '../store/pool.ts'
import { type ActResult, type By, perform } from './act.ts'

export interface FailedActDeps {
  store: Store
  queues: Queues
  /** ms since the epoch. */
  now: number
}

/** Names a copy: the kind in whose queue the job failed, and the copy's own id. */
export interface FailedName {
  kind: string
  id: string
}

export async function retryFailed(
  { kind, id }: FailedName,
  by: By,
  { store, queues, now }: FailedActDeps,
): Promise<ActResult<FailedJob, RetryRefusal>> {
  const verdict = await perform<FailedJob, RetryRefusal>(
    store,
    { action: 'failed.retry', subject: id },
    by,
    async db => {
      const copy = await failedFind(queues, kind, id)
      if (!copy) return { refused: 'gone' }
      const client = await clients.find(db, copy.clientId)
      const refused = whyNot(copy, { now, isRevoked: client?.revokedAt != null })
      if (refused) return { refused }
      if (await isInWork(queues, kind, copy)) return { refused: 'in_work' }
      return { done: copy, detail: detailOf(kind, copy) }
    },
  )
  if ('refused' in verdict) return verdict
  const refused = await failedRetry(queues, kind, id)
  if (refused) return { refused: refused === 'emptied' ? 'card_data_removed' : refused }
  return verdict
}

/** Discards the copy of a failed job for good. The job's sender was answered 500 when the job failed. */
export async function discardFailed(
  { kind, id }: FailedName,
  by: By,
  { store, queues }: Pick<FailedActDeps, 'store' | 'queues'>,
): Promise<ActResult<FailedJob, 'gone'>> {
  const verdict = await perform<FailedJob, 'gone'>(store, { action: 'failed.discard', subject: id }, by, async () => {
    const copy = await failedFind(queues, kind, id)
    return copy ? { done: copy, detail: detailOf(kind, copy) } : { refused: 'gone' }
  })
  if ('refused' in verdict) return verdict
  return (await failedDiscard(queues, kind, id)) ? verdict : { refused: 'gone' }
}

/** The detail of the audit row. It leaves out the job's reference, which is personal data. */
export function detailOf(
  kind: string,
  { jobId, code, clientId }: { jobId: string; code: string; clientId?: string | undefined },
): Record<string, unknown> {
  return { kind, job_id: jobId, code, ...(clientId !== undefined && { client_id: clientId }) }
}
