// The URI that names a key in a PKCS#11 token (RFC 7512): which module, which token, which key, and how the key wraps.
// It holds no PIN, only the file of one, because settings are seen by whoever lists the processes of a host.
import { ConfigError } from '../../config.ts'

/**
 * How the key wraps. `gcm`: AES-GCM with our nonce. `gcm-token-iv`: AES-GCM with a nonce that the token draws, which
 * tokens in FIPS mode insist on. `kwp`: AES key wrap with padding (RFC 5649).
 */
export const MECHANISMS = ['gcm', 'gcm-token-iv', 'kwp'] as const
export type MechanismName = (typeof MECHANISMS)[number]

export interface TokenKey {
  /** What error texts call the key: the URI's path, which holds no secret. */
  name: string
  modulePath: string
  /** The token's label. */
  token: string
  /** The token's serial number, for the case that two tokens have that label. */
  serial: string | undefined
  /** The key's label (CKA_LABEL). One of `object` and `id` is set, or both. */
  object: string | undefined
  /** The key's id (CKA_ID). */
  id: Buffer | undefined
  mech: MechanismName
  pinFile: string
}

const SCHEME = 'pkcs11:'
const PATH = ['token', 'serial', 'object', 'id', 'type'] as const
const QUERY = ['module-path', 'pin-source', 'mech'] as const
const EXAMPLE =
  'pkcs11:token=NAME;object=KEY?module-path=/path/of/module.so&pin-source=file:/path/of/pin&mech=gcm (docs/keys.md)'

/** Throws `ConfigError`, which never quotes what it refuses: somebody may have written a PIN there. */
export function parseTokenUri(uri: string): TokenKey {
  if (!uri.startsWith(SCHEME)) throw refused(`it does not begin with ${SCHEME}`)
  const [path = '', query = '', ...more] = uri.slice(SCHEME.length).split('?')
  if (more.length > 0) throw refused('it has two question marks')
  const named = attributesOf(path, ';', PATH)
  const asked = attributesOf(query, '&', QUERY)
  const token = textOf(named, 'token')
  const object = textOf(named, 'object')
  if (token === undefined) throw refused('token= is missing')
  const id = named.get('id')
  if (object === undefined && id === undefined) throw refused('object= or id= is missing')
  const type = textOf(named, 'type')
  if (type !== undefined && type !== 'secret-key') throw refused('type= is not secret-key')
  return {
    name: `${SCHEME}${path}`,
    modulePath: absolute(textOf(asked, 'module-path'), 'module-path'),
    token,
    serial: textOf(named, 'serial'),
    object,
    id,
    mech: mechanismOf(textOf(asked, 'mech')),
    pinFile: pinFileOf(textOf(asked, 'pin-source')),
  }
}

function attributesOf(text: string, separator: string, known: readonly string[]): Map<string, Buffer> {
  const attributes = new Map<string, Buffer>()
  for (const part of text === '' ? [] : text.split(separator)) {
    const equals = part.indexOf('=')
    const name = part.slice(0, Math.max(equals, 0))
    if (name === 'pin-value')
      throw refused(
        'pin-value= is not accepted, because everybody who sees the setting would see the PIN: write the PIN to a file of mode 0600 and name the file with pin-source=file:',
      )
    if (!known.includes(name))
      throw refused(`beside ${known.map(one => `${one}=`).join(', ')} it may name nothing there`)
    if (attributes.has(name)) throw refused(`${name}= is there twice`)
    attributes.set(name, bytesOf(part.slice(equals + 1), name))
  }
  return attributes
}

/** `%41` is one byte; an id may hold any bytes. */
function bytesOf(text: string, name: string): Buffer {
  if (text === '' || !/^([!-$&-~]|%[0-9a-f]{2})+$/i.test(text))
    throw refused(`${name}= is empty or not written as RFC 7512 has it (a blank is %20)`)
  return Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

function textOf(attributes: ReadonlyMap<string, Buffer>, name: string): string | undefined {
  return attributes.get(name)?.toString('utf8')
}

function absolute(path: string | undefined, name: string): string {
  if (path?.startsWith('/')) return path
  throw refused(`${name}= must name a file by its whole path`)
}

function mechanismOf(name: string | undefined): MechanismName {
  const mech = name === undefined ? 'gcm' : MECHANISMS.find(known => known === name)
  if (mech) return mech
  throw refused(`mech= is none of ${MECHANISMS.join(', ')}`)
}

function pinFileOf(source: string | undefined): string {
  if (source?.startsWith('file:'))
    return absolute(source.slice('file:'.length).replace(/^\/\/(?=\/)/, ''), 'pin-source')
  throw refused('pin-source=file:/path/of/pin is missing, or not a file')
}

function refused(why: string): ConfigError {
  return new ConfigError(`a pkcs11: URI can not be used: ${why}; write ${EXAMPLE}`)
}
