// The routes of batches: a body of NDJSON or CSV becomes chunks that are encrypted and stored while it streams in, and
// the batch is accepted when the whole body has arrived. Other routes show its state, stream its progress, return its
// results and cancel it.
import { Readable } from 'node:stream'
import { z } from 'zod'
import { perform } from '../../../src/acts/act.ts'
import { cancelLocked } from '../../../src/acts/batch.ts'
import { failureFor } from '../../../src/job/problem.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as chunks from '../../../src/store/batch/intake-chunks.ts'
import { BatchId, BatchStatus } from '../../http/messages/batches.ts'
import { ERRORS, Nothing } from '../../http/messages/cards.ts'
import type { Caller, GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { busy, type Decline, roleMissing } from '../error-bodies.ts'
import { decline, sendAny } from '../server/replies.ts'
import { parameterLacking } from './access.ts'
import { openEvents } from './events.ts'
import { type Feeder, IN_FLIGHT, openFeeder } from './feeder.ts'
import { isVisibleTo, kindsFor, listRoute, statusOfBatch } from './list.ts'
import { type ResultsFormat, resultsText } from './results.ts'
import { statusOf } from './status.ts'
import { submissionRoute } from './submission.ts'

const BATCHES = '/oidc/api/v2/batches'
const TAGS = ['Batches']
const RETRY_AFTER_S = 5

const Id = z.strictObject({ id: BatchId.describe('The batch_id.') })

export function batchRoutes(app: GatewayApp, deps: GatewayDeps): void {
  const { store, settings } = deps
  const events = openEvents(deps)
  let feeder: Feeder | undefined
  app.addHook('onReady', async () => {
    feeder = openFeeder(deps, { inFlight: IN_FLIGHT, resendMs: settings.resendMs })
  })
  app.addHook('preClose', async () => events.close())
  app.addHook('onClose', async () => feeder?.close())
  submissionRoute(app, BATCHES, deps, () => feeder?.wake())
  listRoute(app, BATCHES, deps)

  app.route({
    method: 'GET',
    url: `${BATCHES}/:id`,
    config: { access: [] },
    schema: {
      operationId: 'getBatch',
      summary: 'Tells how far a batch has come',
      tags: TAGS,
      params: Id,
      response: { 200: BatchStatus, ...ERRORS },
    },
    handler: async ({ params, caller }, reply) => {
      const found = await findFor(caller, params.id)
      if (!('status' in found)) return reply.code(200).send(statusOf(found, deps.clock()))
      // A batch whose sender put the chunks on the queue directly.
      const batch = found.status === 404 ? await batches.find(store, caller.client.clientId, params.id) : undefined
      if (!batch || !isVisibleTo(caller, batch) || !kindsFor(caller).includes(batch.recordKind))
        return decline(reply, found)
      return reply.code(200).send(statusOfBatch(batch, deps.clock()))
    },
  })

  app.route({
    method: 'GET',
    url: `${BATCHES}/:id/results`,
    config: { access: [] },
    schema: {
      operationId: 'getBatchResults',
      summary:
        'The results of a finished batch, a row each, in the order of its rows: text/csv, or application/x-ndjson by Accept',
      tags: TAGS,
      params: Id,
      response: { 200: textOf('A row each.', 'text/csv', 'application/x-ndjson'), ...ERRORS },
    },
    handler: async (request, reply) => {
      const { params, caller } = request
      const found = await findFor(caller, params.id)
      if ('status' in found) return decline(reply, found)
      if (found.finishedAt === null) return decline(reply, failureFor('batch_unfinished', 'params.id'))
      const format: ResultsFormat = /\bapplication\/x-ndjson\b/i.test(request.headers.accept ?? '') ? 'ndjson' : 'csv'
      const text = Readable.from(resultsText(store, found.intakeNo, format), { objectMode: false })
      const extension = format === 'csv' ? 'csv' : 'ndjson'
      reply.type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
      reply.header('content-disposition', `attachment; filename="${found.batchId}.results.${extension}"`)
      return sendAny(reply, text)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${BATCHES}/:id`,
    config: { access: [] },
    schema: {
      operationId: 'cancelBatch',
      summary: 'Cancels what of a batch has not started',
      tags: TAGS,
      params: Id,
      response: { 204: Nothing, ...ERRORS },
    },
    handler: async ({ params, caller }, reply) => {
      const found = await findFor(caller, params.id)
      if ('status' in found) return decline(reply, found)
      const lacking = parameterLacking(caller, found)
      if (lacking !== undefined) return decline(reply, roleMissing('params', lacking.role))
      await cancel(found, caller)
      feeder?.wake()
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'GET',
    url: `${BATCHES}/:id/events`,
    config: { access: [] },
    schema: {
      operationId: 'followBatch',
      summary: 'Progress as server-sent events: `progress` with the state of the batch, at its end `finished`',
      tags: TAGS,
      params: Id,
      response: { 200: textOf('Events, until the batch is finished.', 'text/event-stream'), ...ERRORS },
    },
    handler: async ({ params, caller }, reply) => {
      const found = await findFor(caller, params.id)
      if ('status' in found) return decline(reply, found)
      const stream = events.open(found)
      if (!stream) return decline(reply, busy(RETRY_AFTER_S))
      reply.type('text/event-stream').header('x-accel-buffering', 'no')
      return sendAny(reply, stream)
    },
  })

  /** Finds a batch that this caller may see. Another client's batch and a missing batch have the same answer. */
  async function findFor({ client, roles }: Caller, id: string): Promise<intake.Intake | Decline> {
    const found = await intake.find(store, client.clientId, id)
    if (!found || !client.entities.includes(found.entityId)) return failureFor('batch_not_found', 'params.id')
    const lacking = roles.includes('TOKEN_READ') ? undefined : parameterLacking({ roles }, found)
    return lacking === undefined ? found : roleMissing('params', 'TOKEN_READ', lacking.role)
  }
  async function cancel(
    { intakeNo, clientId, batchId, entityId, dryRun }: intake.Intake,
    { userId }: Caller,
  ): Promise<void> {
    const by = { actor: { kind: 'client', id: clientId } as const, reason: undefined }
    await perform(store, { action: 'batch.cancel', subject: batchId }, by, async db => {
      const batch = dryRun ? undefined : await batches.find(db, clientId, batchId)
      const decided = batch
        ? await cancelLocked(db, await batches.lock(db, batch.batchNo))
        : { done: undefined, detail: {}, entityId }
      if ('refused' in decided && decided.refused !== 'cancelled') return decided
      if (!(await intake.cancel(db, intakeNo))) return { refused: 'finished' }
      await chunks.end(db, intakeNo, 'CANCELLED')
      const detail = { client_id: clientId, user_id: userId }
      return { done: undefined, detail, entityId: decided.entityId ?? null }
    })
  }
}

const textOf = (description: string, ...types: string[]) => ({
  description,
  content: Object.fromEntries(types.map(type => [type, { schema: z.string() }])),
})
