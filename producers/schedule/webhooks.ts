// Sends the jobs of webhooks that are due: each is one attempt. The store says what is due and what was sent, so that jobs
// that a queue server lost are sent again under the same jti. What an attempt leads to, the worker decides.
import { assert, isRefusal } from '../../src/errors.ts'
import { attemptJti, attemptOf } from '../../src/job/event.ts'
import type { Result } from '../../src/job/result.ts'
import type { QueuedJob } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as deliveries from '../../src/store/event/deliveries.ts'
import { signAsk } from '../envelope.ts'
import type { ScheduleDeps } from './deps.ts'
import { PRIORITY } from './report-run.ts'

const LOOK_MS = 1_000
/** Results that come together lead to one look. */
const GATHER_MS = 20
/** So many jobs are sent at once, and then the next ones. */
const PAGE = 200
/** After an attempt that no worker could make. */
const AGAIN_MS = 60_000

export interface WebhookDispatcher {
  /** An attempt ended: its endpoint can take the next one. */
  onResult(result: Result): Promise<void>
  close(): Promise<void>
}

export function openWebhookDispatcher(deps: ScheduleDeps): WebhookDispatcher {
  const { store, queues, settings, log } = deps
  let looking: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function sendDue(): Promise<void> {
    for (;;) {
      const due = await deliveries.claim(store, { leaseMs: settings.webhookLeaseMs, limit: PAGE })
      // Claimed first: what a crash keeps off the queue is sent after the lease.
      if (due.length > 0) await queues.addBulk('webhook', await Promise.all(due.map(one => jobOf(one, deps))))
      if (due.length < PAGE || closed) return
    }
  }
  /** Begins now, or after the look under way: that one may have passed by what is due since. */
  async function look(): Promise<void> {
    await looking?.catch(() => {})
    looking ??= sendDue().finally(() => {
      looking = undefined
    })
    await looking
  }
  const stop = every(LOOK_MS, look, { log, atOnce: true })

  return {
    async onResult({ jti, status }) {
      const attempt = attemptOf(jti)
      if (attempt && status === 'FAILED') await putOff(attempt, deps)
      if (closed) return
      timer ??= setTimeout(() => {
        timer = undefined
        // The next look tells of a failure.
        look().catch(() => {})
      }, GATHER_MS)
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await stop()
      await looking?.catch(() => {})
    },
  }
}

/** No worker made the attempt: it was refused, came too late or failed for good. It costs no step of the schedule. */
async function putOff(
  attempt: { deliveryId: string; attempt: number },
  { store, log }: Pick<ScheduleDeps, 'store' | 'log'>,
): Promise<void> {
  const delivery = await deliveries.find(store, attempt.deliveryId)
  if (!delivery) return
  const next = { state: 'WAITING', inMs: AGAIN_MS, step: delivery.step } as const
  const isOurs = await deliveries.record(store, attempt, { next, status: null, reason: 'not_tried' })
  if (isOurs) log.warn({ delivery: attempt.deliveryId, attempt: attempt.attempt }, 'no worker could send a webhook')
}

async function jobOf(
  { deliveryId, attempt, entityId }: deliveries.Attempt,
  { signingKey, userId, settings, clock }: ScheduleDeps,
): Promise<QueuedJob> {
  const request = { delivery_id: deliveryId, attempt }
  const identity = { userId, entityId, roles: [], audience: settings.audience, signingKey }
  const options = { jti: attemptJti({ deliveryId, attempt }) }
  const signed = await signAsk(identity, { kind: 'webhook', request }, options, clock())
  assert(!isRefusal(signed), 'an envelope of ours has its form')
  return { id: signed.id, data: signed.data, priority: PRIORITY }
}
