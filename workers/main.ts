// One worker process: workers for its kinds, the sweep of the outbox, the watch of the clock. Bulk kinds and
// interactive kinds never share a process. It forks only cells, for jobs whose worker vanished, and processes that make
// reports.

import { randomUUID } from 'node:crypto'
import { systemClock } from '../src/clock.ts'
import type { Config } from '../src/config.ts'
import { Fault } from '../src/errors.ts'
import { type Health, openHealth } from '../src/health.ts'
import type { Signing } from '../src/job/answer/result.ts'
import type { Catalogue } from '../src/job/catalogue.ts'
import type { SigningKey } from '../src/job/envelope/envelope.ts'
import { FEATURES } from '../src/job/envelope/features.ts'
import { type Lifetime, untilSignal } from '../src/lifetime.ts'
import { describeError, type Logger } from '../src/logger.ts'
import { lowerPriority, lowerSession } from '../src/low-priority.ts'
import type { MetricsRegistry } from '../src/metrics.ts'
import type { Disposition, Queues, ReceivedJob, Worker } from '../src/queue/engine.ts'
import { every } from '../src/recurring.ts'
import { startBeat } from '../src/store/access/beat.ts'
import * as processes from '../src/store/access/processes.ts'
import { openCaptureUse } from '../src/store/capture/use.ts'
import type { Store } from '../src/store/pool.ts'
import * as storeServer from '../src/store/server.ts'
import type { Tracer } from '../src/trace/tracer.ts'
import type { Keks } from '../src/vault/kek/provider.ts'
import type { PrivateHalves } from '../src/vault/private-half.ts'
import type { LiveRing } from '../src/vault/ring/key-ring.ts'
import { type KnownLives, livesReasons } from '../src/vault/ring/known-lives.ts'
import { openTellUngranted } from '../src/vault/ring/ungranted.ts'
import { type AnnouncerOptions, openAnnouncer } from './answer/announce.ts'
import { openProgress } from './batch-progress.ts'
import { CARD_QUESTIONS } from './card/questions.ts'
import { bodyOfRow } from './card/stored-answer.ts'
import type { Deps } from './deps.ts'
import { openDirectory } from './directory.ts'
import { openKeyReaders } from './key-readers.ts'
import type { LineDeps } from './line/deps.ts'
import type { Handlers } from './line/handlers.ts'
import { giveUp, runJob, works } from './line/run-job.ts'
import { openDroppedEnvelopes } from './metrics/dropped-envelopes.ts'
import type { WorkerMetrics } from './metrics/metrics.ts'
import { openTellUnproved } from './metrics/unproved.ts'
import { noNetworks } from './networks.ts'
import { type CellReply, type CellRequest, openCell } from './process/cell.ts'
import { openClockWatch } from './process/clock-skew.ts'
import { tellBegin, tellLiveKeys } from './process/live-keys.ts'
import { answerSupervisor } from './process/process-report.ts'
import type { WorkerSettings } from './process/worker-settings.ts'
import { openLookUps } from './set/look-ups.ts'
import { openSets, SETS_BOUNDS } from './set/write-set.ts'

/** What the process's main file opened and will close. */
export interface Opened {
  config: Config
  log: Logger
  catalogue: Catalogue
  registry: MetricsRegistry
  metrics: WorkerMetrics
  lifetime: Lifetime
  store: Store
  queues: Queues
  keks: Pick<Keks, 'current'>
  halves: PrivateHalves
  /** The lives of the data keys, by which the ring goes. */
  lives: KnownLives
  ring: LiveRing
  /** The ids of the key-encryption keys that this process proved to have. */
  provedKeks: () => readonly string[]
  signing: () => Signing & { names: readonly string[] }
  installationId: string
  /** Absent in a product without networks. */
  networks?: Deps['networks']
  /** The key of the system client `worker`; undefined on a host that has none. */
  ownKey: SigningKey | undefined
  tracer?: Tracer | undefined
  handlers: Handlers
  loops: readonly Loop[]
}

export interface RunOptions {
  worker: WorkerSettings
  /** The script that is forked as a cell, and its environment: it opens what this process opened, and runs `runWorkers`. */
  cell: { script: string; env: NodeJS.ProcessEnv }
  inspect?: Deps['inspect'] | undefined
  /** Between two heartbeats. */
  beatMs?: number | undefined
}

/** What goes on beside the jobs while a worker process lives. */
export interface Loop {
  name: string
  /** Returns a function that stops it; undefined if this process has no part in it. */
  start(running: Running): Stop | undefined | Promise<Stop | undefined>
}

type Stop = () => Promise<unknown>

export interface Running {
  opened: Opened
  options: RunOptions
  deps: LineDeps
  /** Of the queues of this process. */
  workers: readonly Worker[]
}

const SWEEP_MS = 1_000
/** An imported BIN table reaches every worker within this time. */
const REFRESH_MS = 60_000
/** The sweep leaves out rows younger than this, in ms: the process that wrote them is still publishing them. */
const SWEEP_AGE_MS = 3_000
export const CLOSE_MS = 20_000

/** Runs a worker process, or a cell: works until SIGINT or SIGTERM, and replies to the process that forked it. */
export async function runWorkers(opened: Opened, options: RunOptions): Promise<void> {
  const { config, log, registry } = opened
  const { worker } = options
  if (worker.role === 'bulk') lowerPriority(config.lockMs)
  if (worker.cell) return serveAsCell(await openDeps(opened, options))
  const health = await startWorkers(opened, options)
  registry.collectProcess()
  answerSupervisor(health)
  process.send?.({ ready: true })
  if (worker.role === 'bulk') lowerSession(config.lockMs)
  const worked = worker.kinds.filter(kind => goesByClock(kind, opened))
  const ended = untilSignal()
  log.info({ kinds: worked, concurrency: worker.concurrency, process: worker.name }, 'working')
  await ended
}

/** Resolves once workers take jobs; they do until `lifetime` ends. `lifetime` closes what is opened here before `opened`. */
export async function startWorkers(opened: Opened, options: RunOptions): Promise<Health> {
  const { config, registry, lifetime, store, queues } = opened
  const { role, kinds, processId = randomUUID() } = options.worker
  const deps = await openDeps(opened, options)
  lifetime.onClose('live keys', tellLiveKeys(deps, config.audience, opened.signing))
  const work = () => deps.metrics.minuteWork.told()
  // The heartbeat ends before the last jobs do.
  lifetime.onClose('work', () => processes.tellWork(store, processId, work()))
  const clock = await openClockWatch(deps)
  const workers = takeJobs(options, deps, kind => clock.isOff() && goesByClock(kind, opened))
  lifetime.onClose('workers', () => Promise.all(workers.map(worker => worker.close(CLOSE_MS))))
  lifetime.onClose('clock watch', clock.watch(workers.filter(({ queue }) => goesByClock(queue, opened))))
  lifetime.onClose('BIN table', every(REFRESH_MS, deps.directory.refresh, deps))
  lifetime.onClose(
    'sweep',
    every(SWEEP_MS, () => deps.announcer.sweep(SWEEP_AGE_MS), deps),
  )
  for (const { name, start } of opened.loops) {
    const stop = await start({ opened, options, deps, workers })
    if (stop) lifetime.onClose(name, stop)
  }
  const health = openHealth(registry, {
    store: storeServer.watched(store),
    queue: queues,
    others: async () => [...clock.tooFar(), ...livesReasons(opened.lives)],
  })
  await Promise.all(workers.map(worker => worker.ready))
  // Announced only while this process listens, and withdrawn first: a row without a listener could hide an older
  // worker, which listens but announces nothing.
  const workMs = role === 'interactive' ? deps.metrics.recentAttempts.p99 : () => null
  const keys = () => [...deps.ring.names(), ...opened.provedKeks(), ...opened.signing().names]
  const keyEpoch = () => opened.lives.current()?.lives.epoch ?? null
  const beating = { role, kinds, features: FEATURES, keys, keyEpoch, workMs, work, everyMs: options.beatMs, processId }
  lifetime.onClose('beat', await startBeat(deps, beating))
  await tellBegin(deps, config.audience, opened.signing)
  return health
}

async function openDeps(opened: Opened, { inspect }: Pick<RunOptions, 'inspect'>): Promise<LineDeps> {
  const { config, log, metrics, lifetime, store, queues, halves, ring, signing, networks = noNetworks, tracer } = opened
  const { handlers, catalogue } = opened
  const onUngranted = openTellUngranted(log, metrics.ungranted)
  const onUnproved = openTellUnproved(log, metrics)
  const directory = await openDirectory({ store, queues, halves, ring, onUngranted }, systemClock)
  const { findShown } = networks.schemeTokens
  const lookUps = openLookUps(store, findShown)
  const bodyOf: AnnouncerOptions['bodyOf'] = row =>
    bodyOfRow(row, { store, lookUps, directory, handlers, catalogue, ring, onUnproved })
  const announcer = openAnnouncer({
    store,
    queues,
    signing,
    clock: systemClock,
    metrics,
    log,
    tracer,
    bodyOf,
  })
  lifetime.onClose('announcer', announcer.close)
  const captureUse = openCaptureUse({ store, clock: systemClock, log })
  lifetime.onClose('use of capture keys', captureUse.close)
  const progress = openProgress({ store, ring, log, tracer, onUnproved })
  lifetime.onClose('batch progress', progress.close)
  const dropped = openDroppedEnvelopes({ store, metrics, log, clock: systemClock })
  lifetime.onClose('dropped envelopes', dropped.close)
  const { audience, thirdPartyTypes, localSchemes, guessesMax, dryRunRowsMax } = config
  const setDeps = { store, clock: systemClock, ring, metrics, log, tracer, networks }
  const settings = { audience, thirdPartyTypes, localSchemes, guessesMax, dryRunRowsMax }
  return {
    settings,
    catalogue,
    store,
    lookUps,
    sets: openSets(setDeps),
    background: { lookUps: openLookUps(store, findShown), sets: openSets(setDeps, SETS_BOUNDS.background) },
    queues,
    ring,
    directory,
    announcer,
    captureUse,
    progress,
    dropped,
    keyReaders: openKeyReaders({ store, clock: systemClock, log }),
    clock: systemClock,
    metrics,
    log,
    networks,
    tracer,
    onUngranted,
    onUnproved,
    handlers,
    cards: CARD_QUESTIONS,
    ...(inspect ? { inspect } : {}),
  }
}

/** Whether jobs of the kind wait while the clock of this host is off. */
function goesByClock(kind: string, { handlers }: Pick<Opened, 'handlers'>): boolean {
  return handlers[kind]?.goesByClock ?? true
}

function takeJobs(
  { worker: { kinds, concurrency, processId }, cell: { script, env } }: Pick<RunOptions, 'worker' | 'cell'>,
  deps: LineDeps,
  isPaused: (kind: string) => boolean,
): Worker[] {
  const cell = openCell(script, env)
  const handle = async (job: ReceivedJob, signal: AbortSignal): Promise<Disposition> => {
    if (job.exhausted) return giveUp(job, undefined, new Fault('crashed'), deps, signal)
    return job.stalled > 0 ? cell.run(job, signal, deps) : runJob(job, signal, deps)
  }
  return kinds.map(kind =>
    deps.queues.work(kind, handle, {
      concurrency,
      processId,
      paused: isPaused(kind),
      onDamaged: jobs => deps.dropped.note('damaged', { count: jobs }),
      onDefect: error => deps.log.error({ kind, error: describeError(error) }, 'a handler threw'),
    }),
  )
}

/** Replies to requests in a cell, one at a time, until the parent is gone. */
function serveAsCell(deps: LineDeps): Promise<void> {
  process.on('message', async ({ job, poison, probe, forMs }: CellRequest) => {
    const signal = AbortSignal.timeout(forMs)
    const reply: CellReply = probe
      ? { ok: await works(job, probe, deps) }
      : { disposition: await runJob(job, signal, deps, new Set(poison)) }
    process.send?.(reply)
  })
  process.send?.({ ready: true })
  return new Promise(resolve => {
    process.once('SIGTERM', () => resolve())
  })
}
