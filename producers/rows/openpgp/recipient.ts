// Encrypts a short text to somebody's OpenPGP public key, in memory.
import { createMessage, encrypt, type Key, readKey } from 'openpgp'
import type { Secret } from '../../../src/secret.ts'
import '../../../src/vault/pgp/pgp-library.ts'
import { FileError } from '../file-error.ts'
import { readKeyFile } from './decrypt.ts'

export interface Recipient {
  key: Key
  /** The fingerprint of the primary key, upper-case hex. */
  fingerprint: string
}

/** Reads a public key, armored or binary. Throws `FileError` if nothing can be encrypted to it. */
export async function readRecipient(path: string): Promise<Recipient> {
  const key = await readKeyFile(path, 'OpenPGP public key', armored =>
    typeof armored === 'string' ? readKey({ armoredKey: armored }) : readKey({ binaryKey: new Uint8Array(armored) }),
  )
  if (key.isPrivate())
    throw new FileError('usage', `${path} holds a private key.`, 'Give the public key that gpg --export wrote.')
  await key.getEncryptionKey().catch(error => {
    const next = 'Ask its owner for a current key with an encryption subkey.'
    throw new FileError('usage', `The key in ${path} is expired, revoked, or not for encryption.`, next, error)
  })
  return { key, fingerprint: key.getFingerprint().toUpperCase() }
}

/** An armored message. */
export async function encryptTo({ key }: Recipient, text: Secret): Promise<string> {
  // As bytes: line ends of a text would become CR LF.
  const message = await createMessage({ binary: new TextEncoder().encode(text.reveal()) })
  return encrypt({ message, encryptionKeys: key, format: 'armored' })
}
