// Sends acts to a worker and waits for its answers, which come on a results queue of this process. It decides nothing: the
// worker checks the person, the proof and the act, whatever was checked here before.
import type { Clock } from '../../src/clock.ts'
import { assert, isRefusal, textOf } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import { receiptId as receiptIdOf } from '../../src/job/envelope/ids.ts'
import { reasonIn } from '../../src/job/problem.ts'
import type { Act } from '../../src/job/system/act.ts'
import type { Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Verdict } from '../../src/store/console/pending-acts.ts'
import { signAsk } from '../envelope.ts'
import type { Operation } from '../http/operation.ts'
import { openOwnMailbox } from '../http/own-mailbox.ts'
import type { TrustedKeys } from '../results.ts'

/** Sends the act until it expires, and waits a little longer. Resolves with what became of it, as far as it is known. */
export type SendAct = (act: Act) => Promise<Verdict>

export interface Sender {
  send: SendAct
  /** Resolves when this process listens for answers. */
  ready: Promise<void>
  close(): Promise<void>
}

export interface SenderDeps {
  queues: Queues
  /** The key of the system client `console`, which may sign nothing but acts. */
  signingKey: SigningKey
  /** Whether workers do what `signingKey` signs. */
  isKeyLive: () => boolean
  trusted: TrustedKeys
  audience: string
  clock: Clock
  log: Logger
}

const DELIVERIES = 10
/** An act with less left isn't sent. */
const LEAST_MS = 1_000
/** How long after its end an act is waited for, in ms: a worker that began it in time answers, and any worker says that it is too late. */
export const AFTER_MS = 10_000
const NOT_SENT: Verdict = {
  done: false,
  reason: 'not_sent',
  text: 'The act was not sent: the queues did not take it in time.',
}

export function openSender({ queues, signingKey, isKeyLive, trusted, audience, clock, log }: SenderDeps): Sender {
  const waiting = new Map<string, Operation>()
  const { clientId } = signingKey
  const mailbox = openOwnMailbox(
    { queues, clientId, trusted, clock, log, isRefused: () => !isKeyLive() },
    { letter: 'c', concurrency: DELIVERIES, receive: result => waiting.get(result.receipt_id)?.resolve(result) },
  )
  return {
    ready: mailbox.ready,
    async send(act) {
      const now = clock()
      const deadline = act.expires_at * 1000
      if (deadline - now < LEAST_MS) return NOT_SENT
      const kind = 'act'
      const userId = act.person_id
      // An act is for the whole installation; the worker finds the entity of its subject in the store.
      const identity = { userId, entityId: NO_ENTITY, roles: [], audience, signingKey, names: 'numeric' as const }
      const options = {
        jti: act.nonce,
        expiresInMs: Math.ceil((deadline - now) / 1000) * 1000,
        replyTo: mailbox.replyTo,
      }
      const signed = await signAsk(identity, { kind, request: { ...act } }, options, now)
      assert(!isRefusal(signed), 'an envelope of ours has its form')
      const receiptId = receiptIdOf(clientId, act.nonce)
      const job = { kind, receiptId, signed, endsExpired: true, deadline: deadline + AFTER_MS } as const
      const operation = mailbox.send(job)
      waiting.set(receiptId, operation)
      try {
        const result = await operation.answer
        if (result) return verdictOf(result)
        // What the queue may have can still be done, or was done and its answer lost.
        return operation.mayBeQueued() ? { done: null } : NOT_SENT
      } finally {
        waiting.delete(receiptId)
      }
    },
    close: () => mailbox.close(),
  }
}

const NO_ENTITY = '00000000-0000-0000-0000-000000000000'

function verdictOf({ status, record, error }: Result): Verdict {
  if (status === 'SUCCEEDED') {
    const auditId = record?.['audit_id']
    return { done: true, auditId: auditId === undefined || auditId === null ? null : String(auditId) }
  }
  const why = reasonIn(error)
  return { done: false, reason: why.reason, text: textOf(why) }
}
