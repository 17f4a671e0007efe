// The types of key to which a JWE may be encrypted, and the key algorithm of each. capture.ts makes the keys.
import type { KeyObject } from 'node:crypto'

export type JweKeyType = 'jwe-rsa' | 'jwe-ec'

/** The algorithm belongs to the key and is never taken from a message, so a key decrypts with one algorithm only. */
export const JWE_ALG = { 'jwe-rsa': 'RSA-OAEP-256', 'jwe-ec': 'ECDH-ES' } as const satisfies Record<JweKeyType, string>

export const RSA_BITS = { least: 2048, most: 4096 } as const

/** The JWK members that only a private or symmetric key has (RFC 7518, 6). */
export const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

/** The type of a JWE key; undefined for a key that isn't accepted. */
export function jweTypeOf(key: KeyObject): JweKeyType | undefined {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {}
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return modulusLength >= RSA_BITS.least && modulusLength <= RSA_BITS.most ? 'jwe-rsa' : undefined
    case 'ec':
      return namedCurve === 'prime256v1' ? 'jwe-ec' : undefined
    case 'x25519':
      return 'jwe-ec'
    default:
      return undefined
  }
}
