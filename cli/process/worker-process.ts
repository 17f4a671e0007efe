// The entry of a worker process, forked by its supervisor: opens the vault and the queues, then works.
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../src/config.ts'
import { endWithParent } from '../../src/lifetime.ts'
import { openRegistry } from '../../src/metrics.ts'
import type { Deps } from '../../workers/deps.ts'
import { type Opened, runWorkers } from '../../workers/main.ts'
import { openWorkerMetrics } from '../../workers/metrics.ts'
import { kindsOf, readWorkerSettings, type WorkerSettings } from '../../workers/process/worker-settings.ts'
import { openReportMaker } from '../../workers/report/child.ts'
import type { WebhookOptions } from '../../workers/webhook/post.ts'
import { endingOf } from '../ending.ts'
import { openInstallationKey } from '../open/installation-key.ts'
import { openQueues, openSession, openVault, type Session } from '../open/open.ts'
import { openTracing } from '../open/tracing.ts'
import { processTerminal } from '../terminal.ts'
import { openProviders } from './providers.ts'

const SCRIPT = fileURLToPath(import.meta.url)
const REPORT_SCRIPT = fileURLToPath(new URL('report-process.ts', import.meta.url))
const STORE_CONNECTIONS = { interactive: 20, bulk: 10 } as const
const OWN_RESULTS = 1

interface WorkerProcess {
  /** The script of this process; cells are forked from it, too. */
  script: string
  /** Set by tests that make a record fail. */
  inspect?: Deps['inspect']
  /** Set by tests that shorten the schedule's days to seconds. */
  webhooks?: WebhookOptions
}

/** Runs until its supervisor ends or a signal comes, then exits. */
export async function runWorkerProcess(options: WorkerProcess): Promise<never> {
  endWithParent()
  let session: Session | undefined
  let status = 0
  try {
    const worker = readWorkerSettings(process.env)
    session = openSession(processTerminal(), nameOf(worker))
    const { script, ...others } = options
    await runWorkers(await openWorker(session, worker), { worker, cell: { script, env: process.env }, ...others })
  } catch (error) {
    const ending = endingOf(error)
    if (ending.line) process.stderr.write(`tokenmill: ${ending.line}\n`)
    status = ending.status
  }
  await session?.lifetime.close()
  process.exit(status)
}

const nameOf = ({ role, cell }: WorkerSettings) => (cell ? 'worker-cell' : `worker-${role}`)

/** Opens what a worker works with; it is closed with the session. */
export async function openWorker(session: Session, worker: WorkerSettings): Promise<Opened> {
  const { config, log, lifetime, terminal } = session
  const vault = await openVault(session, STORE_CONNECTIONS[worker.role])
  const queues = await openQueues(session, vault.database, kindsOf(worker.role).length + OWN_RESULTS)
  const claimed = await queues.claimInstallation(vault.installationId)
  if (claimed !== vault.installationId) {
    throw new ConfigError(
      'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
    )
  }
  const installationKey = await openInstallationKey(vault.store, vault.kek)
  const registry = openRegistry({ role: nameOf(worker), process: worker.name })
  const tracer = await openTracing(session, registry, { role: nameOf(worker), name: worker.name })
  const metrics = openWorkerMetrics(registry, worker.kinds)
  const providers = await openProviders(session, vault.store, metrics, worker)
  const makeReport = openReportMaker(REPORT_SCRIPT, terminal.env)
  return { config, log, lifetime, registry, metrics, ...vault, queues, installationKey, providers, makeReport, tracer }
}

if (process.argv[1] === SCRIPT) await runWorkerProcess({ script: SCRIPT })
