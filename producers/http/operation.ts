// One write that the gateway or the console has sent and that isn't answered. Its job is put on the queue, and again every
// two seconds until an answer arrives or the deadline passes. A repeat does nothing while the job still waits, and replaces
// a job that was lost. The gateway's timeout-reversal.ts deals with an operation whose deadline has passed.
import type { Clock } from '../../src/clock.ts'
import { Fault } from '../../src/errors.ts'
import type { Kind } from '../../src/job/catalogue.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import type { Result } from '../../src/job/result.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Signed } from '../envelope.ts'

export interface Job {
  kind: Kind
  receiptId: string
  signed: Signed
  /**
   * Whether a refusal as expired is an answer: of a job that has one envelope for all time. Otherwise the deadline ends the
   * operation. A worker answers what it has done from the receipt, so such a job wasn't done.
   */
  endsExpired?: boolean
  /** ms since the epoch. */
  deadline: number
}

export interface Operation {
  readonly kind: Kind
  readonly receiptId: string
  /** SHA-256 of the JWS. */
  readonly envelopeDigest: Buffer
  /**
   * The answer; undefined if none came before the deadline, if the queue refused the job's data, or if all operations
   * were given up. A later answer is ignored.
   */
  readonly answer: Promise<Result | undefined>
  /** Takes a result with this operation's receipt. Only one that answers this very envelope is its answer. */
  resolve(result: Result): void
  /** Whether the job may be on the queue. */
  mayBeQueued(): boolean
}

export interface OperationDeps {
  queues: Queues
  clock: Clock
  isAway: () => boolean
  /** When aborted, every operation ends unanswered. */
  givenUp: AbortSignal
}

const RESEND_MS = 2_000
/** The pause between attempts while the queue server is away, and after a failed call. */
const RETRY_MS = 250

export function openOperation(job: Job, deps: OperationDeps): Operation {
  const { kind, receiptId, signed, endsExpired = false, deadline } = job
  const { queues, clock, isAway, givenUp } = deps
  const digest = envelopeDigest(signed.data.jws)
  const envelope = digest.toString('base64url')
  const found = Promise.withResolvers<Result>()
  let offered = false
  let taken = false
  let impossible = false

  async function enqueue(): Promise<boolean> {
    // From here on the queue may have the job: an error may only mean that the queue's answer was lost.
    offered = true
    try {
      await queues.add(kind, { id: signed.id, data: signed.data, priority: 0 })
      taken = true
      return true
    } catch (error) {
      // The queue refused the job's data, so it doesn't have the job and never will.
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
      // Under one key another request may have been answered, or an earlier envelope of this one, which was given up since.
      if (result.envelope !== envelope || (!endsExpired && saysExpired(result))) return
      found.resolve(result)
    },
    mayBeQueued: () => offered && (taken || !impossible),
  }
}

function saysExpired({ error }: Result): boolean {
  return error?.details?.['body.exp']?.code === 'envelope_expired'
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
