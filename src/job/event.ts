// The types of event to which a client can subscribe, their names over HTTP, and the jti of an attempt to deliver an
// event. Subscriptions and deliveries are handled elsewhere.

/**
 * Each event has one delivery per subscription; a receiver may get it more than once. A further revision of the same
 * subject is a further event.
 */
export const EVENTS = [
  'batch.finished',
  'batch.stalled',
  'report.succeeded',
  'report.failed',
  'scheme-token.updated',
  'reference.released',
  'capture-key.in-use',
  'key.expiring',
] as const
export type EventType = (typeof EVENTS)[number]

/** Also the events that only a results queue gets; nobody can subscribe to them. */
export const QUEUE_EVENTS = [...EVENTS, 'three-ds-notification'] as const

export function isQueueEvent(word: unknown): word is (typeof QUEUE_EVENTS)[number] {
  return QUEUE_EVENTS.some(known => known === word)
}

/** The event's type by the rules of Standard Webhooks: identifiers of `[a-zA-Z0-9_]` separated by full stops. */
export function webhookType(type: EventType): string {
  return type.replaceAll('-', '_')
}

const LETTERS = 'ghijklmnop'
const ATTEMPT = /^webhook-([a-p-]{36})-(\d{1,9})$/

/** The jti of an attempt. Digits of a UUID can look like a card number by chance, so they are replaced by letters. */
export function attemptJti({ deliveryId, attempt }: { deliveryId: string; attempt: number }): string {
  return `webhook-${deliveryId.replace(/\d/g, digit => LETTERS.charAt(Number(digit)))}-${attempt}`
}

export function attemptOf(jti: string): { deliveryId: string; attempt: number } | undefined {
  const [, letters, attempt] = ATTEMPT.exec(jti) ?? []
  if (letters === undefined) return undefined
  const deliveryId = letters.replace(/[g-p]/g, letter => String(LETTERS.indexOf(letter)))
  return { deliveryId, attempt: Number(attempt) }
}
