// The errors of a client over HTTP. Each says what to do next.
import type { Problem, ReversalStatus } from '../../src/job/problem.ts'

/** What an answer that isn't a success says. Reports have an error body of their own, whose parameter is a detail here. */
export interface Answered {
  status: number
  /** Method and path: `PUT /api/v2/card`. */
  asked: string
  message?: string | undefined
  /** The body is one of tokenmill's, not of a proxy. */
  isOwn: boolean
  details?: Problem['details'] | undefined
  reversalStatus?: ReversalStatus | undefined
  /** `X-Request-Id`, by which the operator finds the request in the log. */
  requestId?: string | undefined
  idempotencyKey?: string | undefined
}

/** The gateway answered, and it isn't a success. */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly status: number
  /** The wrong fields, and the code of what is wrong with each. */
  readonly details: NonNullable<Problem['details']>
  /** The answer is tokenmill's own, not that of a proxy before it. */
  readonly isOwn: boolean
  /** Of a write that was answered 500: what became of it. */
  readonly reversalStatus: ReversalStatus | undefined
  readonly requestId: string | undefined
  readonly idempotencyKey: string | undefined

  constructor(answered: Answered) {
    super(textOf(answered))
    this.status = answered.status
    this.isOwn = answered.isOwn
    this.details = answered.details ?? {}
    this.reversalStatus = answered.reversalStatus
    this.requestId = answered.requestId
    this.idempotencyKey = answered.idempotencyKey
  }
}

/** No answer came in time, or none that can be read whole. A write may have had an effect, unless nothing was sent. */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError'
  readonly idempotencyKey: string | undefined

  /** `missing`: what there is in place of an answer. `isSent` false: no gateway was reached. */
  constructor(
    asked: string,
    missing: string,
    {
      idempotencyKey,
      isSent = true,
      cause,
    }: { idempotencyKey?: string | undefined; isSent?: boolean; cause?: unknown },
  ) {
    super(`${asked}: ${missing}. ${isSent ? afterNone(idempotencyKey) : NOTHING_SENT}`, { cause })
    this.idempotencyKey = idempotencyKey
  }
}

const NOTHING_SENT = 'Nothing was sent: compare the base URL with the operator’s, and ask whether a gateway runs there.'

function afterNone(idempotencyKey: string | undefined): string {
  if (idempotencyKey === undefined) return 'Ask again.'
  return `It may have had an effect: repeat the same request with the idempotency key ${idempotencyKey} to learn what became of it.`
}

/** The wait ended before what was waited for, which goes on. */
export class WaitError extends Error {
  override name = 'WaitError'

  constructor(what: string, timeoutMs: number) {
    super(`${what} has not ended within ${timeoutMs} ms. It goes on: wait for it again.`)
  }
}

function textOf(answered: Answered): string {
  const { asked, status, message, details = {} } = answered
  const fields = Object.entries(details).map(([field, detail]) => `${field}: ${wordsOf(detail)}`)
  const said = fields.length > 0 ? fields.join(', ') : (message ?? 'no reason given')
  return `${asked}: ${status} ${said.replace(/\.$/, '')}. ${nextOf(answered)}`
}

/** The reason in words, and its code, by which `docs/results.md` lists it. */
function wordsOf({ message, code }: { message: string; code: string }): string {
  return message === code ? code : `${code} (${message.replace(/\.$/, '')})`
}

function nextOf({ status, reversalStatus, idempotencyKey, requestId, isOwn, details = {} }: Answered): string {
  const isElsewhere = Object.values(details).some(({ code }) => code === 'path_unknown')
  if (isElsewhere || (!isOwn && status >= 400 && status < 500 && status !== 429)) return NO_GATEWAY
  const key = idempotencyKey === undefined ? 'the same idempotency key' : `the idempotency key ${idempotencyKey}`
  switch (status) {
    case 401:
      return 'The installation doesn’t accept these credentials: compare the client’s file with the operator’s.'
    case 403:
      return 'Nothing was done: ask the operator for the role, the entity or the scope.'
    case 404:
      return 'Nothing was done: it isn’t there, or belongs to another client.'
    case 429:
      return `The installation is busy: send it again later, with ${key}.`
    case 400:
      return 'Nothing was done: change what is named, and send it as a new request.'
    default:
      return reversalStatus === undefined ? againOf({ status, idempotencyKey, requestId }) : AFTER[reversalStatus](key)
  }
}

const NO_GATEWAY = 'No gateway answers so: compare the base URL with the operator’s.'

function againOf({
  status,
  idempotencyKey,
  requestId,
}: Pick<Answered, 'status' | 'idempotencyKey' | 'requestId'>): string {
  if (status >= 300 && status < 400) return 'A gateway redirects nobody: compare the base URL with the operator’s.'
  const again = idempotencyKey === undefined ? 'Ask again' : `Repeat it with the idempotency key ${idempotencyKey}`
  const told = requestId === undefined ? 'when it was' : `the request id ${requestId}`
  return `${again}; if it stays so, tell the operator ${told}.`
}

const AFTER: Record<ReversalStatus, (key: string) => string> = {
  NONE: key => `Nothing was left behind: repeat it with ${key}.`,
  REQUIRED: key => `What it did is being undone: repeat it later with ${key} to learn the end.`,
  COMPLETED: () => 'What it did was undone: to do it, ask anew with another idempotency key.',
}
