// Where a span stands: its trace and its own id, as they travel in a `traceparent` (W3C Trace Context, version 00), and
// the trace of a batch, which every process finds by the batch's name.
import { createHash } from 'node:crypto'
import { isBatchName } from './attributes.ts'

export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  /** Its spans are recorded. */
  sampled: boolean
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 0x01

/** Undefined for a text that isn't one: such a header is ignored. */
export function readTraceparent(text: string): TraceContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/**
 * Chunks of a batch are traces of their own, and each has a link to this one. A batch whose name could be a card number
 * has none: its ids would be a hash of that number.
 */
export function batchContext(clientId: string, batchId: string): TraceContext | undefined {
  if (!isBatchName(batchId)) return undefined
  const hash = createHash('sha256').update(`batch\n${clientId}\n${batchId}`).digest('hex')
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), sampled: true }
}
