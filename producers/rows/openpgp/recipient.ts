// Encrypts a short text to somebody's OpenPGP public key, in memory.
import { createMessage, encrypt, type Key } from 'openpgp'
import type { Secret } from '../../../src/secret.ts'
import '../../../src/vault/pgp/pgp-library.ts'
import { readEncryptionKey } from './keys.ts'

export interface Recipient {
  key: Key
  /** The fingerprint of the primary key, upper-case hex. */
  fingerprint: string
}

/** Reads a public key, armored or binary. Throws `FileError` if nothing can be encrypted to it. */
export async function readRecipient(path: string): Promise<Recipient> {
  const key = await readEncryptionKey(path)
  return { key, fingerprint: key.getFingerprint().toUpperCase() }
}

/** An armored message. */
export async function encryptTo({ key }: Recipient, text: Secret): Promise<string> {
  // As bytes: line ends of a text would become CR LF.
  const message = await createMessage({ binary: new TextEncoder().encode(text.reveal()) })
  return encrypt({ message, encryptionKeys: key, format: 'armored' })
}
