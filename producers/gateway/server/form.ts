// Checks the form of a request: each part (path, body, query, headers) against its zod schema. fastify stops at the
// first wrong part; this file then checks the other parts, so that the answer names the wrong fields of all parts.
// Workers check the content.
import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { isRefusal } from '../../../src/errors.ts'
import { failureOf } from '../../../src/job/problem.ts'
import { parse } from '../../../src/job/refusal.ts'
import { type Decline, Declined } from '../error-bodies.ts'

/** The parts in the order in which fastify checks them. */
const PARTS = ['params', 'body', 'query', 'headers'] as const
type Part = (typeof PARTS)[number]

/** The prefix of a field in `details`. Headers count as parameters. */
const PREFIX = { params: 'params', body: 'body', query: 'query', headers: 'params' } as const satisfies Record<
  Part,
  string
>

/** One part is wrong; the parts in `unjudged` were not checked yet. */
export class WrongForm extends Declined {
  readonly unjudged: readonly Part[]

  constructor(decline: Decline, unjudged: readonly Part[]) {
    super(decline)
    this.unjudged = unjudged
  }
}

/** A body that is wrong before any schema is applied. */
export function wrongBody(decline: Decline): WrongForm {
  return new WrongForm(
    decline,
    PARTS.filter(part => part !== 'body'),
  )
}

/** Makes a validator of a zod schema; a refusal becomes a decline. */
export const compileSchema: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = 'body' }) => {
  const part = httpPart === 'querystring' ? 'query' : (httpPart as Part)
  const unjudged = PARTS.slice(PARTS.indexOf(part) + 1)
  return data => {
    // For a missing part fastify has null, and a schema expects undefined.
    const parsed = parse(schema, data ?? undefined, PREFIX[part])
    return isRefusal(parsed) ? { error: new WrongForm(failureOf(parsed), unjudged) } : { value: parsed.value }
  }
}

export interface Judgeable extends Record<Part, unknown> {
  getValidationFunction(part: Part): unknown
}
type Judge = (data: unknown) => { error: WrongForm } | { value: unknown }

/** The decline that names the wrong fields of all parts. */
export function declineOfAll({ decline, unjudged }: WrongForm, request: Judgeable): Decline {
  const more = unjudged.flatMap(part => {
    // The validator is one that `compileSchema` made; undefined if the route has no schema for this part.
    const judge = request.getValidationFunction(part) as Judge | undefined
    const judged = judge?.(request[part])
    return judged && 'error' in judged ? judged.error.decline.fields : []
  })
  return { ...decline, fields: [...decline.fields, ...more] }
}
