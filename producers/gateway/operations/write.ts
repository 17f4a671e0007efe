// A write over HTTP: asks for the operation and turns its end into the HTTP answer. A worker's refusal names fields of
// the job; this file translates them into the fields of the HTTP request.
import { type FieldReason, type Reason, textOf } from '../../../src/errors.ts'
import type { Succeeded } from '../../../src/job/answer/receipt-answer.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { lacks } from '../../../src/job/envelope/roles.ts'
import { type Failure, failureIn, failureOf, reasonsIn } from '../../../src/job/problem.ts'
import type { Caller } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { busy, type Decline, failed, renamed, roleMissing } from '../error-bodies.ts'
import type { End } from '../request-reply/request-reply.ts'
import { KEY_HEADERS } from '../server/headers.ts'

export type WriteKind = 'token-create' | 'token-update' | 'token-lifecycle' | 'report'

export interface Write {
  kind: WriteKind
  request: Record<string, unknown>
  idempotencyKey: string | undefined
}

export type Written = Succeeded | { declined: Decline }

/** The `Retry-After` of a busy gateway, in seconds: the time that a few operations take. */
const RETRY_AFTER_S = 1

/** The refusal of a write for which the caller lacks a role: it comes before the checks that only a worker can make. */
export function roleDecline(
  { kind, request }: Write,
  { roles }: Caller,
  { catalogue }: Pick<GatewayDeps, 'catalogue'>,
): Decline | undefined {
  const [need] = lacks(roles, catalogue.entry(kind), request)
  return need && roleMissing(need.member === undefined ? 'params' : `body.${need.member}`, need.role)
}

export async function sendWrite(
  write: Write,
  caller: Caller,
  deps: Pick<GatewayDeps, 'requestReply' | 'catalogue' | 'log'>,
): Promise<Written> {
  const { requestReply, log } = deps
  const { kind, request, idempotencyKey } = write
  const declined = roleDecline(write, caller, deps)
  if (declined) return { declined }
  const end = await requestReply.ask(caller, kind, request, { idempotencyKey })
  const reasons = end.end === 'answered' ? reasonsIn(end.result.error) : []
  if (end.end === 'answered' && areOurs(reasons))
    log.error(
      { kind, receipt: end.result.receipt_id, why: reasons.map(textOf) },
      'a worker refused an envelope of ours',
    )
  return writtenOf(end)
}

export function writtenOf(end: End): Written {
  switch (end.end) {
    case 'busy':
      return { declined: busy(RETRY_AFTER_S) }
    case 'late':
      return { declined: failed(end.reversalStatus) }
    case 'refused':
      return { declined: renamed(failureOf(end.refusal), nameOf) }
    case 'answered':
      return answerOf(end.result)
  }
}

/** The HTTP answer of a result, which may have words that this process doesn't know. */
export function answerOf({ code, record, error }: Pick<Result, 'code' | 'record' | 'error'>): Written {
  if (error) return { declined: declineOfJob(failureIn(error)) }
  return { code: code === 204 ? 204 : 200, record: record ?? {} }
}

/** The decline of a write whose job failed. */
export function declineOfJob(failure: Failure): Decline {
  const { status, fields, reversalStatus } = failure
  if (refusesClock(fields)) return CLOCK_IS_OFF
  if (status === 500) return failed(reversalStatus)
  return status === 401 || areOurs(fields) ? failed('NONE') : renamed(failure, nameOf)
}

/**
 * Field of a job → field of the HTTP request. The id comes from the path, and the job's `jti` is the idempotency key.
 */
const NAMES: Record<string, string> = {
  'body.id': 'params.id',
  'body.jti': `params.${KEY_HEADERS[0]}`,
  'body.roles': 'params',
  'body.entity_id': 'params',
}

function nameOf(field: string): string {
  return NAMES[field] ?? field.replace(ON_FILE, 'body')
}

/** Matches fields of `on_file`, which over HTTP is the whole body. */
const ON_FILE = /^body\.on_file\b/

/** Refusals of an envelope that no caller can correct, such as clocks that differ or too many reply queues. */
const OURS: ReadonlySet<string> = new Set<Reason>([
  'envelope_future',
  'envelope_lifetime',
  'reply_queues',
  'kind_unavailable',
])

/**
 * The decline of a write whose envelope lay in a worker's future. A worker takes no jobs while its own clock is off, so it
 * is this host's.
 */
const CLOCK_IS_OFF: Decline = {
  ...failed('NONE'),
  detail:
    'The clock of the host that serves this request is ahead of the store’s, so the request was refused and had no effect. Its operator must set the clock right.',
}

/** Whether a worker refused the envelope because the clock by which this process signed it is ahead. */
export function refusesClock(reasons: readonly FieldReason[]): boolean {
  return reasons.some(({ reason }) => reason === 'envelope_future')
}

function areOurs(reasons: readonly FieldReason[]): boolean {
  return reasons.some(({ reason }) => OURS.has(reason))
}
