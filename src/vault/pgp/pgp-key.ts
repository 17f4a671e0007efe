// OpenPGP private keys for capture: made, imported and opened. The key-encryption key wraps their binary form; messages
// are in pgp.ts.
import { decryptKey, generateKey, type PrivateKey, readPrivateKey } from 'openpgp'
import { ConfigError } from '../../config.ts'
import { Secret } from '../../secret.ts'
import { OPENPGP, OPENPGP_DECRYPTION } from './pgp.ts'

/** Curve25519 in the version 4 form that every client in the field reads. */
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

/** Throws `ConfigError` where it can't be read, unlocked or decrypt cards. */
export async function readPgpKey(armored: Secret, passphrase: Secret | undefined): Promise<Secret<PrivateKey>> {
  const key = await unlock(armored, passphrase).catch(() => undefined)
  if (!key) throw new ConfigError('the OpenPGP private key can not be read, or the passphrase is wrong')
  // No date: an expired key still opens what was encrypted to it.
  const usable = await key.getDecryptionKeys(undefined, null, undefined, OPENPGP_DECRYPTION).catch(() => [])
  if (usable.length === 0)
    throw new ConfigError('the OpenPGP key has no usable encryption key: RSA of 2048 bits or a curve')
  return new Secret(key)
}

export async function openPgpKey(binary: Buffer): Promise<Secret<PrivateKey>> {
  // A copy: the caller erases its own, and the parser keeps views into what it is given.
  return new Secret(trustOldCurve(await readPrivateKey({ binaryKey: Uint8Array.from(binary), config: OPENPGP })))
}

async function unlock(armored: Secret, passphrase: Secret | undefined): Promise<PrivateKey> {
  const key = trustOldCurve(await readPrivateKey({ armoredKey: armored.reveal(), config: OPENPGP }))
  if (key.isDecrypted()) return key
  return trustOldCurve(await decryptKey({ privateKey: key, passphrase: passphrase?.reveal() ?? '', config: OPENPGP }))
}

/**
 * On Node the library can't verify a secp256k1 signature (it asks for a package that it doesn't bring), so that it would
 * pass over such a key's own subkeys. We need no proof of their binding, since the key-encryption key vouches for the whole;
 * and an ECDH subkey can do nothing but decrypt. Every other key goes the library's way.
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
