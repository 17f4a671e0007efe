// The key ring: every data key of the vault, each unwrapped once and held only as a `KeyObject` (a raw key takes five
// times as long per card). Encrypted data name the version of their key. The store holds the wrapped keys; held-keys.ts
// follows them while the process works.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { assert, Fault } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import type { ReferencePlace } from '../../token/scheme.ts'
import { NONCE_BYTES, openWith, sealWith } from '../aead.ts'
import type { Keks, KeyProvider } from '../kek/provider.ts'
import { type NumberPlace, openNetworkToken, sealNetworkToken } from '../network-token.ts'
import { UUID_BYTES, writeUuid } from '../uuid-bytes.ts'
import { type CardPhase, type CardPrints, openCardPrints } from './card-prints.ts'
import { type HashRing, hashRingOf } from './hashes.ts'
import { type HeldKeys, holdKeys, type KeyRow, type KeySource } from './held-keys.ts'
import { type NewCards, openNewCards } from './new-cards.ts'
import { type RoleKey, type SharedName, shareKey } from './shared-keys.ts'

export const PURPOSES = [
  'seal',
  'fingerprint',
  'analytics',
  'digest',
  'api-key',
  'intake',
  'before-image',
  'three-ds',
  'network-token',
  'webhook',
  'owner',
  'manifest',
  'private-half',
  'audit',
  'grant',
  'receipt',
] as const
export type Purpose = (typeof PURPOSES)[number]

/** A data key as it is stored. `purpose`: one of `PURPOSES`; keys of other purposes are ignored. */
export interface WrappedKey extends KeyRow {
  /** The key-encryption key that wraps it. */
  kekId: string
  /** Null once the key is destroyed. */
  wrapped: Buffer | null
}

interface Sealed {
  /** Nonce, ciphertext, tag. */
  sealed: Buffer
  keyVersion: number
}

export interface KeyRing extends HashRing, CardPrints {
  /** The keys that it holds, as `purpose/version`. */
  names(): string[]
  /** Seals a PAN. `nonce`: 12 random bytes that were never used before; without it they are drawn here. */
  seal(pan: Secret, tokenId: string, tokenScope: string, nonce?: Buffer): Sealed
  /**
   * Fingerprints and seals many cards of a scope; undefined while cards are written or found under several versions.
   */
  newCards(tokenScope: string): NewCards | undefined
  /**
   * Opens a sealed PAN. Throws `Fault('key_unavailable')` if the version isn't on the ring, `Fault('defect')` if the
   * bytes are another row's.
   */
  open(sealed: Buffer, keyVersion: number, tokenId: string, tokenScope: string): Secret
  /** Seals a provider's name for a token for its row, so that whoever opens the seal knows that tokenmill wrote it there. */
  sealReference(place: ReferencePlace): Sealed
  /** Throws `Fault('defect')` if the seal is another name's or row's. */
  openReference(sealed: Buffer, keyVersion: number, place: ReferencePlace): void
  sealBeforeImage(json: Buffer, tokenId: string): Sealed
  openBeforeImage(sealed: Buffer, keyVersion: number, tokenId: string): Buffer
  /**
   * Seals CAVVs, challenges and contract keys of 3-D Secure. `row` names their row; the bytes can't be opened for
   * another row.
   */
  sealThreeDs(plain: Buffer, row: string): Sealed
  openThreeDs(sealed: Buffer, keyVersion: number, row: string): Buffer
  /** Seals the number of a scheme token for the row of its provisioning and for its token. */
  sealNetworkToken(number: Secret, place: NumberPlace): Sealed
  openNetworkToken(sealed: Buffer, keyVersion: number, place: NumberPlace): Secret
  /** Seals the secret that signs webhooks for the row of its endpoint. */
  sealWebhookSecret(secret: Secret, endpointId: string): Sealed
  openWebhookSecret(sealed: Buffer, keyVersion: number, endpointId: string): Secret
  /** Seals the key of a migration's total for the migration's row. */
  sealTotalKey(key: Secret<Buffer>, migration: string): Sealed
  openTotalKey(sealed: Buffer, keyVersion: number, migration: string): Secret<Buffer>
  /** Seals a private half, or the secret of a role's key. `name`: to what it belongs; it opens for that name only. */
  sealPrivateHalf(raw: Buffer, name: string): Sealed
  openPrivateHalf(sealed: Buffer, keyVersion: number, name: string): Buffer
  /** Encrypts a version of a data key to a role without the key-encryption key (ring/shared-keys.ts). */
  shareKey(name: SharedName, to: RoleKey): Promise<string>
}

/** A ring whose keys are replaced while the process works. */
export interface LiveRing extends KeyRing, Pick<HeldKeys<Purpose>, 'refresh' | 'reserve' | 'isTurning' | 'isAfresh'> {}

const KEY_BYTES = 32

/** Makes new keys in state ACTIVE, which the caller stores. */
export function makeDataKeys(kek: KeyProvider, purposes: readonly Purpose[], version = 1): Promise<WrappedKey[]> {
  return Promise.all(purposes.map(purpose => wrapDataKey(kek, { purpose, version }, randomBytes(KEY_BYTES))))
}

/** Wraps these 32 bytes as a data key, and erases them. */
async function wrapDataKey(
  kek: KeyProvider,
  { purpose, version }: Pick<WrappedKey, 'purpose' | 'version'>,
  raw: Buffer,
): Promise<WrappedKey> {
  const wrapped = await kek.wrap(raw, wrapPurpose(purpose, version))
  raw.fill(0)
  return { purpose, version, kekId: kek.id, wrapped, state: 'ACTIVE' }
}

/** Where a ring finds its keys and the phase of its cards, and where it reserves seals (`KeySource`). */
export interface RingSource extends Pick<KeySource<WrappedKey>, 'load' | 'reserve' | 'raise'> {
  /** Default: the active version. */
  loadPhase?: () => Promise<CardPhase>
}

/**
 * Unwraps the keys. Throws `Fault('key_unavailable')` if a key can't be unwrapped, or if a purpose doesn't have exactly
 * one ACTIVE key. A PENDING key that can't be unwrapped is left out; `onUnopened` gets its name.
 */
export async function openLiveRing(
  keks: Pick<Keks, 'find'>,
  source: RingSource,
  options: Parameters<typeof holdKeys>[2] = {},
): Promise<LiveRing> {
  let phase: CardPhase | undefined
  const load = async () => {
    // The phase is read before the keys: the keys that it names were stored before it, so they are among those read.
    const read = await source.loadPhase?.()
    const rows = await source.load()
    phase = read
    return rows
  }
  const held = await holdKeys({ ...source, load, open: row => unwrapKey(keks, row) }, PURPOSES, options)
  const ring = keyRingOf(held, () => phase)
  return { ...ring, refresh: held.refresh, reserve: held.reserve, isTurning: held.isTurning, isAfresh: held.isAfresh }
}

/** A ring of these keys, which doesn't follow the store. Its seals aren't counted. Throws as `openLiveRing` does. */
export function openKeyRing(keks: Pick<Keks, 'find'>, keys: readonly WrappedKey[]): Promise<LiveRing> {
  return openLiveRing(keks, { load: async () => keys })
}

/** The purpose for which a data key is wrapped: a key-encryption key unwraps it for that purpose only. */
export function wrapPurpose(purpose: string, version: number): string {
  return `data-key/${purpose}/${version}`
}

/** Unwraps one key. Throws `Fault('key_unavailable')` if it can't be unwrapped. */
export async function unwrapKey(
  keks: Pick<Keks, 'find'>,
  { purpose, version, kekId, wrapped }: WrappedKey,
): Promise<KeyObject> {
  if (!wrapped) throw new Fault('key_unavailable')
  const raw = await keks.find(kekId).unwrap(wrapped, wrapPurpose(purpose, version))
  assert(raw.length === KEY_BYTES, 'a data key has 32 bytes')
  const key = createSecretKey(raw)
  raw.fill(0)
  return key
}

function keyRingOf(held: HeldKeys<Purpose>, phaseNow: () => CardPhase | undefined): KeyRing {
  // One shared buffer, filled and read within each call. That is safe because no call awaits in between.
  const idAndScope = Buffer.alloc(2 * UUID_BYTES)
  const id = Buffer.alloc(UUID_BYTES)

  const rowAad = (tokenId: string, tokenScope: string) => {
    writeUuid(idAndScope, 0, tokenId)
    writeUuid(idAndScope, UUID_BYTES, tokenScope)
    return idAndScope
  }
  const imageAad = (tokenId: string) => {
    writeUuid(id, 0, tokenId)
    return id
  }
  const sealUnder = (
    purpose: Purpose,
    plain: Buffer | string,
    aad: Buffer,
    nonce: Buffer = randomBytes(NONCE_BYTES),
  ): Sealed => {
    const { key, version } = held.forSeal(purpose)
    return { sealed: sealWith(key, nonce, plain, aad), keyVersion: version }
  }
  const cardPrints = openCardPrints(held, phaseNow)
  return {
    ...hashRingOf(held),
    names: held.names,
    seal: (pan, tokenId, tokenScope, nonce) => {
      assert(nonce === undefined || nonce.length === NONCE_BYTES, 'a nonce has 12 bytes')
      return sealUnder('seal', pan.reveal(), rowAad(tokenId, tokenScope), nonce)
    },
    open: (sealed, keyVersion, tokenId, tokenScope) =>
      new Secret(openStored(held.find('seal', keyVersion), sealed, rowAad(tokenId, tokenScope)).toString('latin1')),
    sealReference: place => sealUnder('seal', '', referenceAad(place)),
    openReference: (sealed, keyVersion, place) => {
      openStored(held.find('seal', keyVersion), sealed, referenceAad(place))
    },
    ...cardPrints,
    newCards: tokenScope => openNewCards(held, cardPrints.cardPhase(), tokenScope),
    sealBeforeImage: (json, tokenId) => sealUnder('before-image', json, imageAad(tokenId)),
    openBeforeImage: (sealed, keyVersion, tokenId) =>
      openStored(held.find('before-image', keyVersion), sealed, imageAad(tokenId)),
    sealThreeDs: (plain, row) => sealUnder('three-ds', plain, Buffer.from(row)),
    openThreeDs: (sealed, keyVersion, row) => openStored(held.find('three-ds', keyVersion), sealed, Buffer.from(row)),
    sealNetworkToken: (number, place) => {
      const { key, version } = held.forSeal('network-token')
      return { sealed: sealNetworkToken(key, number, place), keyVersion: version }
    },
    openNetworkToken: (sealed, keyVersion, place) =>
      openNetworkToken(held.find('network-token', keyVersion), sealed, place),
    sealWebhookSecret: (secret, endpointId) => sealUnder('webhook', secret.reveal(), webhookAad(endpointId)),
    openWebhookSecret: (sealed, keyVersion, endpointId) =>
      new Secret(openStored(held.find('webhook', keyVersion), sealed, webhookAad(endpointId)).toString('latin1')),
    sealTotalKey: (key, migration) => sealUnder('manifest', key.reveal(), totalKeyAad(migration)),
    openTotalKey: (sealed, keyVersion, migration) =>
      new Secret(openStored(held.find('manifest', keyVersion), sealed, totalKeyAad(migration))),
    shareKey: (name, to) => shareKey(held.find(name.purpose, name.version), name, to),
    sealPrivateHalf: (raw, name) => sealUnder('private-half', raw, privateHalfAad(name)),
    openPrivateHalf: (sealed, keyVersion, name) => {
      const key = held.find('private-half', keyVersion)
      try {
        return openWith(key, sealed, privateHalfAad(name))
      } catch (cause) {
        throw new Fault('key_unavailable', cause)
      }
    },
  }
}

const webhookAad = (endpointId: string) => Buffer.from(`webhook ${endpointId}`)
/** A text of JSON: names of providers and tokens hold any character. */
const referenceAad = ({ provisionId, tokenId, provider, reference }: ReferencePlace) =>
  Buffer.from(JSON.stringify(['scheme-reference', provisionId, tokenId, provider, reference]))
const privateHalfAad = (name: string) => Buffer.from(`private-half ${name}`)
const totalKeyAad = (migration: string) => Buffer.from(`manifest-total ${migration}`)

function openStored(key: KeyObject, sealed: Buffer, aad: Buffer): Buffer {
  try {
    return openWith(key, sealed, aad)
  } catch (cause) {
    throw new Fault('defect', cause)
  }
}
