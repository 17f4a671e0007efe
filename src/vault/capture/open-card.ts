// Decrypts `encrypted_card`, which is a JWE or an OpenPGP message. The token rules check the plaintext. Every failure
// to decrypt gives the same refusal, except for a message in the cipher IDEA.
import { type Refusal, refuse } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import { type Urgency, withinEventLoopBudget } from '../event-loop-budget.ts'
import { openJwe } from '../jwe.ts'
import { JWE_ALG } from '../jwe-key.ts'
import { isArmored } from '../pgp/armor.ts'
import type { CaptureKey } from './capture-key.ts'

export const JWE_CARD_BYTES_MAX = 16 * 1024
/** Larger than for a JWE, because two layers of base64 surround the same content. */
export const PGP_CARD_BYTES_MAX = 24 * 1024

const FIELD = 'body.encrypted_card'

/**
 * Returns the JSON text that the sender encrypted, or the refusal `card_undecryptable`, `cipher_unsupported` (IDEA) or
 * `card_malformed` (not UTF-8).
 */
export async function openCard(
  encryptedCard: string,
  key: CaptureKey,
  urgency: Urgency = { isBackground: false },
): Promise<Secret | Refusal> {
  const form = formOf(encryptedCard)
  if (form !== (key.type === 'pgp' ? 'pgp' : 'jwe')) return refuse('card_undecryptable', FIELD)
  if (key.type === 'pgp') {
    if (encryptedCard.length > PGP_CARD_BYTES_MAX) return refuse('card_undecryptable', FIELD)
    const { openPgp } = await import('../pgp/pgp.ts')
    const opened = await withinEventLoopBudget(() => openPgp(encryptedCard, key.privateKey), urgency)
    return typeof opened === 'string' ? refuse(opened, FIELD) : decode(opened)
  }
  return withinEventLoopBudget(() => openJweCard(encryptedCard, key), urgency)
}

/** The same for a JWE, at once. */
export function openJweCard(jwe: string, key: CaptureKey): Secret | Refusal {
  if (key.type === 'pgp') return refuse('card_undecryptable', FIELD)
  const opened = openJwe(jwe, key.privateKey, JWE_ALG[key.type], JWE_CARD_BYTES_MAX)
  return opened ? decode(opened.plain) : refuse('card_undecryptable', FIELD)
}

/** The form of an encrypted card. Armor has its first line, a compact JWE has dots, base64 has neither. */
export function formOf(text: string): 'jwe' | 'pgp' {
  return !isArmored(text) && text.includes('.') ? 'jwe' : 'pgp'
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function decode(plain: Uint8Array): Secret | Refusal {
  try {
    return new Secret(strictUtf8.decode(plain))
  } catch {
    return refuse('card_malformed', FIELD)
  } finally {
    plain.fill(0)
  }
}
