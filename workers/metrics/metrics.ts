// The metrics of a worker process: its work, its calls to providers, its clock. process/installation-metrics.ts, in the
// scheduler, shows what waits in the store and the queues.
import { FAULTS } from '../../src/errors.ts'
import { type Catalogue, RECORD_KINDS } from '../../src/job/catalogue.ts'
import { DROPS } from '../../src/job/envelope/envelope.ts'
import { OUTCOMES } from '../../src/job/outcome.ts'
import { type MetricsRegistry, SECONDS } from '../../src/metrics.ts'
import { openUngrantedCounter } from '../../src/vault/ring/ungranted.ts'
import { openMinuteWork } from './minute-work.ts'
import { openRecentAttempts } from './recent-attempts.ts'

export type WorkerMetrics = ReturnType<typeof openWorkerMetrics>

export const UNPROVED_KINDS = ['receipt', 'outbox', 'event', 'scheme_token'] as const
const ENDS = ['SUCCEEDED', 'FAILED', 'REPEATED', 'DROPPED', 'LATER', 'FAULT'] as const
/** The label for a job that can't be read, and so has no kind. */
const UNKNOWN = 'unknown'
/** The calls to providers, by what they ask (provider/call-provider.ts). */
const CALLS = ['PROVISION', 'SUSPEND', 'RESUME', 'DELETE', 'GET'] as const
const ANSWERS = ['token', 'refused', 'unproved', 'taken', 'leaving', 'lost', 'nothing'] as const
const LONG_WAITS = [60, 300, 900, 3600]

/** Opens the metrics. `kinds`: the kinds that the process works. */
export function openWorkerMetrics(registry: MetricsRegistry, catalogue: Catalogue, kinds = catalogue.kinds) {
  const { counter, gauge, histogram } = registry
  const kind = [...kinds, UNKNOWN]
  const holdsRecords = kinds.some(one => catalogue.entry(one).recordsIn !== null)
  return {
    jobs: counter('jobs_total', 'Attempts that ended.', { kind, outcome: ENDS }),
    records: counter('batch_records_total', 'Records of batches that were decided.', {
      kind: holdsRecords ? [...RECORD_KINDS, 'transaction'] : [],
      outcome: OUTCOMES,
    }),
    chunkRecords: counter(
      'chunk_records_total',
      'Records of chunks of cards, by the form in which they were decided.',
      {
        form: kinds.includes('token-batch') ? ['columns', 'objects'] : [],
        outcome: OUTCOMES,
      },
    ),
    retries: counter('retries_total', 'Attempts that failed and are retried.', { kind, fault: Object.keys(FAULTS) }),
    refusedEnvelopes: counter('envelopes_refused_total', 'Jobs dropped, or refused before any work.', {
      reason: DROPS,
    }),
    ungranted: openUngrantedCounter(registry),
    unproved: counter('unproved_rows_total', 'Reads of a receipt, a result or an event that tokenmill did not write.', {
      kind: UNPROVED_KINDS,
    }),
    reruns: counter('transaction_reruns_total', 'Transactions run again after a concurrent change.', { kind: kinds }),
    sets: counter('sets_total', 'Sets of single jobs, each in one transaction.', { end: ['written', 'rolled_back'] }),
    setJobs: counter('set_jobs_total', 'Single jobs that were written.', { written: ['together', 'alone'] }),
    receipts: counter('receipts_total', 'Receipts written.', {
      kind: kinds,
      status: ['SUCCEEDED', 'FAILED', 'CANCELLED'],
    }),
    guesses: counter('card_guesses_total', 'Cards beyond the guessing limit.', {
      mode: ['interactive', 'batch', 'dry-run'],
    }),
    published: counter('results_published_total', 'Results and events put on results queues.'),
    deliveries: counter('result_deliveries_total', 'Deliveries put on results queues.', { form: ['single', 'set'] }),
    webhooks: counter('webhooks_total', 'Attempts to deliver an event to a URL.', {
      outcome: ['delivered', 'again', 'failed'],
    }),
    attemptSeconds: histogram('attempt_seconds', 'Duration of an attempt.', { kind }),
    waitSeconds: histogram('queue_wait_seconds', 'From iat to the start of the attempt.', { kind: kinds }, [
      ...SECONDS,
      ...LONG_WAITS,
    ]),
    schemeCalls: counter('scheme_calls_total', 'Calls to card networks and third parties that ended.', {
      call: CALLS,
      answer: ANSWERS,
    }),
    schemeShare: gauge('scheme_share', 'Calls per second that are this process’s share of the granted rate.', {
      provider: [],
    }),
    schemeRate: gauge('scheme_rate', 'Calls per second that this process makes at most at present.', { provider: [] }),
    breakerOpen: gauge('scheme_breaker_open', '1 while this process’s circuit breaker keeps calls back.', {
      provider: [],
    }),
    schemeDrift: counter('scheme_drift_total', 'Differences found between store and network.', {
      what: ['state', 'data', 'orphan', 'unknown', 'missing'],
    }),
    recentAttempts: openRecentAttempts(),
    minuteWork: openMinuteWork(catalogue),
    clockSkew: gauge('clock_skew_seconds', 'The clock of this host minus the clock of the store.'),
  }
}
