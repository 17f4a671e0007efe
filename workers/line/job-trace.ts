// What is told of a job while it is worked: names for its log lines and, where traces are on, its span. Whose job it is
// and what it refers to is told to nobody.
import { toFault } from '../../src/errors.ts'
import { isSystemClient } from '../../src/job/catalogue.ts'
import { chunkSizeOf } from '../../src/job/chunk-size.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { batchContext, readTraceparent } from '../../src/trace/context.ts'
import type { Span } from '../../src/trace/tracer.ts'
import type { Deps } from '../deps.ts'
import type { End, Selection, Work } from './work.ts'

/** Its names in a log line. */
export function namesOf({ claims, receiptId: receipt, trace }: Work<unknown>): Record<string, string | number> {
  const batch = batchOf(claims.request)
  return {
    receipt,
    ...(batch ? { batch: batch.id, chunk: batch.chunk } : {}),
    ...(trace === undefined ? {} : { trace }),
  }
}

/** A batch is named as in `tokenmill batch show`, unless its name could be a card number. */
function batchOf({ batch_id: id, chunk }: Record<string, unknown>): { id: string; chunk: number } | undefined {
  return typeof id === 'string' && typeof chunk === 'number' && !holdsPossiblePan(id) ? { id, chunk } : undefined
}

/** Works the job; its log lines bear its names, and its steps are in its span. */
export async function traced(
  work: Work<unknown>,
  deps: Deps,
  { probe }: Selection,
  run: (deps: Deps) => Promise<End>,
): Promise<End> {
  // A probe is no attempt at the job.
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

/** A chunk stands alone, with a link to its batch: a trace of a whole batch would have no end. */
function begin({ claims, client, receiptId, attempt, acceptedAt, now }: Work<unknown>, deps: Deps): Span | undefined {
  if (!deps.tracer) return undefined
  const { kind, request, iss, traceparent } = claims
  const { batch_id: batchId } = request
  const batch = batchOf(request)
  return deps.tracer.start('job', {
    kind: 'consumer',
    parent: traceparent === undefined ? undefined : readTraceparent(traceparent),
    isOurs: isSystemClient(iss),
    links: typeof batchId === 'string' ? [batchContext(client.clientId, batchId)] : [],
    attributes: {
      'job.kind': kind,
      'job.receipt': receiptId,
      'job.attempt': attempt,
      'job.wait_ms': Math.max(0, Math.round(now - acceptedAt)),
      'batch.id': batch?.id,
      'batch.chunk': batch?.chunk,
      'batch.records': chunkSizeOf(kind, request),
    },
  })
}
