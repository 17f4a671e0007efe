// The jobs that this process has sent and that nobody has answered yet. A result is the answer to one of them only if it
// names what the job asked for: whoever may write to the queue can put any result there that was signed before.
import { isRefusal, type Refusal } from '../../src/errors.ts'
import { isAnswerTo, type Result } from '../../src/job/answer/result.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { QueuedJob } from '../../src/queue/engine.ts'
import type { Ask } from '../ask.ts'
import { type Identity, signAsk } from '../envelope.ts'
import type { ScheduleDeps } from './deps.ts'

/** The same priority as that of `submit`: interactive requests come first. */
const PRIORITY = 10
/** The oldest are forgotten first: then the job is sent again, as after a restart. */
const JOBS_MAX = 10_000

export interface OwnJobs {
  /** Signs a job as the scheduler. The caller puts it on the queue of its kind. */
  sign(identity: Caller, ask: Ask, jti: string): Promise<QueuedJob | Refusal>
  /** Whether the result answers a job that was signed here and not forgotten. */
  isAnswer(result: Result): boolean
  /** Call it when the answer was handled. */
  forget(receiptId: string): void
}

export type Caller = Pick<Identity, 'userId' | 'entityId' | 'roles' | 'onBehalfOf'>

/** What sends jobs has, beside what the process opened. */
export interface SendingDeps extends ScheduleDeps {
  jobs: OwnJobs
}

interface OwnJob {
  kind: string
  answers: string
  /** Of each time it was signed: a repeat isn't queued while the job waits, so any of them may be the one that is answered. */
  envelopes: string[]
}

export function openOwnJobs({
  signingKey,
  settings,
  clock,
}: Pick<ScheduleDeps, 'signingKey' | 'settings' | 'clock'>): OwnJobs {
  const jobs = new Map<string, OwnJob>()

  return {
    async sign(identity, ask, jti) {
      const signed = await signAsk(
        {
          ...identity,
          audience: settings.audience,
          signingKey,
        },
        ask,
        { jti },
        clock(),
      )
      if (isRefusal(signed)) return signed
      const receipt = receiptId(identity.onBehalfOf ?? signingKey.clientId, jti)
      const { envelopes = [] } = jobs.get(receipt) ?? {}
      jobs.delete(receipt)
      jobs.set(receipt, {
        kind: ask.kind,
        answers: signed.answers,
        envelopes: [...envelopes, envelopeDigest(signed.data.jws).toString('base64url')],
      })
      const [oldest] = jobs.keys()
      if (jobs.size > JOBS_MAX && oldest !== undefined) jobs.delete(oldest)
      return { id: signed.id, data: signed.data, priority: PRIORITY }
    },
    isAnswer(result) {
      const job = jobs.get(result.receipt_id)
      return job?.envelopes.some(envelope => isAnswerTo(result, { ...job, envelope })) ?? false
    },
    forget(receipt) {
      jobs.delete(receipt)
    },
  }
}
