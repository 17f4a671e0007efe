// Runs the console, as a role or as a child of `start`: opens what it needs (no key of the vault) and serves.
// producers/console has the pages.
import { type Console, openConsole } from '../../producers/console/main.ts'
import { readConsoleSettings } from '../../producers/console/settings.ts'
import { ConfigError } from '../../src/config.ts'
import { openRegistry } from '../../src/metrics.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import * as logins from '../../src/store/access/logins.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore } from '../../src/store/pool.ts'
import { assertSchema } from '../../src/store/schema.ts'
import { openDatabase, openQueues, type Session, tellOf } from '../open/open.ts'
import { readSystemKey } from '../open/system-clients.ts'
import { readTls } from '../open/tls.ts'
import { upgrade } from '../open/upgrade.ts'

const STORE_CONNECTIONS = 8
/** The time limit of each statement, in ms: a page is never worth more. */
const STATEMENT_MS_MAX = 2_000
/** It listens to its own results queue. */
const LISTENERS = 1
const SEES_CARDS =
  'the database user of this console can read sealed cards; `tokenmill schema login console` makes one that can not'

/** Serves until the session ends. */
export async function serveConsole(opened: Session): Promise<Console> {
  const settings = readConsoleSettings(opened.terminal.env)
  const session = settings.databaseUrl === undefined ? opened : withDatabase(opened, settings.databaseUrl)
  const { config, log, lifetime } = session
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config, database, tell: tellOf(session) })
  const tls = await readTls(config.tls)
  const signingKey = await readSystemKey(config.dataDir, 'console')
  const store = openStore(database.url, {
    log,
    connectionsMax: STORE_CONNECTIONS,
    role: 'tokenmill_console',
    statementMsMax: STATEMENT_MS_MAX,
    application: 'tokenmill console',
  })
  lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  if (!database.embedded && (await logins.seesCards(store))) log.warn(SEES_CARDS)
  const known = await installation.find(store)
  if (!known)
    throw new ConfigError('DATABASE_URL: the upgrade of the database is incomplete; run `tokenmill schema upgrade`')
  const queues = await openQueues(session, database, LISTENERS)
  if ((await queues.claimInstallation(known.installationId)) !== known.installationId)
    throw new ConfigError(
      'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
    )
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'console' }))
  const registry = openRegistry({ role: 'console' })
  const { installationId } = known
  const own = { config, settings, installationId, isEmbedded: database.embedded }
  return openConsole({ ...own, log, registry, lifetime, store, queues, signingKey, tls })
}

/** The session with the console's own database user, so that one file of settings can serve several roles. */
function withDatabase(session: Session, databaseUrl: string): Session {
  return { ...session, config: { ...session.config, databaseUrl }, opened: {} }
}
