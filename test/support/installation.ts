// A whole installation for a test: an upgraded database, its keys, a client and a scope, queues on either engine, and
// workers in this process or in processes. Its files are in a temporary folder.

import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import { followKeys } from '../../cli/open/key-ring.ts'
import { makeScope } from '../../cli/open/make-scope.ts'
import { type OpenedVault, openQueues, openSession, openVault, type Session, withQueues } from '../../cli/open/open.ts'
import { registerClient } from '../../cli/open/register-client.ts'
import { makeMissing, upgrade } from '../../cli/open/upgrade.ts'
import { type Credentials, readCredentials } from '../../producers/client/client-file.ts'
import { type Client, connect } from '../../producers/client.ts'
import { ownReportsUrl } from '../../src/config.ts'
import type { Role } from '../../src/job/catalogue.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import type { NameRule } from '../../src/job/envelope/names.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { queueConnections } from '../../src/store/connection/plan.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import { tellBegin } from '../../workers/process/live-keys.ts'
import { type Supervised, supervise } from '../../workers/process/supervise.ts'
import { WORKER_ROLES, type WorkerRole } from '../../workers/process/worker-settings.ts'
import type { Engine } from './engines.ts'
import { isCloned } from './postgres.ts'
import { asWorker, type OpenedWorkers, openWorkers } from './workers.ts'

export const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const ROLES: Role[] = [
  'TOKEN_WRITE',
  'TOKEN_READ',
  'TOKEN_LIFECYCLE',
  'SCHEME_TOKEN',
  'LEDGER_WRITE',
  'REPORT_READ',
  'REPORT_REQUEST',
]
/** The purposes under which tests seal values themselves. */
const SEALED = ['seal', 'before-image', 'network-token', 'three-ds', 'webhook', 'manifest'] as const
/** How long a client waits for an answer. The product's own time is for callers; here it only ends what would never end. */
const ANSWER_MS = 300_000
const WORKER_SCRIPT = fileURLToPath(new URL('../../cli/process/worker-process.ts', import.meta.url))

export interface Installation {
  dataDir: string
  env: NodeJS.ProcessEnv
  session: Session
  vault: OpenedVault
  queues: Queues
  clientFile: string
  credentials: Credentials
  scope: string
  /** A further client, for `entity` or the same one. */
  addClient(
    name: string,
    options?: { entity?: string; roles?: Role[]; names?: NameRule },
  ): Promise<{ clientFile: string; credentials: Credentials; scope: string }>
  /** Signs the rights of clients as a worker does, after a test has changed them and has no workers. */
  signRights(): Promise<void>
  /** Starts workers in separate processes. */
  startWorkers(options?: WorkerOptions): Promise<Supervised>
  /** Opens workers in this process (workers.ts). */
  openWorkers(options?: Pick<WorkerOptions, 'roles'>): Promise<OpenedWorkers>
  connect(options?: Partial<Parameters<typeof connect>[0]>): Promise<Client>
  close(): Promise<void>
}

export interface WorkerOptions {
  script?: string
  processes?: number
  roles?: readonly WorkerRole[]
  env?: Record<string, string>
}

/** `kept`: the data directory, of this or of an earlier installation in the same database; it stays. */
export async function openInstallation(
  engine: Engine,
  settings: Record<string, string> = {},
  kept?: string,
): Promise<Installation> {
  const dataDir = kept ?? (await mkdtemp(join(tmpdir(), 'tokenmill-installation-')))
  await mkdir(dataDir, { recursive: true })
  const env: NodeJS.ProcessEnv = {
    ...withoutVitest(process.env),
    DATABASE_URL: engine.databaseUrl,
    REDIS_URL: engine.redisUrls?.join(',') ?? '',
    TOKENMILL_DATA_DIR: dataDir,
    TOKENMILL_KEK_FILE: join(dataDir, 'kek'),
    TOKENMILL_PREFIX: engine.prefix,
    TOKENMILL_LOG_LEVEL: process.env['TEST_LOG'] ?? 'error',
    TOKENMILL_METRICS_PORT: '0',
    TOKENMILL_LOCK_SECONDS: '4',
    REPORTS_URL: ownReportsUrl(dataDir),
    ...settings,
  }
  const ofWorkers = { DATABASE_URL: asWorker(engine.databaseUrl) }
  const terminal = { env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  await install(engine.databaseUrl, dataDir)
  const session = openSession(terminal, 'test')
  const vault = await openVault(session)
  const { log, lifetime } = session
  await followKeys({ ring: vault.ring, log, lifetime }, SEALED)
  const queues = await openQueues(session, vault.database, queueConnections(8))
  const connections: Client[] = []
  /** Gateways believe a client that a worker has signed, and not every test has workers. Senders are told nothing. */
  const signRights = async () => {
    const key = await openInstallationKey(vault.store, vault.halves)
    const deps = { ...vault, queues: { ...queues, setNotice: async () => {} }, log, catalogue: CATALOGUE }
    await tellBegin(deps, session.config.audience, () => ({ key, newKeys: [] }))
  }
  const addClient: Installation['addClient'] = async (name, { entity = ENTITY, roles = ROLES, names } = {}) => {
    const outDir = join(dataDir, 'clients', name)
    const clientFile = join(outDir, 'client.json')
    if (existsSync(clientFile)) {
      const { token_scope: made } = JSON.parse(await readFile(clientFile, 'utf8')) as { token_scope: string }
      return { clientFile, credentials: await readCredentials(clientFile), scope: made }
    }
    const scope = await makeScope(vault, {
      entityId: entity,
      par: true,
      networkTokens: true,
      requestor: 'MERCHANT',
      binDigits: 8,
    })
    await mkdir(outDir, { recursive: true })
    const file = await registerClient(vault, {
      name,
      entities: [entity],
      roles,
      publicJwk: undefined,
      names,
      outDir,
      audience: session.config.audience,
      baseUrl: 'http://127.0.0.1:8080/oidc',
    })
    await writeFile(clientFile, JSON.stringify({ ...file, token_scope: scope.tokenScope }))
    await signRights()
    return { clientFile, credentials: await readCredentials(clientFile), scope: scope.tokenScope }
  }
  const first = await addClient('first')
  return {
    dataDir,
    env,
    session,
    vault,
    queues,
    ...first,
    addClient,
    signRights,
    async startWorkers({ script = WORKER_SCRIPT, processes = 1, roles, env: added } = {}) {
      const workers = supervise({
        log: session.log,
        catalogue: CATALOGUE,
        script,
        withQueues: work => withQueues(session, work),
        execArgv: HEAP_FLAGS,
        processes: { bulk: processes, interactive: processes },
        ...(roles ? { roles } : {}),
        env: { ...env, ...ofWorkers, ...added },
      })
      session.lifetime.onClose('workers', () => workers.close())
      await workers.ready
      return workers
    },
    async openWorkers({ roles = WORKER_ROLES } = {}) {
      const workers = await openWorkers({ ...env, ...ofWorkers }, roles)
      session.lifetime.onClose('workers', workers.close)
      return workers
    },
    async connect(options = {}) {
      const client = await connect({ queues, credentials: first.credentials, ...options })
      connections.push(client)
      return {
        ...client,
        result: (handle, given) => client.result(handle, { timeoutMs: ANSWER_MS, ...given }),
        call: (kind, request, given) => client.call(kind, request, { timeoutMs: ANSWER_MS, ...given }),
      }
    },
    async close() {
      for (const client of connections) await client.close()
      await session.lifetime.close()
      if (kept !== undefined) return
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/**
 * Upgrades the database. A clone of the run's template already has the schema that `upgrade` would make, so only what
 * the template lacks is made, which is faster.
 */
async function install(url: string, dataDir: string): Promise<void> {
  const kekFile = join(dataDir, 'kek')
  const options = {
    config: { dataDir, kek: undefined, kekFile },
    database: { url, embedded: false },
    makeKek: existsSync(kekFile) ? undefined : kekFile,
  }
  if (!isCloned(url)) return void (await upgrade({ ...options, tell: () => {} }))
  // Rights on the database itself aren't cloned.
  await withQueueOwner(url, async () => {})
  await makeMissing(options, [], { at: () => {} })
}

function withoutVitest(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(VITEST|NODE_OPTIONS$|NODE_ENV$)/.test(name)))
}
