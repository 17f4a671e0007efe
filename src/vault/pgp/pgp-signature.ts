// Checks a detached OpenPGP signature over a small file. This file doesn't know whose key it is: a person compares the
// fingerprint.
import { createMessage, enums, type Key, readKey, readSignature, type Signature, verify } from 'openpgp'
import { ConfigError } from '../../config.ts'

export interface PgpSigner {
  /** The fingerprint of the primary key, upper-case hex. */
  fingerprint: string
  userIds: string[]
  /** Armored. */
  publicKey: string
}

export interface PgpSignature {
  signer: PgpSigner
  signedAt: Date
  /** Armored. */
  signature: string
}

/**
 * Checks a signature, binary or armored, by a public key, binary or armored. Throws `ConfigError` if one of them can't be
 * read. Returns undefined if the key didn't sign these bytes.
 */
export async function checkPgpSignature(
  bytes: Buffer,
  given: { signature: Buffer; publicKey: Buffer },
): Promise<PgpSignature | undefined> {
  const key = await readPublic(given.publicKey)
  const signature = await readDetached(given.signature)
  const message = await createMessage({ binary: new Uint8Array(bytes) })
  const { signatures } = await verify({ message, signature, verificationKeys: key })
  for (const { verified, signature: found } of signatures) {
    const holds = await verified.catch(() => false)
    const signedAt = (await found).packets[0]?.created
    if (holds && signedAt) return { signer: signerOf(key), signedAt, signature: signature.armor() }
  }
  return undefined
}

function signerOf(key: Key): PgpSigner {
  return { fingerprint: key.getFingerprint().toUpperCase(), userIds: key.getUserIDs(), publicKey: key.armor() }
}

async function readPublic(bytes: Buffer): Promise<Key> {
  const read = isArmored(bytes)
    ? readKey({ armoredKey: bytes.toString('utf8') })
    : readKey({ binaryKey: new Uint8Array(bytes) })
  const key = await read.catch(() => undefined)
  if (!key) throw new ConfigError('the public key is no OpenPGP key: gpg --export writes one')
  return key.toPublic()
}

/** Reads a signature over a binary file. A signature over a text is refused, because it doesn't cover line ends. */
async function readDetached(bytes: Buffer): Promise<Signature> {
  const read = isArmored(bytes)
    ? readSignature({ armoredSignature: bytes.toString('utf8') })
    : readSignature({ binarySignature: new Uint8Array(bytes) })
  const signature = await read.catch(() => undefined)
  if (!signature || signature.packets.some(({ signatureType }) => signatureType !== enums.signature.binary))
    throw new ConfigError('the signature is no detached OpenPGP signature of a file: gpg --detach-sign makes one')
  return signature
}

function isArmored(bytes: Buffer): boolean {
  return bytes.subarray(0, 64).toString('latin1').trimStart().startsWith('-----BEGIN PGP')
}
