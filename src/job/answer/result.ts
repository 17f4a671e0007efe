// A delivery on a results queue: the text of a result or an event, and a signature over the text's digest. Signing a
// digest costs a tenth of signing the text.
import { createHash, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { signText } from '../envelope/envelope.ts'
import { type InstallationKeys, isSigned, readUnverified } from '../envelope/installation-jws.ts'
import { NewKeys } from '../envelope/new-keys.ts'
import type { Algorithm } from '../envelope/signature.ts'
import { kindName } from '../envelope/text.ts'
import { QUEUE_EVENTS } from '../event.ts'
import { AnyRecordResult, OUTCOMES, RecordResult } from '../outcome.ts'
import { failureIn, Problem } from '../problem.ts'
import { CreatedColumns } from './created-columns.ts'

const RESULT_TYP = 'tokenmill-result+jwt'
/**
 * Of a result with `columns`. A reader that doesn't know columns takes it for a forgery; it would believe one without most of
 * its records.
 */
const COLUMNS_TYP = 'tokenmill-result-columns+jwt'

export const Result = z.object({
  v: z.literal(1),
  type: z.literal('result'),
  result_id: z.string(),
  receipt_id: z.string(),
  /** If there are several revisions for one receipt, the highest is valid. */
  revision: z.int(),
  kind: kindName(),
  jti: z.string(),
  /** SHA-256 of the JWS that the result answers, base64url. Absent if the job was refused before it was signed. */
  envelope: z.string().optional(),
  /**
   * SHA-256 of the canonical JSON of `{kind, request}` as that envelope has them, base64url (`askedOf`). Absent if the request was
   * refused for its form, and of a later revision when nothing is left that says it.
   */
  answers: z.string().optional(),
  reference: z.string().optional(),
  status: z.enum(['SUCCEEDED', 'FAILED']),
  code: z.union([
    z.literal(200),
    z.literal(204),
    z.literal(400),
    z.literal(401),
    z.literal(403),
    z.literal(404),
    z.literal(500),
  ]),
  record: z.record(z.string(), z.unknown()).optional(),
  error: Problem.optional(),
  /** Only of a `transaction-batch`, whose `records` list only the lines without effect. */
  counts: z.record(z.enum(OUTCOMES), z.int()).optional(),
  records: z.array(RecordResult).optional(),
  /** Only beside `records`, which then lack these records, and only if the envelope had `result_columns`. */
  columns: CreatedColumns.optional(),
  attempt: z.int(),
  accepted_at: z.iso.datetime(),
  completed_at: z.iso.datetime(),
})
export type Result = z.infer<typeof Result>

/** What a sender knows of a job that it sent. */
export interface SentJob {
  kind: string
  /** The digest of what it asks for (`askedOf`), base64url. */
  answers: string
  /** SHA-256 of its JWS, base64url. */
  envelope: string
}

type Naming = Pick<Result, 'kind' | 'answers' | 'envelope' | 'status'>

/** Whether a result is about a job of this kind that asks for this. It may be about another envelope. */
export function isAbout(result: Naming, { kind, answers }: Pick<SentJob, 'kind' | 'answers'>): boolean {
  return result.kind === kind && (result.answers === undefined || result.answers === answers)
}

/**
 * Whether a result answers the job. A success was done once under its jti, whichever envelope asked for it. A failure may have
 * left no receipt: such a one, and a result without `answers`, answer only the envelope that they name.
 */
export function isAnswerTo(result: Naming, job: SentJob): boolean {
  const isDone = result.status === 'SUCCEEDED' && result.answers !== undefined
  return isAbout(result, job) && (isDone || result.envelope === job.envelope)
}

/**
 * The text of a result, for a reader that may be older than the worker. Unknown members and words pass. A member that
 * only some readers need becomes absent if it can't be read; each reader says what its absence means.
 */
export const AnyResult = z.looseObject({
  revision: z.int().optional().catch(undefined),
  code: z.int(),
  /** The failure that its error body tells. */
  error: z.unknown().transform(failureIn).optional(),
  records: z.array(AnyRecordResult).optional(),
  completed_at: z.iso.datetime().optional().catch(undefined),
})
export type AnyResult = z.infer<typeof AnyResult>

/** Throws for a text that isn't a result of any release. */
export function readResult(body: string): AnyResult {
  return AnyResult.parse(JSON.parse(body))
}

export const ResultEvent = z.object({
  v: z.literal(1),
  type: z.literal('event'),
  result_id: z.string(),
  event: z.enum(QUEUE_EVENTS),
  subject: z.record(z.string(), z.unknown()),
  occurred_at: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
})
export type ResultEvent = z.infer<typeof ResultEvent>

/** The `data` of a job in a results queue. */
export const ResultData = z.object({
  body: z.string(),
  jws: z.string(),
  /** Statements that announce newer signing keys, oldest first; absent unless a key was announced recently. */
  new_keys: NewKeys.optional(),
})
export type ResultData = z.infer<typeof ResultData>

export interface InstallationKey {
  kid: string
  alg: Algorithm
  privateKey: KeyObject
}

/** The key with which the installation signs now, and the statements that announce newer keys. */
export interface Signing {
  key: InstallationKey
  /** The statements that announce newer keys, oldest first; they travel with what is signed. */
  newKeys: readonly string[]
}

export const bodyDigest = (body: string) => createHash('sha256').update(body).digest('base64url')

export function sealResult(
  body: string,
  about: { clientId: string; resultId: string; revision: number; inColumns?: boolean | undefined },
  key: InstallationKey,
  newKeys: readonly string[] = [],
): ResultData {
  const payload = JSON.stringify({
    aud: about.clientId,
    result_id: about.resultId,
    revision: about.revision,
    sha256: bodyDigest(body),
  })
  return sealBody(body, signText(payload, key, about.inColumns ? COLUMNS_TYP : RESULT_TYP), newKeys)
}

export function sealBody(body: string, jws: string, newKeys: readonly string[]): ResultData {
  return newKeys.length > 0 ? { body, jws, new_keys: [...newKeys] } : { body, jws }
}

export type RefusedDelivery =
  | { refused: 'forged' }
  /** It may be genuine: the reader doesn't know its key, perhaps not yet. */
  | { refused: 'unknown_key'; newKeys: readonly string[] }

export type OpenedResult =
  | RefusedDelivery
  | { refused: undefined; result: Result | ResultEvent; newKeys: readonly string[] }

/** The result in a delivery, if one of `keys` (by `kid`) signed it for `clientId`. `newKeys`: statements beside it. */
export function openResult(data: unknown, clientId: string, keys: InstallationKeys): OpenedResult {
  const inRows = openBody(data, { typ: RESULT_TYP, clientId, read: readSigned }, keys)
  const opened =
    inRows.refused === 'forged' ? openBody(data, { typ: COLUMNS_TYP, clientId, read: readSigned }, keys) : inRows
  return opened.refused === undefined ? { refused: undefined, result: opened.content, newKeys: opened.newKeys } : opened
}

// The schema doesn't check it: the signature proves that a worker wrote it, perhaps with words that this schema lacks.
function readSigned(body: string, claims: Record<string, unknown>): Result | ResultEvent | undefined {
  const result = JSON.parse(body) as Result | ResultEvent
  return result.result_id === claims['result_id'] ? result : undefined
}

interface Expected<Content> {
  typ: string
  clientId: string
  /**
   * Reads the text by the payload of its signature. The signature isn't verified yet. Undefined or an error: forged.
   */
  read: (body: string, claims: Record<string, unknown>) => Content | undefined
}

/** The content of a delivery whose text is signed by its digest. */
export function openBody<Content>(
  data: unknown,
  { typ, clientId, read }: Expected<Content>,
  keys: InstallationKeys,
): RefusedDelivery | { refused: undefined; content: Content; newKeys: readonly string[] } {
  const parsed = ResultData.safeParse(data)
  if (!parsed.success) return { refused: 'forged' }
  const { body, jws, new_keys: newKeys = [] } = parsed.data
  try {
    const unverified = readUnverified(jws, typ)
    const claims = unverified?.payload
    if (!unverified || claims?.['aud'] !== clientId || claims['sha256'] !== bodyDigest(body))
      return { refused: 'forged' }
    const content = read(body, claims)
    if (content === undefined) return { refused: 'forged' }
    if (!keys.has(unverified.kid)) return { refused: 'unknown_key', newKeys }
    return isSigned(unverified, keys) ? { refused: undefined, content, newKeys } : { refused: 'forged' }
  } catch {
    return { refused: 'forged' }
  }
}
