// Lifecycle notifications of MDES (`notifyTokenUpdated`): is it from the network, and what does it say. The network
// knows no signature for these; it shows a TLS client certificate, which whatever ends TLS before us checks and turns
// into the shared secret. The payload is encrypted to us, which keeps it private and proves nothing.
import { createHash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { EncryptedPayload, openPayload } from './mastercard.ts'
import { readExpiry, readPar, readSuspenders, TokenStatus } from './mdes-wire.ts'
import type { ProviderState, ProviderToken } from './provider.ts'
import type { MdesSettings } from './scheme-file.ts'

/** What the network says of a token. Believe the state of the later `at`; a token asked for (`get`) is truer still. */
export interface NotifiedToken {
  reference: string
  state: ProviderState
  suspendedBy: ProviderToken['suspendedBy']
  /** When it came into that state, ms since the epoch; undefined where the network doesn't say. */
  at: number | undefined
  expiryMonth: number | undefined
  expiryYear: number | undefined
  par: string | undefined
  /** `SUSPECTED_FRAUD`, `DEVICE_LOST`, …: further words may come. */
  reason: string | undefined
}

export type Notification =
  | { notified: 'tokens'; requestId: string; tokens: NotifiedToken[] }
  /** `unauthenticated`: 401. `malformed`: 400; also where it can't be opened or is meant for another requestor. */
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

/** `authorization`: the header as it came. `body`: the parsed JSON, bounded by the caller. */
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

/** Of any lengths, in the same time. */
function isSame(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given ?? ''), digest(expected))
}

function readMoment(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
