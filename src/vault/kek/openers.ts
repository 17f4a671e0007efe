// Opens a key-encryption key by its URI: a table of openers, one for each scheme. URIs come from this host's settings
// only: a URI from the store could name a module, and so run code of the database's owner.
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ConfigError } from '../../config.ts'
import { fileKeyProvider } from './file.ts'
import type { KeyProvider } from './provider.ts'

/** Opens the keys of one scheme. */
export interface KekOpener {
  /** Throws `ConfigError` if the URI or what it names is wrong, `Fault('kek_away')` if the key is away and may come back. */
  open(uri: string): Promise<KeyProvider>
  /** One form for all ways to write the URI of a key; a malformed one stays as it is. */
  canonical(uri: string): string
}

/** Those that a process has, by scheme. */
export type KekOpeners = Readonly<Record<string, KekOpener>>

export const fileKeks: KekOpener = {
  open: uri => fileKeyProvider(pathOf(uri)),
  canonical: uri => {
    const path = filePathOf(uri)
    return path === undefined ? uri : pathToFileURL(path).href
  },
}

/** Opens the key that `uri` names. Throws as a `KekOpener` does. */
export async function openKek(uri: string, openers: KekOpeners): Promise<KeyProvider> {
  const opener = openers[schemeOf(uri)]
  if (opener) return opener.open(uri)
  const schemes = Object.keys(openers).map(scheme => `${scheme}:`)
  throw new ConfigError(`${shownUri(uri, openers)} has an unknown scheme; known are ${schemes.join(', ')}`)
}

/** One form for all ways to write a URI; one of an unknown scheme stays as it is. */
export function canonicalUri(uri: string, openers: KekOpeners): string {
  return openers[schemeOf(uri)]?.canonical(uri) ?? uri
}

/** The form of a URI in error texts: without its query, which may say how to log in; for a file its path. */
export function shownUri(uri: string, openers: KekOpeners): string {
  const scheme = schemeOf(uri)
  if (!Object.hasOwn(openers, scheme)) return scheme === '' ? 'a line without a scheme' : `a URI of ${scheme}:`
  return filePathOf(uri) ?? uri.replace(/\?.*/s, '')
}

function schemeOf(uri: string): string {
  return /^([a-z][a-z0-9+.-]*):/i.exec(uri)?.[1]?.toLowerCase() ?? ''
}

function pathOf(uri: string): string {
  const path = filePathOf(uri)
  if (path === undefined) throw new ConfigError(`${uri} does not name a file; write file:/path/of/the/file`)
  return path
}

/** The path of a `file:` URI; undefined for any other and for a malformed one. */
export function filePathOf(uri: string): string | undefined {
  // `file:kek` would mean `/kek`, and `//host` another machine.
  if (!/^file:\/(?:[^/]|\/(?:localhost)?\/)[^?#]*$/i.test(uri)) return undefined
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}
