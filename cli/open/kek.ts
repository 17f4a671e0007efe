// Finds the key-encryption keys (KEKs) that this host's settings name, and compares them with the one that the database
// names. This file decides which setting counts, who may make a key and when a command must stop; the vault opens keys.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Config, ConfigError } from '../../src/config.ts'
import { fileKeyProvider, makeKekFile } from '../../src/vault/kek/file.ts'
import { type HostKeks, openHostKeks, readKekList, reasonOf } from '../../src/vault/kek/host.ts'
import { filePathOf, shownUri } from '../../src/vault/kek/openers.ts'
import { Stop } from '../exit.ts'
import { KEK_OPENERS } from './kek-openers.ts'

type Settings = Pick<Config, 'kek' | 'kekFile' | 'dataDir'>

/** The members of the installation's row that are used here. */
interface Known {
  kekId: string
}

/** A key-encryption key may be the database's but is away now, such as a token that is not plugged in. */
export class KekAway extends Stop {
  override name = 'KekAway'
}

/** The setting that names this host's keys. */
export function kekSetting({ kek }: Pick<Settings, 'kek'>): 'TOKENMILL_KEK' | 'TOKENMILL_KEK_FILE' {
  return kek === undefined ? 'TOKENMILL_KEK_FILE' : 'TOKENMILL_KEK'
}

const NO_KEK =
  'TOKENMILL_KEK_FILE: with DATABASE_URL a key-encryption key is needed; set it to its file, or make one with `tokenmill schema upgrade --make-kek FILE`'

/** Stops, before anything else is done, if no setting names a key. */
export function assertKekNamed(settings: Settings, embedded: boolean, makeFile: string | undefined): void {
  if (makeFile === undefined && settings.kek === undefined && kekPath(settings, embedded) === undefined)
    throw new ConfigError(NO_KEK)
}

/** A scheme of one letter would be a drive of Windows. */
const URI = /^[a-z][a-z0-9+.-]+:/i

/** The file of TOKENMILL_KEK that lists URIs; undefined if the setting is unset, or a URI itself. */
export function kekListPath({ kek }: Pick<Settings, 'kek'>): string | undefined {
  return kek === undefined || URI.test(kek) ? undefined : resolve(kek)
}

/** The file of the only key, where TOKENMILL_KEK names none. */
function kekPath({ kekFile, dataDir }: Settings, embedded: boolean): string | undefined {
  return kekFile ?? (embedded ? join(dataDir, 'kek') : undefined)
}

/** The local files that the settings name: lists and keys. Throws `ConfigError` if the list can't be read. */
export async function kekFiles(settings: Settings, embedded: boolean): Promise<string[]> {
  const list = kekListPath(settings)
  const paths = (await uriReader(settings, embedded)()).map(filePathOf).filter(path => path !== undefined)
  return list === undefined ? paths : [list, ...paths]
}

/** The file that holds this key; undefined if the key isn't in a file. Throws `ConfigError` if the list can't be read. */
export async function findKekPath(settings: Settings, embedded: boolean, kekId: string): Promise<string | undefined> {
  for (const uri of await uriReader(settings, embedded)()) {
    const path = filePathOf(uri)
    const provider = path === undefined ? undefined : await fileKeyProvider(path).catch(() => undefined)
    if (provider?.id === kekId) return path
  }
  return undefined
}

/**
 * The keys of this host for an existing installation. Throws `ConfigError` if the database's key isn't among them, and
 * `KekAway` if it may be one that is away.
 */
export async function findKeks(settings: Settings, embedded: boolean, known: Known): Promise<HostKeks> {
  const keks = await openHostKeks(uriReader(settings, embedded), { currentId: known.kekId, openers: KEK_OPENERS })
  check(settings, keks, known)
  return keks
}

/** Throws `ConfigError` if no setting names a key. */
function uriReader(settings: Settings, embedded: boolean): () => Promise<string[]> {
  const { kek } = settings
  const list = kekListPath(settings)
  if (list !== undefined) return () => readKekList(list)
  if (kek !== undefined) return async () => [kek]
  const path = kekPath(settings, embedded)
  if (path === undefined) throw new ConfigError(NO_KEK)
  return async () => [pathToFileURL(path).href]
}

function check(settings: Settings, keks: HostKeks, { kekId }: Known): void {
  if (keks.all().some(({ id }) => id === kekId)) return
  const setting = kekSetting(settings)
  const failures = keks.failures()
  const away = failures.filter(({ error }) => !(error instanceof ConfigError))
  if (away.length > 0) {
    const names = away.map(({ shown, error }) => `${shown} (${reasonOf(error)})`).join(', ')
    throw new KekAway(`${setting}: ${names} is away, and may be ${kekId}, which wraps this database's keys`)
  }
  const wanted = `this database's keys are wrapped by ${kekId}`
  const ids = keks.all().map(({ id }) => id)
  const list = kekListPath(settings)
  if (list !== undefined) {
    const found = [`holds ${ids.join(', ') || 'no key'}`, ...failures.map(({ error }) => error.message)].join('; ')
    throw new ConfigError(`${setting}: ${wanted}, which ${list} doesn't name (${found}); add it there`)
  }
  const [failure] = failures
  if (failure) throw new ConfigError(`${setting}: ${failure.error.message}`)
  const shown = settings.kek === undefined ? kekPath(settings, true) : shownUri(settings.kek, KEK_OPENERS)
  throw new ConfigError(`${setting}: ${shown} holds ${ids.join()}, but ${wanted}; set it to the file of that key`)
}

interface FoundKeks {
  keks: HostKeks
  /** The file of the key; undefined if TOKENMILL_KEK names the keys and `makeFile` isn't given. */
  path: string | undefined
  made: boolean
}

/**
 * The keys for `schema upgrade`. Only this command may make the first one: in `makeFile` if that is given and the file
 * doesn't exist, and on the embedded engine in the data directory. No key is made here for a database that has one.
 */
export async function findOrMakeKek(
  settings: Settings,
  embedded: boolean,
  known: Known | undefined,
  makeFile: string | undefined,
): Promise<FoundKeks> {
  const wanted = makeFile === undefined ? undefined : resolve(makeFile)
  if (settings.kek !== undefined && wanted === undefined) {
    const keks = await openHostKeks(uriReader(settings, embedded), { currentId: known?.kekId, openers: KEK_OPENERS })
    if (known) check(settings, keks, known)
    else if (keks.all().length === 0) throw firstFailure(settings, keks)
    return { keks, path: undefined, made: false }
  }
  const path = wanted ?? kekPath(settings, embedded)
  if (path === undefined) throw new ConfigError(NO_KEK)
  if (wanted !== undefined && !(await isNamed(settings, wanted)))
    throw new ConfigError(`${kekSetting(settings)}: it names another file than --make-kek; leave one of them out`)
  const mayMake = wanted !== undefined || (embedded && settings.kekFile === undefined)
  const made = !existsSync(path) && mayMake
  if (made) {
    if (known)
      throw new ConfigError(
        `TOKENMILL_KEK_FILE: ${path} does not exist; restore it (this database's keys are wrapped by ${known.kekId}, a new key would open none)`,
      )
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await makeKekFile(path)
  }
  const keks = await openHostKeks(async () => [pathToFileURL(path).href], {
    currentId: known?.kekId,
    openers: KEK_OPENERS,
  })
  const single = { ...settings, kek: undefined, kekFile: path }
  if (known) check(single, keks, known)
  else if (keks.all().length === 0) throw firstFailure(single, keks)
  return { keks, path, made }
}

async function isNamed(settings: Settings, path: string): Promise<boolean> {
  if (settings.kek === undefined) return settings.kekFile === undefined || settings.kekFile === path
  return (await kekFiles(settings, false)).includes(path)
}

function firstFailure(settings: Settings, keks: HostKeks): Error {
  const [failure] = keks.failures()
  const setting = kekSetting(settings)
  if (!failure) return new ConfigError(`${setting}: ${kekListPath(settings)} names no key`)
  if (failure.error instanceof ConfigError) return new ConfigError(`${setting}: ${failure.error.message}`)
  return new KekAway(`${setting}: ${failure.shown} is away (${reasonOf(failure.error)})`)
}
