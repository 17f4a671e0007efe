// The long-running roles: `start` (all of them in the foreground), `gateway`, `three-ds`, `console`, `workers`
// and `scheduler`.
import type { ClientFile } from '../../producers/client/client-file.ts'
import { ConfigError, ownReportsUrl } from '../../src/config.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { type OpsRole, portAmongAll } from '../../src/ops.ts'
import { EXIT, Stop } from '../exit.ts'
import { ensureDevClient } from '../open/dev-client.ts'
import { openSession, openVault, type Session } from '../open/open.ts'
import { baseUrlOf } from '../open/register-client.ts'
import { CONSOLE } from '../process/console.ts'
import { GATEWAY } from '../process/gateway.ts'
import { forkHttp, type HttpRole, tellParent } from '../process/http-process.ts'
import { startScheduler } from '../process/scheduler.ts'
import { THREE_DS } from '../process/three-ds.ts'
import { type Running, startWorkers } from '../process/workers.ts'
import { say, type Terminal } from '../terminal.ts'

/** What `start` forks, in the order in which it speaks of them. */
const HTTP_ROLES: readonly HttpRole[] = [GATEWAY, THREE_DS, CONSOLE]

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
  return runHttp(terminal, GATEWAY)
}

export function runThreeDs(terminal: Terminal): Promise<void> {
  return runHttp(terminal, THREE_DS)
}

export function runConsole(terminal: Terminal): Promise<void> {
  return runHttp(terminal, CONSOLE)
}

function runHttp(terminal: Terminal, { name, serve }: HttpRole): Promise<void> {
  return runRole(terminal, name, async session => {
    tellParent(await serve(session))
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
 * An optional role whose settings are wrong is left out, and said, and the other roles go without its settings: the
 * workers would refuse them, too.
 */
function withoutWrong(opened: Session): { session: Session; roles: HttpRole[] } {
  const env = { ...opened.terminal.env }
  const session = { ...opened, terminal: { ...opened.terminal, env } }
  const roles = HTTP_ROLES.filter(role => {
    const wrong = role.optional && wrongIn(role.optional, env)
    if (wrong === undefined) return true
    tellWithout(session, role, wrong)
    for (const name of role.optional?.settings ?? []) delete env[name]
    return false
  })
  return { session, roles }
}

function wrongIn({ read }: NonNullable<HttpRole['optional']>, env: Session['terminal']['env']): string | undefined {
  try {
    read(env)
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message
  }
}

/** The role's port; undefined, and said, if it is optional and can't start. */
function fork(session: Session, script: string, role: HttpRole): Promise<number | undefined> {
  return forkHttp(withOpsPort(session, role.name), script, role).catch(error => {
    if (!role.optional || !(error instanceof Stop)) throw error
    tellWithout(session, role, error.message)
    return undefined
  })
}

function tellWithout({ terminal, log }: Session, { name, title }: HttpRole, why: string): void {
  log.error({ why }, `${title} does not run; the other roles do`)
  const begin = title.replace(/^t/, 'T')
  say(terminal, `${begin} does not run: ${why}. Mend that, then start again, or run \`tokenmill ${name}\`.`)
}

async function start(opened: Session, script: string): Promise<Running> {
  const { session, roles } = withoutWrong(withOwnReports(opened))
  const { terminal, config } = session
  const vault = await openVault(session)
  const dev = vault.database.embedded ? await ensureDevClient(session) : undefined
  if (dev?.made) say(terminal, `A client for trials: ${dev.path}`)
  const working = await startWorkers(withOpsPort(session, 'workers'), {})
  await startScheduler(withOpsPort(session, 'scheduler'))
  const forked = await Promise.all(roles.map(async role => ({ role, port: await fork(session, script, role) })))
  const serving = forked.flatMap(({ role, port }) => (port === undefined ? [] : [{ role, port }]))
  const labels = [...serving.map(({ role }) => role.label), 'workers']
  const engine = config.redisUrls ? 'Redis' : 'PostgreSQL'
  say(terminal, `tokenmill runs: ${labels.join(', ')} and scheduler, queues on ${engine}. Ctrl-C ends it.`)
  for (const { role, port } of serving) for (const line of await role.greet(session, port, vault)) say(terminal, line)
  if (opened.config.reportsUrl === undefined)
    say(terminal, `Report files are in ${config.reportsUrl}; set REPORTS_URL to that for \`report download\`.`)
  if (!dev) return working
  say(terminal, 'Try, in another terminal in this folder:')
  say(terminal, "  printf 'card_number,expiry\\n4111111111111111,12/30\\n' > try.csv && npx tokenmill migrate try.csv")
  const httpPort = serving.find(({ role }) => role === GATEWAY)?.port ?? config.httpPort
  const line = createLine(dev.file, baseUrlOf({ ...config, httpPort }))
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
