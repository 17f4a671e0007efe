// Checks a caller's request against the schema of its kind; signing comes later. The check grants nothing: the worker
// checks everything again, and also what only a worker can know (tokens, scopes, cards).
import { isRefusal, type Refusal } from '../src/errors.ts'
import { CATALOGUE, type Kind } from '../src/job/catalogue.ts'
import { parse } from '../src/job/refusal.ts'

/** The kinds that a client may send; the others belong to system clients. */
export type ClientKind = { [K in Kind]: (typeof CATALOGUE)[K]['systemOnly'] extends true ? never : K }[Kind]

export interface Ask {
  kind: ClientKind
  request: Record<string, unknown>
  /** The batch's records as a compact JWE. */
  block?: string
}

/** Parses `request` with its kind's schema. A refusal names every wrong field (`body.…`). */
export function check(kind: ClientKind, request: unknown): Ask | Refusal {
  const parsed = parse<unknown>(CATALOGUE[kind].request, request, 'body')
  return isRefusal(parsed) ? parsed : { kind, request: parsed.value as Record<string, unknown> }
}
