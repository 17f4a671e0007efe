// What of OpenPGP is accepted, where a message holds one card. Whole files have options of their own.
import { type Config, config } from 'openpgp'
import './pgp-library.ts'

export const PGP_PLAIN_BYTES_MAX = 8 * 1024

/** Every option that decides what is accepted is set here, so that the library's defaults don't matter. */
export const OPENPGP: Config = {
  ...config,
  allowUnauthenticatedMessages: false,
  allowUnauthenticatedStream: false,
  allowInsecureDecryptionWithSigningKeys: false,
  ignoreMalformedPackets: false,
  enforceGrammar: true,
  maxDecompressedMessageSize: PGP_PLAIN_BYTES_MAX,
  minRSABits: 2047,
  // The library's own "constant-time" decryption is a BigInt exponentiation per cipher: it takes 50 ms per RSA message
  // and isn't constant in time. Node's PKCS #1 decryption is: OpenSSL 3.2 and later answers wrong padding with random
  // bytes.
  constantTimePKCS1Decryption: false,
}

/** Used only to decrypt: keys of old clients are on secp256k1, and nothing new is encrypted to such keys. */
export const OPENPGP_DECRYPTION: Config = { ...OPENPGP, rejectCurves: new Set() }
