// The numbers of scheme tokens, sealed with a separate data key. So the gateway, which shows the numbers, can get that key,
// with which it can't open cards (ring/shared-keys.ts).
import { type KeyObject, randomBytes } from 'node:crypto'
import { Fault } from '../errors.ts'
import { Secret } from '../secret.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'

/** The row of a number, and the token that it is shown with: the bytes can't be opened for another row or token. */
export interface NumberPlace {
  provisionId: string
  tokenId: string
}

export function sealNetworkToken(key: KeyObject, number: Secret, place: NumberPlace): Buffer {
  return sealWith(key, randomBytes(NONCE_BYTES), number.reveal(), aadOf(place))
}

/** Throws `Fault('defect')` if the bytes are another row's, token's or key's. */
export function openNetworkToken(key: KeyObject, sealed: Buffer, place: NumberPlace): Secret {
  try {
    return new Secret(openWith(key, sealed, aadOf(place)).toString('latin1'))
  } catch (cause) {
    throw new Fault('defect', cause)
  }
}

const aadOf = ({ provisionId, tokenId }: NumberPlace) => Buffer.from(`network-token ${provisionId} ${tokenId}`)
