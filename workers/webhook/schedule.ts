// Decides what follows an attempt to deliver a webhook: a pure rule over the receiver's answer and the schedule of
// attempts. Sending and storing are done elsewhere.
import type { Tried } from '../../src/store/event/deliveries.ts'

export interface WebhookSchedule {
  /** The delay before each attempt, in ms: the example of Standard Webhooks, about three days in total. */
  delaysMs: readonly number[]
  /** A random part of up to this share is added to each delay. */
  jitter: number
  /** The least pause, in ms, after a receiver answered that it gets too many requests, without `Retry-After`. */
  slowMs: number
}

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

export const SCHEDULE: WebhookSchedule = {
  delaysMs: [
    ...[0, 5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
    ...[2, 5, 10, 14, 20, 24].map(hours => hours * HOUR_MS),
  ],
  jitter: 0.1,
  slowMs: 30 * SECOND_MS,
}

/** The longest time that a receiver may ask for. */
const RETRY_AFTER_MS_MAX = 24 * HOUR_MS
/** Statuses by which the receiver, or a proxy in front of it, says that it gets too much. */
const OVERLOADED: ReadonlySet<number> = new Set([429, 502, 504])
const GONE = 410

/** `reason`: why there is no answer; docs/events.md lists the words. */
export type Answered = { status: number; retryAfter?: string | undefined } | { reason: string }

/** `slowMs`: from now on one request at a time, and none within this many ms. */
export type EndpointChange = 'disable' | 'recover' | { slowMs: number } | undefined

export interface Judged {
  tried: Tried
  endpoint: EndpointChange
}

/**
 * Decides. `step`: the place of this attempt in the schedule, from 0; `now`: ms since the epoch; `chance`: a random
 * number from 0 to 1.
 */
export function judge(
  answered: Answered,
  step: number,
  { delaysMs, jitter, slowMs }: WebhookSchedule,
  { now, chance }: { now: number; chance: number },
): Judged {
  const status = 'status' in answered ? answered.status : null
  if (status !== null && status >= 200 && status < 300)
    return { tried: { next: { state: 'DELIVERED' }, status, reason: null }, endpoint: 'recover' }
  const reason = 'reason' in answered ? answered.reason : reasonOf(answered.status)
  // The endpoint has ended (410), so the attempt doesn't count as failed: when an operator enables the endpoint, the
  // delivery is tried at once.
  if (status === GONE)
    return { tried: { next: { state: 'WAITING', inMs: 0, step }, status, reason }, endpoint: 'disable' }
  const askedMs = 'status' in answered ? retryAfterMs(answered.retryAfter, now) : undefined
  const endpoint = changeOf(answered, askedMs, slowMs)
  const delayMs = delaysMs[step + 1]
  if (delayMs === undefined) return { tried: { next: { state: 'FAILED' }, status, reason }, endpoint }
  const inMs = Math.max(Math.round(delayMs * (1 + jitter * chance)), askedMs ?? 0)
  return { tried: { next: { state: 'WAITING', inMs, step: step + 1 }, status, reason }, endpoint }
}

function changeOf(answered: Answered, askedMs: number | undefined, slowMs: number): EndpointChange {
  if (askedMs !== undefined) return { slowMs: askedMs }
  if ('reason' in answered) return answered.reason === 'timeout' ? { slowMs: 0 } : undefined
  return OVERLOADED.has(answered.status) ? { slowMs } : undefined
}

function reasonOf(status: number): string {
  if (status === GONE) return 'gone'
  return status >= 300 && status < 400 ? 'redirect' : 'status'
}

/** The `Retry-After` in ms. RFC 9110: seconds, or a date. */
function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined || value.trim() === '') return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * SECOND_MS : Date.parse(value) - now
  return Number.isFinite(ms) && ms >= 0 ? Math.min(ms, RETRY_AFTER_MS_MAX) : undefined
}
