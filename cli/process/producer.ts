// Opens what `migrate`, `submit` and `results` need: the client's file and the queues, and on the embedded engine also
// the engine and local workers. With REDIS_URL, but without TOKENMILL_EMBEDDED, this file opens no store.
import { join } from 'node:path'
import { type Credentials, readCredentials } from '../../producers/client/client-file.ts'
import { KeyNotLiveError } from '../../producers/client/errors.ts'
import type { KeyCheck } from '../../producers/live-key.ts'
import { ConfigError, storeMode } from '../../src/config.ts'
import { PortInUse } from '../../src/ops.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import type { Supervised } from '../../workers/process/supervise.ts'
import { poolsOf } from '../open/connections.ts'
import { ensureDevClient } from '../open/dev-client.ts'
import { openQueues, openVault, type Session } from '../open/open.ts'
import { say } from '../terminal.ts'
import type { startLocalWorkers as StartLocalWorkers } from './local-workers.ts'

export interface Producing {
  queues: Queues
  credentials: Credentials
  /** Asks the store whether the client's key is live; undefined if there is no store here. */
  checkKey?: KeyCheck
}

/** The option of commands that send much and wait for answers. */
export interface GiveUpOption {
  giveUpAfter?: number
}

/** The options that these commands pass to their producers. */
export function waitingOf({ config }: Session, { giveUpAfter }: GiveUpOption) {
  return { resendMs: config.resendMs, giveUpAfterMs: giveUpAfter === undefined ? undefined : giveUpAfter * 1000 }
}

/**
 * Shows the metrics of a command and its workers, only if a port is set. If the port is in use, the command runs
 * without metrics: a long-running role needs the port more.
 */
async function serveMetrics({ config, lifetime, terminal }: Session): Promise<Shown> {
  const shown: Shown = { workers: undefined }
  if (!config.metricsPort) return shown
  const [{ openRegistry }, { openOps }] = await Promise.all([
    import('../../src/metrics.ts'),
    import('../../src/ops.ts'),
  ])
  const registry = openRegistry({ role: 'command' })
  registry.collectProcess()
  const ops = await openOps({
    host: config.httpHost,
    port: config.metricsPort,
    reasons: async () => (await shown.workers?.reasons()) ?? [],
    snapshots: async () => [...((await shown.workers?.snapshots()) ?? []), await registry.snapshot()],
  }).catch(error => {
    if (!(error instanceof PortInUse)) throw error
    say(terminal, `tokenmill: ${error.message}; this command goes on without metrics`)
  })
  if (ops) lifetime.onClose('metrics', ops.close)
  return shown
}

interface Shown {
  workers: Supervised | undefined
}

export async function openProducer(
  session: Session,
  clientFile: string | undefined,
  roles: readonly ('interactive' | 'bulk')[],
): Promise<Producing> {
  const { config } = session
  const shown = await serveMetrics(session)
  const path = clientFile ?? join(config.dataDir, 'dev-client.json')
  if (config.redisUrls && storeMode(config) !== 'embedded') {
    return { credentials: await readCredentials(path), queues: await openQueues(session, undefined) }
  }
  const { database, store } = await openVault(session)
  if (database.embedded && clientFile === undefined) await ensureDevClient(session)
  const credentials = await readCredentials(path)
  // Workers silently drop jobs of unknown clients; without this check the command would wait for days.
  const { signingKey } = credentials
  if ((await clients.find(store, signingKey.clientId)) === undefined)
    throw new ConfigError(
      `${path}: this installation (${database.embedded ? config.dataDir : 'DATABASE_URL'}) does not know this client; give the file of one of its clients with --client`,
    )
  const isLive = () => liveKeys.isLive(store, signingKey)
  if (!(await isLive())) throw new KeyNotLiveError(signingKey)
  const checkKey: KeyCheck = async () => ({ is: (await isLive()) ? 'live' : 'gone' })
  if (database.embedded && roles.length > 0) shown.workers = await startWorkers(session, roles)
  const queues = await openQueues(session, database, poolsOf(session, 'command').queues)
  return { credentials, queues, checkKey }
}

/** Loaded only here, as are the metrics: most commands use neither, and loading takes as long as many cards. */
async function startWorkers(...given: Parameters<typeof StartLocalWorkers>): Promise<Supervised> {
  const { startLocalWorkers } = await import('./local-workers.ts')
  return startLocalWorkers(...given)
}
