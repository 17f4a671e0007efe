// Brings an installation up to date and makes what is missing: the schema, BullMQ's schema, the key-encryption key if
// that is permitted, data keys, the installation's id and signing key, the system clients. A second run changes
// nothing; two runs at once wait for each other. It makes no client of users, no scope and no card.
import { randomUUID } from 'node:crypto'
import { grantSigningKey } from '../../src/acts/grants.ts'
import { addKeys, type LivesKeeper } from '../../src/acts/turn-lives.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { openLog } from '../../src/log.ts'
import { upgradePostgres } from '../../src/queue/postgres.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as kekRows from '../../src/store/access/keks.ts'
import * as keyLives from '../../src/store/access/key-lives.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import { TABLES } from '../../src/store/composition.ts'
import * as installation from '../../src/store/installation.ts'
import { type Db, openStore, type Store } from '../../src/store/pool.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import type { UpgradeStep } from '../../src/store/schema-upgrade.ts'
import { withUpgradeLock } from '../../src/store/upgrade-lock.ts'
import { makeProbe } from '../../src/vault/kek/probe.ts'
import type { Keks, KeyProvider } from '../../src/vault/kek/provider.ts'
import { openPrivateHalves } from '../../src/vault/private-half.ts'
import { firstLives, proveLives } from '../../src/vault/ring/key-lives.ts'
import { makeDataKeys, openLiveRing, PURPOSES, type Purpose } from '../../src/vault/ring/key-ring.ts'
import { type Lasting, openLasting } from '../lasting.ts'
import { actor } from '../terminal.ts'
import { ensureGatewayKeys } from './gateway-keys.ts'
import { makeInstallationKey } from './installation-key.ts'
import { assertKekNamed, findOrMakeKek } from './kek.ts'
import { ringSource } from './key-ring.ts'
import { lastingLives } from './known-lives.ts'
import { ensurePinnedKeys } from './pinned-keys.ts'
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
    const migrations = await upgradeSchema(database.url, TABLES, step => lasting.at(sentenceOf(step)))
    lasting.at('Upgrading the queues.')
    await withQueueOwner(database.url, client => upgradePostgres(client))
    return makeMissing(options, migrations, lasting)
  })
}

/** Makes the keys, rows and files that are missing after `migrations`. */
export async function makeMissing(
  { config, database, makeKek }: Omit<UpgradeOptions, 'tell'>,
  migrations: string[],
  lasting: Pick<Lasting, 'at'>,
): Promise<Upgraded> {
  const log = openLog('error', { role: 'upgrade' })
  const store = openStore(database.url, { log, connectionsMax: 2, application: 'tokenmill upgrade' })
  try {
    const known = await installation.find(store)
    if (known && migrations.length > 0) await tell(store, known.installationId, migrations)
    lasting.at('Making the keys and files that are missing.')
    const { keks, path, made } = await findOrMakeKek(config, database.embedded, known, makeKek)
    const installationId = known?.installationId ?? (await begin(store, keks.current))
    if (!known && migrations.length > 0) await tell(store, installationId, migrations)
    await ensureKekRow(store, keks.current)
    const lives = lastingLives({ store, keks, installationId }, config.dataDir, log)
    await addMissingKeys(store, { keks, installationId, lives })
    const vault = { store, keks, lives }
    await addMissingSigningKey(vault)
    const clients = await ensureSystemClients(vault, config.dataDir)
    const ring = await openLiveRing(keks, ringSource(store, lives))
    const systemFiles = [
      ...clients,
      ...(await ensureGatewayKeys({ store, ring }, config.dataDir)),
      ...(await ensurePinnedKeys({ store, ring }, config.dataDir)),
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

/** Makes the row of the current key-encryption key, if it is missing. */
async function ensureKekRow(store: Store, kek: KeyProvider): Promise<void> {
  if ((await kekRows.list(store)).some(({ kekId }) => kekId === kek.id)) return
  await kekRows.insert(store, { kekId: kek.id, state: 'ACTIVE', probe: await makeProbe(kek) })
}

async function tell(store: Store, installationId: string, migrations: string[]): Promise<void> {
  const act = { actor: actor(), action: 'schema.upgrade', subject: installationId }
  await audits.insert(store, { ...act, detail: { migrations } })
}

const ADD = 'data-key.add'

/**
 * Makes the keys for purposes that are new in this release, and the row of the lives of all; what is there stays.
 */
async function addMissingKeys(store: Store, keeper: Omit<LivesKeeper, 'store'>): Promise<void> {
  const { keks, installationId } = keeper
  const stored = await dataKeys.findAll(store)
  const known = new Set(stored.map(key => key.purpose))
  const absent = PURPOSES.filter(purpose => !known.has(purpose))
  const named = (await keyLives.find(store)) ? (await keeper.lives.read()).keys.map(({ purpose }) => purpose) : []
  await assertNeverAdded(store, absent, named)
  assertCoding(stored)
  if (absent.length === 0) return
  const missing = await makeDataKeys(keks.current, absent)
  const audit = async (db: Db) => {
    for (const { purpose, version } of missing) {
      const added = { actor: actor(), action: ADD, subject: purpose, detail: { version } }
      await audits.insert(db, { ...added, isAutomatic: true })
    }
  }
  const first = stored.length === 0 && (await proveLives(keks.current, installationId, firstLives(missing)))
  if (first)
    return store.transaction(async db => {
      for (const key of missing) await dataKeys.insert(db, key)
      await keyLives.insert(db, first)
      await audit(db)
    })
  await addKeys({ ...keeper, store }, missing, audit)
}

/**
 * A key that was there before must come back: another in its place would give each card a second token, for example. `named`:
 * purposes that the lives of keys name.
 */
async function assertNeverAdded(store: Store, absent: readonly string[], named: readonly string[]): Promise<void> {
  const added = [...named, ...(await audits.listSubjects(store, ADD))]
  const lost = absent.filter(purpose => added.includes(purpose))
  if (lost.length > 0)
    throw new ConfigError(
      `DATABASE_URL: the database has lost its data key of ${lost.join(', ')}, and a new one would not fit what the old one made; restore its row from a backup (table data_key), then run this again`,
    )
}

/**
 * The key that codes rights is made together with `private-half`, in one transaction. If only `private-half` is there, somebody
 * removed the key, and perhaps the audit's word of it.
 */
function assertCoding(stored: readonly { purpose: string }[]): void {
  const has = (purpose: Purpose) => stored.some(key => key.purpose === purpose)
  if (has('private-half') && !has('grant'))
    throw new ConfigError(
      'DATABASE_URL: the database has lost its data key of grant, by which tokenmill knows the clients, keys and scopes that it made; restore its row from a backup (table data_key), then run this again',
    )
}

async function addMissingSigningKey({ store, keks, lives }: Pick<LivesKeeper, 'store' | 'lives'> & { keks: Keks }) {
  if ((await signingKeys.findPublic(store)).length > 0) return
  const ring = await openLiveRing(keks, ringSource(store, lives))
  const signing = await makeInstallationKey(openPrivateHalves(ring))
  await store.transaction(async db => {
    await signingKeys.insertFirst(db, signing)
    await grantSigningKey(db, ring, signing)
    await audits.insert(db, { actor: actor(), action: 'signing-key.add', subject: signing.kid, isAutomatic: true })
  })
}
