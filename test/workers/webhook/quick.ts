// The schedule of attempts as tests have it: as many as the real one has, and quick ones.
import type { WebhookOptions } from '../../../workers/webhook/post.ts'

export const QUICK = {
  schedule: { delaysMs: [0, 50, 100, 200, 300, 300, 300, 300, 300, 300], jitter: 0.1, slowMs: 50 },
  timeoutMs: 800,
} as const satisfies WebhookOptions

/** Of a job that its queue lost. */
export const LEASE_MS = 3_000
