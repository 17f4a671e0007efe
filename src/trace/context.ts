// The position of a span: the ids of its trace and of itself, as a `traceparent` transports them (W3C Trace Context,
// version 00). Also the position of a batch's trace, which every process computes from the batch's id.
import { createHash } from 'node:crypto'
import { isBatchName } from './attributes.ts'

export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  /** The spans of this trace are recorded. */
  sampled: boolean
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 0x01

/** Parses a traceparent; undefined for any other text: such a header is ignored. */
export function readTraceparent(text: string): TraceContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/**
 * The root of a batch's trace. Each chunk is a trace of its own with a link to this root. Undefined for a batch whose
 * id could be a card number: the ids of the trace would be a hash of that number.
 */
export function batchContext(clientId: string, batchId: string): TraceContext | undefined {
  if (!isBatchName(batchId)) return undefined
  const hash = createHash('sha256').update(`batch\n${clientId}\n${batchId}`).digest('hex')
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), sampled: true }
}
