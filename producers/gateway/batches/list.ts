// A client's batches as the workers store them: those sent over HTTP, and those whose chunks were put on the queue
// directly. Dry runs aren't listed.
import { z } from 'zod'
import { RECORD_KINDS } from '../../../src/job/catalogue.ts'
import { RECORD_ROLES, type Role } from '../../../src/job/choices.ts'
import { failureFor } from '../../../src/job/problem.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { ALL } from '../../../src/store/sight.ts'
import { BatchId, BatchStatus, SHOWN_STATES } from '../../http/messages/batches.ts'
import { ERRORS } from '../../http/messages/cards.ts'
import type { Caller, GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { roleMissing } from '../error-bodies.ts'
import { decline } from '../server/replies.ts'
import { parameterLacking } from './access.ts'
import { shownState } from './status.ts'

const LIMIT = { usual: 50, most: 200 } as const

const ListQuery = z.strictObject({
  state: z.enum(SHOWN_STATES).optional().describe('Only batches in this state.'),
  since: z.iso.datetime({ offset: true }).optional().describe('Only batches that began then or later.'),
  before: BatchId.optional().describe('Only batches that began before this one: the last one of the page before.'),
  limit: z.coerce.number().int().min(1).max(LIMIT.most).default(LIMIT.usual).describe('How many at most.'),
})

const BatchPage = z.strictObject({
  batches: z.array(BatchStatus).describe('Newest first.'),
})

/** Each of these roles, or TOKEN_READ, shows some batches. */
const WRITERS: readonly Role[] = [...new Set<Role>([...Object.values(RECORD_ROLES), 'LEDGER_WRITE'])]

export function listRoute(app: GatewayApp, url: string, { store, clock }: GatewayDeps): void {
  app.route({
    method: 'GET',
    url,
    config: { access: [] },
    schema: {
      operationId: 'listBatches',
      summary: 'Lists the batches of the client, newest first',
      tags: ['Batches'],
      querystring: ListQuery,
      response: { 200: BatchPage, ...ERRORS },
    },
    handler: async ({ query, caller }, reply) => {
      const kinds = kindsFor(caller)
      if (kinds.length === 0) return decline(reply, roleMissing('query', 'TOKEN_READ', ...WRITERS))
      const { clientId } = caller.client
      const { state, since, before, limit } = query
      const last = before === undefined ? undefined : await batches.find(store, clientId, before)
      if (before !== undefined && !(last && isVisibleTo(caller, last)))
        return decline(reply, failureFor('batch_not_found', 'query.before'))
      const now = clock()
      const asked = {
        clientId,
        after: last && { rank: 0, batchNo: last.batchNo },
        since: since === undefined ? undefined : Date.parse(since),
        // A batch that is ACCEPTED over HTTP is OPEN or RUNNING in its row, so this state is decided row by row.
        state: state === 'ACCEPTED' ? undefined : state,
        now,
      }
      const isShown = (batch: Batch) =>
        isVisibleTo(caller, batch) &&
        kinds.includes(batch.recordKind) &&
        (state === undefined || shownState(batch, now) === state)
      const found: Batch[] = []
      for await (const page of batchList.listPages(ALL, store, asked, WHOLE_BATCH)) {
        found.push(...page.filter(isShown))
        if (found.length >= limit) break
      }
      return reply.code(200).send({ batches: found.slice(0, limit).map(batch => statusOfBatch(batch, now)) })
    },
  })
}

/** Whether the batch is of an entity that the caller acts for. A batch of several entities is their client's. */
export function isVisibleTo({ client, onlyEntity }: Caller, { entityId }: Pick<Batch, 'entityId'>): boolean {
  return entityId === null ? onlyEntity === undefined : client.entities.includes(entityId)
}

/** The record kinds whose batches the caller may see. */
export function kindsFor({ roles }: Pick<Caller, 'roles'>): Batch['recordKind'][] {
  const reads = roles.includes('TOKEN_READ')
  const kinds: Batch['recordKind'][] = RECORD_KINDS.filter(
    recordKind => reads || parameterLacking({ roles }, { recordKind, dryRun: false }) === undefined,
  )
  if (roles.includes('LEDGER_WRITE')) kinds.push('transaction')
  return kinds
}

/** The status of a batch, from the workers' row. */
export function statusOfBatch(batch: Batch, now: number): BatchStatus {
  const { extent, extentChunks, chunksDone, rowsDone, finishedAt, cancelledAt, tokenScope } = batch
  const isEnded = finishedAt !== null || (cancelledAt !== null && chunksDone === extentChunks)
  return {
    batch_id: batch.batchId,
    kind: batch.recordKind,
    ...(tokenScope !== null && { token_scope: tokenScope }),
    dry_run: false,
    state: shownState(batch, now),
    finished: isEnded,
    progress: extentChunks === null ? 0 : chunksDone / extentChunks,
    ...(extent?.rows != null && { records: extent.rows }),
    records_done: rowsDone,
    ...(extentChunks !== null && { chunks: extentChunks }),
    chunks_done: chunksDone,
    counts: batch.counts,
    accepted_at: new Date(batch.acceptedAt).toISOString(),
    ...(finishedAt !== null && { finished_at: new Date(finishedAt).toISOString() }),
  }
}
