// Brings an installation up to date and makes what is missing: the schema, BullMQ's schema, the key-encryption key if
// that is permitted, data keys, the installation's id and signing key, the system clients. A second run changes
// nothing; two runs at once wait for each other. It makes no client of users, no scope and no card.
import { randomUUID } from 'node:crypto'
import { grantAll, grantSigningKey, grantSigningKeys } from '../../src/acts/grants.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { assert } from '../../src/errors.ts'
import { openLog } from '../../src/log.ts'
import { upgradePostgres } from '../../src/queue/postgres.ts'
import * as auditSearch from '../../src/store/access/audit-search.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as kekRows from '../../src/store/access/keks.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import * as installation from '../../src/store/installation.ts'
import * as receiptKeys from '../../src/store/job/receipt-keys.ts'
import { type Db, LostRace, openStore, type Store } from '../../src/store/pool.ts'
import * as schemeCards from '../../src/store/provider/scheme-cards.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import type { UpgradeStep } from '../../src/store/schema-upgrade.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import { estimateTokens } from '../../src/store/token/card-renewal.ts'
import * as cards from '../../src/store/token/cards.ts'
import { withUpgradeLock } from '../../src/store/upgrade-lock.ts'
import { makeProbe } from '../../src/vault/kek/probe.ts'
import type { Keks, KeyProvider } from '../../src/vault/kek/provider.ts'
import {
  makeDataKeys,
  openKeyRing,
  openLiveRing,
  PURPOSES,
  type Purpose,
  unwrapKey,
  type WrappedKey,
  wrapDataKey,
} from '../../src/vault/key-ring.ts'
import { openPrivateHalves } from '../../src/vault/private-half.ts'
import { firstIntakeKey } from '../../src/vault/ring/shared-keys.ts'
import { type Lasting, openLasting } from '../lasting.ts'
import { actor } from '../terminal.ts'
import { ensureGatewayFiles } from './gateway/gateway-keys.ts'
import { makeInstallationKey } from './installation-key.ts'
import { assertKekNamed, findOrMakeKek } from './kek.ts'
import { ringSource } from './key-ring.ts'
import { ensureSystemClients } from './system-clients.ts'

interface UpgradeOptions {
  config: Pick<Config, 'dataDir' | 'kek' | 'kekFile'>
  database: { url: string; embedded: boolean }
  /** `--make-kek`: the path where a key-encryption key is made, if the database has none yet. */
  makeKek?: string | undefined
  /** Told what the upgrade is doing, if that takes long. */
  tell: (line: string) => void
}

interface Upgraded {
  /** The names of the migrations that ran. */
  migrations: string[]
  installationId: string
  kekId: string
  /** Undefined if TOKENMILL_KEK names the keys. */
  kekFile: string | undefined
  /** The files that were written. */
  files: string[]
}

/** Upgrades. Throws `ConfigError` if the key-encryption key is missing, or isn't the one that the database names. */
export async function upgrade(options: UpgradeOptions): Promise<Upgraded> {
  const { config, database, makeKek, tell } = options
  assertKekNamed(config, database.embedded, makeKek)
  const lasting = openLasting(tell)
  try {
    return await upgradeAlone(options, lasting)
  } finally {
    lasting.end()
  }
}

function upgradeAlone(options: UpgradeOptions, lasting: Lasting): Promise<Upgraded> {
  const { database } = options
  lasting.at('Waiting for another upgrade of this database to end.')
  return withUpgradeLock(database.url, async () => {
    lasting.at('Looking which migrations are missing.')
    // Imported here, so that commands that only read the store don't load it.
    const { upgradeSchema } = await import('../../src/store/schema-upgrade.ts')
    const migrations = await upgradeSchema(database.url, step => lasting.at(sentenceOf(step)))
    lasting.at('Upgrading the queues.')
    await withQueueOwner(database.url, client => upgradePostgres(client))
    return makeMissing(options, migrations, lasting)
  })
}

/** Fills the tables that `migrations` made, and makes the keys, rows and files that are missing after them. */
export async function makeMissing(
  { config, database, makeKek }: Omit<UpgradeOptions, 'tell'>,
  migrations: string[],
  lasting: Pick<Lasting, 'at'>,
): Promise<Upgraded> {
  const log = openLog('error', { role: 'upgrade' })
  const store = openStore(database.url, { log, connectionsMax: 2, application: 'tokenmill upgrade' })
  try {
    const known = await installation.find(store)
    // Before the tables are filled: a run that goes on with that has made no migration.
    if (known && migrations.length > 0) await tell(store, known.installationId, migrations)
    await fillCards(store, lasting)
    await fillReceiptKeys(store, lasting)
    lasting.at('Making the keys and files that are missing.')
    const { keks, path, made } = await findOrMakeKek(config, database.embedded, known, makeKek)
    const installationId = known?.installationId ?? (await begin(store, keks.current))
    if (!known && migrations.length > 0) await tell(store, installationId, migrations)
    await ensureKekRow(store, keks.current)
    await addMissingKeys(store, keks)
    if (migrations.includes(SIGNING_KEY_CODES)) await codeSigningKeys(store, keks)
    await addMissingSigningKey(store, keks)
    const systemFiles = [
      ...(await ensureSystemClients(store, keks, config.dataDir)),
      ...(await ensureGatewayFiles(store, keks, config.dataDir)),
    ]
    const files = [...(made && path !== undefined ? [path] : []), ...systemFiles]
    return { migrations, installationId, kekId: keks.current.id, kekFile: path, files }
  } finally {
    await store.close()
  }
}

function sentenceOf({ kind, name }: UpgradeStep): string {
  return kind === 'migration'
    ? `Running migration ${name}. A run that is stopped here changes nothing.`
    : `Building index ${name}. It may be stopped and run again.`
}

/** Inserts the installation's row, which tells stores and queues of different installations apart. */
async function begin(store: Store, kek: KeyProvider): Promise<string> {
  const installationId = randomUUID()
  await store.transaction(async db => {
    await installation.insert(db, { installationId, kekId: kek.id })
    const detail = { kek_id: kek.id }
    await audits.insert(db, { actor: actor(), action: 'installation.begin', subject: installationId, detail })
  })
  return installationId
}

/** Makes the row of the current key-encryption key, which databases of earlier releases lack. */
async function ensureKekRow(store: Store, kek: KeyProvider): Promise<void> {
  if ((await kekRows.list(store)).some(({ kekId }) => kekId === kek.id)) return
  await kekRows.insert(store, { kekId: kek.id, state: 'ACTIVE', probe: await makeProbe(kek) })
}

/** Fills the directory of cards from the tokens of a release that had none. Workers of that release may run meanwhile. */
async function fillCards(store: Store, lasting: Pick<Lasting, 'at'>): Promise<void> {
  const from = await cardPhases.findFilling(store)
  if (from === undefined) return
  // A run that continues an earlier one doesn't know how much that one has filled.
  const all = from === LOWEST ? await estimateTokens(store) : undefined
  await fillFrom(
    store,
    from,
    { lasting, what: `${all ? ` of about ${count(all)}` : ''} tokens` },
    async (db, after) => {
      const filled = await cards.fill(db, after)
      if (filled) await cardPhases.noteFilled(db, filled.last)
      return filled
    },
  )
  await fillFrom(store, LOWEST, { lasting, what: ' provisionings' }, schemeCards.fill)
  await cardPhases.noteFilled(store, undefined)
}
/** An id that comes before every other. */
const LOWEST = '00000000-0000-0000-0000-000000000000'

/** Fills page after page, each in a transaction. `fill`: returns undefined if the page was empty. */
async function fillFrom(
  store: Store,
  from: string,
  { lasting, what }: { lasting: Pick<Lasting, 'at'>; what: string },
  fill: (db: Db, after: string) => Promise<cards.Filled | undefined>,
): Promise<void> {
  const startedAt = performance.now()
  let rows = 0
  for (let next: string | undefined = from; next !== undefined; ) {
    const after: string = next
    const perSecond = Math.round((rows * 1_000) / Math.max(1, performance.now() - startedAt))
    lasting.at(
      `Filling the directory of cards: ${count(rows)}${what}, ${count(perSecond)}/s. It may be stopped and run again.`,
    )
    const filled = await store
      .transaction(db => fill(db, after))
      .catch(error => {
        if (error instanceof LostRace) return { last: after, rows: 0 }
        throw error
      })
    rows += filled?.rows ?? 0
    next = filled?.last
  }
}

const count = (rows: number) => rows.toLocaleString('en')

/** Writes the keys of receipts that release 0.3 wrote without keys. Workers of both releases may run meanwhile. */
async function fillReceiptKeys(store: Store, lasting: Pick<Lasting, 'at'>): Promise<void> {
  await receiptKeys.fill(store, {
    fills: rows =>
      lasting.at(`Filling the keys of receipts: ${count(rows)} rows are read. It may be stopped and run again.`),
  })
  // The transaction waits for its locks only briefly, because jobs would wait behind it.
  if (!(await cardPhases.find(store)).besideOlder)
    await cardPhases.storeAlone(store).transaction(receiptKeys.leaveOlder)
}

async function tell(store: Store, installationId: string, migrations: string[]): Promise<void> {
  const act = { actor: actor(), action: 'schema.upgrade', subject: installationId }
  await audits.insert(store, { ...act, detail: { migrations } })
}

const ADD = 'data-key.add'

/**
 * Makes the keys for purposes that are new in this release; existing keys stay. Rows that grant rights get their codes
 * with the key that makes them, and never later: whoever owns the database could remove a code.
 */
async function addMissingKeys(store: Store, keks: Keks): Promise<void> {
  const stored = await dataKeys.findAll(store)
  const known = new Set(stored.map(key => key.purpose))
  const absent = PURPOSES.filter(purpose => !known.has(purpose))
  await assertNeverAdded(store, absent)
  assertFirstCoding(stored)
  const missing = await makeDataKeys(
    keks.current,
    absent.filter(purpose => purpose !== 'intake'),
  )
  if (absent.includes('intake')) missing.push(await makeIntakeKey(keks, [...stored, ...missing]))
  const ring = await openKeyRing(keks, [...stored, ...missing])
  await store.transaction(async db => {
    for (const key of missing) {
      await dataKeys.insert(db, key)
      const added = { actor: actor(), action: ADD, subject: key.purpose, detail: { version: key.version } }
      await audits.insert(db, { ...added, isAutomatic: true })
    }
    if (missing.some(({ purpose }) => purpose === 'grant')) {
      const rows = await grantAll(db, ring)
      await audits.insert(db, { actor: actor(), action: 'grants.begin', subject: 'grant', detail: { rows } })
    }
  })
}

/** Derives the first version from the key of API keys as earlier releases did, so that batches they took are recognised. */
async function makeIntakeKey(keks: Keks, keys: readonly WrappedKey[]): Promise<WrappedKey> {
  const apiKey = keys.find(({ purpose, version }) => purpose === 'api-key' && version === 1)
  assert(apiKey, 'the first key of API keys is there until the key intake is')
  const raw = firstIntakeKey(await unwrapKey(keks, apiKey))
  return wrapDataKey(keks.current, { purpose: 'intake', version: 1 }, raw)
}

/** A key that was there before must come back: another in its place would give each card a second token, for example. */
async function assertNeverAdded(store: Store, absent: readonly string[]): Promise<void> {
  const added = await auditSearch.listSubjects(store, ADD)
  const lost = absent.filter(purpose => added.includes(purpose))
  if (lost.length > 0)
    throw new ConfigError(
      `DATABASE_URL: the database has lost its data key of ${lost.join(', ')}, and a new one would not fit what the old one made; restore its row from a backup (table data_key), then run this again`,
    )
}

/**
 * The key that codes rights is made together with `private-half`, in one transaction. If only `private-half` is there,
 * somebody removed the key: a new one would code whatever rows are there now, also rows that somebody has added. If
 * both are removed, nothing opens the signing key, and no role starts.
 */
function assertFirstCoding(stored: readonly { purpose: string }[]): void {
  const has = (purpose: Purpose) => stored.some(key => key.purpose === purpose)
  if (has('private-half') && !has('grant'))
    throw new ConfigError(
      'DATABASE_URL: the database has lost its data key of grant, by which tokenmill knows the clients, keys and scopes that it made; restore its row from a backup (table data_key), then run this again',
    )
}

const SIGNING_KEY_CODES = '0056-signing-key-codes'

/** Gives signing keys codes, in a database whose other rows had codes before. */
async function codeSigningKeys(store: Store, keks: Keks): Promise<void> {
  const ring = await openLiveRing(keks, ringSource(store))
  await store.transaction(async db => {
    const rows = await grantSigningKeys(db, ring)
    await audits.insert(db, { actor: actor(), action: 'grants.begin', subject: 'signing-key', detail: { rows } })
  })
}

async function addMissingSigningKey(store: Store, keks: Keks): Promise<void> {
  if ((await signingKeys.findPublic(store)).length > 0) return
  const ring = await openLiveRing(keks, ringSource(store))
  const signing = await makeInstallationKey(openPrivateHalves(ring, keks))
  await store.transaction(async db => {
    await signingKeys.insertFirst(db, signing)
    await grantSigningKey(db, ring, signing)
    await audits.insert(db, { actor: actor(), action: 'signing-key.add', subject: signing.kid, isAutomatic: true })
  })
}
