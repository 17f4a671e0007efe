// Reads the results queues of the system clients, so that they don't fill up. Answers to the jobs of this process update
// its runs, and those of webhook and expiry jobs go to who sent them. Other results are offered to other schedulers.
import type { Reason } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import type { SystemClient } from '../../src/job/system-clients.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import { type Inbox, openInbox, type Receive } from '../results.ts'
import type { ScheduleDeps } from './deps.ts'
import type { ExpirySweeper } from './expiry.ts'
import type { SendingDeps } from './own-jobs.ts'
import { noteEnd } from './run-notes.ts'
import type { WebhookDispatcher } from './webhooks.ts'

const HOUR_MS = 3_600_000
/** The most attempts of one run: hourly attempts for a day. */
const FAULTS_MAX = 24
const CONCURRENCY = 10
const MINUTE_MS = 60_000
/** Refusals of an envelope that no worker tried. The same run is sent again, until it is given up after seven days. */
const UNTRIED: ReadonlySet<string> = new Set<Reason>(['envelope_expired', 'envelope_future'])

export function openSystemInboxes(
  deps: SendingDeps,
  { sweeper, webhooks }: { sweeper: Pick<ExpirySweeper, 'onResult'>; webhooks: Pick<WebhookDispatcher, 'onResult'> },
): Inbox[] {
  const { queues, trusted, log, jobs } = deps
  const inboxOf = (clientId: SystemClient, receive: Receive) =>
    openInbox(queues, { clientId, ...trusted }, receive, { concurrency: CONCURRENCY, log })
  return [
    inboxOf('scheduler', async delivery => {
      if (delivery.type !== 'result') return 'taken'
      // The store tells every process which tokens were suspended and which webhooks are due.
      if (!jobs.isAnswer(delivery))
        return delivery.status === 'SUCCEEDED' && delivery.kind !== 'report' ? 'taken' : 'unclaimed'
      if (delivery.kind === 'report') await recordReportEnd(delivery, deps)
      else if (delivery.kind === 'webhook') await webhooks.onResult(delivery)
      else sweeper.onResult(delivery)
      jobs.forget(delivery.receipt_id)
      return 'taken'
    }),
    inboxOf('worker', async () => 'taken'),
  ]
}

async function recordReportEnd(result: Result, deps: ScheduleDeps): Promise<void> {
  const run = await runs.applyAnswer(deps.store, result.receipt_id, endOf(result, deps.clock()))
  if (run) noteEnd(run, deps)
}

function endOf({ status, code, record, error }: Result, now: number): runs.Answered {
  if (status === 'SUCCEEDED') {
    const uid = record?.['reportUid']
    return { state: 'SUCCEEDED', reportUid: typeof uid === 'string' ? uid : null }
  }
  const [said] = reasonsIn(error)
  // The envelope was late or its clock differed, and no worker tried it: the run is sent again.
  if (said && UNTRIED.has(said.reason))
    return { state: 'FAULTED', reason: said.reason, nextAt: now + MINUTE_MS, faultsMax: Number.POSITIVE_INFINITY }
  if (code !== 500) return { state: 'FAILED', reason: said?.reason ?? String(code) }
  return { state: 'FAULTED', reason: said?.reason ?? 'fault', nextAt: now + HOUR_MS, faultsMax: FAULTS_MAX }
}
