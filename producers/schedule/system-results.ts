// Reads the results queues of the system clients, so that they don't fill up. Results of the scheduler's jobs update
// its runs, and those of webhook and expiry jobs go to who sent them; other results were handled elsewhere and are dropped.
import type { Reason } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import type { SystemClient } from '../../src/job/system-clients.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import { type Inbox, openInbox } from '../results.ts'
import type { ScheduleDeps } from './deps.ts'
import type { ExpirySweeper } from './expiry.ts'
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
  deps: ScheduleDeps,
  { sweeper, webhooks }: { sweeper: Pick<ExpirySweeper, 'onResult'>; webhooks: Pick<WebhookDispatcher, 'onResult'> },
): Inbox[] {
  const { queues, trusted, log } = deps
  const inboxOf = (clientId: SystemClient, hear: (result: Result) => Promise<void>) =>
    openInbox(
      queues,
      { clientId, ...trusted },
      async delivery => {
        if (delivery.type === 'result') await hear(delivery)
        return 'taken'
      },
      { concurrency: CONCURRENCY, log },
    )
  return [
    inboxOf('scheduler', async result => {
      if (result.kind === 'report') await recordReportEnd(result, deps)
      else if (result.kind === 'webhook') await webhooks.onResult(result)
      else sweeper.onResult(result)
    }),
    inboxOf('worker', async () => {}),
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
