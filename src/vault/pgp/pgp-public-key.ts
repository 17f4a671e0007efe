// OpenPGP public keys to which senders encrypt cards: reads a key, names it, encrypts to it.
import { createMessage, encrypt, type PublicKey, readKey } from 'openpgp'
import { OPENPGP } from './pgp-config.ts'

/** Reads an armored key; undefined if it is none. It may turn out to be private, or to have nothing to encrypt to. */
export async function readPublicPgpKey(armored: string): Promise<PublicKey | undefined> {
  return readKey({ armoredKey: armored, config: OPENPGP }).catch(() => undefined)
}

/** Whether a card may be encrypted to the key. */
export async function canEncryptTo(publicKey: PublicKey): Promise<boolean> {
  const usable = await publicKey.getEncryptionKey(undefined, null, undefined, OPENPGP).catch(() => undefined)
  return usable !== undefined
}

/** The fingerprint of the primary key of an armored key, lower-case hex. Throws for a text that is no key. */
export async function pgpFingerprintOf(armored: string): Promise<string> {
  return (await readKey({ armoredKey: armored, config: OPENPGP })).getFingerprint().toLowerCase()
}

/** An armored message. */
export async function encryptToPgpKey(plain: Uint8Array, publicKey: PublicKey): Promise<string> {
  // Otherwise a key that was just made by a server with a fast clock wouldn't be valid yet.
  const date = new Date(Math.max(Date.now(), publicKey.getCreationTime().getTime()))
  return encrypt({
    message: await createMessage({ binary: new Uint8Array(plain), date }),
    encryptionKeys: publicKey,
    format: 'armored',
    date,
    config: OPENPGP,
  })
}
