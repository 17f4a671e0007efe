// The form of a request: each part (path, body, query, headers) against its zod schema. fastify stops at the first part
// that is wrong; a caller is told of all parts at once, so the rest is judged here. Content is for workers to judge.
import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { isRefusal } from '../../../src/errors.ts'
import { parse } from '../../../src/job/refusal.ts'
import { type Decline, Declined, declineOf } from './error-bodies.ts'

/** In the order in which fastify judges them. */
const PARTS = ['params', 'body', 'query', 'headers'] as const
type Part = (typeof PARTS)[number]

/** The prefix of a field in `details`. A header is a parameter. */
const PREFIX = { params: 'params', body: 'body', query: 'query', headers: 'params' } as const satisfies Record<
  Part,
  string
>

/** A part is wrong, and those in `unjudged` were not looked at yet. */
export class WrongForm extends Declined {
  readonly unjudged: readonly Part[]

  constructor(decline: Decline, unjudged: readonly Part[]) {
    super(decline)
    this.unjudged = unjudged
  }
}

/** A body that is wrong before any schema is asked. */
export function wrongBody(decline: Decline): WrongForm {
  return new WrongForm(
    decline,
    PARTS.filter(part => part !== 'body'),
  )
}

/** Schemas are zod's; what they refuse is a decline of ours. */
export const compileSchema: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = 'body' }) => {
  const part = httpPart === 'querystring' ? 'query' : (httpPart as Part)
  const unjudged = PARTS.slice(PARTS.indexOf(part) + 1)
  return data => {
    // What isn't there is null here, and absent for a schema.
    const parsed = parse(schema, data ?? undefined, PREFIX[part])
    return isRefusal(parsed) ? { error: new WrongForm(declineOf(parsed), unjudged) } : { value: parsed.value }
  }
}

export interface Judgeable extends Record<Part, unknown> {
  getValidationFunction(part: Part): unknown
}
type Judge = (data: unknown) => { error: WrongForm } | { value: unknown }

/** What is wrong in every part of the request. */
export function declineOfAll({ decline, unjudged }: WrongForm, request: Judgeable): Decline {
  const more = unjudged.flatMap(part => {
    // As `compileSchema` made it; a route without a schema of this part has none.
    const judge = request.getValidationFunction(part) as Judge | undefined
    const judged = judge?.(request[part])
    return judged && 'error' in judged ? judged.error.decline.fields : []
  })
  return { ...decline, fields: [...decline.fields, ...more] }
}
