// What TLS is spoken, by whatever connects or listens: 1.3, or 1.2 with forward secrecy and authenticated encryption.
// Certificates are another matter: how they are checked is up to who connects.
import tls from 'node:tls'

const SUITES = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
]

/** For connections that are opened in somebody else's process, too. */
export const TLS_POLICY = { minVersion: 'TLSv1.2', ciphers: SUITES.join(':') } as const

/** Makes it the default of this process, for every library that opens connections without a word on TLS. */
export function restrictTls(): void {
  tls.DEFAULT_MIN_VERSION = TLS_POLICY.minVersion
  tls.DEFAULT_CIPHERS = TLS_POLICY.ciphers
}
