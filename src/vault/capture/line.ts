// Decrypts with the keys of a line: those that may belong to one alias. The message usually says which key it is for;
// else each key of its form is tried, newest first. A line has at most KEYS_MAX keys, so nobody makes a worker try more.
import { isRefusal, type Refusal, refuse } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import type { Urgency } from '../event-loop-budget.ts'
import { jweKidOf } from '../jwe.ts'
import { openBlock } from './block.ts'
import type { CaptureKey } from './capture-key.ts'
import { KEYS_MAX } from './keys-max.ts'
import { formOf, openCard, openJweCard, PGP_CARD_BYTES_MAX } from './open-card.ts'

export interface LineKey {
  keyId: string
  key: CaptureKey
}

/** Newest first. */
export type Line = readonly LineKey[]

/** The plaintext, and the key that opened it. */
export interface OpenedCard {
  plaintext: Secret
  keyId: string
}

/** Opens a card in any form; else the refusal of `openCard`. */
export async function openCardByLine(
  encryptedCard: string,
  line: Line,
  urgency?: Urgency,
): Promise<OpenedCard | Refusal> {
  let refusal = refuse('card_undecryptable', 'body.encrypted_card')
  for (const { keyId, key } of await candidates(encryptedCard, line)) {
    const plaintext = await openCard(encryptedCard, key, urgency)
    if (!isRefusal(plaintext)) return { plaintext, keyId }
    refusal = plaintext
    // Any other reason says that this key decrypted the message.
    if (plaintext.reason !== 'card_undecryptable') break
  }
  return refusal
}

/** The same for a card in the form of a JWE, without a pause: the caller keeps within the event loop's budget. */
export function openJweByLine(jwe: string, line: Line): OpenedCard | Refusal {
  let refusal = refuse('card_undecryptable', 'body.encrypted_card')
  for (const { keyId, key } of byKid(jwe, line)) {
    const plaintext = openJweCard(jwe, key)
    if (!isRefusal(plaintext)) return { plaintext, keyId }
    refusal = plaintext
    if (plaintext.reason !== 'card_undecryptable') break
  }
  return refusal
}

/** The block's plaintext, and the key that opened it; else the refusal of `openBlock`. */
export async function openBlockByLine(
  block: string,
  line: Line,
  binding: { iss: string; jti: string },
): Promise<{ plaintext: Buffer; keyId: string } | Refusal> {
  for (const { keyId, key } of byKid(block, line)) {
    const plaintext = await openBlock(block, key, binding)
    if (!isRefusal(plaintext)) return { plaintext, keyId }
  }
  return refuse('block_undecryptable', 'body.request.block')
}

async function candidates(message: string, line: Line): Promise<Line> {
  if (line.length <= 1) return line
  return formOf(message) === 'pgp' ? byPgpKeyId(message, line) : byKid(message, line)
}

/** RFC 7516, 4.1.6. Senders that have no thumbprint name the alias, which stands for each key of the line. */
function byKid(jwe: string, line: Line): Line {
  if (line.length <= 1) return line
  const kid = jweKidOf(jwe)
  const jwes = line.filter(({ key }) => key.type !== 'pgp')
  // Some aliases are thumbprints themselves.
  const named = jwes.filter(({ key }) => key.type !== 'pgp' && key.kid === kid && key.alias !== kid)
  return (named.length > 0 ? named : jwes).slice(0, KEYS_MAX)
}

/** RFC 9580, 5.1: a message names the keys it is for, unless its sender hid them. */
async function byPgpKeyId(message: string, line: Line): Promise<Line> {
  const ids = message.length > PGP_CARD_BYTES_MAX ? [] : await keyIdsOf(message)
  const named = line.filter(({ key }) => key.type === 'pgp' && key.keyIds.some(id => ids.includes(id)))
  return (named.length > 0 ? named : line.filter(({ key }) => key.type === 'pgp')).slice(0, KEYS_MAX)
}

async function keyIdsOf(message: string): Promise<string[]> {
  const { pgpKeyIdsOf } = await import('../pgp/pgp.ts')
  return pgpKeyIdsOf(message)
}
