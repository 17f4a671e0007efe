// The route that starts a batch. It checks query and roles before it reads the body, and stops reading a body that it
// refuses early.
import { z } from 'zod'
import { isRefusal, type Reason } from '../../../src/errors.ts'
import { failureFor, failureOf } from '../../../src/job/problem.ts'
import type { Intake } from '../../../src/store/batch/intake.ts'
import { Accepted, BatchQuery } from '../../http/messages/batches.ts'
import { ERRORS } from '../../http/messages/cards.ts'
import { FileError } from '../../rows/file-error.ts'
import type { Caller, GatewayApp } from '../app.ts'
import { findCaptureKeys } from '../capture-keys.ts'
import type { GatewayDeps } from '../deps.ts'
import { busy, type Decline, roleMissing } from '../error-bodies.ts'
import { idempotencyKeyOf, WriteHeaders } from '../server/headers.ts'
import { decline, type Reply } from '../server/replies.ts'
import { parameterLacking } from './access.ts'
import { type Meter, meter, type Source } from './body.ts'
import { type BatchRequest, batchRequestOf } from './query.ts'
import { receive } from './receive.ts'

const FORMATS = { 'application/x-ndjson': 'ndjson', 'text/csv': 'csv' } as const
const STREAMED = /^(application\/x-ndjson|text\/csv)\b/i
/**
 * How many bodies are read at once, in one process and for one client. Each needs the memory of a chunk and its block.
 */
const RECEIVING_MAX = 8
const RECEIVING_OF_ONE_MAX = 4
const RETRY_AFTER_S = 5
/** The longest pause between two pieces of a body. */
const IDLE_MS_MAX = 60_000

/** Adds the route. `onAccepted` is called when a batch can be fed. */
export function submissionRoute(app: GatewayApp, url: string, deps: GatewayDeps, onAccepted: () => void): void {
  /** The client id of each body that is being received. */
  const receiving: string[] = []

  app.addContentTypeParser(STREAMED, (_request, body, done) => done(null, body))
  app.addHook('onSend', async (request, reply) => {
    if (request.method === 'POST' && !request.raw.complete) reply.header('connection', 'close')
  })
  app.route({
    method: 'POST',
    url,
    config: { access: [], streams: STREAMED },
    schema: {
      operationId: 'createBatch',
      summary: 'Starts a batch of records: one a row, as NDJSON or CSV',
      tags: ['Batches'],
      headers: WriteHeaders,
      querystring: BatchQuery,
      consumes: Object.keys(FORMATS),
      body: z.any().describe('Columns as `tokenmill migrate` has them: CSV with a header, or a flat object a line.'),
      response: { 202: Accepted, ...ERRORS },
    },
    handler: async (request, reply) => {
      const { caller, query, headers, body } = request
      const { clientId } = caller.client
      const format = formatOf(request.headers['content-type'])
      if (format === undefined) return decline(reply, failureFor('body_media_type', 'body'))
      const batch = batchRequestOf(query, idempotencyKeyOf(headers))
      if (isRefusal(batch)) return decline(reply, failureOf(batch))
      const denied = await denial(batch, caller, deps)
      if (denied) return decline(reply, denied)
      // Blocks are encrypted to the newest JWE key of the caller's entity.
      const [captureKey] = await findCaptureKeys(deps, caller.entityId, ['jwe-rsa', 'jwe-ec'])
      if (!captureKey) return decline(reply, failureFor('alias_unknown', 'body'))
      const own = receiving.filter(id => id === clientId).length
      if (receiving.length >= RECEIVING_MAX || own >= RECEIVING_OF_ONE_MAX) return decline(reply, busy(RETRY_AFTER_S))
      receiving.push(clientId)
      try {
        const limits = { bytesMax: deps.settings.batchBytesMax, idleMsMax: IDLE_MS_MAX }
        const metered = (keys: Meter['keys']) => meter(body as Source, aboutOf(format, batch), { ...limits, keys })
        const made = await receive(caller, batch, { format, metered }, captureKey.key, deps)
        if (isRefusal(made)) return decline(reply, failureOf(made))
        onAccepted()
        reply.header('location', `${url}/${made.batchId}`)
        return reply.code(202).header('retry-after', `${RETRY_AFTER_S}`).send(acceptedOf(made))
      } catch (error) {
        if (error instanceof FileError) return declineRows(reply, error)
        throw error
      } finally {
        receiving.splice(receiving.indexOf(clientId), 1)
      }
    },
  })
}

function formatOf(type: string | undefined): 'csv' | 'ndjson' | undefined {
  const name = type?.split(';')[0]?.trim().toLowerCase() ?? ''
  return Object.hasOwn(FORMATS, name) ? FORMATS[name as keyof typeof FORMATS] : undefined
}

/**
 * The part of the request's hash that doesn't come from the body: two requests with the same text and body are the
 * same.
 */
function aboutOf(format: string, { recordKind, tokenScope, policy, dryRun }: BatchRequest): string {
  return JSON.stringify([format, recordKind, tokenScope, policy.on_conflict, policy.on_expired, dryRun])
}

function acceptedOf({ batchId, records, chunks, acceptedAt }: Intake): z.infer<typeof Accepted> {
  return { batch_id: batchId, records, chunks, accepted_at: new Date(acceptedAt).toISOString() }
}

async function denial(batch: BatchRequest, caller: Caller, { directory }: GatewayDeps): Promise<Decline | undefined> {
  const lacking = parameterLacking(caller, batch)
  if (lacking !== undefined) return roleMissing(lacking.parameter, lacking.role)
  if (batch.tokenScope === undefined) return undefined
  const scope = await directory.scope(batch.tokenScope)
  const isOpen = scope !== undefined && caller.client.entities.includes(scope.entityId)
  return isOpen ? undefined : failureFor('scope_forbidden', 'query.token_scope')
}

/**
 * Answers what is wrong with the body as a whole, and where, without any value. The advice of a FileError is left out,
 * because it is about files.
 */
function declineRows<R extends Reply>(reply: R, error: FileError): R {
  const text = error.message.slice(0, -error.next.length).trim()
  const fields = [{ field: 'body', reason: 'rows_unreadable' satisfies Reason, text }]
  return decline(reply, { status: 400, fields, reversalStatus: 'NONE' })
}
