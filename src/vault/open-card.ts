// Decrypts `encrypted_card`, which is a JWE or an OpenPGP message. The token rules check the plaintext. Every failure
// to decrypt gives the same refusal, except for a message in the cipher IDEA.
import { setImmediate } from 'node:timers/promises'
import { type Refusal, refuse } from '../errors.ts'
import { Secret } from '../secret.ts'
import type { CaptureKey } from './capture.ts'
import { openJwe } from './jwe.ts'
import { JWE_ALG } from './jwe-key.ts'
import { isArmored, openPgp } from './pgp/pgp.ts'

export const JWE_CARD_BYTES_MAX = 16 * 1024
/** Larger than for a JWE, because two layers of base64 surround the same content. */
export const PGP_CARD_BYTES_MAX = 24 * 1024

const FIELD = 'body.encrypted_card'

/**
 * Returns the JSON text that the sender encrypted, or the refusal `card_undecryptable`, `cipher_unsupported` (IDEA) or
 * `card_malformed` (not UTF-8).
 */
export async function openCard(encryptedCard: string, key: CaptureKey): Promise<Secret | Refusal> {
  const form = formOf(encryptedCard)
  if (form !== (key.type === 'pgp' ? 'pgp' : 'jwe')) return refuse('card_undecryptable', FIELD)
  if (key.type === 'pgp') {
    if (encryptedCard.length > PGP_CARD_BYTES_MAX) return refuse('card_undecryptable', FIELD)
    const opened = await withinEventLoopBudget(() => openPgp(encryptedCard, key.privateKey))
    return typeof opened === 'string' ? refuse(opened, FIELD) : decode(opened)
  }
  const opened = await withinEventLoopBudget(() =>
    openJwe(encryptedCard, key.privateKey, JWE_ALG[key.type], JWE_CARD_BYTES_MAX),
  )
  return opened ? decode(opened.plain) : refuse('card_undecryptable', FIELD)
}

/** The form of an encrypted card. Armor has its first line, a compact JWE has dots, base64 has neither. */
export function formOf(text: string): 'jwe' | 'pgp' {
  return !isArmored(text) && text.includes('.') ? 'jwe' : 'pgp'
}

function decode(plain: Uint8Array): Secret | Refusal {
  try {
    return new Secret(new TextDecoder('utf-8', { fatal: true }).decode(plain))
  } catch {
    return refuse('card_malformed', FIELD)
  } finally {
    plain.fill(0)
  }
}

/** How long decryptions may run without a pause before other work gets its turn, in ms. */
const EVENT_LOOP_BUDGET_MS = 5

// A process has one event loop, so there is one budget.
let runEnds = 0
let opening: Promise<void> | undefined

/**
 * Runs `work` at once while the budget lasts, else after a turn of the event loop; the order isn't kept. Decrypting a
 * card blocks the event loop for a third of a millisecond: a batch with hundreds of cards would delay lock renewals and
 * other jobs.
 */
async function withinEventLoopBudget<T>(work: () => T): Promise<Awaited<T>> {
  // There is no await between this check and `work`, so of hundreds that wait only those within the budget go on.
  while (performance.now() > runEnds) {
    opening ??= setImmediate().then(() => {
      runEnds = performance.now() + EVENT_LOOP_BUDGET_MS
      opening = undefined
    })
    await opening
  }
  return await work()
}
