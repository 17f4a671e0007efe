// Opens the servers that `status` and `doctor` check, each at its first use, whether or not others answer. No schema is
// upgraded or refused, and a server that hangs doesn't hold up the command.

import type { Check } from '../../../producers/operate/check.ts'
import { Fault } from '../../../src/errors.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import * as installation from '../../../src/store/installation.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { reasonOf } from '../../../src/vault/kek/host.ts'
import { openPrivateHalves } from '../../../src/vault/private-half.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../../src/vault/ring/known-lives.ts'
import { endingOf } from '../../ending.ts'
import { poolsOf } from '../../open/connections.ts'
import { openInstallationKey } from '../../open/installation-key.ts'
import { findKeks, KekAway } from '../../open/kek.ts'
import { openRingNow } from '../../open/key-ring.ts'
import { lastingLives } from '../../open/known-lives.ts'
import { openDatabase, openQueues, openSession, type Session } from '../../open/open.ts'
import { say, type Terminal, table } from '../../terminal.ts'

export interface Looking {
  session: Session
  embedded: boolean
  store(): Promise<Store>
  queues(): Promise<Queues>
  openKeys(): Promise<{ kekId: string; troubles: string[]; ring: KeyRing; lives: KnownLives }>
}

/** What isn't closed within this time is left to the end of the process. */
const CLOSE_MS = 500

export async function withLook(terminal: Terminal, work: (looking: Looking) => Promise<void>): Promise<void> {
  const session = openSession(terminal)
  // The embedded server is started here if it isn't running: the checks don't count that as a fault.
  const database = await openDatabase(session)
  const store = once(async () => {
    const opened = openStore(database.url, {
      log: session.log,
      connectionsMax: poolsOf(session, 'command').store,
      application: 'tokenmill cli',
    })
    session.lifetime.onClose('store', () => opened.close())
    return opened
  })
  const queues = once(() => openQueues(session, database))
  const openKeys = async () => {
    const db = await store()
    const known = await installation.get(db)
    const keks = await findKeks(session.config, database.embedded, known).catch(throwAway)
    const { installationId } = known
    const lives = lastingLives({ store: db, keks, installationId }, session.config.dataDir, session.log)
    const ring = await openRingNow(keks, db, lives)
    await openInstallationKey(db, openPrivateHalves(ring))
    const troubles = keks.failures().map(({ shown, error }) => `${shown}: ${reasonOf(error)}`)
    return { kekId: keks.current.id, troubles, ring, lives }
  }
  const ended = await work({ session, embedded: database.embedded, store, queues, openKeys }).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  await settles(session.lifetime.close(), database.embedded ? undefined : CLOSE_MS)
  // Exits explicitly, although everything that was open is closed: a connection attempt to a slow server would keep the
  // process alive.
  if (!database.embedded) leave(terminal, ended?.error)
  if (ended) throw ended.error
}

/** A command that needs the key ends with this fault; a check reports the absent key instead. */
function throwAway(error: unknown): never {
  throw error instanceof KekAway ? new Fault('kek_away', error) : error
}

/** Exits at once, because a connection that is still being tried would keep the process alive for seconds. */
function leave(terminal: Terminal, error: unknown): void {
  if (terminal.stdout !== process.stdout) return
  const { status, line } = error === undefined ? { status: 0, line: undefined } : endingOf(error)
  if (line !== undefined) say(terminal, `tokenmill: ${line}`)
  process.exit(status)
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    opened ??= open()
    return opened
  }
}

async function settles(work: Promise<unknown>, ms: number | undefined): Promise<boolean> {
  if (ms === undefined) return work.then(() => true)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, ms, false)
  })
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer))
}

export function checksText(checks: readonly Check[]): string[] {
  return table(
    ['CHECK', 'STATE', 'SAYS'],
    checks.map(({ name, state, says, next }) => [name, state, next ? `${says}. Next: ${next}` : says]),
  )
}
