// `tokenmill failed`: lists jobs of every kind that failed for good, and sends them again. Their data are never
// printed.
import { KINDS, type Kind } from '../../src/job/catalogue.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { type FailedJob, failedList, failedRetry } from '../../src/queue/failed.ts'
import * as audits from '../../src/store/access/audits.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openQueues, withSession } from '../open/open.ts'
import { actor, moment, print, say, type Terminal, table } from '../terminal.ts'

type Failed = FailedJob & { queue: Kind }

/** Housekeeping removes the whole job from a copy that held card data, and leaves other copies as they are. */
const isEmptied = (job: Failed) => job.jws === ''

async function findAll(queues: Queues): Promise<Failed[]> {
  const lists = await Promise.all(
    KINDS.map(async queue => (await failedList(queues, queue)).map(job => ({ ...job, queue }))),
  )
  return lists.flat()
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { database } = await openCommandStore(session)
    const found = await findAll(await openQueues(session, database))
    const shown = found.map(job => ({
      id: job.id,
      kind: job.queue,
      code: job.code,
      attempt: job.attempt,
      failed_at: moment(job.failedAt),
      job_id: job.jobId,
      card_data_removed: isEmptied(job),
    }))
    const rows = shown.map(job => [
      job.id,
      job.kind,
      job.code,
      `${job.attempt}`,
      job.failed_at,
      job.card_data_removed ? 'no: card data removed, submit again' : 'yes',
    ])
    print(terminal, options, shown, table(['ID', 'KIND', 'CODE', 'ATTEMPTS', 'FAILED', 'CAN BE RETRIED'], rows))
  })
}

export function retry(terminal: Terminal, ids: readonly string[], options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { database, store } = await openCommandStore(session)
    const queues = await openQueues(session, database)
    const found = await findAll(queues)
    const unknown = ids.filter(id => !found.some(job => job.id === id))
    if (unknown.length > 0)
      throw new Stop(`No failed job has the id ${unknown.join(', ')}; see \`tokenmill failed list\`.`)
    const wanted = ids.length === 0 ? found : found.filter(job => ids.includes(job.id))
    const retried: string[] = []
    for (const job of wanted.filter(job => !isEmptied(job))) {
      if (!(await failedRetry(queues, job.queue, job.id))) continue
      retried.push(job.id)
      const detail = { kind: job.queue, job_id: job.jobId }
      await audits.insert(store, { actor: actor(), action: 'failed.retry', subject: job.id, detail })
    }
    const gone = wanted.filter(isEmptied).map(({ id }) => id)
    for (const id of gone) say(terminal, `${id}: its card data were removed after 15 minutes; submit it again.`)
    print(terminal, options, { retried, submit_again: gone }, `${retried.length} sent again`)
    if (gone.length > 0)
      throw new Stop(
        `${gone.length} of ${wanted.length} failed jobs can't be retried; submit them again`,
        EXIT.incomplete,
      )
  })
}
