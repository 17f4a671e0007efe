// Decrypts OpenPGP messages that hold one card, in memory and with a limit on their size. Whole files are decrypted
// elsewhere, as streams.
import { decrypt, type PrivateKey, readMessage } from 'openpgp'
import type { Reason } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { isArmored } from './armor.ts'
import { OPENPGP, OPENPGP_DECRYPTION, PGP_PLAIN_BYTES_MAX } from './pgp-config.ts'
import { pgpIdsOfKey } from './pgp-key.ts'

/**
 * The most session-key packets of a message that may be for our key. Each costs a private-key operation, and a message
 * has room for many.
 */
const SESSION_KEYS_MAX = 4

/** The id of a key whose sender hides it (RFC 9580, 5.1.8). */
const HIDDEN = '0'.repeat(16)

/**
 * Decrypts a message. `text`: armor, or base64 of an armored or a binary message. Returns the plaintext, or the reason
 * why there is none.
 */
export async function openPgp(
  text: string,
  privateKey: Secret<PrivateKey>,
): Promise<Uint8Array | Extract<Reason, 'card_undecryptable' | 'cipher_unsupported'>> {
  try {
    const message = await readForm(text)
    const own = [HIDDEN, ...pgpIdsOfKey(privateKey)]
    const forUs = message.getEncryptionKeyIDs().filter(id => own.includes(id.toHex()))
    if (forUs.length > SESSION_KEYS_MAX) return 'card_undecryptable'
    const { data } = await decrypt({
      message,
      decryptionKeys: privateKey.reveal(),
      format: 'binary',
      config: OPENPGP_DECRYPTION,
    })
    return data.length > PGP_PLAIN_BYTES_MAX ? 'card_undecryptable' : data
  } catch (error) {
    // The session key was decrypted, but it is for IDEA, which the library doesn't have.
    return error instanceof Error && error.message.endsWith(': Unsupported cipher')
      ? 'cipher_unsupported'
      : 'card_undecryptable'
  }
}

/** The ids of the keys that a message names; none for a message that can't be read. A hidden one is all zeros. */
export async function pgpKeyIdsOf(text: string): Promise<string[]> {
  try {
    return (await readForm(text)).getEncryptionKeyIDs().map(id => id.toHex())
  } catch {
    return []
  }
}

async function readForm(text: string) {
  if (isArmored(text)) return readMessage({ armoredMessage: text.trim(), config: OPENPGP })
  const bytes = decodeBase64(text)
  const inner = bytes.toString('latin1', 0, 256)
  return isArmored(inner)
    ? readMessage({ armoredMessage: bytes.toString('latin1').trim(), config: OPENPGP })
    : readMessage({ binaryMessage: new Uint8Array(bytes), config: OPENPGP })
}

/** Decodes base64. Line breaks and missing padding are accepted, because some encoders make them; nothing else is. */
function decodeBase64(text: string): Buffer {
  const joined = text.replace(/\r?\n/g, '')
  const bytes = Buffer.from(joined, 'base64')
  const bare = (encoded: string) => encoded.replace(/={1,2}$/, '')
  if (bytes.length === 0 || bare(bytes.toString('base64')) !== bare(joined)) throw new Error('not base64')
  return bytes
}
