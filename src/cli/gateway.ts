// The gateway as a role of its own, and as a child of `start`: opens what it needs, which is no key-encryption key,
// and serves. What it answers is the gateway room's.
import { type ChildProcess, fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { type Gateway, openGateway } from '../../producers/gateway/main.ts'
import type { Tls } from '../../producers/gateway/server.ts'
import { type Config, ConfigError } from '../config.ts'
import { openMetrics } from '../metrics.ts'
import { openOutbound } from '../outbound.ts'
import * as installation from '../store/installation.ts'
import { openStore } from '../store/pool.ts'
import { assertSchema } from '../store/schema.ts'
import { readApiKeyFile } from '../vault/api-key.ts'
import { EXIT, Stop } from './exit.ts'
import { openDatabase, openQueues, type Session } from './open.ts'
import { openReportFiles } from './report-files.ts'
import { apiKeyPath, readSystemKey } from './system-clients.ts'
import { upgrade } from './upgrade.ts'

const STORE_CONNECTIONS = 16
/** Its own results queue, and the common one. */
const LISTENERS = 2
const ISSUER_CONNECTIONS = 2

/** Serves until the session ends. */
export async function serveGateway(session: Session): Promise<Gateway> {
  const { config, log, lifetime } = session
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config, database })
  const tls = await readTls(config.tls)
  const signingKey = await readSystemKey(config.dataDir, 'gateway')
  const apiKeyKey = await readApiKeyFile(apiKeyPath(config.dataDir))
  const store = openStore(database.url, {
    log,
    connectionsMax: STORE_CONNECTIONS,
    role: 'tokenmill_gateway',
    statementMsMax: 30_000,
    application: 'tokenmill gateway',
  })
  lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  const known = await installation.find(store)
  if (!known) throw new ConfigError('DATABASE_URL: its upgrade is incomplete; run `tokenmill schema upgrade`')
  const queues = await openQueues(session, database, LISTENERS)
  if ((await queues.claimInstallation(known.installationId)) !== known.installationId)
    throw new ConfigError(
      'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
    )
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: ISSUER_CONNECTIONS })
  lifetime.onClose('outgoing requests', () => outbound.close())
  const metrics = openMetrics('gateway')
  const reportFiles = openReportFiles(session)
  const opened = { config, log, metrics, lifetime, store, queues, outbound, reportFiles, signingKey, apiKeyKey, tls }
  return openGateway(opened)
}

/** A child of `start` says which port it has, and ends with its parent. */
export function tellParent({ port }: Gateway): void {
  process.send?.({ port })
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
}

async function readTls(files: Config['tls']): Promise<Tls | undefined> {
  if (!files) return undefined
  const read = (setting: string, path: string) =>
    readFile(path).catch((error: NodeJS.ErrnoException) => {
      throw new ConfigError(`${setting}: ${path} can't be read (${error.code})`)
    })
  const cert = await read('TOKENMILL_TLS_CERT', files.certFile)
  const key = await read('TOKENMILL_TLS_KEY', files.keyFile)
  try {
    createSecureContext({ cert, key, minVersion: 'TLSv1.2' })
  } catch {
    // What OpenSSL says may quote a key.
    throw new ConfigError('TOKENMILL_TLS_CERT, TOKENMILL_TLS_KEY: not a certificate chain and its key, in PEM')
  }
  return { cert, key }
}

const SCRIPT = fileURLToPath(new URL('main.ts', import.meta.url))
const RESTART_MS = 1_000
const CLOSE_MS = 30_000

/** In a process of its own, so that nothing of `start` delays it; started anew where it dies. Answers its port. */
export async function forkGateway({ log, lifetime, terminal }: Session): Promise<number> {
  let child: ChildProcess | undefined
  let closing = false
  const begin = () =>
    new Promise<number>((resolve, reject) => {
      // A Ctrl-C in the terminal is ours to pass on, in order.
      const forked = fork(SCRIPT, ['gateway'], { env: terminal.env, detached: true })
      child = forked
      let served = false
      forked.once('message', (told: { port: number }) => {
        served = true
        resolve(told.port)
      })
      forked.once('exit', (code, signal) => {
        if (!served)
          return reject(new Stop('the gateway could not start; its line above says why', code ?? EXIT.failure))
        if (closing) return
        log.error({ code, signal }, 'the gateway ended; starting another')
        setTimeout(() => {
          if (!closing) begin().catch(() => {})
        }, RESTART_MS)
      })
    })
  lifetime.onClose('gateway', async () => {
    closing = true
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child?.once('exit', resolve))
    child.kill('SIGTERM')
    const late = setTimeout(() => child?.kill('SIGKILL'), CLOSE_MS)
    await ended
    clearTimeout(late)
  })
  return begin()
}
