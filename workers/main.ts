// One worker process: the handlers' kinds on their queues, the sweep, the clock watch, the ops port. Bulk kinds and
// interactive kinds never share one. It forks nothing but a cell for jobs whose worker vanished.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { systemClock } from '../src/clock.ts'
import type { Config } from '../src/config.ts'
import { Fault } from '../src/errors.ts'
import { giveWay } from '../src/give-way.ts'
import { CATALOGUE, KINDS, type Kind, resultsQueue } from '../src/job/catalogue.ts'
import type { InstallationKey } from '../src/job/result.ts'
import { type Lifetime, untilSignal } from '../src/lifetime.ts'
import { describeError, type Logger } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import { openOps } from '../src/ops.ts'
import type { Disposition, Queues, ReceivedJob, Worker } from '../src/queue/engine.ts'
import * as signingKeys from '../src/store/access/signing-keys.ts'
import type { Store } from '../src/store/pool.ts'
import type { KeyProvider } from '../src/vault/kek.ts'
import type { KeyRing } from '../src/vault/ring.ts'
import type { Deps, Outside } from './deps.ts'
import { openDirectory } from './directory.ts'
import { type AnnouncerOptions, openAnnouncer } from './line/announce.ts'
import { bodyOfRow } from './line/replay.ts'
import { giveUp, runJob, works } from './line/run-job.ts'
import { type Asked, openCell, type Told } from './process/alone.ts'
import { watchClock } from './process/clock-skew.ts'
import { every } from './process/every.ts'
import { measureQueues } from './process/gauges.ts'
import { startSchemeLoop } from './provider/reconcile/loop.ts'

/** What the process's main file opened and will close. */
export interface Opened {
  config: Config
  log: Logger
  metrics: Metrics
  lifetime: Lifetime
  store: Store
  queues: Queues
  kek: KeyProvider
  ring: KeyRing
  installationKey: InstallationKey
  outside: Outside | undefined
}

export interface RunOptions {
  /** The supervisor sets role, kinds and concurrency in it. */
  env: NodeJS.ProcessEnv
  inspect?: Deps['inspect']
}

export type WorkerRole = 'interactive' | 'bulk'

const CONCURRENCY = { interactive: 16, bulk: 2 } as const
const SWEEP_MS = 1_000
/** An imported BIN table is known to every worker after at most this. */
const REFRESH_MS = 60_000
/** Younger rows are being published by whoever wrote them. */
const SWEEP_AGE_MS = 3_000
const CLOSE_MS = 20_000

export function kindsOf(role: WorkerRole, named: readonly string[] | undefined): Kind[] {
  return KINDS.filter(
    kind => CATALOGUE[kind].bulk === (role === 'bulk') && (named === undefined || named.includes(kind)),
  )
}

/** Works until it is told to stop or its supervisor is gone. What was `opened` is closed by `lifetime`, after what is opened here. */
export async function runWorkers(opened: Opened, { env, inspect }: RunOptions): Promise<void> {
  const { config, log, metrics, lifetime, queues } = opened
  const role = roleOf(env)
  if (role === 'bulk') giveWay()
  const deps = await openDeps(opened, inspect)
  if (env['TOKENMILL_CELL'] === '1') return answerAsked(deps)
  const kinds = kindsOf(role, env['TOKENMILL_KINDS']?.split(','))
  const concurrency = Number(env['TOKENMILL_CONCURRENCY'] ?? CONCURRENCY[role])
  const workers = startWorkers(kinds, concurrency, deps)
  lifetime.onClose('workers', () => Promise.all(workers.map(worker => worker.close(CLOSE_MS))))
  const skew = await watchClock(deps, workers)
  lifetime.onClose('clock watch', skew.stop)
  lifetime.onClose('BIN table', every(REFRESH_MS, deps.directory.refresh, deps))
  lifetime.onClose(
    'sweep',
    every(SWEEP_MS, () => deps.announcer.sweep(SWEEP_AGE_MS), deps),
  )
  // Bulk processes, too: theirs is the greater part of a network's rate.
  if (deps.outside) lifetime.onClose('scheme tokens', startSchemeLoop(deps))
  if (role === 'interactive' && deps.outside) {
    // Nobody waits for the answers to reversals of our own; read, they don't pile up.
    const read = queues.work(resultsQueue(deps.outside.signingKey.clientId), async () => ({ done: true }), {
      concurrency: 1,
    })
    lifetime.onClose('own results', () => read.close(CLOSE_MS))
  }
  metrics.collectProcess()
  const ops = await openWorkerOps(config, deps, skew.tooFar)
  lifetime.onClose('ops', ops.close)
  await Promise.all(workers.map(worker => worker.ready))
  process.send?.({ ready: true })
  log.info({ kinds, concurrency, opsPort: ops.port }, 'working')
  await Promise.race([untilSignal(), new Promise(resolve => process.once('disconnect', resolve))])
}

export function roleOf(env: NodeJS.ProcessEnv): WorkerRole {
  return env['TOKENMILL_WORKER_ROLE'] === 'bulk' ? 'bulk' : 'interactive'
}

async function openDeps(
  { config, log, metrics, lifetime, store, queues, kek, ring, installationKey, outside }: Opened,
  inspect: Deps['inspect'],
): Promise<Deps> {
  const directory = await openDirectory(store, queues, kek, systemClock)
  const bodyOf: AnnouncerOptions['bodyOf'] = row => bodyOfRow(row, { store, directory })
  const announcer = openAnnouncer({ store, queues, key: installationKey, clock: systemClock, metrics, log, bodyOf })
  lifetime.onClose('announcer', announcer.close)
  const { audience, thirdPartyTypes, localSchemes, guessesMax, dryRunRowsMax } = config
  const settings = { audience, thirdPartyTypes, localSchemes, guessesMax, dryRunRowsMax }
  return {
    settings,
    store,
    queues,
    ring,
    directory,
    announcer,
    clock: systemClock,
    metrics,
    log,
    outside,
    ...(inspect ? { inspect } : {}),
  }
}

function startWorkers(kinds: readonly Kind[], concurrency: number, deps: Deps): Worker[] {
  const cell = openCell(process.argv[1] ?? '', process.env)
  const handle = async (job: ReceivedJob, signal: AbortSignal): Promise<Disposition> => {
    if (job.exhausted) return giveUp(job, undefined, new Fault('crashed'), deps, signal)
    return job.stalled > 0 ? cell.run(job, signal, deps) : runJob(job, signal, deps)
  }
  return kinds.map(kind =>
    deps.queues.work(kind, handle, {
      concurrency,
      onError: error =>
        deps.log.warn({ kind, error: describeError(error) }, 'the queue worker had trouble and goes on'),
      onDefect: error => deps.log.error({ kind, error: describeError(error) }, 'a handler threw'),
    }),
  )
}

/** The cell's side: one question at a time, until the asker is gone. */
function answerAsked(deps: Deps): Promise<void> {
  const never = new AbortController().signal
  process.on('message', async ({ job, poison, probe }: Asked) => {
    const told: Told = probe
      ? { ok: await works(job, probe, deps) }
      : { disposition: await runJob(job, never, deps, new Set(poison)) }
    process.send?.(told)
  })
  process.send?.({ ready: true })
  return new Promise(resolve => {
    process.once('disconnect', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}

async function openWorkerOps(config: Config, deps: Deps, tooFar: () => string[]) {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const measure = measureQueues(deps, KINDS)
  return openOps({
    host: config.httpHost,
    port: config.metricsPort ?? 9464,
    metrics: deps.metrics,
    notReady: async () => [
      ...tooFar(),
      ...(await deps.store.query({ text: 'select 1' }).then(
        () => [],
        () => ['the store does not answer'],
      )),
      ...(await deps.queues.ping().then(
        () => [],
        () => ['the queue server does not answer'],
      )),
    ],
    collect: async () => {
      for (const quantile of [50, 99])
        deps.metrics.eventLoopDelay.set({ quantile: String(quantile / 100) }, delay.percentile(quantile) / 1e9)
      delay.reset()
      for (const [state, n] of Object.entries(deps.store.connections())) deps.metrics.pool.set({ state }, n)
      await measure()
    },
    jwks: async () => ({ keys: (await signingKeys.findPublic(deps.store)).map(key => key.publicJwk) }),
  })
}
