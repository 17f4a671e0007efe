// Brings an installation up to date and makes what is missing: the schema, BullMQ's schema, the key-encryption key if
// that is permitted, data keys, the installation's id and signing key, the system clients. A second run changes
// nothing; two runs at once wait for each other. It makes no client of users, no scope and no card.
import { randomUUID } from 'node:crypto'
import type { Config } from '../../src/config.ts'
import { openLog } from '../../src/log.ts'
import { upgradePostgres } from '../../src/queue/postgres.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import { withUpgradeLock } from '../../src/store/upgrade-lock.ts'
import type { KeyProvider } from '../../src/vault/kek.ts'
import { makeDataKeys, PURPOSES } from '../../src/vault/key-ring.ts'
import { actor } from '../terminal.ts'
import { makeInstallationKey } from './installation-key.ts'
import { assertKekNamed, findOrMakeKek } from './kek.ts'
import { ensureApiKeyFile, ensureNetworkTokenFile, ensureSystemClients } from './system-clients.ts'

interface UpgradeOptions {
  config: Pick<Config, 'dataDir' | 'kekFile'>
  database: { url: string; embedded: boolean }
  /** `--make-kek`: the path where a key-encryption key is made, if the database has none yet. */
  makeKek?: string | undefined
}

interface Upgraded {
  /** The names of the migrations that ran. */
  migrations: string[]
  installationId: string
  kekId: string
  kekFile: string
  /** The files that were written. */
  files: string[]
}

/** Upgrades. Throws `ConfigError` if the key-encryption key is missing or isn't the database's. */
export function upgrade(options: UpgradeOptions): Promise<Upgraded> {
  const { config, database, makeKek } = options
  assertKekNamed(config, database.embedded, makeKek)
  return withUpgradeLock(database.url, async () => {
    // Imported here, so that commands that only read the store don't load it.
    const { upgradeSchema } = await import('../../src/store/schema-upgrade.ts')
    const migrations = await upgradeSchema(database.url)
    await withQueueOwner(database.url, client => upgradePostgres(client))
    const log = openLog('error', { role: 'upgrade' })
    const store = openStore(database.url, { log, connectionsMax: 2, application: 'tokenmill upgrade' })
    try {
      const known = await installation.find(store)
      const { kek, path, made } = await findOrMakeKek(config, database.embedded, known, makeKek)
      const installationId = known?.installationId ?? (await begin(store, kek))
      if (migrations.length > 0) await tell(store, installationId, migrations)
      await addMissingKeys(store, kek)
      const systemFiles = [
        ...(await ensureSystemClients(store, config.dataDir)),
        ...(await ensureApiKeyFile(store, kek, config.dataDir)),
        ...(await ensureNetworkTokenFile(store, kek, config.dataDir)),
      ]
      const files = [...(made ? [path] : []), ...systemFiles]
      return { migrations, installationId, kekId: kek.id, kekFile: path, files }
    } finally {
      await store.close()
    }
  })
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

function tell(store: Store, installationId: string, migrations: string[]): Promise<void> {
  return audits.insert(store, {
    actor: actor(),
    action: 'schema.upgrade',
    subject: installationId,
    detail: { migrations },
  })
}

/** Makes the keys for purposes that are new in this release; existing keys stay. */
async function addMissingKeys(store: Store, kek: KeyProvider): Promise<void> {
  const known = new Set((await dataKeys.findAll(store)).map(key => key.purpose))
  const missing = await makeDataKeys(
    kek,
    PURPOSES.filter(purpose => !known.has(purpose)),
  )
  const signing = (await signingKeys.findPublic(store)).length > 0 ? undefined : await makeInstallationKey(kek)
  await store.transaction(async db => {
    for (const key of missing) {
      await dataKeys.insert(db, key)
      const detail = { version: key.version }
      await audits.insert(db, { actor: actor(), action: 'data-key.add', subject: key.purpose, detail })
    }
    if (signing) {
      await signingKeys.insert(db, signing)
      await audits.insert(db, { actor: actor(), action: 'signing-key.add', subject: signing.kid })
    }
  })
}
