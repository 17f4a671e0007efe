// Explains what happened to a job. A person on call may name it by a token, a receipt, a jti, a reference, a failed
// job, a batch, or a line of its file. It changes nothing and never scans all receipts.

import type { BatchState } from '../../src/job/choices.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { RecordFacts } from './batch-line.ts'
import { factsOf, type JobName, type Sources, timeOf, whichAreQueued, whichAreStored } from './find-facts.ts'
import type { JobFacts } from './job-facts.ts'
import type { KnownClient, NamedBatch, ReadReceipt, ReadToken } from './job-reader.ts'

export interface TokenFacts {
  token: string
  /** The token's own id, a UUID. */
  token_id: string
  token_scope: string
  type: string
  status: string
  suspended_reason?: string
  created_at: string
  updated_at: string
}

export interface BatchFacts {
  batch: string
  client_id: string
  state: BatchState
  /** A command that shows more. */
  next: string
}

export interface Explanation {
  /** How the input was understood. */
  as: 'token' | 'receipt' | 'jti' | 'batch' | 'reference' | 'failed' | 'line' | 'nothing'
  token?: TokenFacts
  record?: RecordFacts
  /** The batches with this id; several clients may use the same id. */
  batches?: BatchFacts[]
  /** The jobs that were found, newest first. */
  jobs: JobFacts[]
  /** Sentences about what the search couldn't see, if that matters for the answer. */
  notes: string[]
}

export interface Question {
  what: string
  /** The batch in which the line or reference `what` is searched. */
  batch?: string | undefined
  /** Only jobs of this client are searched. */
  client?: Pick<KnownClient, 'clientId' | 'name'> | undefined
}

/** What a name was found to be: as `Explanation`, with the names of the jobs in place of their facts. */
export interface Found extends Omit<Explanation, 'jobs' | 'batches'> {
  jobs: JobName[]
  batches?: NamedBatch[]
}

const JOBS_MAX = 20
/** How many days back batches are searched for a reference if no batch was named. */
const BATCH_DAYS = 7
/** Without a client's name, a jti is searched for this many clients. */
const CLIENTS_MAX = 50
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export async function explain(question: Question, sources: Sources): Promise<Explanation> {
  const { batches, ...found } = await findJobs(question, sources)
  const jobs = await Promise.all(found.jobs.map(name => factsOf(name, sources)))
  return {
    ...found,
    ...(batches ? { batches: batches.map(batch => batchFacts(batch, batches.length > 1)) } : {}),
    jobs: jobs.filter(facts => facts !== undefined),
  }
}

/** Finds what a name means, without the facts of the jobs. */
export async function findJobs(question: Question, sources: Sources): Promise<Found> {
  if (question.batch !== undefined) return findInBatch(question, question.batch, sources)
  const { what } = question
  const { reader } = sources
  const token = await reader.token(what)
  if (token) return findTokenJobs(token, question, sources)
  if (UUID.test(what)) {
    const jobs = await findByReceipt(what.toLowerCase(), question, sources)
    if (jobs.length > 0) return { as: 'receipt', jobs, notes: [] }
  }
  const [byJti, batches, byReference] = await Promise.all([
    findByJti(question, sources),
    findBatches(question, sources),
    reader.byReference(what, JOBS_MAX),
  ])
  if (byJti.jobs.length > 0) return byJti
  if (batches.length > 0) return { as: 'batch', batches, jobs: [], notes: [] }
  const jobs = await namesOf(byReference, question, sources)
  if (jobs.length > 0) return { as: 'reference', jobs, notes: countNote(byReference.length) }
  const failed = await findFailedJobs(question, sources)
  if (failed) return failed
  const inBatches = await searchBatches(question, sources)
  return { ...inBatches, notes: [...byJti.notes, ...inBatches.notes] }
}

/** The job with this receipt; or of this operation, which has the id of its receipt to be. */
async function findByReceipt(id: string, question: Question, sources: Sources): Promise<JobName[]> {
  const names = await namesOf([id], question, sources)
  if (names.length > 0) return names
  const operation = await sources.reader.operation(id)
  if (!operation || !isOf(question, operation)) return []
  const { receiptId, clientId, jobId } = operation
  const client = (await knownClients(sources)).get(clientId) ?? unknownClient(clientId)
  return [{ receiptId, client, jti: undefined, jobId }]
}

async function findTokenJobs(token: ReadToken, question: Question, sources: Sources): Promise<Found> {
  const ids = await sources.reader.byToken(token.tokenId, JOBS_MAX)
  const last = token.lastReceipt
  // A chunk's receipt can't be found by its tokens. The token's row names the last receipt that changed it.
  const all = last === null || ids.includes(last) ? ids : [last, ...ids]
  return {
    as: 'token',
    token: tokenFacts(token),
    jobs: await namesOf(all, question, sources),
    notes: [...countNote(ids.length), 'Earlier chunks of batches that changed this token are not listed.'],
  }
}

export function tokenFacts(token: ReadToken): TokenFacts {
  const { name, tokenId, tokenScope, tokenType, status, suspendedReason, createdAt, updatedAt } = token
  return {
    token: name,
    token_id: tokenId,
    token_scope: tokenScope,
    type: tokenType,
    status,
    ...(suspendedReason === null ? {} : { suspended_reason: suspendedReason }),
    created_at: timeOf(createdAt),
    updated_at: timeOf(updatedAt),
  }
}

/**
 * Finds a job by its jti: the receipt's id is computed from client and jti. Copies in the failed set are searched
 * elsewhere.
 */
async function findByJti({ what, client }: Question, sources: Sources): Promise<Found> {
  const known = [...(await knownClients(sources)).values()]
  const asked = client ? known.filter(({ clientId }) => clientId === client.clientId) : known
  const names = asked.map(client => ({ receiptId: receiptId(client.clientId, what), client, jti: what }))
  const looked = names.slice(0, CLIENTS_MAX)
  const [stored, queued] = await Promise.all([whichAreStored(names, sources), whichAreQueued(looked, sources)])
  const ids = new Set(stored.map(name => name.receiptId))
  const jobs = [...stored, ...queued.filter(name => !ids.has(name.receiptId))]
  const left = names.length - looked.length
  const note = `The jti was looked for in the queues of ${looked.length} clients; ${left} are left: name one with --client.`
  return { as: 'jti', jobs, notes: left > 0 ? [note] : [] }
}

async function findBatches(question: Question, { reader }: Sources): Promise<NamedBatch[]> {
  return (await reader.batches(question.what)).filter(batch => isOf(question, batch))
}

function batchFacts(batch: NamedBatch, isShared: boolean): BatchFacts {
  const { batchId, clientId, state } = batch
  return { batch: batchId, client_id: clientId, state, next: showOf(batch, isShared) }
}

function showOf({ batchId, clientId }: NamedBatch, isShared: boolean): string {
  return `tokenmill batch show ${batchId}${isShared ? ` --client ${clientId}` : ''}`
}

/** A job that failed for good has no receipt, but a copy in the failed set. */
async function findFailedJobs({ what, client }: Question, sources: Sources): Promise<Found | undefined> {
  const found = await sources.reader.failed(what, client?.clientId)
  if (found.length === 0) return undefined
  const shown = found.slice(-JOBS_MAX).reverse()
  const known = await knownClients(sources)
  const jobs = shown.flatMap(({ client, jti }) => {
    if (client === undefined || jti === undefined) return []
    return [{ receiptId: receiptId(client.id, jti), client: known.get(client.id) ?? unknownClient(client.id), jti }]
  })
  const notes = shown.map(({ id, code }) => `It failed for good (${code}): tokenmill failed show ${id}`)
  return { as: 'failed', jobs, notes: [...notes, ...countNote(found.length)] }
}

/** States in which chunks may never be answered. */
const STOPPED: readonly BatchState[] = ['CANCELLED', 'ABANDONED', 'PAUSED', 'STALLED']

async function findInBatch(question: Question, batchId: string, sources: Sources): Promise<Found> {
  const named = await findBatches({ ...question, what: batchId }, sources)
  for (const batch of named) {
    const found = await sources.reader.rows?.find(batch, question.what)
    if (found) return recordOf(found, sources)
  }
  const stopped = named.flatMap(batch =>
    STOPPED.includes(batch.state) ? [`The batch is ${batch.state}: ${showOf(batch, named.length > 1)}`] : [],
  )
  const note =
    named.length === 0
      ? `There is no batch ${batchId}.`
      : `No chunk of ${batchId} that was answered so far holds ${question.what}: it is not sent yet, not answered yet, or its receipt is past its retention.`
  return { as: 'nothing', jobs: [], notes: [note, ...stopped] }
}

async function searchBatches({ what, client }: Question, sources: Sources): Promise<Found> {
  const { reader, now } = sources
  if (!reader.rows) return { as: 'nothing', jobs: [], notes: [] }
  const since = now - BATCH_DAYS * 86_400_000
  const { found, searched, batches } = await reader.rows.search(what, { since, clientId: client?.clientId })
  if (found) return recordOf(found, sources)
  const far = `${searched} of ${batches} batches of the last ${BATCH_DAYS} days were searched for it as a reference`
  const more = searched < batches ? `: name the batch with --batch` : ''
  return { as: 'nothing', jobs: [], notes: [`Nothing is known by that name; ${far}${more}.`] }
}

async function recordOf(
  { facts, receipt }: { facts: RecordFacts; receipt: ReadReceipt },
  sources: Sources,
): Promise<Found> {
  return { as: 'line', record: facts, jobs: await jobsOf([receipt], sources), notes: [] }
}

async function namesOf(ids: readonly string[], question: Question, sources: Sources): Promise<JobName[]> {
  const found = new Map((await sources.reader.receipts(ids)).map(receipt => [receipt.receiptId, receipt]))
  const wanted = ids.flatMap(id => found.get(id) ?? []).filter(receipt => isOf(question, receipt))
  return jobsOf(wanted, sources)
}

async function jobsOf(found: readonly ReadReceipt[], sources: Sources): Promise<JobName[]> {
  const known = found.length === 0 ? new Map<string, KnownClient>() : await knownClients(sources)
  return found.map(receipt => {
    const { receiptId, clientId, jti } = receipt
    return { receiptId, client: known.get(clientId) ?? unknownClient(clientId), jti, receipt }
  })
}

async function knownClients({ reader }: Sources): Promise<Map<string, KnownClient>> {
  return new Map((await reader.clients()).map(client => [client.clientId, client]))
}

/** A client that was removed, or that the reader may not see as a whole. */
function unknownClient(clientId: string): KnownClient {
  return { clientId, name: clientId, isWhole: false }
}

function isOf({ client }: Question, { clientId }: { clientId: string }): boolean {
  return client === undefined || client.clientId === clientId
}

function countNote(found: number): string[] {
  return found < JOBS_MAX ? [] : [`Only the newest ${JOBS_MAX} jobs are shown.`]
}
