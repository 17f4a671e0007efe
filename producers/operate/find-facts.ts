// Finds everything that is known of one job: in the store by a reader, and in the queues. Commands and pages explain a job by
// these functions.
import { textOf } from '../../src/errors.ts'
import { type Catalogue, resultsQueue } from '../../src/job/catalogue.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { type FailedJob, failedCopies } from '../../src/queue/failed.ts'
import type { Announced, CallFacts, JobFacts } from './job-facts.ts'
import type { JobReader, KnownClient, ReadAnnouncement, ReadCall, ReadOperation, ReadReceipt } from './job-reader.ts'
import { nextSteps } from './next-steps.ts'
import { timelineOf } from './timeline.ts'
import { isUnread } from './unread-results.ts'

export interface Sources {
  reader: JobReader
  /** Undefined: they don't answer, and where a job is now isn't known. */
  queues: Queues | undefined
  catalogue: Catalogue
  /** ms since the epoch. */
  now: number
  /**
   * Until when results queues and the failed set are searched, by `performance.now()`; undefined: to their ends. What was
   * not searched is said.
   */
  until?: number
}

/** Names one job. */
export interface JobName {
  receiptId: string
  client: KnownClient
  /** Undefined if only the receipt's id is known. */
  jti: string | undefined
  /** The id of the job in its queue; undefined: it follows from client and jti. */
  jobId?: string | undefined
  /** The receipt, if it was looked up already. */
  receipt?: ReadReceipt | undefined
}

/** Those of the names that have a receipt or another stored answer, found by one look-up. */
export async function whichAreStored(names: readonly JobName[], { reader }: Sources): Promise<JobName[]> {
  const ids = names.map(({ receiptId }) => receiptId)
  const [found, told] = await Promise.all([reader.receipts(ids), reader.told(ids)])
  const receiptOf = new Map(found.map(receipt => [receipt.receiptId, receipt]))
  return names.flatMap(name => {
    const receipt = receiptOf.get(name.receiptId)
    return receipt || (name.client.isWhole && told.includes(name.receiptId)) ? [{ ...name, receipt }] : []
  })
}

/** Those of the names that are in a queue. */
export async function whichAreQueued(names: readonly JobName[], { queues, catalogue }: Sources): Promise<JobName[]> {
  if (!queues) return []
  const queued = await Promise.all(
    names.map(async name => {
      const id = name.client.isWhole ? idOf(name) : undefined
      return id === undefined ? undefined : findQueued(queues, catalogue.kinds, id)
    }),
  )
  return names.filter((_, index) => queued[index] !== undefined)
}

function idOf({ client, jti, jobId: known }: JobName): string | undefined {
  return known ?? (jti === undefined ? undefined : jobId(client.clientId, jti))
}

/** The facts of a job; undefined if nothing about it is stored or queued, or the reader may see nothing of it. */
export async function factsOf(name: JobName, sources: Sources): Promise<JobFacts | undefined> {
  const { reader } = sources
  const { receiptId, client } = name
  const [receipt = undefined, operation] = await Promise.all([
    name.receipt ? Promise.resolve(name.receipt) : reader.receipts([receiptId]).then(([found]) => found),
    reader.operation(receiptId),
  ])
  // Without a receipt or an operation nobody has verified whose job it is.
  if (!receipt && !operation && !client.isWhole) return undefined
  const [rows, calls] = await Promise.all([reader.announcements(receiptId), reader.calls(receiptId)])
  const id = operation?.jobId ?? idOf({ ...name, jti: receipt?.jti ?? name.jti })
  const place = await findPlace(id, receipt, sources)
  if (!receipt && !operation && rows.length === 0 && !place.queued && !place.failed) return undefined
  const jti = receipt?.jti ?? name.jti ?? rows.find(({ says }) => says?.jti !== undefined)?.says?.jti
  const facts = {
    receipt_id: receiptId,
    client: { id: client.clientId, name: client.name },
    ...(jti === undefined ? {} : { jti }),
    ...(operation ? { kind: operation.kind } : {}),
    ...(receipt ? await decidedBy(receipt, reader) : {}),
    ...(operation ? { operation: operationFacts(operation) } : {}),
    calls: calls.map(callFacts),
    told: await Promise.all(rows.map(row => announced(row, sources))),
    ...place,
  }
  return { ...facts, timeline: timelineOf(facts), next: nextSteps(facts) }
}

async function findPlace(
  id: string | undefined,
  receipt: ReadReceipt | undefined,
  sources: Sources,
): Promise<Pick<JobFacts, 'queued' | 'failed' | 'failed_set_is_cut'>> {
  const { queues, catalogue } = sources
  if (id === undefined || !queues) return {}
  const queued = await findQueued(queues, receipt ? [receipt.kind] : catalogue.kinds, id)
  if (queued) return { queued }
  return receipt ? {} : findFailed(id, { ...sources, queues })
}

async function decidedBy(receipt: ReadReceipt, reader: JobReader): Promise<Partial<JobFacts>> {
  const token = receipt.tokenId === null ? undefined : await reader.tokenName(receipt.tokenId)
  return {
    kind: receipt.kind,
    ...(receipt.reference === null ? {} : { reference: receipt.reference }),
    ...(receipt.iss === receipt.clientId ? {} : { signed_by: receipt.iss }),
    accepted_at: timeOf(receipt.acceptedAt),
    attempts: receipt.attempt,
    decided: {
      at: timeOf(receipt.completedAt),
      status: receipt.status,
      code: receipt.code,
      ...(receipt.outcome === null ? {} : { outcome: receipt.outcome }),
      reasons: (receipt.refusal ?? []).map(one => ({ field: one.field, reason: one.reason, text: textOf(one) })),
      ...(token === undefined ? {} : { token }),
      ...(receipt.chunk === null ? {} : { chunk: receipt.chunk }),
      ...(receipt.counts === null ? {} : { counts: receipt.counts }),
      ...(receipt.reversal === null ? {} : { reversal: receipt.reversal }),
    },
  }
}

function operationFacts({ state, acceptedAt, expiresAt }: ReadOperation): NonNullable<JobFacts['operation']> {
  return { state, accepted_at: timeOf(acceptedAt), until: timeOf(expiresAt) }
}

function callFacts({ action, state, refusal, reversal, createdAt, updatedAt }: ReadCall): CallFacts {
  return {
    action,
    state,
    ...(refusal === null ? {} : { refusal }),
    ...(reversal === null ? {} : { reversal }),
    recorded_at: timeOf(createdAt),
    changed_at: timeOf(updatedAt),
  }
}

const UNTOLD: Partial<Record<ReadAnnouncement['state'], Announced['state']>> = { NEW: 'waiting', UNPROVED: 'unproved' }
const FOUND = { found: 'unread', missing: 'read', unknown: 'published' } as const

async function announced(row: ReadAnnouncement, { queues, until }: Sources): Promise<Announced> {
  const { says } = row
  const isThere = row.state !== 'SENT' || !queues ? 'unknown' : await isUnread(row, queues, until)
  return {
    revision: row.revision,
    at: timeOf(row.createdAt),
    queue: resultsQueue(row.clientId, row.replyTo),
    ...(row.replyTo === null ? {} : { reply_to: row.replyTo }),
    state: UNTOLD[row.state] ?? FOUND[isThere],
    ...(says ? { says: { code: says.code, reasons: says.reasons } } : {}),
  }
}

async function findQueued(queues: Queues, kinds: readonly string[], id: string): Promise<JobFacts['queued']> {
  const states = await Promise.all(kinds.map(async kind => ({ kind, state: await queues.stateOf(kind, id) })))
  for (const { kind, state } of states) {
    if (state === undefined) continue
    const workers = await queues.workersOf(kind)
    return { queue: kind, state, ...(workers === undefined ? {} : { workers }) }
  }
  return undefined
}

async function findFailed(
  id: string,
  { queues, catalogue, until = Number.POSITIVE_INFINITY }: Sources & { queues: Queues },
): Promise<Pick<JobFacts, 'failed' | 'failed_set_is_cut'>> {
  for (const kind of catalogue.kinds) {
    for await (const copy of failedCopies(queues, kind)) {
      if (copy.jobId === id) return { failed: failedFacts(catalogue.find(copy.kind) ? copy.kind : kind, copy) }
      if (performance.now() > until) return { failed_set_is_cut: true }
    }
  }
  return {}
}

function failedFacts(kind: string, copy: FailedJob): NonNullable<JobFacts['failed']> {
  return {
    id: copy.id,
    kind,
    code: copy.code,
    attempts: copy.attempt,
    at: timeOf(copy.failedAt),
    can_be_retried: copy.jws !== '',
  }
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
