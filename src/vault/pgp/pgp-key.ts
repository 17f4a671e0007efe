// OpenPGP private keys for encrypted cards: makes, imports and opens them. Their binary form is stored sealed
// (private-half.ts). pgp.ts decrypts messages.
import { decryptKey, generateKey, type PrivateKey, readPrivateKey } from 'openpgp'
import { ConfigError } from '../../config.ts'
import { Secret } from '../../secret.ts'
import { OPENPGP, OPENPGP_DECRYPTION } from './pgp-config.ts'

/** Makes a Curve25519 key in the version 4 form, which older OpenPGP clients read, too. */
export async function makePgpKey(alias: string): Promise<Secret<PrivateKey>> {
  const { privateKey } = await generateKey({
    type: 'ecc',
    curve: 'curve25519Legacy',
    userIDs: [{ name: alias }],
    format: 'object',
    config: OPENPGP,
  })
  return new Secret(privateKey)
}

/** Reads an armored private key. Throws `ConfigError` if it can't be read, can't be unlocked or can't decrypt cards. */
export async function readPgpKey(armored: Secret, passphrase: Secret | undefined): Promise<Secret<PrivateKey>> {
  const key = await unlock(armored, passphrase).catch(() => undefined)
  if (!key) throw new ConfigError('the OpenPGP private key can not be read, or the passphrase is wrong')
  // No date is passed: an expired key still decrypts what was encrypted to it.
  const usable = await key.getDecryptionKeys(undefined, null, undefined, OPENPGP_DECRYPTION).catch(() => [])
  if (usable.length === 0)
    throw new ConfigError('the OpenPGP key has no usable encryption key: RSA of 2048 bits or a curve')
  return new Secret(key)
}

export async function openPgpKey(binary: Buffer): Promise<Secret<PrivateKey>> {
  // A copy, because the caller erases its bytes, and the parser keeps views into the bytes that it gets.
  return new Secret(trustOldCurve(await readPrivateKey({ binaryKey: Uint8Array.from(binary), config: OPENPGP })))
}

async function unlock(armored: Secret, passphrase: Secret | undefined): Promise<PrivateKey> {
  const key = trustOldCurve(await readPrivateKey({ armoredKey: armored.reveal(), config: OPENPGP }))
  if (key.isDecrypted()) return key
  return trustOldCurve(await decryptKey({ privateKey: key, passphrase: passphrase?.reveal() ?? '', config: OPENPGP }))
}

/**
 * Accepts the subkeys of a secp256k1 key. On Node the library can't verify a secp256k1 signature (it needs a package
 * that it doesn't include), so it would ignore such a key's own subkeys. We need no proof that they belong to the key,
 * because the whole key is stored sealed; and an ECDH subkey can only decrypt. All other keys are left to the library.
 */
function trustOldCurve(key: PrivateKey): PrivateKey {
  const trusted = [key, ...key.subkeys].filter(part => {
    const { algorithm, curve } = part.getAlgorithmInfo()
    return algorithm === 'ecdh' && curve === 'secp256k1'
  })
  if (trusted.length === 0) return key
  const checked = key.getDecryptionKeys.bind(key)
  key.getDecryptionKeys = async (keyId, ...rest) => {
    const named = trusted.filter(part => !keyId || part.getKeyID().equals(keyId, true))
    return named.length > 0 ? named : checked(keyId, ...rest)
  }
  return key
}

/** The ids of a key and its subkeys, lower-case hex. */
export function pgpIdsOfKey(privateKey: Secret<PrivateKey>): string[] {
  return privateKey
    .reveal()
    .getKeys()
    .map(key => key.getKeyID().toHex())
}
