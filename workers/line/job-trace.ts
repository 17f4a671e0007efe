// What log lines and the span say about a job while it is worked. They never name the client or its reference.
import { z } from 'zod'
import { toFault } from '../../src/errors.ts'
import { chunkSizeOf } from '../../src/job/envelope/chunk-size.ts'
import { isSystemClient } from '../../src/job/system-clients.ts'
import { TokenBatch } from '../../src/job/token-batch.ts'
import { couldBeCard, isBatchName } from '../../src/trace/attributes.ts'
import { batchContext, readTraceparent } from '../../src/trace/context.ts'
import type { Span } from '../../src/trace/tracer.ts'
import type { Deps } from '../deps.ts'
import type { End, Selection, Work } from '../work.ts'

/** The names of the job in a log line. */
export function namesOf(work: Work<unknown>): Record<string, string | number> {
  const { receiptId: receipt, trace } = work
  const batch = batchOf(work)
  return {
    receipt,
    ...(batch ? { batch: batch.id, chunk: batch.chunk } : {}),
    ...(trace === undefined ? {} : { trace }),
  }
}

/** The members of a chunk's request that identify it; the schemas of both kinds of chunk have them. */
const ChunkName = z.object({ batch_id: TokenBatch.shape.batch_id, chunk: TokenBatch.shape.chunk })

/**
 * The batch and chunk of a job. Undefined also if the batch's id could be a card number. The request may not have been
 * parsed, so only well-formed members are used.
 */
function batchOf({ entry, claims: { request } }: Work<unknown>): { id: string; chunk: number } | undefined {
  const isChunk = chunkSizeOf(entry, request) !== undefined
  const { data } = isChunk ? ChunkName.safeParse(request) : {}
  return data && isBatchName(data.batch_id) ? { id: data.batch_id, chunk: data.chunk } : undefined
}

/** Works the job with a logger that has the job's names, inside a span. */
export async function traced<D extends Deps>(
  work: Work<unknown>,
  deps: D,
  { probe }: Selection,
  run: (deps: D) => Promise<End>,
): Promise<End> {
  // A probe of bisection isn't an attempt and gets no span.
  const span = probe ? undefined : begin(work, deps)
  if (span) work.trace = span.context.traceId
  const own = { ...deps, log: deps.log.child(namesOf(work)) }
  if (!span) return run(own)
  try {
    const end = await run({ ...own, span })
    span.set({ 'job.outcome': end.end === 'later' ? 'LATER' : end.outcome })
    span.end()
    return end
  } catch (error) {
    span.end(toFault(error).code)
    throw error
  }
}

/**
 * Begins the job's span. A chunk has a trace of its own with a link to its batch: a trace of a whole batch would be too
 * long.
 */
function begin(work: Work<unknown>, deps: Deps): Span | undefined {
  if (!deps.tracer) return undefined
  const { claims, entry, client, receiptId, attempt, acceptedAt, now } = work
  const { kind, request, iss, jti, optional: { traceparent } = {} } = claims
  const batch = batchOf(work)
  const link = batch && batchContext(client.clientId, batch.id)
  return deps.tracer.start('job', {
    kind: 'consumer',
    parent: traceparent === undefined ? undefined : readTraceparent(traceparent),
    isOurs: isSystemClient(iss),
    links: link ? [link] : [],
    attributes: {
      'job.kind': kind,
      // Left out if the jti could be a card number, because the receipt's id is a hash of the jti.
      'job.receipt': couldBeCard(jti) ? undefined : receiptId,
      'job.attempt': attempt,
      'job.wait_ms': Math.max(0, Math.round(now - acceptedAt)),
      'batch.id': batch?.id,
      'batch.chunk': batch?.chunk,
      'batch.records': chunkSizeOf(entry, request),
    },
  })
}
