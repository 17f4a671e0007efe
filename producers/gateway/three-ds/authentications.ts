// The routes of past authentications: list, count and retrieve, within the caller's entities. The store turns a search
// into SQL.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Fault } from '../../../src/errors.ts'
import { uuid } from '../../../src/job/envelope/text.ts'
import * as searches from '../../../src/store/three-ds/authentication-search.ts'
import { FIELDS, TAKES } from '../../../src/three-ds/fields.ts'
import { PAGE, parseSearch, type Search, SKIP_MAX } from '../../../src/three-ds/filter.ts'
import { isProblem, type Problem, problem } from '../../../src/three-ds/problem.ts'
import { shownRecord } from '../../../src/three-ds/record.ts'
import { withReload } from '../../../src/vault/ring/reload.ts'
import type { GatewayApp } from '../app.ts'
import { answerProblem } from './answer.ts'
import { callerOf, SERVICE, type ThreeDsDeps } from './deps.ts'
import { AuthenticationRecord, Count, ERRORS } from './records.ts'

const RECORDS = `${SERVICE}/v2/3d`
const TAGS = ['3DS Authentication']

const parameter = (meta: Record<string, unknown>) => z.unknown().optional().meta(meta)
const MEANINGS = {
  '=': 'equal',
  '!=': 'not equal',
  '>=': 'at least',
  '<=': 'at most',
  '~=': 'pattern, `*` for anything',
}

/** Only for the document: filters are read from the query's text, because operators are part of the names. */
const filters = Object.fromEntries(
  [...FIELDS].map(([name, { kind }]) => {
    const takes = TAKES[kind].map(sign => `\`${name}${sign}v\` ${MEANINGS[sign]}`)
    return [name, parameter({ type: 'string', description: `${takes.join(', ')}. Repeated: any of them.` })]
  }),
)
const CountQuery = z.looseObject(filters)
const ListQuery = z.looseObject({
  _limit: parameter({ type: 'integer', minimum: PAGE.least, maximum: PAGE.most, default: PAGE.default }),
  _skip: parameter({ type: 'integer', minimum: 0, maximum: SKIP_MAX, default: 0 }),
  _sort: parameter({
    type: 'array',
    items: { type: 'string' },
    default: ['-created_at'],
    description: 'A field; with `-` in front, descending. Repeated: the first field orders first.',
  }),
  ...filters,
})

export function authenticationRoutes(app: GatewayApp, deps: ThreeDsDeps): void {
  const { store, sealer, clock } = deps
  const access = ['THREEDS'] as const
  // The form is checked before the roles, as on every route.
  const preValidation = async (request: FastifyRequest, reply: FastifyReply) => {
    const search = searchOf(request)
    return isProblem(search) ? answerProblem(reply, search, clock()) : undefined
  }

  app.route({
    method: 'GET',
    url: RECORDS,
    config: { access },
    schema: {
      operationId: 'listAuthentications',
      summary: 'Lists authentications',
      tags: TAGS,
      querystring: ListQuery,
      response: { 200: z.array(AuthenticationRecord), ...ERRORS },
    },
    preValidation,
    handler: async (request, reply) => {
      const { entities } = callerOf(request.caller)
      const found = await searchOrProblem(request, search =>
        withReload(sealer, () => searches.find(store, sealer, entities, search)),
      )
      if (isProblem(found)) return answerProblem(reply, found, clock())
      return reply.code(200).send(found.map(record => shownRecord(record) as AuthenticationRecord))
    },
  })

  app.route({
    method: 'GET',
    url: `${RECORDS}/count`,
    config: { access },
    schema: {
      operationId: 'countAuthentications',
      summary: 'Counts authentications, whatever the page',
      tags: TAGS,
      querystring: CountQuery,
      response: { 200: Count, ...ERRORS },
    },
    preValidation,
    handler: async (request, reply) => {
      const { entities } = callerOf(request.caller)
      const count = await searchOrProblem(request, search => searches.count(store, entities, search))
      return isProblem(count) ? answerProblem(reply, count, clock()) : reply.code(200).send({ count })
    },
  })

  app.route({
    method: 'GET',
    url: `${RECORDS}/:id`,
    config: { access },
    schema: {
      operationId: 'getAuthentication',
      summary: 'Retrieves an authentication',
      tags: TAGS,
      params: z.strictObject({ id: uuid() }),
      response: { 200: AuthenticationRecord, ...ERRORS },
    },
    handler: async ({ params: { id }, caller }, reply) => {
      const record = await withReload(sealer, () => searches.findOne(store, sealer, callerOf(caller).entities, id))
      if (!record) return answerProblem(reply, problem(204, { field: 'params.id', reason: 'field_value' }), clock())
      return reply.code(200).send(shownRecord(record) as AuthenticationRecord)
    },
  })
}

function searchOf({ raw }: Pick<FastifyRequest, 'raw'>): Search | Problem {
  const query = /\?(.*)$/s.exec(raw.url ?? '')?.[1] ?? ''
  return parseSearch(new URLSearchParams(query))
}

async function searchOrProblem<T>(request: FastifyRequest, ask: (search: Search) => Promise<T>): Promise<T | Problem> {
  const search = searchOf(request)
  if (isProblem(search)) return search
  return ask(search).catch(error => {
    if (error instanceof Fault && error.code === 'deadline')
      return problem(102, { field: 'query', reason: 'search_too_long' })
    throw error
  })
}
