// Posts a webhook: https to public addresses, unless the endpoint may be private; no redirects, and one deadline. Only
// status and Retry-After of the answer are read. The installation's list of private hosts has no effect here.
import { type Outbound, OutboundError, openOutbound } from '../../src/outbound.ts'
import { readVersion } from '../../src/version.ts'
import { type Answered, SCHEDULE, type WebhookSchedule } from './schedule.ts'

export interface Webhooks {
  schedule: WebhookSchedule
  post(target: { url: string; isPrivate: boolean }, webhook: SignedWebhook): Promise<Answered>
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

export function openWebhooks({ schedule = SCHEDULE, timeoutMs = TIMEOUT_MS }: WebhookOptions = {}): Webhooks {
  // Two clients, so that an open connection to a private address never serves an endpoint that may not have one. They
  // have no limit of connections: endpoints on one host would share it and make each other late. The store limits the
  // requests to each endpoint.
  const open: Record<'public' | 'private', Outbound> = {
    public: openOutbound({ privateHosts: [] }),
    private: openOutbound({ privateHosts: 'any' }),
  }
  const agent = `tokenmill/${readVersion()}`
  return {
    schedule,
    async post({ url, isPrivate }, { id, timestamp, signature, body }) {
      try {
        const { status, headers } = await open[isPrivate ? 'private' : 'public'].request(url, {
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
    async close() {
      await Promise.all(Object.values(open).map(outbound => outbound.close()))
    },
  }
}
