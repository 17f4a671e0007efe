// Explains an OpenPGP file that can't be read: what it is instead, or what is wrong with it, and what to do. The
// explanation is chosen by the library's message, the packets that were seen and the beginning of the file, and quotes
// none of them.
import type { Key } from 'openpgp'
import { FileError } from '../file-error.ts'
import { type DecryptionKeys, partsOf } from './keys.ts'

export interface Seen {
  /** A part of the message was decrypted. */
  opened: boolean
  /** The first bytes of the file. */
  head: Buffer
  /** The tags of its packets and of those within a compressed one (RFC 9580 section 5). */
  tags: readonly number[]
  /** The ciphers of its session keys, as far as they were opened (RFC 9580 section 9.3, RFC 5581). */
  ciphers: readonly number[]
  needs: Needs
}

/** Which keys the message needs, by id, and which there are. */
export interface Needs {
  recipients: readonly string[]
  /** Undefined if the message wasn't opened. */
  signers: readonly string[] | undefined
  keys: { decryption: DecryptionKeys; verification: readonly Key[] | undefined }
}

const UNSIGNED = /not signed|signing key|[Ss]ignature|signed by|key is revoked|key is expired/
const UNOPENED =
  /No decryption key packets|Key Data Integrity|Session key decryption failed|Decryption error|Decryption failed|Gnu-dummy/

const VERDICTS: readonly (readonly [RegExp, 'usage' | 'input', string, string])[] = [
  [/^stalled$/, 'input', 'is damaged inside.', 'Fetch the file again; nothing of it was used.'],
  [
    /Unexpected end of packet|ended early|truncated/,
    'input',
    'ends too early: the OpenPGP message is cut off.',
    'Fetch the file again; nothing of it was used.',
  ],
  [
    /not authenticated/,
    'input',
    'is encrypted without integrity protection.',
    'Have it encrypted anew by a current program (gpg 2.1 or newer).',
  ],
  [
    /Modification detected|authenticate|tag mismatch/i,
    'input',
    'was changed after it was encrypted: its integrity check fails.',
    'Fetch the file again; nothing of it was used.',
  ],
]

const TAG = { pkesk: 1, signature: 2, skesk: 3, onePass: 4, literal: 11 } as const
const ENCRYPTED: readonly number[] = [9, 18, 20]
const KEYS: readonly number[] = [5, 6, 7, 14]

const CIPHERS: ReadonlyMap<number, string> = new Map([
  [1, 'IDEA'],
  [4, 'Blowfish'],
  [10, 'Twofish'],
  [11, 'Camellia-128'],
  [12, 'Camellia-192'],
  [13, 'Camellia-256'],
])
const CIPHER_LACKS = /Unsupported cipher|non-preferred symmetric algorithm/

const TO_A_KEY = 'Have it encrypted to the public key of --decrypt-key.'

/** The error to report. A message of the library may quote its input, so it is only compared and never shown. */
export function explain(name: string, error: unknown, seen: Seen): unknown {
  if (error instanceof FileError) return error
  const text = error instanceof Error ? error.message : ''
  const say = (kind: 'usage' | 'input', wrong: string, next: string) =>
    new FileError(kind, `${name} ${wrong}`, next, error)
  const kind = seen.opened ? undefined : kindOf(seen, text)
  if (kind) return say('input', kind.wrong, kind.next)
  if (UNSIGNED.test(text)) {
    const { wrong, next } = signatureFault(seen.needs, text)
    return say('input', wrong, next)
  }
  if (UNOPENED.test(text)) {
    const { wrong, next } = keyFault(seen.needs)
    return say('usage', wrong, next)
  }
  const verdict = VERDICTS.find(([pattern]) => pattern.test(text))
  if (verdict !== undefined) return say(verdict[1], verdict[2], verdict[3])
  return seen.opened
    ? say('input', 'is damaged inside.', 'Fetch the file again; nothing of it was used.')
    : say('input', 'is no OpenPGP message that can be read.', 'Check what it is, or fetch it again.')
}

const NOTHING_USED = 'nothing of it was used.'

/** Why no signature counts. */
function signatureFault({ signers = [], keys }: Needs, text: string): Kind {
  if (signers.length === 0) return { wrong: 'is not signed.', next: `Have it signed by the sender; ${NOTHING_USED}` }
  const held = (keys.verification ?? []).flatMap(partsOf).map(({ id }) => id)
  const signer = signers.find(id => held.includes(id))
  if (signer === undefined)
    return {
      wrong: `is signed by ${named(signers)}, and --verify-key holds ${named(held)}.`,
      next: `Ask the sender which key signed it; ${NOTHING_USED}`,
    }
  if (/revoked/.test(text))
    return {
      wrong: `is signed by the key ${signer}, which its owner has revoked.`,
      next: `Have it signed by a current key; ${NOTHING_USED}`,
    }
  if (/expired/.test(text))
    return {
      wrong: `is signed by the key ${signer}, which had expired then.`,
      next: `Have it signed by a current key; ${NOTHING_USED}`,
    }
  return {
    wrong: `bears no valid signature of the key ${signer} in --verify-key.`,
    next: `Ask the sender about it; ${NOTHING_USED}`,
  }
}

/** Why no key opens the message. An id of zeros hides whom it is for. */
function keyFault({ recipients, keys: { decryption } }: Needs): Kind {
  const open = decryption.open.flatMap(partsOf)
  const locked = decryption.locked.flatMap(partsOf)
  const isNamed = ({ id }: { id: string }) => recipients.includes(id)
  const stub = open.find(part => isNamed(part) && part.isStub)
  if (stub)
    return {
      wrong: `is encrypted to the key ${stub.id}, of which the file of --decrypt-key holds no secret part.`,
      next: 'Export it where the key is (gpg --export-secret-keys, or --export-secret-subkeys).',
    }
  if (open.some(isNamed))
    return {
      wrong: 'is encrypted to the key in --decrypt-key, and its beginning is damaged.',
      next: `Fetch the file again; ${NOTHING_USED}`,
    }
  const shut = locked.find(isNamed)
  if (shut)
    return {
      wrong: `is encrypted to the key ${shut.id}, which the passphrase does not open.`,
      next: 'Give its passphrase in TOKENMILL_PGP_PASSPHRASE.',
    }
  const known = recipients.filter(id => !/^0+$/.test(id))
  const held = [...open, ...locked].map(({ id }) => id)
  const told = known.length === 0 ? 'a key that it does not name' : named(known)
  return {
    wrong: `is encrypted to ${told}, and --decrypt-key holds ${named(held)}.`,
    next: 'Give the key it was encrypted to.',
  }
}

const NAMED_MAX = 8

function named(ids: readonly string[]): string {
  const shown = ids.slice(0, NAMED_MAX).join(', ')
  const more = ids.length > NAMED_MAX ? ' and others' : ''
  return `${ids.length === 1 ? 'the key' : 'the keys'} ${shown}${more}`
}

interface Kind {
  wrong: string
  next: string
}

/** What the file is, if it is well-formed but isn't a message encrypted to a key with a supported cipher. */
function kindOf({ head, tags, ciphers }: Seen, text: string): Kind | undefined {
  const armor = armorKindOf(head)
  if (armor) return armor
  if (CIPHER_LACKS.test(text)) {
    const named = ciphers.flatMap(cipher => CIPHERS.get(cipher) ?? [])[0]
    const next = 'Have it encrypted with AES (gpg --cipher-algo AES256).'
    return { wrong: `is encrypted with a cipher that is not supported${named ? `: ${named}` : ''}.`, next }
  }
  const has = (...kinds: readonly number[]) => tags.some(tag => kinds.includes(tag))
  if (has(...ENCRYPTED)) {
    if (has(TAG.pkesk) || !has(TAG.skesk)) return undefined
    return { wrong: 'is encrypted with a password only, to no key.', next: TO_A_KEY }
  }
  if (has(TAG.signature, TAG.onePass) && has(TAG.literal)) {
    return { wrong: 'is signed only, not encrypted.', next: TO_A_KEY }
  }
  if (has(TAG.signature)) return SIGNATURE
  if (has(TAG.literal)) return { wrong: 'is an OpenPGP message that is not encrypted.', next: TO_A_KEY }
  return tags.length === 0 && KEYS.includes(tagOf(head)) ? KEY : undefined
}

const SIGNATURE = { wrong: 'is a signature alone, without what was signed.', next: 'Give the encrypted file itself.' }
const KEY = { wrong: 'is an OpenPGP key, not a message.', next: 'Give the encrypted file itself.' }

/** What an armored file is, by the first line of its armor. */
function armorKindOf(head: Buffer): Kind | undefined {
  const text = head.toString('latin1')
  const found = /^-----BEGIN PGP ([A-Z ]+)-----/m.exec(text)
  if (!found) return undefined
  const [, what = ''] = found
  if (text.slice(0, found.index).trim() !== '') {
    const next = 'Remove all that stands before -----BEGIN PGP MESSAGE-----.'
    return { wrong: 'has text before its OpenPGP armor.', next }
  }
  if (what === 'SIGNED MESSAGE') return { wrong: 'is clear-signed text, not encrypted.', next: TO_A_KEY }
  if (what === 'SIGNATURE') return SIGNATURE
  return what.endsWith('KEY BLOCK') ? KEY : undefined
}

/** The tag of the first packet, in the new form or the old one (RFC 9580 section 4.2); 0 for no packet. */
function tagOf([first = 0]: Buffer): number {
  if (first < 0x80) return 0
  return first & 0x40 ? first & 0x3f : (first >> 2) & 0x0f
}
