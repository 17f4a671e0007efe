// What worker processes are composed of: the handlers of all kinds, and what goes on beside the jobs. The entry of a process
// hands both down.
import { doFailedActs } from '../src/acts/failed-acts.ts'
import { tellExpiring } from '../src/acts/key/expiring-keys.ts'
import type { AuditPlace } from '../src/audit/place.ts'
import { resultsQueue } from '../src/job/catalogue.ts'
import type { KINDS } from '../src/job/composition.ts'
import { every } from '../src/recurring.ts'
import { readClock } from '../src/store/server.ts'
import type { ConsoleTrust } from './act/trust.ts'
import { openAct } from './act.ts'
import { startSequencer } from './audit/sequencer.ts'
import { sumUnsettled, tellStalls } from './batch-progress.ts'
import { schemeRecords } from './chunk/schemes.ts'
import type { LineDeps } from './line/deps.ts'
import type { HandlersOf } from './line/handlers.ts'
import { CLOSE_MS, type Loop } from './main.ts'
import { manifestTotal } from './manifest-total.ts'
import { watchCaptureKeys } from './process/capture-keys.ts'
import { watchFullKeys } from './process/full-keys.ts'
import type { Providers } from './provider/deps.ts'
import { startSchemeLoop } from './provider/reconcile/loop.ts'
import { reference } from './reference.ts'
import { watchReportMakers } from './report/makers.ts'
import { endAbandoned } from './report/sweep.ts'
import { openReport, type ReportMaking } from './report.ts'
import { type ResealTimes, startReseals } from './reseal/reseal.ts'
import { reversal } from './reversal.ts'
import { schemeToken } from './scheme-token.ts'
import { openTokenBatch } from './token-batch.ts'
import { tokenCreate } from './token-create.ts'
import { tokenLifecycle } from './token-lifecycle.ts'
import { tokenUpdate } from './token-update.ts'
import { sendParts } from './total/send-parts.ts'
import { transactionBatch } from './transaction-batch.ts'
import { openWebhook, type WebhookMeans } from './webhook.ts'

/** What handlers need that no other job does. */
export interface Means extends ReportMaking, WebhookMeans {
  console: ConsoleTrust
}

export function openHandlers(means: Means): HandlersOf<typeof KINDS> {
  return {
    'token-create': tokenCreate,
    'token-update': tokenUpdate,
    'token-lifecycle': tokenLifecycle,
    'token-batch': openTokenBatch({ schemeRecords }),
    'scheme-token': schemeToken,
    'transaction-batch': transactionBatch,
    'manifest-total': manifestTotal,
    act: openAct(means.console),
    reference,
    report: openReport(means),
    reversal,
    webhook: openWebhook(means),
  }
}

const FAILED_ACTS_MS = 1_000
const SUMS_MS = 10_000
const HOUR_MS = 3_600_000

/** What loops need that nothing else does. */
export interface LoopMeans {
  /** Where segments of the audit go. */
  auditPlace: AuditPlace
  /** The times of re-encryptions that differ from the settings. */
  reseal?: Partial<ResealTimes> | undefined
  /** Undefined if no provider is set up. */
  providers: Providers | undefined
}

/** Warns of the keys that it tells of, too. */
async function tellOfKeys({ store, ring, log }: LineDeps): Promise<void> {
  for (const { key, replaceBy, stage } of await tellExpiring(store, ring, await readClock(store)))
    log.warn({ key, replaceBy: new Date(replaceBy).toISOString(), stage }, 'a key should be replaced')
}

/** In the order in which they start; they end in the reverse order. */
export function openLoops({ auditPlace, reseal, providers }: LoopMeans): readonly Loop[] {
  return [
    {
      name: 'report makers',
      start({ opened: { config }, deps, workers }) {
        const onReports = workers.find(worker => worker.queue === 'report')
        return onReports && watchReportMakers(onReports, deps, config.reportsUrl !== undefined)
      },
    },
    {
      name: 'acts on failed jobs',
      start: ({ options, deps }) =>
        options.worker.kinds.includes('act')
          ? every(FAILED_ACTS_MS, () => doFailedActs(deps, deps.clock), deps)
          : undefined,
    },
    {
      name: 'audit',
      start: ({ opened: { store, ring, signing, installationId, log } }) =>
        startSequencer({ store, ring, signing, installationId, place: auditPlace, log }),
    },
    {
      name: 'scheme tokens',
      // Bulk processes run it, too: they have most of a network's rate.
      start: ({ deps }) => (providers ? startSchemeLoop({ ...deps, providers }) : undefined),
    },
    {
      name: 'totals',
      start: ({ opened: { ownKey }, options, deps }) =>
        options.worker.role === 'bulk' && ownKey ? sendParts(deps, ownKey) : undefined,
    },
    {
      name: 're-encryption',
      start({ opened: { halves, config }, options, deps }) {
        const pace = { ...config.reseal, ...reseal }
        return options.worker.role === 'bulk' ? startReseals({ ...deps, halves }, pace) : undefined
      },
    },
    {
      name: 'own results',
      start({ opened: { ownKey, queues }, options }) {
        if (!ownKey || !(options.worker.role === 'bulk' || providers)) return undefined
        // No process waits for the answers to the jobs of the client `worker`. They are read so that the queue doesn't fill
        // up.
        const read = queues.work(resultsQueue(ownKey.clientId), async () => ({ done: true }), { concurrency: 1 })
        return () => read.close(CLOSE_MS)
      },
    },
    {
      name: 'batches that a crash left unsummed, or that stall',
      start: ({ options, deps }) =>
        options.worker.role === 'bulk'
          ? every(SUMS_MS, () => sumUnsettled(deps).then(() => tellStalls(deps)), deps)
          : undefined,
    },
    {
      name: 'reports that nobody makes any more',
      start: ({ options, deps }) =>
        options.worker.role === 'bulk'
          ? every(HOUR_MS, async () => void (await endAbandoned(deps, await readClock(deps.store))), deps)
          : undefined,
    },
    {
      name: 'keys that should be replaced',
      start: ({ options, deps }) =>
        options.worker.role === 'bulk' ? every(HOUR_MS, () => tellOfKeys(deps), deps) : undefined,
    },
    { name: 'full keys', start: ({ opened }) => watchFullKeys(opened) },
    {
      name: 'capture keys',
      start({ opened: { config, halves, ring, signing }, deps }) {
        const stating = () => ({ ring, signing: signing().key, audience: config.audience })
        return watchCaptureKeys({ ...deps, halves, stating })
      },
    },
  ]
}
