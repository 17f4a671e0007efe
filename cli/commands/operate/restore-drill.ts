// `tokenmill doctor --restore`: the drill on a restored backup. It exits with 0 if everything that it tried opens, else
// with 1. No queue is asked, no schema upgraded, and no role needs to run.
import type { Check } from '../../../producers/operate/check.ts'
import { drill } from '../../../producers/operate/drill.ts'
import { ConfigError } from '../../../src/config.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as installation from '../../../src/store/installation.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { assertSchema } from '../../../src/store/schema.ts'
import type { Keks } from '../../../src/vault/kek/provider.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { findKeks } from '../../open/kek.ts'
import { storedLives } from '../../open/known-lives.ts'
import { openDatabase, type Session, withSession } from '../../open/open.ts'
import { print, type Terminal } from '../../terminal.ts'
import { checksText } from './look.ts'

/** Long, because a version of a key that no sampled page holds is looked for in the whole table. */
const STATEMENT_MS_MAX = 30 * 60_000

export function showDrill(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { url, embedded } = await openDatabase(session)
    const store = openStore(url, {
      log: session.log,
      connectionsMax: 1,
      statementMsMax: STATEMENT_MS_MAX,
      application: 'tokenmill cli',
    })
    session.lifetime.onClose('store', () => store.close())
    await assertSchema(store)
    const keks = await keksOfHost(session, store, embedded)
    const { installationId } = await installation.get(store)
    const { checks, sampled } =
      'absent' in keks
        ? { checks: [keks.absent], sampled: [] }
        : await drill(store, keks, storedLives({ store, keks, installationId }))
    const failed = checks.filter(({ state }) => state !== 'well')
    print(terminal, options, { opens: failed.length === 0, checks, sampled }, checksText(checks))
    if (failed.length > 0) throw new Stop(`these do not open: ${failed.map(({ name }) => name).join(', ')}`)
  })
}

/** The keys of this host, or the check that says which are needed. */
async function keksOfHost(session: Session, store: Store, embedded: boolean): Promise<Keks | { absent: Check }> {
  const known = await installation.find(store)
  if (!known)
    throw new ConfigError('DATABASE_URL: this database holds no installation; restore the backup into it first')
  try {
    return await findKeks(session.config, embedded, known)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const wrapped = (await dataKeys.findAll(store)).filter(key => key.wrapped !== null)
    const needed = [...new Set(wrapped.map(({ kekId }) => kekId))].join(', ')
    const next = 'a key that is a file comes back with `tokenmill key restore`'
    const says = `this backup needs ${needed}. ${error.message}`
    return { absent: { name: 'key-encryption keys', state: 'critical', says, next } }
  }
}
