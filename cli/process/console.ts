// Runs the console, as a role or as a child of `start`: opens what it needs (no key of the vault) and serves.
// producers/console has the pages.
import { type Console, openConsole } from '../../producers/console/main.ts'
import { noteAnswers } from '../../producers/console/server/away.ts'
import { readConsoleSettings } from '../../producers/console/settings.ts'
import { systemClock } from '../../src/clock.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry } from '../../src/metrics.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import { readRelyingParty } from '../../src/vault/passkey/relying-party.ts'
import { openUngrantedCounter } from '../../src/vault/ring/ungranted.ts'
import { poolsOf } from '../open/connections.ts'
import { openKeyless, openOwnQueues, type Session } from '../open/open.ts'
import { followSigningKeys } from '../open/pinned-keys.ts'
import type { HttpRole } from './http-process.ts'
import { openOpenId } from './openid.ts'
import { makeStartLink } from './start-link.ts'

/** The time limit of each statement, in ms: a page is never worth more. */
const STATEMENT_MS_MAX = 2_000

export const CONSOLE: HttpRole = {
  name: 'console',
  label: 'console',
  title: 'the console',
  serve: serveConsole,
  async greet({ terminal }, port, vault) {
    const origin = readConsoleSettings(terminal.env).origin ?? `http://localhost:${port}`
    const lines = [`The console is at ${origin}.`]
    if (!vault.database.embedded) return lines
    return [...lines, `Open ${await makeStartLink(vault, origin)}; the link signs you in once, within an hour.`]
  },
  optional: {
    read(env) {
      readConsoleSettings(env)
      readRelyingParty(env)
    },
    settings: ['TOKENMILL_CONSOLE_ORIGIN', 'TOKENMILL_CONSOLE_PORT'],
  },
}

/** Serves until the session ends. */
export async function serveConsole(opened: Session): Promise<Console> {
  const settings = readConsoleSettings(opened.terminal.env)
  const session = settings.databaseUrl === undefined ? opened : withDatabase(opened, settings.databaseUrl)
  const { config, log, lifetime } = session
  const openid = settings.openid && (await openOpenId(session, settings.openid))
  const keyless = await openKeyless(session, {
    name: 'console',
    statementMsMax: STATEMENT_MS_MAX,
  })
  const { database, installationId, signingKey, tls } = keyless
  const { store, answeredAt } = noteAnswers(keyless.store, systemClock)
  const queues = await openOwnQueues(session, keyless, poolsOf(session, 'console').queues)
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'console' }))
  const registry = openRegistry({ role: 'console' })
  const own = { config, settings, installationId, isEmbedded: database.embedded, catalogue: CATALOGUE }
  return openConsole({
    ...own,
    log,
    registry,
    lifetime,
    store,
    answeredAt,
    queues,
    signingKey,
    trusted: await followSigningKeys(session, { store, ungranted: openUngrantedCounter(registry) }),
    tls,
    openid,
  })
}

/** The session with the console's own database user, so that one file of settings can serve several roles. */
function withDatabase(session: Session, databaseUrl: string): Session {
  return { ...session, config: { ...session.config, databaseUrl }, opened: {} }
}
