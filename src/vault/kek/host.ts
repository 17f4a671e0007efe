// The key-encryption keys of one host: those that its settings name. A running process may read the settings' list again, so
// that it has both keys while one replaces the other. The store says which key is current.
import { Fault } from '../../errors.ts'
import { canonicalUri, type KekOpeners, openKek, shownUri } from './openers.ts'
import { readOwnerOnly } from './owner-only.ts'
import { type Keks, type KeyProvider, notHere } from './provider.ts'

/** Why a URI of the settings gives no key: a `ConfigError`, or a `Fault` if the key is away. */
export interface KekFailure {
  uri: string
  /** What error texts call the URI: nothing secret of it. */
  shown: string
  error: Error
}

export interface HostKeks extends Keks {
  /** Every key that this host has now. */
  all(): KeyProvider[]
  /** The key that a URI of the settings gives. */
  named(uri: string): KeyProvider | undefined
  failures(): readonly KekFailure[]
  /** Makes the key of this id the current one; on a host without that key `current` then throws. */
  follow(kekId: string): void
  /** Reads the settings' URIs again, and opens the keys that are new. `failures` names those that can't be opened. */
  reload(): Promise<void>
}

interface HostOptions {
  /** Undefined while the store names no key; then the first one is current. */
  currentId?: string | undefined
  openers: KekOpeners
}

/** `readUris`: the URIs of the settings. */
export async function openHostKeks(
  readUris: () => Promise<string[]>,
  { currentId, openers }: HostOptions,
): Promise<HostKeks> {
  const opened = new Map<string, KeyProvider>()
  let failures: KekFailure[] = []
  let followed = currentId
  const reload = async () => {
    const uris = (await readUris()).map(uri => canonicalUri(uri, openers))
    for (const uri of opened.keys()) if (!uris.includes(uri)) opened.delete(uri)
    const failed: KekFailure[] = []
    for (const uri of uris) {
      if (opened.has(uri)) continue
      const provider = await openKek(uri, openers).catch(
        (error: Error) => void failed.push({ uri, shown: shownUri(uri, openers), error }),
      )
      if (provider) opened.set(uri, provider)
    }
    failures = failed
  }
  await reload()
  const find = (id: string) => [...opened.values()].find(provider => provider.id === id) ?? notHere(id)
  return {
    get current() {
      if (followed !== undefined) return find(followed)
      const [first] = opened.values()
      if (!first) throw new Fault('key_unavailable', failures[0]?.error)
      return first
    },
    find,
    all: () => [...opened.values()],
    named: uri => opened.get(canonicalUri(uri, openers)),
    failures: () => failures,
    follow: kekId => {
      followed = kekId
    },
    reload,
  }
}

/** The reason of a failure, in words that hold no secret. */
export function reasonOf(error: Error): string {
  return error instanceof Fault && error.cause instanceof Error ? error.cause.message : error.message
}

const LIST_BYTES_MAX = 65_536

/** The URIs in a file, one a line; empty lines and those that begin with `#` don't count. Throws `ConfigError`. */
export async function readKekList(path: string): Promise<string[]> {
  const text = (await readOwnerOnly(path, LIST_BYTES_MAX, 'list of key-encryption keys')).toString('utf8')
  const lines = text.split(/\r?\n/).map(line => line.trim())
  return [...new Set(lines.filter(line => line !== '' && !line.startsWith('#')))]
}
