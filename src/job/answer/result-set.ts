// A result set: several results for one results queue in one delivery, under one signature. Only jobs whose envelope
// has `result_sets` in `optional` are answered by sets. An event is always delivered by itself.
import { z } from 'zod'
import { signText } from '../envelope/envelope.ts'
import type { InstallationKeys } from '../envelope/installation-jws.ts'
import {
  bodyDigest,
  type InstallationKey,
  openBody,
  openResult,
  type RefusedDelivery,
  Result,
  type ResultData,
  type ResultEvent,
  sealBody,
} from './result.ts'

const RESULT_SET_TYP = 'tokenmill-result-set+jwt'

/**
 * How much one set holds. A longer result goes alone. A results queue with 1,000 full sets holds 64 MiB, as one with
 * single results may.
 */
export const RESULT_SET = { resultsMax: 100, bytesMax: 64 * 1024 } as const

/** A set of such results. */
export const setOf = <One extends z.ZodType>(one: One) => z.array(one).min(2).max(RESULT_SET.resultsMax)

/** The body of a delivery whose JWS has the header `typ: tokenmill-result-set+jwt`. */
export const ResultSet = setOf(Result)
export type ResultSet = z.infer<typeof ResultSet>

/** `bodies`: the texts of results, at least two. */
export function sealResultSet(
  bodies: readonly string[],
  clientId: string,
  key: InstallationKey,
  newKeys: readonly string[] = [],
): ResultData {
  const body = `[${bodies.join()}]`
  const payload = JSON.stringify({ aud: clientId, results: bodies.length, sha256: bodyDigest(body) })
  return sealBody(body, signText(payload, key, RESULT_SET_TYP), newKeys)
}

export type OpenedDelivery =
  | RefusedDelivery
  | { refused: undefined; results: (Result | ResultEvent)[]; newKeys: readonly string[] }

/** The result or results in a delivery, if one of `keys` (by `kid`) signed it for `clientId`. */
export function openDelivery(data: unknown, clientId: string, keys: InstallationKeys): OpenedDelivery {
  const single = openResult(data, clientId, keys)
  if (single.refused === undefined) return { refused: undefined, results: [single.result], newKeys: single.newKeys }
  if (single.refused !== 'forged') return single
  const set = openBody(data, { typ: RESULT_SET_TYP, clientId, read: readSet }, keys)
  return set.refused === undefined ? { refused: undefined, results: set.content, newKeys: set.newKeys } : set
}

/** Not checked by the schema: the signature proves that a worker wrote it, perhaps with words that the schema lacks. */
function readSet(body: string, claims: Record<string, unknown>): Result[] | undefined {
  const results: unknown = JSON.parse(body)
  const isSet = Array.isArray(results) && results.length > 0 && results.length === claims['results']
  return isSet ? (results as Result[]) : undefined
}
