// One write that the gateway or the console has sent and that isn't answered. Its job is put on the queue, and again every
// two seconds until an answer arrives or the deadline passes. A repeat does nothing while the job still waits, and replaces
// a job that was lost. The gateway's timeout-reversal.ts deals with an operation whose deadline has passed.
import type { Clock } from '../../src/clock.ts'
import { Fault } from '../../src/errors.ts'
import { isAbout, type Result } from '../../src/job/answer/result.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import { isUndone } from '../../src/queue/bounded-call.ts'
import { heldUpBy, type Queues } from '../../src/queue/engine.ts'
import { causeOf } from '../../src/server-error.ts'
import type { Signed } from '../envelope.ts'

export interface Job {
  kind: string
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
  readonly kind: string
  readonly receiptId: string
  /** SHA-256 of the JWS. */
  readonly envelopeDigest: Buffer
  /**
   * The answer; undefined if none came before the deadline, if the queue refused the job's data, if a server that it needs
   * goes on refusing, or if all operations were given up. A later answer is ignored.
   */
  readonly answer: Promise<Result | undefined>
  /** Takes a result with this operation's receipt. One that doesn't answer this very envelope makes the job go again soon. */
  resolve(result: Result): void
  /** Whether the job may be on the queue. */
  mayBeQueued(): boolean
}

export interface OperationDeps {
  queues: Queues
  clock: Clock
  isAway: () => boolean
  /** Whether a server that the job needs refuses what it is asked. */
  isRefused?: (() => boolean) | undefined
  /** When aborted, every operation ends unanswered. */
  givenUp: AbortSignal
}

const RESEND_MS = 2_000
/** The pause between attempts while the queue server is away, and after a failed call. */
const RETRY_MS = 250
/**
 * A server that answers with an error may be itself again soon, as after a failover: so long a job is tried, and one that a
 * worker can't do is awaited. A server that is silent is awaited until the deadline.
 */
const REFUSED_MS = 1_500

export function openOperation(job: Job, deps: OperationDeps): Operation {
  const { kind, receiptId, signed, endsExpired = false, deadline } = job
  const { queues, clock, isAway, isRefused = () => false, givenUp } = deps
  const digest = envelopeDigest(signed.data.jws)
  const envelope = digest.toString('base64url')
  const found = Promise.withResolvers<Result>()
  let other = Promise.withResolvers<undefined>()
  let hasOther = false
  let underway = 0
  let mayHave = false
  let impossible = false
  let refusedSince: number | undefined

  /** How the queue took the job: an error may only mean that its answer was lost. */
  async function enqueue(): Promise<'taken' | 'refused' | 'unknown'> {
    underway += 1
    try {
      await queues.add(kind, { id: signed.id, data: signed.data, priority: 0 })
      mayHave = true
      return 'taken'
    } catch (error) {
      // The queue refused the job's data, so it doesn't have the job and never will.
      if (error instanceof Fault && error.code === 'data') impossible = true
      if (!isUndone(error)) mayHave = true
      return causeOf(error) ? 'refused' : 'unknown'
    } finally {
      underway -= 1
    }
  }
  /** Whether the job's last attempt failed because a server refused what it needs. */
  async function isHeldUp(): Promise<boolean> {
    const job = await queues.get(kind, signed.id).catch(() => undefined)
    return job !== undefined && heldUpBy(job) !== undefined
  }
  async function tryOnce(): Promise<'taken' | 'refused' | 'unknown'> {
    if (isRefused()) return 'refused'
    if (isAway()) return 'unknown'
    return Promise.race([enqueue(), found.promise.then(() => 'taken' as const)])
  }
  /** What became of one try: a call that was not answered says neither that the server refuses nor that it is itself again. */
  async function noteTry(end: 'taken' | 'refused' | 'unknown', isRepeat: boolean): Promise<void> {
    if (end === 'unknown') return
    const isHeld = end === 'refused' || (isRepeat && (await isHeldUp()))
    refusedSince = isHeld ? (refusedSince ?? clock()) : undefined
  }
  async function answeredWithin(ms: number, before?: Promise<undefined>): Promise<Result | undefined> {
    const first = before ? Promise.race([found.promise, before]) : found.promise
    return foundWithin(Math.min(ms, deadline - clock()), first, givenUp)
  }
  /** The queue may still have had the job of another envelope, which kept this one from being queued. */
  async function afterOther(): Promise<Result | undefined> {
    if (!hasOther) return undefined
    hasOther = false
    other = Promise.withResolvers()
    return answeredWithin(RETRY_MS)
  }
  async function run(): Promise<Result | undefined> {
    let wasTaken = false
    while (!impossible && !givenUp.aborted && clock() < deadline) {
      const end = await tryOnce()
      await noteTry(end, wasTaken)
      if (refusedSince !== undefined && clock() - refusedSince >= REFUSED_MS) break
      wasTaken ||= end === 'taken'
      const ms = end === 'taken' && refusedSince === undefined ? RESEND_MS : RETRY_MS
      const result = (await answeredWithin(ms, other.promise)) ?? (await afterOther())
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
      if (result.envelope !== envelope || !isAbout(result, { kind, answers: signed.answers })) {
        hasOther = true
        other.resolve(undefined)
      } else if (endsExpired || !saysExpired(result)) found.resolve(result)
    },
    mayBeQueued: () => underway > 0 || mayHave,
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
