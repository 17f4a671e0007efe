// The work of `tokenmill submit FILE.ndjson`: one job for each line, many in flight, and one result line for each job
// in the order in which results arrive. The same file may be submitted again: a line without a jti gets one that is
// computed from the file and the line's number.
import { once as event } from 'node:events'
import type { Writable } from 'node:stream'
import { z } from 'zod'
import { cleanJson } from '../../src/clean-text.ts'
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { Claims } from '../../src/job/envelope/envelope.ts'
import type { NameRule } from '../../src/job/envelope/names.ts'
import { clearNumbersOf, withoutOwnPan } from '../../src/job/pan-in-names.ts'
import { failureOf, problemOf } from '../../src/job/problem.ts'
import { parse } from '../../src/job/refusal.ts'
import type { Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { openAnswerDeadline, tellTo } from '../answer-deadline.ts'
import { type ClientKind, ClosedError, type Credentials, connect, isClientKind } from '../client.ts'
import { discardAnswers } from '../file-run.ts'
import type { KeyCheck } from '../live-key.ts'
import { digestsOf, linesOf } from './lines.ts'
import { refuseOtherRun } from './other-run.ts'
import { type Totals, watchSubmit } from './progress.ts'

export interface SubmitFile {
  file: string
  queues: Queues
  credentials: Credentials
  /** The stream of the results, NDJSON. */
  out: Writable
  /** The stream of the progress, as text. */
  progress: Writable & { isTTY?: boolean }
  log: Logger
  /** When aborted, nothing more is sent, and jobs in flight are awaited for up to `finishMs`. */
  signal?: AbortSignal
  /** How many jobs may be sent and unanswered (1,000). */
  inFlight?: number
  finishMs?: number
  /** After this many ms without any answer the run ends incomplete. */
  giveUpAfterMs?: number | undefined
  resendMs?: number
  /** Says whether the client's key is live. For a caller that knows more than the list that workers publish. */
  checkKey?: KeyCheck | undefined
}

/**
 * The exit status. 0: every line succeeded. 3: some lines didn't. 1: the run isn't complete; the same command continues
 * it.
 */
export function exitStatus({ complete, failed, invalid }: Totals): 0 | 1 | 3 {
  if (!complete) return 1
  return failed + invalid > 0 ? 3 : 0
}

const Line = z.strictObject({
  kind: z.string().refine(isClientKind),
  request: Claims.shape.request,
  jti: Claims.shape.jti.optional(),
  reference: Claims.shape.reference,
  sequence: Claims.shape.sequence,
})

interface Item {
  line: number
  kind: ClientKind
  request: Record<string, unknown>
  jti: string
  reference: string | undefined
  sequence: number | undefined
}

const NEVER = new AbortController().signal

/**
 * Submits a file. Throws `FileError` if the file can't be read, changes meanwhile or is being sent by another run,
 * `KeyNotLiveError` if no worker will answer this client.
 */
export async function submitFile(options: SubmitFile): Promise<Totals> {
  const { file, queues, credentials, out, progress, log, signal = NEVER, inFlight = 1_000, checkKey: lookUp } = options
  const { finishMs, giveUpAfterMs } = options
  const digests = await digestsOf(file)
  const digest = digests.sha256
  const replyTo = `s${digest.slice(0, 16)}`
  const queue = resultsQueue(credentials.signingKey.clientId, replyTo)
  await refuseOtherRun(queues, { file, queue, signal })
  await discardAnswers({ queues, credentials, stop: signal }, replyTo)
  const totals: Totals = { lines: 0, succeeded: 0, failed: 0, invalid: 0, complete: false }
  const { resendMs = 60_000 } = options
  const tell = tellTo(progress)
  const client = await connect({ queues, credentials, replyTo, log, resendMs, checkKey: lookUp, tell })
  const watch = watchSubmit({ queues, client }, progress, totals)
  const answerDeadline = openAnswerDeadline({
    stop: signal,
    finishMs,
    giveUpAfterMs,
    onEnd: () => client.close(),
    tell,
  })

  async function print(line: number, result: object): Promise<void> {
    if (!out.write(`${cleanJson(JSON.stringify({ line, ...result }))}\n`)) await event(out, 'drain')
  }
  async function* items(): AsyncGenerator<Item> {
    for await (const { line, text } of linesOf(file, digests)) {
      if (signal.aborted) return
      totals.lines += 1
      const item = isRefusal(text) ? text : itemOf(text, line, digest)
      if (!isRefusal(item)) {
        watch.sent(item.kind)
        answerDeadline.sent()
        yield item
        continue
      }
      totals.invalid += 1
      const error = problemOf(failureOf(item), Date.now())
      await print(line, {
        ...(isRefusal(text) ? {} : named(text, credentials.names ?? 'checked')),
        status: 'FAILED',
        code: error.code,
        error,
        attempt: 0,
      })
    }
    totals.complete = true
  }
  try {
    for await (const { item, result } of client.bulk(items(), { inFlight, priority: 10 })) {
      answerDeadline.answered()
      const kind = result.attempt === 0 ? 'invalid' : result.status === 'SUCCEEDED' ? 'succeeded' : 'failed'
      totals[kind] += 1
      await print(item.line, result)
    }
  } catch (error) {
    totals.complete = false
    if (!(error instanceof ClosedError)) throw error
  } finally {
    answerDeadline.close()
    watch.stop()
    await client.close()
  }
  if (totals.complete) await queues.obliterate(queue).catch(() => {})
  return totals
}

/**
 * The `jti` of a line that has none. It has sixteen digits of the file's digest, or 32 if the shorter name could hold a
 * card number.
 */
export function submitName(digest: string, line: number): string {
  const name = `s-${digest.slice(0, 16)}-${line}`
  return holdsPossiblePan(name) ? `s-${digest.slice(0, 32)}-${line}` : name
}

function itemOf(text: string, line: number, digest: string): Item | Refusal {
  const value = objectOf(text)
  if (!value) return refuse('row_json', 'body')
  const parsed = parse(Line, value, 'body')
  if (isRefusal(parsed)) return parsed
  const { kind, request, jti = submitName(digest, line), reference, sequence } = parsed.value
  return { line, kind: kind as ClientKind, request, jti, reference, sequence }
}

/** The names by which a sender can recognise an invalid line, as far as they can be read. */
function named(text: string, rule: NameRule): { kind?: string; jti?: string; reference?: string } {
  const value = objectOf(text) ?? {}
  const { kind, jti, reference } = Line.shape
  const names = Object.fromEntries(
    Object.entries({ kind, jti, reference }).flatMap(([key, schema]) => {
      const read = schema.safeParse(value[key])
      return read.success && read.data !== undefined ? [[key, read.data]] : []
    }),
  )
  return withoutOwnPan(names, clearNumbersOf(value['request']), rule)
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
