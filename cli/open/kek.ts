// Finds the key-encryption key (KEK) of an installation, and compares it with the one that the database names. This
// file decides which file holds the key, who may make it and when a command must stop; the vault reads the file.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type Config, ConfigError } from '../../src/config.ts'
import { fileKeyProvider, type KeyProvider, makeKekFile } from '../../src/vault/kek.ts'

type Settings = Pick<Config, 'kekFile' | 'dataDir'>

/** The members of the installation's row that are used here. */
interface Known {
  kekId: string
}

/** The key of an existing installation. Throws `ConfigError` if it is missing or another installation's. */
export async function findKek(settings: Settings, embedded: boolean, known: Known): Promise<KeyProvider> {
  const path = kekPath(settings, embedded)
  if (path === undefined) throw new ConfigError(NO_KEK)
  return check(await fileKeyProvider(path), path, known)
}

const NO_KEK =
  'TOKENMILL_KEK_FILE: with DATABASE_URL a key-encryption key is needed; set it to its file, or make one with `tokenmill schema upgrade --make-kek FILE`'

/** Stops, before anything else is done, if no setting names a key. */
export function assertKekNamed(settings: Settings, embedded: boolean, makeFile: string | undefined): void {
  if (makeFile === undefined && kekPath(settings, embedded) === undefined) throw new ConfigError(NO_KEK)
}

export function kekPath({ kekFile, dataDir }: Settings, embedded: boolean): string | undefined {
  return kekFile ?? (embedded ? join(dataDir, 'kek') : undefined)
}

/**
 * The key for `schema upgrade`. Only this command may make one: in `makeFile` if that is given and the file doesn't
 * exist, and on the embedded engine in the data directory. No key is made for a database that has one.
 */
export async function findOrMakeKek(
  settings: Settings,
  embedded: boolean,
  known: Known | undefined,
  makeFile: string | undefined,
): Promise<{ kek: KeyProvider; path: string; made: boolean }> {
  const path = makeFile === undefined ? kekPath(settings, embedded) : resolve(makeFile)
  if (path === undefined) throw new ConfigError(NO_KEK)
  if (makeFile !== undefined && settings.kekFile !== undefined && settings.kekFile !== path)
    throw new ConfigError('TOKENMILL_KEK_FILE: it names another file than --make-kek; leave one of them out')
  const mayMake = makeFile !== undefined || (embedded && settings.kekFile === undefined)
  const made = !existsSync(path) && mayMake
  if (made) {
    if (known)
      throw new ConfigError(
        `TOKENMILL_KEK_FILE: ${path} does not exist; restore it (this database's keys are wrapped by ${known.kekId}, a new key would open none)`,
      )
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await makeKekFile(path)
  }
  const kek = await fileKeyProvider(path)
  return { kek: known ? check(kek, path, known) : kek, path, made }
}

function check(kek: KeyProvider, path: string, { kekId }: Known): KeyProvider {
  if (kek.id === kekId) return kek
  throw new ConfigError(
    `TOKENMILL_KEK_FILE: ${path} holds ${kek.id}, but this database's keys are wrapped by ${kekId}; set it to the file of that key`,
  )
}
