// The events to which a client may be subscribed, the names that they have over HTTP, and the jti of an attempt to deliver
// one there. Who is subscribed, and how an event is delivered, is not decided here.

/** Each told once per subscription; a further revision of the same subject is a further event. */
export const EVENTS = [
  'batch.finished',
  'batch.stalled',
  'report.succeeded',
  'report.failed',
  'scheme-token.updated',
  'reference.released',
] as const
export type EventType = (typeof EVENTS)[number]

/** Further events of a results queue, which need no subscription and can have none. */
export const QUEUE_EVENTS = [...EVENTS, 'three-ds-notification'] as const

export function isQueueEvent(word: unknown): word is (typeof QUEUE_EVENTS)[number] {
  return QUEUE_EVENTS.some(known => known === word)
}

/** Standard Webhooks: identifiers of `[a-zA-Z0-9_]` between full stops. */
export function webhookType(type: EventType): string {
  return type.replaceAll('-', '_')
}

const LETTERS = 'ghijklmnop'
const ATTEMPT = /^webhook-([a-p-]{36})-(\d{1,9})$/

/** A jti must not look like a card number, which digits of a UUID do by chance: they become letters. */
export function attemptJti({ deliveryId, attempt }: { deliveryId: string; attempt: number }): string {
  return `webhook-${deliveryId.replace(/\d/g, digit => LETTERS.charAt(Number(digit)))}-${attempt}`
}

export function attemptOf(jti: string): { deliveryId: string; attempt: number } | undefined {
  const [, letters, attempt] = ATTEMPT.exec(jti) ?? []
  if (letters === undefined) return undefined
  const deliveryId = letters.replace(/[g-p]/g, letter => String(LETTERS.indexOf(letter)))
  return { deliveryId, attempt: Number(attempt) }
}
