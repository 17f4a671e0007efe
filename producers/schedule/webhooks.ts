// Sends the jobs of webhooks that are due; each job is one attempt. The store knows what is due and what was sent, so
// jobs that a queue server lost are sent again with the same jti. The worker decides what follows from an attempt.
import { assert, isRefusal } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { attemptJti, attemptOf } from '../../src/job/event.ts'
import type { QueuedJob } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as deliveries from '../../src/store/event/deliveries.ts'
import type { ScheduleDeps } from './deps.ts'
import type { SendingDeps } from './own-jobs.ts'

const LOOK_MS = 1_000
/** Results that arrive within this time cause only one search for due deliveries. */
const GATHER_MS = 20
/** How many jobs are sent at a time. */
const PAGE = 200
/** The pause after an attempt that no worker could make. */
const AGAIN_MS = 60_000

export interface WebhookDispatcher {
  /** Call it when an attempt has ended: then its endpoint can get the next one. */
  onResult(result: Result): Promise<void>
  close(): Promise<void>
}

export function openWebhookDispatcher(deps: SendingDeps): WebhookDispatcher {
  const { store, queues, settings, log } = deps
  let looking: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function sendDue(): Promise<void> {
    for (;;) {
      const due = await deliveries.claim(store, { leaseMs: settings.webhookLeaseMs, limit: PAGE })
      // Deliveries are claimed before their jobs are sent: if a crash comes in between, the lease ends and they are
      // sent again.
      if (due.length > 0) await queues.addBulk('webhook', await Promise.all(due.map(one => jobOf(one, deps))))
      if (due.length < PAGE || closed) return
    }
  }
  /**
   * Looks for due deliveries now, or after the search in progress, which may have missed those that became due since.
   */
  async function look(): Promise<void> {
    await looking?.catch(() => {})
    looking ??= sendDue().finally(() => {
      looking = undefined
    })
    await looking
  }
  const stop = every(LOOK_MS, look, { log, firstMs: 0 })

  return {
    async onResult({ jti, status }) {
      const attempt = attemptOf(jti)
      if (attempt && status === 'FAILED') await putOff(attempt, deps)
      if (closed) return
      timer ??= setTimeout(() => {
        timer = undefined
        // The next search will report a failure.
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

/**
 * Postpones a delivery whose attempt no worker made: its job was refused, came too late or failed for good. That uses
 * up no step of its schedule.
 */
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
  { jobs, userId }: SendingDeps,
): Promise<QueuedJob> {
  const request = { delivery_id: deliveryId, attempt }
  const caller = { userId, entityId, roles: [] }
  const job = await jobs.sign(caller, { kind: 'webhook', request }, attemptJti({ deliveryId, attempt }))
  assert(!isRefusal(job), 'an envelope of ours has its form')
  return job
}
