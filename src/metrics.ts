// The numbers a process shows. Names and labels are listed in docs/metrics.md; every label has few, fixed values.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof openMetrics>

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** One registry per process; `role` is a label on every series. */
export function openMetrics(role: string) {
  const registry = new Registry()
  registry.setDefaultLabels({ role })
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: `tokenmill_${name}`, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: `tokenmill_${name}`, help, labelNames, registers })
  return {
    registry,
    collectProcess: () => collectDefaultMetrics({ register: registry, prefix: 'tokenmill_process_' }),
    jobs: counter('jobs_total', 'Attempts that ended, by kind and outcome.', ['kind', 'outcome']),
    records: counter('batch_records_total', 'Records of batches, by kind and outcome.', ['kind', 'outcome']),
    retries: counter('retries_total', 'Attempts that failed and will be repeated, by kind and fault.', [
      'kind',
      'fault',
    ]),
    refusedEnvelopes: counter('envelopes_refused_total', 'Jobs dropped or refused before any work, by reason.', [
      'reason',
    ]),
    reruns: counter('transaction_reruns_total', 'Transactions run again after a lost race, by kind.', ['kind']),
    receipts: counter('receipts_total', 'Receipts written, by kind and status.', ['kind', 'status']),
    guesses: counter('card_guesses_total', 'Cards beyond the guessing limit, by mode.', ['mode']),
    published: counter('results_published_total', 'Results and events handed to results queues.'),
    attemptSeconds: new Histogram({
      name: 'tokenmill_attempt_seconds',
      help: 'Duration of an attempt, by kind.',
      labelNames: ['kind'] as const,
      buckets: SECONDS,
      registers,
    }),
    waitSeconds: new Histogram({
      name: 'tokenmill_queue_wait_seconds',
      help: 'From iat to the start of the attempt, by kind.',
      labelNames: ['kind'] as const,
      buckets: [...SECONDS, 60, 300, 900, 3600],
      registers,
    }),
    httpSeconds: new Histogram({
      name: 'tokenmill_http_request_seconds',
      help: 'Duration of an HTTP request, by route and status.',
      labelNames: ['route', 'status'] as const,
      buckets: SECONDS,
      registers,
    }),
    gatewayWaits: new Histogram({
      name: 'tokenmill_gateway_wait_seconds',
      help: 'From the acceptance of an operation over HTTP to the end of its work: queue wait and work, by kind.',
      labelNames: ['kind'] as const,
      buckets: SECONDS,
      registers,
    }),
    gatewayAnswers: new Histogram({
      name: 'tokenmill_gateway_answer_seconds',
      help: 'From the acceptance of an operation over HTTP to its answer, by kind.',
      labelNames: ['kind'] as const,
      buckets: SECONDS,
      registers,
    }),
    gatewayTimeouts: counter(
      'gateway_timeouts_total',
      'Operations over HTTP not answered in time, by kind and reversal.',
      ['kind', 'reversal_status'],
    ),
    gatewayInFlight: gauge('gateway_operations', 'Operations over HTTP under way.'),
    gatewayPromised: gauge('gateway_promised', 'What was accepted for later and has no answer yet.', ['what']),
    gatewayPromisedOldest: gauge('gateway_promised_oldest_seconds', 'Age of the oldest of it.', ['what']),
    schemeCalls: counter(
      'scheme_calls_total',
      'Calls to scheme token networks that were settled, by call and answer.',
      ['call', 'answer'],
    ),
    schemeOpen: gauge('scheme_open', 'Scheme tokens of which the network has yet to be asked or told something.', [
      'what',
    ]),
    schemeOpenOldest: gauge('scheme_open_oldest_seconds', 'Age of the oldest of them.', ['what']),
    schemeShare: gauge(
      'scheme_share',
      'Calls per second that are this process’s part of a granted rate, by provider.',
      ['provider'],
    ),
    schemeRate: gauge('scheme_rate', 'Calls per second that it makes at most at present, by provider.', ['provider']),
    schemeDrift: counter('scheme_drift_total', 'Differences found between store and network.', ['what']),
    threeDsEnded: counter('three_ds_ended_total', 'Authentications that ended, by outcome.', ['outcome']),
    threeDsAsked: new Histogram({
      name: 'tokenmill_three_ds_directory_seconds',
      help: 'How long directory servers took, by kind of answer.',
      labelNames: ['answer'] as const,
      buckets: SECONDS,
      registers,
    }),
    deprecatedCalls: counter('deprecated_calls_total', 'Calls of operations that will go, by operation.', [
      'operation',
    ]),
    scheduleRuns: counter('schedule_runs_total', 'Runs of schedules that ended, were tried again or became late.', [
      'outcome',
    ]),
    scheduleOldest: gauge('schedule_oldest_due_seconds', 'Since when the oldest open run of a schedule has been due.'),
    queueDepth: gauge('queue_jobs', 'Jobs of a queue, by queue and state.', ['queue', 'state']),
    queueOldest: gauge('queue_oldest_seconds', 'Age of the oldest waiting job, by queue.', ['queue']),
    outboxOldest: gauge('outbox_oldest_seconds', 'Age of the oldest unpublished result.'),
    outboxRows: gauge('outbox_rows', 'Results not yet published.'),
    eventLoopDelay: gauge('event_loop_delay_seconds', 'Event-loop delay since the last scrape, by quantile.', [
      'quantile',
    ]),
    pool: gauge('store_connections', 'Connections of the store pool, by state.', ['state']),
    writableServers: gauge(
      'store_writable_servers',
      'Servers of DATABASE_URL that took writes when last asked; more than one is an alarm.',
    ),
    clockSkew: gauge('clock_skew_seconds', 'This clock minus the clock of the store.'),
  }
}
