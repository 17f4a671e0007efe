// A request of a caller, checked against the schema of its kind and not signed yet. It grants nothing: the worker
// checks everything again, and checks what only a worker can know (tokens, scopes, cards).
import { isRefusal, type Refusal } from '../src/errors.ts'
import { CATALOGUE, type Kind } from '../src/job/catalogue.ts'
import { parse } from '../src/job/refusal.ts'

/** The kinds that a client may send; the others belong to system clients. */
export type ClientKind = { [K in Kind]: (typeof CATALOGUE)[K]['systemOnly'] extends true ? never : K }[Kind]

export interface Ask {
  kind: ClientKind
  request: Record<string, unknown>
  /** Compact JWE of a batch's records. */
  block?: string
}

/** `request` as its kind's schema has it; a refusal names every field that is wrong (`body.…`). */
export function check(kind: ClientKind, request: unknown): Ask | Refusal {
  const parsed = parse<unknown>(CATALOGUE[kind].request, request, 'body')
  return isRefusal(parsed) ? parsed : { kind, request: parsed.value as Record<string, unknown> }
}
