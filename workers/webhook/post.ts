// Posts a webhook: https to public addresses, except to the private hosts of this worker's own settings; no redirects, and
// one deadline. Only status and Retry-After of the answer are read. No row of the store permits an address.
import { OutboundError, openOutbound } from '../../src/outbound.ts'
import { readVersion } from '../../src/version.ts'
import { type Answered, SCHEDULE, type WebhookSchedule } from './schedule.ts'

export interface Webhooks {
  schedule: WebhookSchedule
  post(target: { url: string }, webhook: SignedWebhook): Promise<Answered>
  close(): Promise<void>
}

export interface SignedWebhook {
  id: string
  /** Seconds since the epoch. */
  timestamp: number
  signature: string
  body: string
}

/** Tests set other values, to shorten the schedule's days. */
export interface WebhookOptions {
  schedule?: WebhookSchedule
  timeoutMs?: number
}

const TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 4_096

export function openWebhooks(
  privateHosts: readonly string[],
  { schedule = SCHEDULE, timeoutMs = TIMEOUT_MS }: WebhookOptions = {},
): Webhooks {
  // Without a limit of connections: endpoints on one host would share it and make each other late. The store limits the
  // requests to each endpoint.
  const outbound = openOutbound({ privateHosts })
  const agent = `tokenmill/${readVersion()}`
  return {
    schedule,
    async post({ url }, { id, timestamp, signature, body }) {
      try {
        const { status, headers } = await outbound.request(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': agent,
            'webhook-id': id,
            'webhook-timestamp': String(timestamp),
            'webhook-signature': signature,
          },
          body,
          timeoutMs,
          bytesMax: ANSWER_BYTES_MAX,
          statusOnly: true,
        })
        return { status, retryAfter: headers['retry-after'] }
      } catch (error) {
        if (error instanceof OutboundError) return { reason: error.kind }
        throw error
      }
    },
    close: outbound.close,
  }
}
