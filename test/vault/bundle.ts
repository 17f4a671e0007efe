// What the vault’s tests share: a key-encryption key in a file, and one capture key of each type.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../src/secret.ts'
import {
  CAPTURE_KEY_TYPES,
  type CaptureKey,
  type CaptureKeyRecord,
  type CaptureKeyType,
  makeCaptureKey,
  openCaptureKey,
} from '../../src/vault/capture/capture-key.ts'
import { type PublicCaptureKey, readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { fileKeyProvider, makeKekFile } from '../../src/vault/kek/file.ts'
import { type KeyProvider, keksOf } from '../../src/vault/kek/provider.ts'
import { openPrivateHalves, type PrivateHalves } from '../../src/vault/private-half.ts'
import { makeDataKeys, openKeyRing, PURPOSES } from '../../src/vault/ring/key-ring.ts'

export interface Pair {
  record: CaptureKeyRecord
  key: CaptureKey
  to: PublicCaptureKey
}

export const PAN = '4111111111111111'
export const CARD = { cardNumber: PAN, expiryMonth: '12', expiryYear: '2030', captureTime: '2026-01-01T00:00:00Z' }
export const CARD_TEXT = JSON.stringify(CARD)

/** Makes a temporary folder, which `close` removes. */
export async function openFolder(): Promise<{ path: string; close: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'tokenmill-vault-'))
  return { path, close: () => rm(path, { recursive: true, force: true }) }
}

/** Makes a key-encryption key in a file. Keys in a token are proved in pkcs11/. */
export async function openKek(): Promise<KeyProvider> {
  const folder = await openFolder()
  try {
    await makeKekFile(join(folder.path, 'kek'))
    return await fileKeyProvider(join(folder.path, 'kek'))
  } finally {
    await folder.close()
  }
}

/** Opens private halves with a new key ring. */
export async function openHalves(kek: KeyProvider): Promise<PrivateHalves> {
  return openPrivateHalves(await openKeyRing(keksOf(kek), await makeDataKeys(kek, PURPOSES)))
}

export async function pairOf(record: CaptureKeyRecord, halves: PrivateHalves): Promise<Pair> {
  return {
    record,
    key: await openCaptureKey(record, halves),
    to: await readPublicCaptureKey(record.alias, record.publicKey),
  }
}

export async function openPairs(halves: PrivateHalves): Promise<Record<CaptureKeyType, Pair>> {
  const made = CAPTURE_KEY_TYPES.map(async type => [
    type,
    await pairOf(await makeCaptureKey(type, `key-${type}`, halves), halves),
  ])
  return Object.fromEntries(await Promise.all(made)) as Record<CaptureKeyType, Pair>
}

/** The plaintext of what `openCard` answered, or the refusal itself. */
export function revealed(answer: unknown): unknown {
  return answer instanceof Secret ? answer.reveal() : answer
}
