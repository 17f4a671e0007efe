// Runs the console, as a role or as a child of `start`: opens what it needs (no key of the vault) and serves.
// producers/console has the pages.
import { type Console, openConsole } from '../../producers/console/main.ts'
import { openProvider, type Provider } from '../../producers/console/openid/provider.ts'
import type { OpenIdSettings } from '../../producers/console/openid/settings.ts'
import { readConsoleSettings } from '../../producers/console/settings.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOutbound, readPrivateHosts } from '../../src/outbound.ts'
import { Secret } from '../../src/secret.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import { readOwnerOnly } from '../../src/vault/kek/owner-only.ts'
import { openKeyless, openOwnQueues, type Session } from '../open/open.ts'

const STORE_CONNECTIONS = 8
/** The time limit of each statement, in ms: a page is never worth more. */
const STATEMENT_MS_MAX = 2_000
/** It listens to its own results queue. */
const LISTENERS = 1

/** Serves until the session ends. */
export async function serveConsole(opened: Session): Promise<Console> {
  const settings = readConsoleSettings(opened.terminal.env)
  const session = settings.databaseUrl === undefined ? opened : withDatabase(opened, settings.databaseUrl)
  const { config, log, lifetime } = session
  const openid = settings.openid && (await openOpenId(session, settings.openid))
  const keyless = await openKeyless(session, {
    name: 'console',
    connectionsMax: STORE_CONNECTIONS,
    statementMsMax: STATEMENT_MS_MAX,
  })
  const { database, store, installationId, signingKey, tls } = keyless
  const queues = await openOwnQueues(session, keyless, LISTENERS)
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'console' }))
  const registry = openRegistry({ role: 'console' })
  const own = { config, settings, installationId, isEmbedded: database.embedded }
  return openConsole({ ...own, log, registry, lifetime, store, queues, signingKey, tls, openid })
}

const SECRET = 'TOKENMILL_OIDC_CLIENT_SECRET_FILE'
const SECRET_BYTES_MAX = 2_048
/** Sign-ins are few. */
const PROVIDER_CONNECTIONS = 4

/** The provider, which isn't asked yet: the console starts without it. Throws `ConfigError` if a setting is wrong. */
async function openOpenId({ config, lifetime, log }: Session, settings: OpenIdSettings): Promise<Provider> {
  const { issuer, secretFile } = settings
  const { protocol, hostname, port } = new URL(issuer)
  if (protocol === 'http:' && !readPrivateHosts(config.privateHosts)(hostname, port || '80'))
    throw new ConfigError('TOKENMILL_OIDC_ISSUER: must be https, unless TOKENMILL_PRIVATE_HOSTS names its host')
  const read = await readOwnerOnly(secretFile, SECRET_BYTES_MAX, 'client secret').catch(error => {
    throw error instanceof ConfigError ? new ConfigError(`${SECRET}: ${error.message}`) : error
  })
  const text = read.toString('utf8').trimEnd()
  if (!/^[ -~]+$/.test(text)) throw new ConfigError(`${SECRET}: must hold one printable line`)
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: PROVIDER_CONNECTIONS })
  lifetime.onClose('OpenID provider', outbound.close)
  return openProvider(settings, { secret: new Secret(text), outbound, clock: systemClock, log })
}

/** The session with the console's own database user, so that one file of settings can serve several roles. */
function withDatabase(session: Session, databaseUrl: string): Session {
  return { ...session, config: { ...session.config, databaseUrl }, opened: {} }
}
