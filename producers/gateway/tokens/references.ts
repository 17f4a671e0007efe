// The routes of source references: the owners of a token's card, and the data that the next provider needs for it. Ids
// of providers stand in bodies only: a path or a query would land in the logs of proxies.

import { z } from 'zod'
import { assert } from '../../../src/errors.ts'
import { tokenId } from '../../../src/job/envelope/text.ts'
import { OnFileRequest, ownerOf } from '../../../src/job/on-file.ts'
import { failureFor } from '../../../src/job/problem.ts'
import type { ShownReference } from '../../../src/store/reference/reference-views.ts'
import * as references from '../../../src/store/reference/reference-views.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import { shownReuseToken } from '../../../src/token/render.ts'
import { AcceptedRecord, ERRORS, GoneRecord } from '../../http/messages/cards.ts'
import { Absent, Added, Found, Lookup, Page, PageQuery, type Reference } from '../../http/messages/references.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { respondLater } from '../operations/operation-routes.ts'
import { prefersAsync } from '../operations/operations.ts'
import { sendWrite } from '../operations/write.ts'
import { idempotencyKeyOf, WriteHeaders } from '../server/headers.ts'
import { decline } from '../server/replies.ts'
import { findVisible } from '../visible-token.ts'

const OF_CARD = '/oidc/api/v2/card/:id/references'
const LOOKUP = '/oidc/api/v2/references/lookup'
const TAGS = ['Source references']
/** A lookup of that many owners, whatever their ids. */
const LOOKUP_BYTES_MAX = 1024 * 1024

const Id = z.strictObject({ id: tokenId().describe('The reuse token.') })
export function referenceRoutes(app: GatewayApp, deps: GatewayDeps): void {
  app.route({
    method: 'PUT',
    url: OF_CARD,
    config: { access: ['TOKEN_WRITE'] },
    schema: {
      operationId: 'putReference',
      summary: 'Adds an owner of the card, or changes what must travel with it',
      tags: TAGS,
      headers: WriteHeaders,
      params: Id,
      body: OnFileRequest,
      response: { 200: z.union([Added, GoneRecord]), 202: AcceptedRecord, ...ERRORS },
    },
    handler: async ({ body, params, caller, headers }, reply) => {
      const request = { id: params.id, on_file: body }
      const write = { kind: 'token-update', request, idempotencyKey: idempotencyKeyOf(headers) } as const
      if (prefersAsync(headers.prefer)) return respondLater(write, caller, deps, reply)
      const written = await sendWrite(write, caller, deps)
      if ('declined' in written) return decline(reply, written.declined)
      return reply.code(200).send((await deps.schemeTokens.unmask(written.record, params.id)) as z.infer<typeof Added>)
    },
  })
  app.route({
    method: 'GET',
    url: OF_CARD,
    config: { access: ['TOKEN_READ'] },
    schema: {
      operationId: 'getReferences',
      summary: 'Whose card the token stands for, and what must travel with it',
      tags: TAGS,
      params: Id,
      querystring: PageQuery,
      response: { 200: Page, ...ERRORS },
    },
    handler: async ({ params, query: { after = 0, limit }, caller }, reply) => {
      const found = await findVisible(params.id, caller, deps)
      if (!found) return decline(reply, failureFor('token_not_found', 'params.id'))
      const { tokenId } = found.row
      const owners = await references.findByToken(deps.store, { tokenId, after, limit: limit + 1 })
      const page = owners.slice(0, limit)
      const next = owners.length > limit ? page.at(-1)?.referenceNo : undefined
      return reply.code(200).send({ references: page.map(shown), ...(next === undefined ? {} : { next }) })
    },
  })
  app.route({
    method: 'POST',
    url: LOOKUP,
    bodyLimit: LOOKUP_BYTES_MAX,
    config: { access: ['TOKEN_READ'] },
    schema: {
      operationId: 'lookUpReferences',
      summary: 'Finds tokens by the ids of their sources',
      tags: TAGS,
      body: Lookup,
      response: { 200: z.strictObject({ references: z.array(z.union([Found, Absent])) }), ...ERRORS },
    },
    handler: async ({ body, caller }, reply) => {
      const scope = await deps.directory.scope(body.token_scope)
      if (!scope || !caller.client.entities.includes(scope.entityId))
        return decline(reply, failureFor('scope_forbidden', 'body.token_scope'))
      const owners = body.references.map(reference => ownerOf(reference, scope.tokenScope))
      const found = await references.findByOwners(deps.store, owners)
      const answers = owners.map(owner => located(found.get(ownerKey(owner))))
      return reply.code(200).send({ references: answers })
    },
  })
}

const ABSENT = { found: false } as const

function located(reference: ShownReference | undefined): z.infer<typeof Found | typeof Absent> {
  if (!reference) return ABSENT
  const { token } = reference
  const { status: token_status } = token
  assert(token_status !== 'DELETED', 'a deleted token has no owners')
  const reuseToken = shownReuseToken(token)
  return { found: true, ...(reuseToken ? { reuse_token: reuseToken } : {}), token_status, ...shown(reference) }
}

const SHOWN: ReadonlySet<string> = new Set(Object.keys(OnFileRequest.shape))

/** The stored reference may have members that this release doesn't describe. */
function shown({ provider, providerAccount, customerId, cardId, onFile }: ShownReference): z.infer<typeof Reference> {
  return {
    provider,
    ...(providerAccount === '' ? {} : { provider_account: providerAccount }),
    ...(customerId === '' ? {} : { customer_id: customerId }),
    card_id: cardId,
    ...Object.fromEntries(Object.entries(onFile).filter(([name]) => SHOWN.has(name))),
  }
}
