// Lifecycle notifications of MDES (`notifyTokenUpdated`): checks who sent them and reads them. The network doesn't sign
// them; it authenticates with a TLS client certificate. The reverse proxy that terminates TLS checks the certificate
// and adds the shared secret. The payload is encrypted to this installation. That keeps the content private but doesn't
// prove who sent it.
import { createHash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { EncryptedPayload, openPayload } from './mastercard.ts'
import { readExpiry, readPar, readSuspenders, TokenStatus } from './mdes-wire.ts'
import type { ProviderState, ProviderToken } from './provider.ts'
import type { MdesSettings } from './scheme-file.ts'

/**
 * A token's state as the network tells it. The notification with the later `at` is the newer one. The answer of
 * `get` outranks any notification.
 */
interface NotifiedToken {
  reference: string
  state: ProviderState
  suspendedBy: ProviderToken['suspendedBy']
  /** When the token entered that state, ms since the epoch; undefined if the network doesn't say. */
  at: number | undefined
  expiryMonth: number | undefined
  expiryYear: number | undefined
  par: string | undefined
  /** `SUSPECTED_FRAUD`, `DEVICE_LOST`, …; the network may use further words. */
  reason: string | undefined
}

export type Notification =
  | { notified: 'tokens'; requestId: string; tokens: NotifiedToken[] }
  /**
   * `unauthenticated`: answered with 401. `malformed`: answered with 400; also if decryption fails or the notification
   * is for another requestor.
   */
  | { notified: 'unauthenticated' | 'malformed' }

const Request = z.object({ requestId: z.string().min(1).max(128), encryptedPayload: EncryptedPayload })
const Tokens = z.object({
  tokens: z
    .array(
      z.object({
        ...TokenStatus.shape,
        tokenRequestorId: z.string().optional(),
        eventReasonCode: z.string().max(64).optional(),
        paymentAccountReference: z.string().max(64).optional(),
        tokenInfo: z.object({ tokenExpiry: z.string().regex(/^(0[1-9]|1[0-2])\d\d$/) }).optional(),
      }),
    )
    .min(1)
    .max(100),
})

/**
 * Checks and reads a notification. `authorization`: the header as received; `body`: the parsed JSON, whose size the
 * caller has limited.
 */
export function readNotification(
  settings: Pick<MdesSettings, 'keys' | 'notificationSecret' | 'tokenRequestorId'>,
  authorization: string | undefined,
  body: unknown,
): Notification {
  const { notificationSecret, keys, tokenRequestorId } = settings
  if (notificationSecret === undefined || !isSame(authorization, `Bearer ${notificationSecret.reveal()}`))
    return { notified: 'unauthenticated' }
  const request = Request.safeParse(body)
  if (!request.success) return { notified: 'malformed' }
  const content = Tokens.safeParse(openPayload(keys.decryptionKey, request.data.encryptedPayload))
  if (!content.success) return { notified: 'malformed' }
  const { tokens } = content.data
  if (tokens.some(token => (token.tokenRequestorId ?? tokenRequestorId) !== tokenRequestorId))
    return { notified: 'malformed' }
  return {
    notified: 'tokens',
    requestId: request.data.requestId,
    tokens: tokens.map(token => ({
      reference: token.tokenUniqueReference,
      state: token.status,
      suspendedBy: readSuspenders(token.suspendedBy),
      at: readMoment(token.statusTimestamp),
      ...readExpiry(token.tokenInfo?.tokenExpiry),
      par: readPar(token.paymentAccountReference),
      reason: token.eventReasonCode,
    })),
  }
}

/** Compares two texts in constant time, whatever their lengths. */
function isSame(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given ?? ''), digest(expected))
}

function readMoment(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
