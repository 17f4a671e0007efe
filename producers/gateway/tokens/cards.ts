// The routes of the card token service: PUT, GET, PATCH, DELETE, suspend and activate. Writes go through the queue.
// Reads come from the store, whose role for gateways can't select cards.
import { z } from 'zod'
import { tokenId } from '../../../src/job/envelope/text.ts'
import { failureFor } from '../../../src/job/problem.ts'
import { renderGet } from '../../../src/token/render.ts'
import {
  AcceptedRecord,
  ERRORS,
  GetRecord,
  GoneRecord,
  Nothing,
  Patch,
  PatchRecord,
  Put,
  PutRecord,
} from '../../http/messages/cards.ts'
import type { Caller, GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { respondLater } from '../operations/operation-routes.ts'
import { prefersAsync } from '../operations/operations.ts'
import { sendWrite } from '../operations/write.ts'
import { wrongBody } from '../server/form.ts'
import { idempotencyKeyOf, WriteHeaders } from '../server/headers.ts'
import { decline } from '../server/replies.ts'
import { findVisible } from '../visible-token.ts'

const CARD = '/oidc/api/v2/card'
const Id = z.strictObject({ id: tokenId().describe('The reuse token.') })
const TAGS = ['Card tokens']

export function cardRoutes(app: GatewayApp, deps: GatewayDeps): void {
  app.route({
    method: 'PUT',
    url: CARD,
    config: { access: ['TOKEN_WRITE'] },
    schema: {
      operationId: 'createUpdateToken',
      summary: 'Creates a token for a card, or updates the one that stands for it',
      tags: TAGS,
      headers: WriteHeaders,
      body: Put,
      response: { 200: z.union([PutRecord, GoneRecord]), 202: AcceptedRecord, ...ERRORS },
    },
    handler: async ({ body, caller, headers }, reply) => {
      const write = { kind: 'token-create', request: body, idempotencyKey: idempotencyKeyOf(headers) } as const
      if (prefersAsync(headers.prefer)) return respondLater(write, caller, deps, reply)
      const written = await sendWrite(write, caller, deps)
      if ('declined' in written) return decline(reply, written.declined)
      const { record } = written
      return reply.code(200).send((await deps.schemeTokens.unmask(record, String(record['reuse_token']))) as Created)
    },
  })
  app.route({
    method: 'PATCH',
    url: `${CARD}/:id`,
    config: { access: ['TOKEN_WRITE'] },
    schema: {
      operationId: 'updateToken',
      summary: 'Updates the card on file, or links the token to another card',
      tags: TAGS,
      headers: WriteHeaders,
      params: Id,
      body: Patch,
      response: { 200: z.union([PatchRecord, GoneRecord]), 202: AcceptedRecord, ...ERRORS },
    },
    handler: async ({ body: { cvv: _, ...fields }, params, caller, headers }, reply) => {
      const request = { id: params.id, ...fields }
      const write = { kind: 'token-update', request, idempotencyKey: idempotencyKeyOf(headers) } as const
      if (prefersAsync(headers.prefer)) return respondLater(write, caller, deps, reply)
      const written = await sendWrite(write, caller, deps)
      if ('declined' in written) return decline(reply, written.declined)
      return reply.code(200).send((await deps.schemeTokens.unmask(written.record, params.id)) as Patched)
    },
  })
  app.route({
    method: 'GET',
    url: `${CARD}/:id`,
    config: { access: ['TOKEN_READ'] },
    schema: {
      operationId: 'getToken',
      summary: 'Reads a token',
      tags: TAGS,
      params: Id,
      response: { 200: GetRecord, ...ERRORS },
    },
    handler: async ({ params, caller }, reply) => {
      const record = await read(params.id, caller, deps)
      return record ? reply.code(200).send(record) : decline(reply, failureFor('token_not_found', 'params.id'))
    },
  })
  lifecycle('DELETE', `${CARD}/:id`, 'DELETE', 'deleteToken', 'Deletes a token, for good')
  lifecycle('PATCH', `${CARD}/:id/suspend`, 'SUSPEND', 'suspendToken', 'Suspends a token until it is activated')
  lifecycle('PATCH', `${CARD}/:id/activate`, 'ACTIVATE', 'activateToken', 'Activates a suspended token')

  function lifecycle(
    method: 'DELETE' | 'PATCH',
    url: string,
    action: string,
    operationId: string,
    summary: string,
  ): void {
    app.route({
      method,
      url,
      config: { access: ['TOKEN_LIFECYCLE'] },
      schema: {
        operationId,
        summary,
        tags: TAGS,
        headers: WriteHeaders,
        params: Id,
        response: { 202: AcceptedRecord, 204: Nothing, ...ERRORS },
      },
      preValidation: async request => {
        // Some clients send `{}` although no body is needed.
        if (Object.keys((request.body as object | undefined) ?? {}).length > 0)
          throw wrongBody(failureFor('field_unknown', 'body'))
      },
      handler: async ({ params, caller, headers }, reply) => {
        const request = { id: params.id, action }
        const write = { kind: 'token-lifecycle', request, idempotencyKey: idempotencyKeyOf(headers) } as const
        if (prefersAsync(headers.prefer)) return respondLater(write, caller, deps, reply)
        const written = await sendWrite(write, caller, deps)
        return 'declined' in written ? decline(reply, written.declined) : reply.code(204).send(null)
      },
    })
  }
}

type Created = z.infer<typeof PutRecord>
type Patched = z.infer<typeof PatchRecord>

async function read(id: string, caller: Caller, deps: GatewayDeps): Promise<z.infer<typeof GetRecord> | undefined> {
  const found = await findVisible(id, caller, deps)
  if (!found) return undefined
  const { row, scope } = found
  const scheme = await deps.schemeTokens.find(row.tokenId, scope)
  return renderGet(row, await deps.directory.binRange(row.binRange), scheme) as z.infer<typeof GetRecord>
}
