// The long-running roles: `start` (all of them in the foreground), `gateway`, `three-ds`, `console`, `workers`
// and `scheduler`.
import type { ClientFile } from '../../producers/client/client-file.ts'
import { readConsoleSettings } from '../../producers/console/settings.ts'
import { ConfigError, ownReportsUrl } from '../../src/config.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { type OpsRole, portAmongAll } from '../../src/ops.ts'
import { readRelyingParty } from '../../src/vault/passkey/relying-party.ts'
import { EXIT, Stop } from '../exit.ts'
import { ensureDevClient } from '../open/dev-client.ts'
import { openSession, openVault, type Session } from '../open/open.ts'
import { baseUrlOf } from '../open/register-client.ts'
import { serveConsole } from '../process/console.ts'
import { serveGateway } from '../process/gateway.ts'
import { forkHttp, tellParent } from '../process/http-process.ts'
import { startScheduler } from '../process/scheduler.ts'
import { makeStartLink } from '../process/start-link.ts'
import { serveThreeDs } from '../process/three-ds.ts'
import { type Running, startWorkers } from '../process/workers.ts'
import { say, type Terminal } from '../terminal.ts'

interface WorkersOptions {
  /** The option's text: kinds separated by commas. */
  kinds?: string
  concurrency?: number
}

/** Runs all roles. `script`: the script of this command, from which the HTTP roles are forked. */
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

export function runConsole(terminal: Terminal): Promise<void> {
  return runRole(terminal, 'console', async session => {
    tellParent(await serveConsole(session))
    return undefined
  })
}

export function runWorkers(terminal: Terminal, { kinds, concurrency }: WorkersOptions): Promise<void> {
  const chosen = kinds === undefined ? undefined : readKinds(kinds)
  return runRole(terminal, 'workers', session => startWorkers(session, { kinds: chosen, concurrency }))
}

export function runScheduler(terminal: Terminal): Promise<void> {
  return runRole(terminal, 'scheduler', async session => {
    await startScheduler(session)
    return undefined
  })
}

function readKinds(text: string): string[] {
  const named = text.split(',')
  const unknown = named.find(kind => !CATALOGUE.find(kind))
  if (unknown !== undefined) {
    const known = `Kinds are ${CATALOGUE.kinds.join(', ')}.`
    throw new Stop(`option '--kinds <list>' argument '${text}' is invalid. ${known}`, EXIT.usage)
  }
  return named
}

/** Opens a role, runs it until a signal or its own end, and closes everything in reverse order. */
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

/** The session of one role of `start`, whose metrics have a separate port. */
function withOpsPort(session: Session, role: OpsRole): Session {
  const { config, terminal } = session
  const metricsPort = portAmongAll(role, config.metricsPort)
  const env = { ...terminal.env, TOKENMILL_METRICS_PORT: String(metricsPort) }
  return { ...session, config: { ...config, metricsPort }, terminal: { ...terminal, env } }
}

/**
 * A console that can't start ends nothing else. Where its settings are wrong, the other roles go without them: the workers
 * would refuse them, too.
 */
function withoutWrongConsole(session: Session): { session: Session; wrong?: string } {
  const { terminal } = session
  try {
    readConsoleSettings(terminal.env)
    readRelyingParty(terminal.env)
    return { session }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { TOKENMILL_CONSOLE_ORIGIN: _, TOKENMILL_CONSOLE_PORT: __, ...env } = terminal.env
    return { session: { ...session, terminal: { ...terminal, env } }, wrong: error.message }
  }
}

/** The console's port; undefined, and said, if it can't start. */
function forkConsole(session: Session, script: string): Promise<number | undefined> {
  return forkHttp(session, script, 'console').catch(error => {
    if (!(error instanceof Stop)) throw error
    tellNoConsole(session, error.message)
    return undefined
  })
}

function tellNoConsole({ terminal, log }: Session, why: string): void {
  log.error({ why }, 'the console does not run; the other roles do')
  say(terminal, `The console does not run: ${why}. Mend that, then start again, or run \`tokenmill console\`.`)
}

async function start(opened: Session, script: string): Promise<Running> {
  const settled = withoutWrongConsole(withOwnReports(opened))
  const { session } = settled
  const { terminal, config } = session
  if (settled.wrong) tellNoConsole(session, settled.wrong)
  const vault = await openVault(session)
  const { database } = vault
  const dev = database.embedded ? await ensureDevClient(session) : undefined
  if (dev?.made) say(terminal, `A client for trials: ${dev.path}`)
  const working = await startWorkers(withOpsPort(session, 'workers'), {})
  await startScheduler(withOpsPort(session, 'scheduler'))
  const [httpPort, threeDsPort, consolePort] = await Promise.all([
    forkHttp(withOpsPort(session, 'gateway'), script, 'gateway'),
    forkHttp(withOpsPort(session, 'three-ds'), script, 'three-ds'),
    settled.wrong ? undefined : forkConsole(withOpsPort(session, 'console'), script),
  ])
  const address = baseUrlOf({ ...config, httpPort })
  const engine = config.redisUrls ? 'Redis' : 'PostgreSQL'
  say(
    terminal,
    `tokenmill runs: gateway, 3-D Secure, ${consolePort === undefined ? '' : 'console, '}workers and scheduler, queues on ${engine}. Ctrl-C ends it.`,
  )
  say(terminal, `It serves ${address} (documentation: ${address.replace(/\/oidc$/, '/docs')}).`)
  if (opened.config.reportsUrl === undefined)
    say(terminal, `Report files are in ${config.reportsUrl}; set REPORTS_URL to that for \`report download\`.`)
  say(terminal, `3-D Secure is at ${baseUrlOf({ ...config, httpPort: threeDsPort })}/3ds-service.`)
  if (consolePort !== undefined) {
    const origin = readConsoleSettings(terminal.env).origin ?? `http://localhost:${consolePort}`
    say(terminal, `The console is at ${origin}.`)
    if (database.embedded)
      say(terminal, `Open ${await makeStartLink(vault, origin)}; the link signs you in once, within an hour.`)
  }
  if (!dev) return working
  say(terminal, 'Try, in another terminal in this folder:')
  say(terminal, "  printf 'card_number,expiry\\n4111111111111111,12/30\\n' > try.csv && npx tokenmill migrate try.csv")
  const line = createLine(dev.file, address)
  if (line !== undefined) say(terminal, `  ${line}`)
  return working
}

/** A command line that makes a token with curl; undefined if the client's file lacks a value for it. */
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
