// `tokenmill key rotate signing`: announces a new key for the signatures of results, or lets the announced one sign at
// once. Workers begin to sign with an announced key by themselves when its time has come.
import { setTimeout as sleep } from 'node:timers/promises'
import { announceKey, beginKey, cancelKey, STATEMENTS_MAX } from '../../../src/acts/key/signing-key.ts'
import { STATEMENT_MS } from '../../../src/acts/signing-turn.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as signingKeyReaders from '../../../src/store/access/signing-key-readers.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import * as replyQueues from '../../../src/store/job/reply-queues.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import { sealStatement } from '../../../src/vault/key-statement.ts'
import type { JsonOption } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { Stop } from '../../exit.ts'
import { makeInstallationKey, openInstallationKey, signerName } from '../../open/installation-key.ts'
import { type OpenedVault, openQueues, openVault, type Session, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal } from '../../terminal.ts'

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

interface Readers {
  /** Results queues with one listener, which has said that it knows the key. */
  known: string[]
  /** Results queues with a listener that may not know the key. */
  unsure: string[]
  /** False if this user may not see who listens. */
  isSeen: boolean
}

/**
 * Which readers of results listen now, and whether they know the announced key. A reader that isn't connected can't be
 * seen, nor whether one of several readers of the same queue knows the key. Gateways, schedulers and workers are left
 * out: they have the store and read unknown keys there.
 */
async function findReaders(db: Db, queues: Pick<Queues, 'workersOfAll'>, kid: string): Promise<Readers> {
  const outside = (await clients.list(db)).filter(({ system }) => !system).map(({ clientId }) => clientId)
  const named = (await replyQueues.list(db)).filter(({ clientId }) => outside.includes(clientId))
  const names = [
    ...outside.map(clientId => resultsQueue(clientId)),
    ...named.map(({ clientId, replyTo }) => resultsQueue(clientId, replyTo)),
  ]
  const listening = names.length > 0 ? await queues.workersOfAll(names) : new Map<string, number>()
  const said = await signingKeyReaders.list(db, kid)
  const acknowledged = new Set(said.map(({ clientId, replyTo }) => resultsQueue(clientId, replyTo)))
  const live = names.filter(name => (listening?.get(name) ?? 0) > 0)
  const isKnown = (name: string) => acknowledged.has(name) && listening?.get(name) === 1
  return {
    known: live.filter(isKnown),
    unsure: live.filter(name => !isKnown(name)),
    isSeen: listening !== undefined,
  }
}

/** The answer for a person, with what can't be known. */
function inWords({ known, unsure, isSeen }: Readers): string[] {
  const away =
    'Readers that are not connected cannot be asked. One with the client library learns the key from the next result.'
  if (!isSeen) return ['This user of the queue server may not see which readers are connected.', away]
  return [
    `${known.length} of ${known.length + unsure.length} connected readers of results know the key.`,
    ...unsure.map(name => `Perhaps not: ${name}`),
    away,
  ]
}
