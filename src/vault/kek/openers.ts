// Opens a key-encryption key by its URI: a table of openers, one for each scheme. URIs come from this host's settings
// only: a URI from the store could name a module, and so run code of the database's owner.
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ConfigError } from '../../config.ts'
import { openKms } from '../kms/open.ts'
import { canonicalKmsUri } from '../kms/uri.ts'
import { openPkcs11 } from '../pkcs11/open.ts'
import { fileKeyProvider } from './file.ts'
import type { KeyProvider } from './provider.ts'

/** Throws `ConfigError` if the URI or what it names is wrong, `Fault('kek_away')` if the key is away and may come back. */
type Opener = (uri: string) => Promise<KeyProvider>

const OPENERS: Record<string, Opener> = {
  file: uri => fileKeyProvider(pathOf(uri)),
  pkcs11: uri => openPkcs11(uri),
  'aws-kms': uri => openKms(uri),
}

/** Opens the key that `uri` names. Throws as an `Opener` does. */
export async function openKek(uri: string): Promise<KeyProvider> {
  const opener = OPENERS[schemeOf(uri)]
  if (!opener) throw new ConfigError(`${shownUri(uri)} has an unknown scheme; known are ${SCHEMES}`)
  return opener(uri)
}

/** One form for all ways to write the URI of a file or of a key in KMS. Any other URI stays as it is. */
export function canonicalUri(uri: string): string {
  if (schemeOf(uri) === 'aws-kms') return canonicalKmsUri(uri)
  const path = filePathOf(uri)
  return path === undefined ? uri : pathToFileURL(path).href
}

/** The form of a URI in error texts: without its query, which may say how to log in; for a file its path. */
export function shownUri(uri: string): string {
  const scheme = schemeOf(uri)
  if (!(scheme in OPENERS)) return scheme === '' ? 'a line without a scheme' : `a URI of ${scheme}:`
  if (scheme === 'file') return filePathOf(uri) ?? uri
  return uri.replace(/\?.*/s, '')
}

const SCHEMES = Object.keys(OPENERS)
  .map(scheme => `${scheme}:`)
  .join(', ')

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
