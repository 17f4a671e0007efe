// Checks a caller's request against the schema of its kind; signing comes later. The check grants nothing: the worker
// checks everything again, and also what only a worker can know (tokens, scopes, cards).
import type { z } from 'zod'
import { isRefusal, type Refusal } from '../src/errors.ts'
import { parse } from '../src/job/refusal.ts'

export interface Ask<Kind extends string = string> {
  kind: Kind
  request: Record<string, unknown>
  /** The batch's records as a compact JWE. */
  block?: string
}

/** Parses `request` with its kind's schema. A refusal names every wrong field (`body.…`). */
export function check<Kind extends string>(kind: Kind, schema: z.ZodType, request: unknown): Ask<Kind> | Refusal {
  const parsed = parse<unknown>(schema, request, 'body')
  return isRefusal(parsed) ? parsed : { kind, request: parsed.value as Record<string, unknown> }
}
