// Decrypts `encrypted_card`, whichever of the two envelopes it is. The token rules judge the plaintext; every failure
// to decrypt is the same refusal.
import { setImmediate } from 'node:timers/promises'
import { type Refusal, refuse } from '../errors.ts'
import { Secret } from '../secret.ts'
import type { CaptureKey } from './capture.ts'
import { openJwe } from './jwe.ts'
import { JWE_ALG } from './jwe-key.ts'
import { isArmored, openPgp } from './pgp/pgp.ts'

export const JWE_CARD_BYTES_MAX = 16 * 1024
/** Two layers of base64 around the same content. */
export const PGP_CARD_BYTES_MAX = 24 * 1024

const FIELD = 'body.encrypted_card'

/** The JSON text that the sender encrypted, or `card_undecryptable`, `cipher_unsupported` (IDEA), `card_malformed` (not UTF-8). */
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

/** Armor has its first line, a compact JWE its dots, base64 neither. */
function formOf(text: string): 'jwe' | 'pgp' {
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

/** How long decryptions may run in a row before other work gets its turn. */
const EVENT_LOOP_BUDGET_MS = 5

// There is one event loop per process, and so one budget.
let runEnds = 0
let opening: Promise<void> | undefined

/**
 * Runs `work` at once while the budget lasts, else after a turn of the event loop; in no particular order. Decrypting a
 * card blocks the event loop for a third of a millisecond: a batch with hundreds of cards would delay lock renewal and
 * other jobs.
 */
async function withinEventLoopBudget<T>(work: () => T): Promise<Awaited<T>> {
  // No await between check and work: of hundreds that wait, only those within the budget go on.
  while (performance.now() > runEnds) {
    opening ??= setImmediate().then(() => {
      runEnds = performance.now() + EVENT_LOOP_BUDGET_MS
      opening = undefined
    })
    await opening
  }
  return await work()
}
