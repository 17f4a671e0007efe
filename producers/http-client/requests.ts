// Sends requests to a gateway, and repeats what may be repeated: reads, and writes under an idempotency key, which take effect
// once however often they are sent. What was answered for good is returned or thrown at once.
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { Clock } from '../../src/clock.ts'
import { REVERSAL_STATUSES } from '../../src/job/problem.ts'
import { ClosedError } from '../client/errors.ts'
import { HttpError, NoAnswerError } from './http-error.ts'

export interface Asked {
  method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  /** Under the base URL: `/api/v2/card`. */
  path: string
  query?: Readonly<Record<string, string | undefined>>
  headers?: Readonly<Record<string, string>>
  /** Called once for each time the request is sent. */
  body?: () => string | Uint8Array | ReadableStream<Uint8Array>
  /** The answer's body is read as it comes, by the caller. */
  streams?: boolean
  /** Of a write: repeats under it take effect once. */
  idempotencyKey?: string | undefined
  /** How long the answer is awaited, repeats among them, in ms. */
  timeoutMs?: number | undefined
}

export interface Requests {
  /** Resolves with a success. Rejects with `HttpError`, `NoAnswerError`, or `ClosedError`. */
  send(asked: Asked): Promise<Response>
  /** The same, and reads the answer's body. Rejects with `NoAnswerError`, too, if it isn't JSON. */
  json(asked: Asked): Promise<unknown>
  /** The answer's lines as they come, each a JSON. Rejects as `json`. */
  lines(asked: Asked): AsyncIterable<unknown>
  /** Waits, unless the client is closed meanwhile. */
  pause(ms: number): Promise<void>
  close(): void
}

export interface RequestDeps {
  /** Without a slash at its end. */
  baseUrl: string
  /** The value of `Authorization`. */
  authorization(): string
  timeoutMs: number
  clock: Clock
  fetch: typeof fetch
}

/** Longer than a gateway takes for its own time-out. */
const ATTEMPT_MS = 60_000
/** How long a client that was never answered tries to connect: its base URL may be wrong. */
const CONNECT_MS = 10_000
const PAUSE_MS = 250
const PAUSE_MS_MAX = 5_000
/** Statuses whose answer has no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])
/** How often a read that failed inside is asked again. */
const READS_MAX = 3
/** Said by a proxy before gateways that don't answer. A gateway's own 503 has a message, and stays. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504])

/** The error bodies of all services; those of reports name a parameter. */
const ErrorBody = z.object({
  message: z.string().optional(),
  details: z.record(z.string(), z.object({ message: z.string(), code: z.string() })).optional(),
  param: z.string().optional(),
  reversal_status: z.enum(REVERSAL_STATUSES).optional(),
})

export function openRequests({ baseUrl, authorization, timeoutMs: usual, clock, fetch }: RequestDeps): Requests {
  const closed = new AbortController()
  let wasAnswered = false

  async function wait(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: closed.signal }).catch(() => {
      throw new ClosedError()
    })
  }
  function urlOf({ path, query = {} }: Asked): string {
    const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined)
    const search = new URLSearchParams(given).toString()
    return `${baseUrl}${path}${search === '' ? '' : `?${search}`}`
  }
  async function once(asked: Asked, leftMs: number): Promise<Response> {
    const body = asked.body?.()
    const { idempotencyKey } = asked
    const late = new AbortController()
    // A body that streams takes as long as it takes.
    const isSlow = body instanceof ReadableStream
    const timer = isSlow ? undefined : setTimeout(() => late.abort(), Math.min(ATTEMPT_MS, leftMs))
    try {
      const response = await fetch(urlOf(asked), {
        method: asked.method,
        headers: {
          authorization: authorization(),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          ...asked.headers,
        },
        // The credentials are for this gateway.
        redirect: 'manual',
        signal: AbortSignal.any([closed.signal, late.signal]),
        ...(body !== undefined && { body: body as never, duplex: 'half' as const }),
      })
      wasAnswered = true
      const { status, headers, body: answered } = response
      if (asked.streams && response.ok)
        return new Response(answered && ReadableStream.from(whole(answered, asked)), { status, headers })
      // Read here, so that an answer that breaks off counts as none.
      const text = await response.text()
      return new Response(BODILESS.has(status) ? null : text, { status, headers })
    } finally {
      clearTimeout(timer)
    }
  }

  function noAnswer(asked: Asked, { ms, unreachable, isSent, cause }: Missed): NoAnswerError {
    const { idempotencyKey } = asked
    const { origin } = new URL(baseUrl)
    const missing = unreachable === undefined ? 'no answer' : `no gateway can be reached at ${origin} (${unreachable})`
    return new NoAnswerError(nameOf(asked), `${missing} within ${ms / 1_000} s`, { idempotencyKey, isSent, cause })
  }

  /** Ends with an error of this client if the answer breaks off. */
  async function* whole(pieces: ReadableStream<Uint8Array>, asked: Asked): AsyncGenerator<Uint8Array> {
    try {
      yield* pieces
    } catch (error) {
      if (closed.signal.aborted) throw new ClosedError()
      throw broken(asked, 'the answer broke off', error)
    }
  }

  /** Sends the request once. What may be repeated comes back with the least pause before that. */
  async function attempt(asked: Asked, times: number, leftMs: number): Promise<Response | Repeat> {
    const isWrite = asked.idempotencyKey !== undefined
    try {
      const response = await once(asked, leftMs)
      if (response.ok) return response
      const error = await errorOf(response, asked)
      if (!mayRepeat(error, isWrite, times)) throw error
      return { cause: error, pauseMs: retryAfterMs(response) }
    } catch (error) {
      if (closed.signal.aborted) throw new ClosedError()
      if (error instanceof HttpError) throw error
      return { cause: error, pauseMs: 0 }
    }
  }

  const requests: Requests = {
    async send(asked) {
      const { timeoutMs = usual } = asked
      const startsAt = clock()
      let isSent = false
      for (let times = 1; ; times += 1) {
        if (closed.signal.aborted) throw new ClosedError()
        const answer = await attempt(asked, times, Math.max(startsAt + timeoutMs - clock(), 1))
        if (answer instanceof Response) return answer
        const { cause } = answer
        const unreachable = unreachableBy(cause)
        isSent ||= unreachable === undefined
        const ms = isSent || wasAnswered ? timeoutMs : Math.min(timeoutMs, CONNECT_MS)
        const pauseMs = Math.max(answer.pauseMs, pauseAfter(times))
        if (clock() + pauseMs < startsAt + ms) await wait(pauseMs)
        else throw cause instanceof HttpError ? cause : noAnswer(asked, { ms, unreachable, isSent, cause })
      }
    },
    async json(asked) {
      return jsonOf(await requests.send(asked), asked)
    },
    async *lines(asked) {
      const { body } = await requests.send({ ...asked, streams: true })
      if (body) for await (const line of linesOf(body)) yield parsed(line, asked)
    },
    pause: wait,
    close: () => closed.abort(),
  }
  return requests
}

/** The body of a success. Rejects with `NoAnswerError` if it isn't JSON. */
export async function jsonOf(answer: Response, asked: Asked): Promise<unknown> {
  return parsed(await answer.text(), asked)
}

interface Missed {
  /** How long it was tried. */
  ms: number
  /** Why the last attempt found no gateway. */
  unreachable: string | undefined
  isSent: boolean
  cause: unknown
}

interface Repeat {
  cause: unknown
  pauseMs: number
}

/** Twice as long after each time, and not the same for all callers. */
function pauseAfter(times: number): number {
  return Math.min(PAUSE_MS * 2 ** Math.min(times - 1, 16), PAUSE_MS_MAX) * (0.5 + Math.random() / 2)
}

function mayRepeat({ status, reversalStatus, isOwn }: HttpError, isWrite: boolean, times: number): boolean {
  if (status === 429) return true
  if (AWAY.has(status)) return !isOwn
  if (status !== 500) return false
  return isWrite ? reversalStatus !== undefined && reversalStatus !== 'COMPLETED' : times < READS_MAX
}

/** Why no connection came about, so that nothing was sent; undefined for any other failure. */
function unreachableBy(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error) || !('code' in cause)) return undefined
  const code = String(cause.code)
  if (code in UNREACHABLE) return UNREACHABLE[code]
  return /^(EPROTO$|ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_)|SELF_SIGNED/.test(code) ? `TLS failed (${code})` : undefined
}

const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name of the host can’t be resolved',
  EAI_AGAIN: 'the name of the host can’t be resolved',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the host',
  UND_ERR_CONNECT_TIMEOUT: 'the host doesn’t answer',
}

function broken(asked: Asked, missing: string, cause?: unknown): NoAnswerError {
  return new NoAnswerError(nameOf(asked), missing, { idempotencyKey: asked.idempotencyKey, cause })
}

function parsed(text: string, asked: Asked): unknown {
  const value = parseJson(text)
  if (value === undefined) throw broken(asked, 'the answer is not JSON')
  return value
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield line
  }
  if (rest !== '') yield rest
}

const nameOf = ({ method, path }: Asked) => `${method} ${path}`

async function errorOf(response: Response, asked: Asked): Promise<HttpError> {
  const { status, headers } = response
  const text = await response.text().catch(() => '')
  const parsed = ErrorBody.safeParse(parseJson(text))
  const { message, details, param, reversal_status: reversalStatus } = parsed.data ?? {}
  const description = /error_description="([^"]*)"/.exec(headers.get('www-authenticate') ?? '')?.[1]
  return new HttpError({
    status,
    asked: nameOf(asked),
    message: description ?? message,
    details:
      details ?? (param === undefined ? undefined : { [param]: { message: message ?? '', code: message ?? '' } }),
    isOwn: message !== undefined,
    reversalStatus: status === 500 ? reversalStatus : undefined,
    requestId: headers.get('x-request-id') ?? undefined,
    idempotencyKey: asked.idempotencyKey,
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Of `Retry-After` in seconds; 0 without one. */
function retryAfterMs({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after'))
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0
}
