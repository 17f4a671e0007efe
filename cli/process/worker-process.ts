// The entry of a worker process, forked by its supervisor: opens the vault and the queues, then works.
import { fileURLToPath } from 'node:url'
import { CATALOGUE } from '../../src/job/composition.ts'
import { endWithParent } from '../../src/lifetime.ts'
import { openRegistry } from '../../src/metrics.ts'
import { scriptBeside } from '../../src/script.ts'
import * as scheduleRuns from '../../src/store/report/schedule-runs.ts'
import { openKekMetrics } from '../../src/vault/kek/metrics.ts'
import { readRelyingParty } from '../../src/vault/passkey/relying-party.ts'
import type { Purpose } from '../../src/vault/ring/key-ring.ts'
import { openHandlers, openLoops } from '../../workers/composition.ts'
import type { Deps } from '../../workers/deps.ts'
import { type Opened, runWorkers } from '../../workers/main.ts'
import { openWorkerMetrics } from '../../workers/metrics/metrics.ts'
import { readWorkerSettings, type WorkerSettings } from '../../workers/process/worker-settings.ts'
import { openNetworks } from '../../workers/provider/networks.ts'
import { openReportMaker } from '../../workers/report/child.ts'
import type { ResealTimes } from '../../workers/reseal/reseal.ts'
import { openWebhooks, type WebhookOptions } from '../../workers/webhook/post.ts'
import { endingOf, endUncaught } from '../ending.ts'
import { findAuditPlace } from '../open/audit-place.ts'
import { poolsOf } from '../open/connections.ts'
import { watchSigning } from '../open/installation-key.ts'
import { watchKeks } from '../open/kek-watch.ts'
import { followKeys } from '../open/key-ring.ts'
import { openOwnQueues, openSession, openVault, type Session } from '../open/open.ts'
import { findSystemKey } from '../open/system-clients.ts'
import { openTracing } from '../open/tracing.ts'
import { processTerminal, say, takeConsole } from '../terminal.ts'
import { openProviders } from './providers.ts'

const SCRIPT = fileURLToPath(import.meta.url)
const REPORT_SCRIPT = scriptBeside(import.meta.url, 'report-process')
/** What a worker seals. */
const SEALED: readonly Purpose[] = ['seal', 'before-image']
/** What a worker also seals where providers are configured. That key can't be replaced: its seals are not to be wasted. */
const SEALED_FOR_PROVIDERS: readonly Purpose[] = [...SEALED, 'network-token']

/** How often a worker reads its keys again and says which it has. Tests shorten it. */
export interface KeyTimes {
  /** The list of key-encryption keys. */
  watchMs?: number
  /** The data keys. */
  followMs?: number
  beatMs?: number
}

/** What tests change in a worker. */
export interface WorkerOptions extends KeyTimes {
  /** Shortens the schedule's days to seconds. */
  webhooks?: WebhookOptions | undefined
  /** For tests that wait for a re-encryption. */
  reseal?: Partial<ResealTimes> | undefined
}

interface WorkerProcess extends Omit<WorkerOptions, keyof KeyTimes> {
  /** The script of this process; cells are forked from it, too. */
  script: string
  /** Set by tests that make a record fail. */
  inspect?: Deps['inspect']
  keys?: KeyTimes
}

/** Runs until its supervisor ends or a signal comes, then exits. */
export async function runWorkerProcess(options: WorkerProcess): Promise<never> {
  endWithParent()
  const terminal = processTerminal()
  takeConsole(terminal)
  process.on('uncaughtException', error => endUncaught(terminal, error))
  let session: Session | undefined
  let status = 0
  try {
    const worker = readWorkerSettings(process.env, CATALOGUE)
    session = openSession(terminal, nameOf(worker))
    const { script, inspect, keys, ...others } = options
    const run = { worker, cell: { script, env: process.env }, beatMs: keys?.beatMs, inspect }
    await runWorkers(await openWorker(session, worker, { ...keys, ...others }), run)
  } catch (error) {
    const ending = endingOf(error)
    if (ending.line) say(terminal, `tokenmill: ${ending.line}`)
    status = ending.status
  }
  await session?.lifetime.close()
  process.exit(status)
}

const nameOf = ({ role, cell }: WorkerSettings) => (cell ? 'worker-cell' : `worker-${role}`)

/** Opens what a worker works with; it is closed with the session. */
export async function openWorker(
  session: Session,
  worker: WorkerSettings,
  options: WorkerOptions = {},
): Promise<Opened> {
  const { config, log, lifetime, terminal } = session
  const { concurrency, kinds } = worker
  const pools = poolsOf(session, worker.cell ? 'cell' : worker.role, {
    concurrency,
    kinds: worker.cell ? 0 : kinds.length,
  })
  const vault = await openVault(session, pools.store)
  const sealed = config.schemeFile === undefined ? SEALED : SEALED_FOR_PROVIDERS
  await followKeys({ ring: vault.ring, log, lifetime }, sealed, options.followMs)
  const queues = await openOwnQueues(session, vault, pools.queues)
  const signing = await watchSigning(session, vault)
  const registry = openRegistry({ role: nameOf(worker), process: worker.name })
  const provedKeks = worker.cell ? () => [] : await watchKeks(vault, openKekMetrics(registry), session, options.watchMs)
  const tracer = await openTracing(session, registry, { role: nameOf(worker), name: worker.name })
  const metrics = openWorkerMetrics(registry, CATALOGUE, worker.kinds)
  const providers = await openProviders(session, vault.store, metrics, worker)
  const ownKey = await findSystemKey(config.dataDir, 'worker')
  const makeReport = openReportMaker(REPORT_SCRIPT, terminal.env)
  const webhooks = openWebhooks(config.privateHosts, options.webhooks)
  lifetime.onClose('webhooks', webhooks.close)
  const console = {
    ...readRelyingParty(terminal.env),
    installationId: vault.installationId,
    isEmbedded: vault.database.embedded,
  }
  const findRun = scheduleRuns.findRunOf
  const makesReports = config.reportsUrl !== undefined
  return {
    config,
    log,
    catalogue: CATALOGUE,
    lifetime,
    registry,
    metrics,
    ...vault,
    provedKeks,
    queues,
    signing,
    networks: openNetworks(providers),
    ownKey,
    tracer,
    handlers: openHandlers({ webhooks, makeReport, makesReports, console, findRun }),
    loops: openLoops({ auditPlace: await findAuditPlace(session), reseal: options.reseal, providers }),
  }
}

if (process.argv[1] === SCRIPT) await runWorkerProcess({ script: SCRIPT })
