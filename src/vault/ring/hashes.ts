// The keyed hashes and codes of the vault. Each is stored beside the version of its key, and compared under that version,
// so that the key can be replaced while stored values stay as they are. card-prints.ts makes the hashes of cards.
import { createHmac, type KeyObject } from 'node:crypto'
import { Fault } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { hashApiKey } from './api-key.ts'
import type { Hashed, HeldKeys } from './held-keys.ts'

/** A function that ends in `By`, but `grantMacBy` and `receiptMacBy`, throws `Fault('key_unavailable')` if the ring has no such version. */
export interface HashRing {
  /**
   * The keyed hash by which a receipt recognises the same request. Throws `Fault('key_unavailable')` if the rows of the
   * keys weren't read for a while: then another key may have taken this one's place.
   */
  requestDigest(canonicalText: string): Hashed
  requestDigestBy(canonicalText: string, keyVersion: number): Buffer
  /** The keyed hash of an owner's ids (`ownerKey`), which is kept after the ids are erased. Throws as `requestDigest`. */
  ownerHash(ownerKey: string): Hashed
  /** The hashes of an owner's ids under every version that the ring holds: stored ones may be under any of them. */
  ownerHashes(ownerKey: string): Buffer[]
  /** The versions of `ownerHashes`. */
  ownerVersions(): number[]
  /** The keyed hash of an API key. */
  apiKeyHash(userId: string, apiKey: Secret): Hashed
  apiKeyHashBy(userId: string, apiKey: Secret, keyVersion: number): Buffer
  /** The MAC of an audit row's hash. */
  auditMac(hash: Buffer): { mac: Buffer; keyVersion: number }
  auditMacBy(hash: Buffer, keyVersion: number): Buffer
  /** The code of a row that grants rights, over the row's text. */
  grantMac(text: string): { mac: Buffer; keyVersion: number }
  /**
   * The code by a named version; undefined if the ring has no such version, or if a compromise of that version has ended: then
   * tokenmill has coded its rows anew, and only a thief still uses the version. Throws `Fault('key_unavailable')` for a version
   * above all that the ring has: another process may already use a newer key.
   */
  grantMacBy(text: string, keyVersion: number): Buffer | undefined
  /** The code of a row that says what was decided, or what is told of it: 16 bytes over the row's text. */
  receiptMac(text: string): { mac: Buffer; keyVersion: number }
  /**
   * The code by a named version; undefined if the ring has no such version. A version whose compromise has ended still counts:
   * no row is coded anew. Throws `Fault('key_unavailable')` for a version above all that the ring has, as `grantMacBy` does.
   */
  receiptMacBy(text: string, keyVersion: number): Buffer | undefined
}

/** Half of HMAC-SHA-256: to guess it takes 2^128 rows. Each job writes two of them. */
const RECEIPT_MAC_BYTES = 16

type HashPurpose = 'digest' | 'owner' | 'api-key' | 'audit' | 'grant' | 'receipt'

export function hashRingOf(held: HeldKeys<HashPurpose>): HashRing {
  const named = (purpose: 'digest' | 'owner', text: string): Hashed => {
    const { key, version } = held.forHash(purpose)
    return { hash: hmac(key, text), keyVersion: version }
  }
  return {
    requestDigest: text => named('digest', text),
    requestDigestBy: (text, keyVersion) => hmac(held.find('digest', keyVersion), text),
    ownerHash: ownerKey => named('owner', ownerKey),
    ownerHashes: ownerKey => held.versions('owner').map(version => hmac(held.find('owner', version), ownerKey)),
    ownerVersions: () => held.versions('owner'),
    apiKeyHash: (userId, apiKey) => {
      const { key, version } = held.current('api-key')
      return { hash: hashApiKey(key, userId, apiKey), keyVersion: version }
    },
    apiKeyHashBy: (userId, apiKey, keyVersion) => hashApiKey(held.find('api-key', keyVersion), userId, apiKey),
    auditMac: hash => {
      const { key, version } = held.current('audit')
      return { mac: hmac(key, hash), keyVersion: version }
    },
    auditMacBy: (hash, keyVersion) => hmac(held.find('audit', keyVersion), hash),
    grantMac: text => {
      const { key, version } = held.current('grant')
      return { mac: hmac(key, text), keyVersion: version }
    },
    grantMacBy: (text, keyVersion) => {
      const versions = held.versions('grant')
      if (held.isEnded('grant', keyVersion)) return undefined
      if (versions.includes(keyVersion)) return hmac(held.find('grant', keyVersion), text)
      if (keyVersion > Math.max(...versions)) throw new Fault('key_unavailable')
      return undefined
    },
    receiptMac: text => {
      const { key, version } = held.current('receipt')
      return { mac: shortHmac(key, text), keyVersion: version }
    },
    receiptMacBy: (text, keyVersion) => {
      const versions = held.versions('receipt')
      if (versions.includes(keyVersion)) return shortHmac(held.find('receipt', keyVersion), text)
      if (keyVersion > Math.max(...versions)) throw new Fault('key_unavailable')
      return undefined
    },
  }
}

function shortHmac(key: KeyObject, text: string): Buffer {
  return hmac(key, text).subarray(0, RECEIPT_MAC_BYTES)
}

function hmac(key: KeyObject, what: string | Buffer): Buffer {
  return createHmac('sha256', key).update(what).digest()
}
