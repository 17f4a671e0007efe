// Explains what happened to a job. A person on call may name it by a token, a receipt, a jti, a reference, a failed
// job, a batch, or a line of its file. It changes nothing and never scans all receipts.
import { receiptId } from '../../src/job/envelope/ids.ts'
import type { Client } from '../../src/store/access/clients.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { type BatchState, stateOf } from '../../src/store/batch/batch-state.ts'
import * as search from '../../src/store/job/receipt-search.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import * as shownTokens from '../../src/store/token/shown-tokens.ts'
import { parseReuseToken, reuseTokenOf, type TokenRow } from '../../src/token/token.ts'
import { type FoundRecord, findLine, findReference, type RecordFacts } from './batch-line.ts'
import { findFailed } from './failed-set.ts'
import { factsOf, type JobFacts, type Sources, timeOf, whichAreQueued, whichAreStored } from './job-facts.ts'

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
  client?: Pick<Client, 'clientId' | 'name'> | undefined
}

const JOBS_MAX = 20
/** How many days back, and for how long, batches are searched for a reference if no batch was named. */
const BATCH_DAYS = 7
const SEARCH_MS = 2_000
const BATCHES_MAX = 10_000
/** Without a client's name, a jti is searched for this many clients. */
const CLIENTS_MAX = 50
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export async function explain(question: Question, sources: Sources): Promise<Explanation> {
  if (question.batch !== undefined) return explainInBatch(question, question.batch, sources)
  const { what } = question
  const token = await findToken(what, sources)
  if (token) return explainToken(token, question, sources)
  if (UUID.test(what)) {
    const receipt = await receipts.find(sources.store, what.toLowerCase())
    if (receipt && isOf(question, receipt)) return { as: 'receipt', jobs: await jobsOf([receipt], sources), notes: [] }
  }
  const [byJti, batches, ids] = await Promise.all([
    explainJti(question, sources),
    explainBatches(question, sources),
    search.findByReference(sources.store, what, JOBS_MAX),
  ])
  if (byJti.jobs.length > 0) return byJti
  if (batches) return batches
  const jobs = await jobsOf(await receiptsOf(ids, question, sources), sources)
  if (jobs.length > 0) return { as: 'reference', jobs, notes: countNote(ids.length) }
  const failed = await explainFailed(question, sources)
  if (failed) return failed
  const inBatches = await searchBatches(question, sources)
  return { ...inBatches, notes: [...byJti.notes, ...inBatches.notes] }
}

async function findToken(what: string, { store }: Sources): Promise<TokenRow | undefined> {
  const id = parseReuseToken(what) ?? (UUID.test(what) ? what.toLowerCase() : undefined)
  if (id !== undefined) return shownTokens.find(store, id)
  const [token] = what.length >= 14 ? await shownTokens.findByThirdParty(store, what) : []
  return token
}

async function explainToken(token: TokenRow, question: Question, sources: Sources): Promise<Explanation> {
  const ids = await search.findByToken(sources.store, token.tokenId, JOBS_MAX)
  const last = token.lastReceipt
  // A chunk's receipt can't be found by its tokens. The token's row names the last receipt that changed it.
  const all = last === null || ids.includes(last) ? ids : [last, ...ids]
  const { tokenId, tokenScope, tokenType, status, suspendedReason, createdAt, updatedAt } = token
  return {
    as: 'token',
    token: {
      token: reuseTokenOf(token),
      token_id: tokenId,
      token_scope: tokenScope,
      type: tokenType,
      status,
      ...(suspendedReason === null ? {} : { suspended_reason: suspendedReason }),
      created_at: timeOf(createdAt),
      updated_at: timeOf(updatedAt),
    },
    jobs: await jobsOf(await receiptsOf(all, question, sources), sources),
    notes: [...countNote(ids.length), 'Earlier chunks of batches that changed this token are not listed.'],
  }
}

/**
 * Finds a job by its jti: the receipt's id is computed from client and jti. Copies in the failed set are searched
 * elsewhere.
 */
async function explainJti(question: Question, sources: Sources): Promise<Explanation> {
  const asked = question.client ? [question.client] : await clients.list(sources.store)
  const names = asked.map(client => ({
    receiptId: receiptId(client.clientId, question.what),
    client,
    jti: question.what,
  }))
  const looked = names.slice(0, CLIENTS_MAX)
  const [stored, queued] = await Promise.all([whichAreStored(names, sources), whichAreQueued(looked, sources)])
  const ids = new Set(stored.map(name => name.receiptId))
  const known = [...stored, ...queued.filter(name => !ids.has(name.receiptId))]
  const found = await Promise.all(known.map(name => factsOf(name, sources)))
  const left = names.length - looked.length
  return {
    as: 'jti',
    jobs: found.filter(facts => facts !== undefined),
    notes:
      left > 0
        ? [
            `The jti was looked for in the queues of ${looked.length} clients; ${left} are left: name one with --client.`,
          ]
        : [],
  }
}

async function explainBatches(question: Question, sources: Sources): Promise<Explanation | undefined> {
  const named = (await batchList.findById(sources.store, question.what)).filter(batch => isOf(question, batch))
  if (named.length === 0) return undefined
  const batches = named.map(batch => ({
    batch: batch.batchId,
    client_id: batch.clientId,
    state: stateOf(batch, sources.now),
    next: showOf(batch, named.length > 1),
  }))
  return { as: 'batch', batches, jobs: [], notes: [] }
}

function showOf({ batchId, clientId }: Batch, isShared: boolean): string {
  return `tokenmill batch show ${batchId}${isShared ? ` --client ${clientId}` : ''}`
}

/** A job that failed for good has no receipt, but a copy in the failed set. */
async function explainFailed({ what, client }: Question, sources: Sources): Promise<Explanation | undefined> {
  const { found } = await findFailed({ name: what, clientId: client?.clientId }, sources)
  if (found.length === 0) return undefined
  const shown = found.slice(-JOBS_MAX).reverse()
  const jobs = await Promise.all(
    shown.map(({ client, jti }) => {
      if (client === undefined || jti === undefined) return undefined
      const { id, name = id } = client
      return factsOf({ receiptId: receiptId(id, jti), client: { clientId: id, name }, jti }, sources)
    }),
  )
  const notes = shown.map(({ id, code }) => `It failed for good (${code}): tokenmill failed show ${id}`)
  return {
    as: 'failed',
    jobs: jobs.filter(facts => facts !== undefined),
    notes: [...notes, ...countNote(found.length)],
  }
}

/** States in which chunks may never be answered. */
const STOPPED: readonly BatchState[] = ['CANCELLED', 'ABANDONED', 'PAUSED', 'STALLED']

async function explainInBatch(question: Question, batchId: string, sources: Sources): Promise<Explanation> {
  const named = (await batchList.findById(sources.store, batchId)).filter(batch => isOf(question, batch))
  const line = /^\d{1,9}$/.test(question.what) ? Number(question.what) : undefined
  for (const batch of named) {
    const found =
      (line === undefined ? undefined : await findLine(sources.store, batch, line)) ??
      (await findReference(sources.store, batch, question.what))
    if (found) return explainRecord(found, sources)
  }
  const stopped = named.flatMap(batch => {
    const state = stateOf(batch, sources.now)
    return STOPPED.includes(state) ? [`The batch is ${state}: ${showOf(batch, named.length > 1)}`] : []
  })
  const note =
    named.length === 0
      ? `There is no batch ${batchId}.`
      : `No chunk of ${batchId} that was answered so far holds ${question.what}: it is not sent yet, not answered yet, or its receipt is past its retention.`
  return { as: 'nothing', jobs: [], notes: [note, ...stopped] }
}

async function searchBatches(question: Question, sources: Sources): Promise<Explanation> {
  const since = sources.now - BATCH_DAYS * 86_400_000
  const open = (await batchList.list(sources.store, { since, limit: BATCHES_MAX })).filter(batch =>
    isOf(question, batch),
  )
  const until = performance.now() + SEARCH_MS
  let searched = 0
  for (const batch of open) {
    if (performance.now() > until) break
    searched += 1
    const found = await findReference(sources.store, batch, question.what)
    if (found) return explainRecord(found, sources)
  }
  const far = `${searched} of ${open.length} batches of the last ${BATCH_DAYS} days were searched for it as a reference`
  const more = searched < open.length ? `: name the batch with --batch` : ''
  return { as: 'nothing', jobs: [], notes: [`Nothing is known by that name; ${far}${more}.`] }
}

async function explainRecord({ facts, receipt }: FoundRecord, sources: Sources): Promise<Explanation> {
  return { as: 'line', record: facts, jobs: await jobsOf([receipt], sources), notes: [] }
}

async function receiptsOf(ids: readonly string[], question: Question, { store }: Sources) {
  const found = new Map((await receipts.findAll(store, ids)).map(receipt => [receipt.receiptId, receipt]))
  return ids.flatMap(id => found.get(id) ?? []).filter(receipt => isOf(question, receipt))
}

async function jobsOf(found: readonly receipts.Receipt[], sources: Sources): Promise<JobFacts[]> {
  const names = new Map((await clients.list(sources.store)).map(({ clientId, name }) => [clientId, name]))
  const jobs = await Promise.all(
    found.map(receipt => {
      const { receiptId, clientId, jti } = receipt
      return factsOf({ receiptId, client: { clientId, name: names.get(clientId) ?? clientId }, jti, receipt }, sources)
    }),
  )
  return jobs.filter(facts => facts !== undefined)
}

function isOf({ client }: Question, { clientId }: Pick<Batch, 'clientId'>): boolean {
  return client === undefined || client.clientId === clientId
}

function countNote(found: number): string[] {
  return found < JOBS_MAX ? [] : [`Only the newest ${JOBS_MAX} jobs are shown.`]
}
