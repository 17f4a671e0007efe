// The entry of a worker process, forked by its supervisor: opens the vault and the queues, then works.
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../src/config.ts'
import { openMetrics } from '../../src/metrics.ts'
import type { Deps } from '../../workers/deps.ts'
import { kindsOf, roleOf, runWorkers } from '../../workers/main.ts'
import { endingOf } from '../exit.ts'
import { openInstallationKey } from '../open/installation-key.ts'
import { openQueues, openSession, openVault } from '../open/open.ts'
import { processTerminal } from '../terminal.ts'
import { openOutside } from './outside.ts'

const STORE_CONNECTIONS = { interactive: 20, bulk: 10 } as const
const OWN_RESULTS = 1

/** Ends the process. `inspect` is for tests that make a record misbehave. */
export async function runWorkerProcess(options: { inspect?: Deps['inspect'] } = {}): Promise<never> {
  const env = process.env
  const role = roleOf(env)
  const name = env['TOKENMILL_CELL'] === '1' ? 'worker-cell' : `worker-${role}`
  const session = openSession(processTerminal(), name)
  let status = 0
  try {
    const vault = await openVault(session, STORE_CONNECTIONS[role])
    const queues = await openQueues(session, vault.database, kindsOf(role, undefined).length + OWN_RESULTS)
    const claimed = await queues.claimInstallation(vault.installationId)
    if (claimed !== vault.installationId) {
      throw new ConfigError(
        'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
      )
    }
    const { config, log, lifetime } = session
    const installationKey = await openInstallationKey(vault.store, vault.kek)
    const metrics = openMetrics(name)
    const outside = await openOutside(session, vault.store, metrics, role)
    await runWorkers(
      { config, log, lifetime, metrics, ...vault, queues, installationKey, outside },
      { env, ...options },
    )
  } catch (error) {
    const ending = endingOf(error)
    if (ending.line) process.stderr.write(`tokenmill: ${ending.line}\n`)
    status = ending.status
  }
  await session.lifetime.close()
  process.exit(status)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runWorkerProcess()
