// Schedules for tests, with as many attempts as the real one and short delays.
import type { WebhookOptions } from '../../../workers/webhook/post.ts'

const schedule = { delaysMs: [0, 50, 100, 200, 300, 300, 300, 300, 300, 300], jitter: 0.1, slowMs: 50 }

/** Gives a receiver up after a short time, which a process that stands still may exceed: then there is one try more. */
export const QUICK = { schedule, timeoutMs: 800 } as const satisfies WebhookOptions

/** Gives up no receiver that answers, so that tries can be counted. */
export const PATIENT = { schedule, timeoutMs: 15_000 } as const satisfies WebhookOptions

/** A worker's script, and the lease after which a lost job is sent again, in ms. */
export interface Pace {
  script: string
  leaseMs: number
}

export const PACES = {
  quick: { script: 'worker.ts', leaseMs: 3_000 },
  patient: { script: 'patient-worker.ts', leaseMs: 60_000 },
} as const satisfies Record<string, Pace>
