// A schedule for tests, with as many attempts as the real one and short delays.
import type { WebhookOptions } from '../../../workers/webhook/post.ts'

export const QUICK = {
  schedule: { delaysMs: [0, 50, 100, 200, 300, 300, 300, 300, 300, 300], jitter: 0.1, slowMs: 50 },
  timeoutMs: 800,
} as const satisfies WebhookOptions

/** The lease after which a lost job is sent again, in ms. */
export const LEASE_MS = 3_000
