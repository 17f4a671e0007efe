// The long-running roles: `start` (all of them in the foreground), `gateway`, `three-ds`, `workers` and `scheduler`.
import type { ClientFile } from '../../producers/client-file.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError, ownReportsUrl } from '../../src/config.ts'
import { KINDS, type Kind } from '../../src/job/catalogue.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { openMetrics } from '../../src/metrics.ts'
import { openOps } from '../../src/ops.ts'
import * as storeServer from '../../src/store/server.ts'
import { startHousekeeping } from '../../workers/process/housekeeping.ts'
import { measureQueues } from '../../workers/process/queue-metrics.ts'
import { supervise, WorkerEnded } from '../../workers/process/supervise.ts'
import { EXIT, Stop } from '../exit.ts'
import { ensureDevClient } from '../open/dev-client.ts'
import { openCommandStore, openQueues, openSession, openVault, type Session } from '../open/open.ts'
import { baseUrlOf } from '../open/register-client.ts'
import { findReportFiles, NO_REPORTS } from '../open/report-files.ts'
import { serveGateway } from '../process/gateway.ts'
import { forkHttp, tellParent } from '../process/http-process.ts'
import { WORKER_SCRIPT } from '../process/local-workers.ts'
import { SCHEDULE_LISTENERS, startSchedule } from '../process/scheduler.ts'
import { serveThreeDs } from '../process/three-ds.ts'
import { say, type Terminal } from '../terminal.ts'

interface WorkersOptions {
  /** As typed: comma-separated. */
  kinds?: string
  concurrency?: number
}

/** `script`: the command's own, which the HTTP roles are forked from. */
export function runStart(terminal: Terminal, script: string): Promise<void> {
  return runRole(terminal, 'start', session => start(session, script))
}

export function runGateway(terminal: Terminal): Promise<void> {
  return runRole(terminal, 'gateway', async session => {
    tellParent(await serveGateway(session))
    return undefined
  })
}

export function runThreeDs(terminal: Terminal): Promise<void> {
  return runRole(terminal, 'three-ds', async session => {
    tellParent(await serveThreeDs(session))
    return undefined
  })
}

export function runWorkers(terminal: Terminal, { kinds, concurrency }: WorkersOptions): Promise<void> {
  const chosen = kinds === undefined ? undefined : readKinds(kinds)
  return runRole(terminal, 'workers', session => work(session, { kinds: chosen, concurrency }))
}

export function runScheduler(terminal: Terminal): Promise<void> {
  return runRole(terminal, 'scheduler', async session => {
    await schedule(session)
    return undefined
  })
}

function readKinds(text: string): Kind[] {
  const named = text.split(',')
  const unknown = named.find(kind => !(KINDS as readonly string[]).includes(kind))
  if (unknown !== undefined) {
    const known = `Kinds are ${KINDS.join(', ')}.`
    throw new Stop(`option '--kinds <list>' argument '${text}' is invalid. ${known}`, EXIT.usage)
  }
  return named as Kind[]
}

/** A role that may end by itself. */
interface Running {
  failed: Promise<Stop>
}

/** Opens, runs until a signal or its own end, closes in reverse. */
export async function runRole(
  terminal: Terminal,
  role: string,
  run: (session: Session) => Promise<Running | undefined>,
): Promise<void> {
  const session = openSession(terminal, role)
  try {
    const running = await run(session)
    const end = await Promise.race([untilSignal(), ...(running ? [running.failed] : [])])
    if (end instanceof Stop) throw end
    session.log.info({ signal: end }, 'closing')
  } finally {
    await session.lifetime.close()
  }
}

/** All roles of `start` share one data directory, so a folder in it can hold the report files. */
function withOwnReports(session: Session): Session {
  const { config, terminal } = session
  const reportsUrl = config.reportsUrl ?? ownReportsUrl(config.dataDir)
  const env = { ...terminal.env, REPORTS_URL: reportsUrl }
  return { ...session, config: { ...config, reportsUrl }, terminal: { ...terminal, env } }
}

async function start(opened: Session, script: string): Promise<Running> {
  const session = withOwnReports(opened)
  const { terminal, config } = session
  const { database } = await openVault(session)
  const dev = database.embedded ? await ensureDevClient(session) : undefined
  if (dev?.made) say(terminal, `A client for trials: ${dev.path}`)
  const working = await work(session, {})
  await schedule(session)
  const [httpPort, threeDsPort] = await Promise.all([
    forkHttp(session, script, 'gateway'),
    forkHttp(session, script, 'three-ds'),
  ])
  const address = baseUrlOf({ ...config, httpPort })
  const engine = config.redisUrls ? 'Redis' : 'PostgreSQL'
  say(terminal, `tokenmill runs: gateway, 3-D Secure, workers and scheduler, queues on ${engine}. Ctrl-C ends it.`)
  say(terminal, `It serves ${address} (documentation: ${address.replace(/\/oidc$/, '/docs')}).`)
  if (opened.config.reportsUrl === undefined)
    say(terminal, `Report files are in ${config.reportsUrl}; set REPORTS_URL to that for \`report download\`.`)
  say(terminal, `3-D Secure is at ${baseUrlOf({ ...config, httpPort: threeDsPort })}/3ds-service.`)
  if (!dev) return working
  say(terminal, 'Try, in another terminal in this folder:')
  say(terminal, "  printf 'card_number,expiry\\n4111111111111111,12/30\\n' > try.csv && npx tokenmill migrate try.csv")
  const line = createLine(dev.file, address)
  if (line !== undefined) say(terminal, `  ${line}`)
  return working
}

/** A command line that makes a token with curl; undefined where the client's file lacks a value for it. */
function createLine({ user_id, api_key, token_scope, capture_keys }: ClientFile, address: string): string | undefined {
  const alias = capture_keys.jwe?.alias ?? capture_keys.pgp?.alias
  if (api_key === undefined || token_scope === undefined || alias === undefined) return undefined
  return [
    `echo '{"cardNumber":"5555555555554444","expiryMonth":12,"expiryYear":2030}'`,
    `npx tokenmill encrypt-card --alias ${alias} --json`,
    `sed '1s/{/{"token_scope":"${token_scope}",/'`,
    `curl -sS -u ${user_id}:${api_key} -X PUT -H 'content-type: application/json' --data-binary @- ${address}/api/v2/card`,
  ].join(' | ')
}

async function work(
  session: Session,
  { kinds, concurrency }: { kinds?: Kind[] | undefined; concurrency?: number | undefined },
): Promise<Running> {
  const { log, lifetime, config, terminal } = session
  // Checked here first, so that one line reports an error instead of one line per child.
  await openVault(session)
  if (config.reportsUrl === undefined && kinds?.join() === 'report') throw new ConfigError(NO_REPORTS)
  if (config.reportsUrl === undefined && kinds?.includes('report') !== false)
    log.warn('no reports are made on this host: REPORTS_URL is not set')
  const workers = supervise({
    log,
    kinds,
    concurrency,
    processes: config.processes,
    script: WORKER_SCRIPT,
    env: terminal.env,
  })
  lifetime.onClose('workers', () => workers.close())
  await workers.ready.catch(error => {
    throw error instanceof WorkerEnded
      ? new Stop('a worker process could not start; its line above says why', error.code)
      : error
  })
  const why = 'a worker process ended and could not be started again; its line above says why'
  return { failed: workers.ended.then(code => new Stop(why, code)) }
}

async function schedule(session: Session): Promise<void> {
  const { log, lifetime, config } = session
  const { store, database } = await openCommandStore(session)
  const queues = await openQueues(session, database, SCHEDULE_LISTENERS)
  const deps = { store, queues, log, clock: systemClock, files: findReportFiles(session) }
  if (!deps.files) log.warn('old reports are not removed by this host: REPORTS_URL is not set')
  lifetime.onClose('housekeeping', startHousekeeping(deps, config))
  const metrics = openMetrics('scheduler')
  metrics.collectProcess()
  await startSchedule(session, { ...deps, metrics })
  const ops = await openOps({
    host: config.httpHost,
    port: config.metricsPort ?? 9464,
    metrics,
    notReady: async () => {
      const asked = await Promise.allSettled([storeServer.ping(store), queues.ping()])
      return asked.flatMap((one, index) =>
        one.status === 'rejected'
          ? [index === 0 ? 'the store does not answer' : 'the queue server does not answer']
          : [],
      )
    },
    collect: measureQueues({ ...deps, metrics }, KINDS),
  })
  lifetime.onClose('ops', ops.close)
  log.info({ opsPort: ops.port }, 'scheduling')
}
