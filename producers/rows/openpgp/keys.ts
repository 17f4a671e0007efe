// Reads files of OpenPGP keys as programs export them: armored or binary, one key or a whole keyring, primary keys without
// their secret part (offline), subkeys for encryption alone, keys that have expired or were revoked. Which of them a message
// needs is decided by the message.
import { readFile } from 'node:fs/promises'
import { decryptKey, type Key, type PrivateKey, readKeys, readPrivateKeys } from 'openpgp'
import type { Secret } from '../../../src/secret.ts'
import '../../../src/vault/pgp/pgp-library.ts'
import { FileError } from '../file-error.ts'

/** The private keys of a file. */
export interface DecryptionKeys {
  /** Those that are open. */
  open: readonly PrivateKey[]
  /** Those that the passphrase doesn't open. */
  locked: readonly PrivateKey[]
}

type Read<T> = (of: { armoredKeys: string } | { binaryKeys: Uint8Array }) => Promise<T[]>

const ARMORED = /-----BEGIN PGP (PUBLIC|PRIVATE) KEY BLOCK-----[\s\S]*?-----END PGP \1 KEY BLOCK-----/g

/** The private keys of a file. The error says if there is none, or if no passphrase is given and every key needs one. */
export async function readDecryptionKeys(path: string, passphrase: Secret | undefined): Promise<DecryptionKeys> {
  const all = await readKeyFile(path, 'OpenPGP private key', of => readPrivateKeys(of as { armoredKeys: string }))
  const open: PrivateKey[] = []
  const locked: PrivateKey[] = []
  for (const key of all) {
    const opened = passphrase && isLocked(key) ? await unlocked(key, passphrase) : key
    ;(isLocked(opened) ? locked : open).push(opened)
  }
  if (open.length > 0) return { open, locked }
  if (!passphrase)
    throw new FileError('usage', `The key in ${path} has a passphrase.`, 'Put it into TOKENMILL_PGP_PASSPHRASE.')
  const next = 'Check TOKENMILL_PGP_PASSPHRASE.'
  throw new FileError('usage', `The passphrase does not open the key in ${path}.`, next)
}

/** Whether every part that the file holds is encrypted with a passphrase. */
function isLocked(key: PrivateKey): boolean {
  return !key.isDecrypted() && partsOf(key).some(({ isStub }) => !isStub)
}

async function unlocked(key: PrivateKey, passphrase: Secret): Promise<PrivateKey> {
  return decryptKey({ privateKey: key, passphrase: passphrase.reveal() }).catch(() => key)
}

export function readVerificationKeys(path: string): Promise<Key[]> {
  return readKeyFile(path, 'OpenPGP public key', of => readKeys(of as { armoredKeys: string }))
}

/**
 * The key of a file to which something is encrypted. The error says why there is none: a private key, or a key that has
 * expired, was revoked, or can't encrypt. If several keys can, the file doesn't say which is meant.
 */
export async function readEncryptionKey(path: string): Promise<Key> {
  const all = await readVerificationKeys(path)
  const [secret] = all.filter(key => key.isPrivate())
  if (secret)
    throw new FileError('usage', `${path} holds a private key.`, 'Give the public key that gpg --export wrote.')
  const faults: string[] = []
  const able: Key[] = []
  for (const key of all) {
    const fault = await encryptionFault(key)
    if (fault === undefined) able.push(key)
    else faults.push(`${idOf(key)} ${fault}`)
  }
  const [key] = able
  if (able.length > 1)
    throw new FileError(
      'usage',
      `${path} holds several keys that can encrypt: ${able.map(idOf).join(', ')}.`,
      'Give a file with the one that is meant (gpg --export KEY).',
    )
  if (key) return key
  const next = 'Ask its owner for a current key with an encryption subkey.'
  throw new FileError('usage', `No key in ${path} can encrypt: ${faults.join('; ')}.`, next)
}

async function encryptionFault(key: Key): Promise<string | undefined> {
  try {
    await key.getEncryptionKey()
    return undefined
  } catch {
    if (await key.isRevoked()) return 'was revoked'
    const until = await key.getExpirationTime()
    if (until instanceof Date && until.getTime() <= Date.now()) return `expired on ${until.toISOString().slice(0, 10)}`
    return 'has no subkey for encryption that is valid now'
  }
}

const idOf = (key: Key) => idText(key.getKeyID())

async function readKeyFile<T>(path: string, what: string, read: Read<T>): Promise<T[]> {
  const bytes = await readFile(path).catch(error => {
    throw new FileError('usage', `The key file ${path} cannot be read.`, 'Check its name and permissions.', error)
  })
  const blocks = bytes.toString('latin1').match(ARMORED)
  const parts = blocks ? blocks.map(armoredKeys => ({ armoredKeys })) : [{ binaryKeys: new Uint8Array(bytes) }]
  const found: T[] = []
  let first: unknown
  // Each block by itself: a file may have keys of both kinds, one after the other.
  for (const part of parts) {
    const keys = await read(part).catch(error => {
      first ??= error
      return []
    })
    found.push(...keys)
  }
  if (found.length > 0) return found
  if (ON_CARD.test((first as Error | undefined)?.message ?? ''))
    throw new FileError(
      'usage',
      `${path} holds only a reference to a key on a smart card.`,
      'Give a copy of the key that is not on the card, or decrypt the file where the card is.',
      first,
    )
  const command = what.includes('private') ? 'gpg --export-secret-keys' : 'gpg --export'
  throw new FileError('usage', `${path} holds no ${what}.`, `Give the file that ${command} wrote.`, first)
}

/** What the library says of a key of which gpg keeps only where it is. */
const ON_CARD = /gnu protection mode/i

export interface KeyPart {
  /** The id of the primary key or subkey, upper-case hex. */
  id: string
  /** The file has no secret part of it: it is offline, or on a smart card. */
  isStub: boolean
}

/** The primary key and the subkeys. */
export function partsOf(key: Key): KeyPart[] {
  return key.getKeys().map(part => {
    const { isDummy } = part.keyPacket as { isDummy?: () => boolean }
    return { id: idText(part.getKeyID()), isStub: isDummy?.call(part.keyPacket) === true }
  })
}

export function idText(id: { toHex(): string }): string {
  return id.toHex().toUpperCase()
}
