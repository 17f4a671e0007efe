// `tokenmill key rotate signing`: announces a new key for the signatures of results, or lets the announced one sign at
// once. Workers begin to sign with an announced key by themselves when its time has come.
import { setTimeout as sleep } from 'node:timers/promises'
import { announceKey, beginKey, cancelKey, STATEMENTS_MAX } from '../../../src/acts/key/signing-key.ts'
import { STATEMENT_MS } from '../../../src/acts/signing-turn.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import { sealStatement } from '../../../src/vault/key-statement.ts'
import type { JsonOption } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { Stop } from '../../exit.ts'
import { makeInstallationKey, openInstallationKey, signerName } from '../../open/installation-key.ts'
import { type OpenedVault, openQueues, openVault, type Session, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal } from '../../terminal.ts'
import { findReaders, inWords, type Readers } from './signing-readers.ts'

const OTHERS =
  'Readers of results without the client library need the key in their client files before (installation_keys); --json prints it.'

const LOOK_MS = 250

type Options = JsonOption &
  OperatorOptions & { now?: boolean | undefined; yes?: boolean | undefined; cancel?: boolean | undefined }

/**
 * How long a key is announced before it signs, in ms. A reader that is away for longer learns of the key from
 * `new_keys` of the results.
 */
const ANNOUNCED_MS = 7 * 86_400_000

export function rotateSigning(terminal: Terminal, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { announced } = await signingKeys.findState(vault.store, 0)
    if (options.cancel) return cancel(terminal, vault, announced?.kid, options)
    const next = announced ?? (await announce(session, vault, options))
    if (options.now) return begin(session, vault, next, options)
    const line = announced
      ? `${next.kid} is announced already and signs from ${moment(next.activeAt)} on.`
      : `${next.kid} is announced; workers sign with it from ${moment(next.activeAt)} on.`
    const { kid, publicJwk: jwk } = next
    say(terminal, OTHERS)
    print(terminal, options, { kid, state: 'ANNOUNCED', from: moment(next.activeAt), jwk }, line)
  })
}

const CANCELLED =
  'Readers that learned this key in the meantime go on trusting it. Its private half is deleted; if it may have been copied before, remove the key from their client files (installation_keys) and remove client.new-keys.json.'

async function cancel(
  terminal: Terminal,
  { store, ring }: OpenedVault,
  kid: string | undefined,
  options: Options,
): Promise<void> {
  if (kid === undefined) throw new Stop('Nothing was changed: no key is announced.')
  const by = await byOf({ action: 'signing-key.cancel', subject: kid }, options, store, ring)
  const verdict = await cancelKey(store, kid, by)
  if ('refused' in verdict) throw new Stop(`Nothing was changed: ${kid} has just begun to sign.`)
  say(terminal, CANCELLED)
  print(terminal, options, { kid, state: 'CANCELLED' }, `${kid} is not announced any more, and will never sign.`)
}

async function announce(session: Session, { store, halves, ring }: OpenedVault, options: Options) {
  const signer = await openInstallationKey(store, halves)
  const key = await makeInstallationKey(halves)
  const now = Date.now()
  const activeAt = now + ANNOUNCED_MS
  const { audience } = session.config
  const statement = sealStatement({ audience, publicJwk: key.publicJwk, from: activeAt, now }, signer)
  const by = await byOf({ action: 'signing-key.announce', subject: key.kid }, options, store, ring)
  const verdict = await announceKey({ store, ring }, { ...key, statement, activeAt }, by)
  if (!('refused' in verdict)) return verdict.done
  if (verdict.refused === 'many') throw new Stop(await tooMany(store))
  throw new Stop('Somebody has just announced a key; run the same command again.')
}

async function tooMany(store: Store): Promise<string> {
  const { oldestAt = Date.now() } = await signingKeys.findState(store, STATEMENT_MS)
  const days = STATEMENT_MS / 86_400_000
  return `Nothing was changed: ${STATEMENTS_MAX} keys were announced within ${days} days, and every result carries their statements. Announce the next after ${moment(oldestAt + STATEMENT_MS)}, when the oldest of them ends.`
}

async function begin(
  session: Session,
  { store, database, ring }: OpenedVault,
  { kid }: { kid: string },
  options: Options,
): Promise<void> {
  const { terminal } = session
  await awaitWorkers(terminal, store, kid)
  const queues = await openQueues(session, database)
  const readers = await findReaders(store, queues, kid)
  for (const line of inWords(readers)) say(terminal, line)
  const isKnown = readers.isSeen && readers.unsure.length === 0
  if (!isKnown && !options.yes)
    await confirm(terminal, `Sign with ${kid} now? A reader that does not know it may lose results.`)
  const by = await byOf({ action: 'signing-key.begin', subject: kid }, options, store, ring)
  const verdict = await beginKey(store, kid, by)
  if ('refused' in verdict) throw new Stop(`${kid} has just begun to sign.`)
  print(terminal, options, shown(kid, readers), `Workers sign with ${kid} within 2 seconds.`)
}

function shown(kid: string, { known, unsure }: Readers) {
  return { kid, state: 'ACTIVE', readers: { know_it: known, unsure } }
}

/** The live worker processes that can't sign with the key, or don't say so. */
async function listLacking(store: Store, kid: string): Promise<string[]> {
  const lacking = await processes.listLacking(store, signerName(kid), BEAT.deadMs)
  const workers = lacking.filter(({ role }) => role !== 'three-ds')
  return [...new Set(workers.map(({ host, role, version }) => `${role} on ${host} (${version})`))]
}

/** A process opens an announced key within 2 s, says so within 5 s more, and counts as dead after 30 s. */
const WORKERS_MS = BEAT.deadMs + BEAT.everyMs

async function awaitWorkers(terminal: Terminal, store: Store, kid: string): Promise<void> {
  const deadline = Date.now() + WORKERS_MS
  for (let isTold = false; ; isTold = true) {
    const lacking = await listLacking(store, kid)
    if (lacking.length === 0) return
    if (Date.now() > deadline)
      throw new Stop(
        `Nothing was changed: these workers do not say that they can sign with ${kid}: ${lacking.join(', ')}. Look at their logs.`,
      )
    if (!isTold) say(terminal, `Waiting until every worker says that it can sign with ${kid} ...`)
    await sleep(LOOK_MS)
  }
}
