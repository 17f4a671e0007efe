// One operation under way: its job is put into the queue, and again every two seconds while no answer is found (a job
// that still waits swallows its repeat, one that was lost is mended by it), until its time is over. What comes after
// that is timeout-reversal.ts.
import type { Clock } from '../../../src/clock.ts'
import { Fault } from '../../../src/errors.ts'
import type { Kind } from '../../../src/job/catalogue.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { refusalResultId } from '../../../src/job/envelope/ids.ts'
import type { Result } from '../../../src/job/result.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import type { Signed } from '../../envelope.ts'

export interface Job {
  kind: Kind
  receiptId: string
  signed: Signed
  /** ms since the epoch. */
  deadline: number
}

export interface Operation {
  readonly kind: Kind
  readonly receiptId: string
  /** SHA-256 of the JWS. */
  readonly envelopeDigest: Buffer
  /** Undefined: not in time. Nothing that comes later counts. */
  readonly answer: Promise<Result | undefined>
  /** A result of this receipt was found. */
  resolve(result: Result): void
  /** Whether the queue may have the job. */
  mayBeQueued(): boolean
}

export interface OperationDeps {
  queues: Queues
  clock: Clock
  isAway: () => boolean
  /** Aborted: the time is over for all. */
  givenUp: AbortSignal
}

const RESEND_MS = 2_000
/** While the queue server is away, and after it failed us. */
const RETRY_MS = 250

export function openOperation({ kind, receiptId, signed, deadline }: Job, deps: OperationDeps): Operation {
  const { queues, clock, isAway, givenUp } = deps
  const digest = envelopeDigest(signed.data.jws)
  const found = Promise.withResolvers<Result>()
  let offered = false
  let taken = false
  let impossible = false

  async function enqueue(): Promise<boolean> {
    // From here on nobody can say for sure that the queue doesn't have it: an error may be about the answer only.
    offered = true
    try {
      await queues.add(kind, { id: signed.id, data: signed.data, priority: 0 })
      taken = true
      return true
    } catch (error) {
      // Refused for what it is: it isn't there, and won't be.
      if (error instanceof Fault && error.code === 'data') impossible = true
      return false
    }
  }
  async function run(): Promise<Result | undefined> {
    while (!impossible && !givenUp.aborted && clock() < deadline) {
      const wasTaken = !isAway() && (await Promise.race([enqueue(), found.promise.then(() => true)]))
      const left = deadline - clock()
      const result = await foundWithin(Math.min(wasTaken ? RESEND_MS : RETRY_MS, left), found.promise, givenUp)
      if (result) return result
    }
    return undefined
  }
  return {
    kind,
    receiptId,
    envelopeDigest: digest,
    answer: run(),
    resolve: result => {
      if (isAnswerTo(result, receiptId, digest)) found.resolve(result)
    },
    mayBeQueued: () => offered && (taken || !impossible),
  }
}

/** An answer beside a receipt is for the envelope it names; one about an envelope's end is about an older one. */
function isAnswerTo(result: Result, receiptId: string, digest: Buffer): boolean {
  if (result.revision === 0 && result.result_id !== refusalResultId(receiptId, digest)) return false
  return result.error?.details?.['body.exp']?.code !== 'envelope_expired'
}

async function foundWithin<T>(ms: number, found: Promise<T>, givenUp: AbortSignal): Promise<T | undefined> {
  const over = Promise.withResolvers<undefined>()
  const end = () => over.resolve(undefined)
  const timer = setTimeout(end, Math.max(0, ms))
  givenUp.addEventListener('abort', end, { once: true })
  return Promise.race([found, over.promise]).finally(() => {
    clearTimeout(timer)
    givenUp.removeEventListener('abort', end)
  })
}
