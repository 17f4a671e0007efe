// The numbers of scheme tokens, sealed with a separate data key. So the gateway, which shows the numbers, can get that key,
// with which it can't open cards (ring/shared-keys.ts).
import { type KeyObject, randomBytes } from 'node:crypto'
import { Fault } from '../errors.ts'
import { Secret } from '../secret.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'

/** Seals a number. `provisionId` names the number's row; the bytes can't be opened for another row. */
export function sealNetworkToken(key: KeyObject, number: Secret, provisionId: string): Buffer {
  return sealWith(key, randomBytes(NONCE_BYTES), number.reveal(), aadOf(provisionId))
}

/** Opens a number. Throws `Fault('defect')` if the bytes are another row's or another key's. */
export function openNetworkToken(key: KeyObject, sealed: Buffer, provisionId: string): Secret {
  try {
    return new Secret(openWith(key, sealed, aadOf(provisionId)).toString('latin1'))
  } catch (cause) {
    throw new Fault('defect', cause)
  }
}

const aadOf = (provisionId: string) => Buffer.from(`network-token ${provisionId}`)
