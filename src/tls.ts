// The TLS policy for every connection, incoming and outgoing: TLS 1.3, or TLS 1.2 with forward secrecy and
// authenticated encryption. Each client decides how it verifies certificates.
import tls from 'node:tls'

const SUITES = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
]

/** The policy for libraries that take TLS options of their own. */
export const TLS_POLICY = { minVersion: 'TLSv1.2', ciphers: SUITES.join(':') } as const

/** Makes the policy the default of this process, for libraries that open connections without TLS options. */
export function restrictTls(): void {
  tls.DEFAULT_MIN_VERSION = TLS_POLICY.minVersion
  tls.DEFAULT_CIPHERS = TLS_POLICY.ciphers
}
