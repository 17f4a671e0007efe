// Everything known of one job: who asked for what, what was decided and published, where the job is now, and what can
// be done. Commands and pages show it. It holds no card data.
import { z } from 'zod'
import { FAILED_QUEUE, isKind, KINDS, type Kind, resultsQueue } from '../../src/job/catalogue.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import type { Counts } from '../../src/job/outcome.ts'
import { Problem, textOf } from '../../src/job/problem.ts'
import type { JobState, Queues } from '../../src/queue/engine.ts'
import { type FailedJob, failedList } from '../../src/queue/failed.ts'
import type { Client } from '../../src/store/access/clients.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import * as shownTokens from '../../src/store/token/shown-tokens.ts'
import { reuseTokenOf } from '../../src/token/token.ts'
import { isUnread } from './unread-results.ts'

export interface Sources {
  store: Db
  queues: Queues
  /** ms since the epoch. */
  now: number
}

/** Names one job. */
export interface JobName {
  receiptId: string
  client: Pick<Client, 'clientId' | 'name'>
  jti: string
  /** The receipt, if it was looked up already. */
  receipt?: receipts.Receipt | undefined
}

export interface ReasonFacts {
  field: string
  reason: string
  text: string
}

export interface Announced {
  revision: number
  /** When it was decided, RFC 3339. */
  at: string
  queue: string
  /** The name of the reply queue, if the sender chose one. */
  reply_to?: string
  /** `waiting`: not published yet. `unread`: it is in the results queue. `read`: it left that queue. */
  state: 'waiting' | 'unread' | 'read'
  /** What the text says, if there is no receipt. */
  says?: { code: number; reasons: ReasonFacts[] }
}

export interface JobFacts {
  receipt_id: string
  client: { id: string; name: string }
  jti: string
  kind?: Kind
  reference?: string
  /** Who signed the job, if it wasn't the client. */
  signed_by?: string
  /** When the sender accepted the work, RFC 3339. */
  accepted_at?: string
  /** How many attempts it took to decide. */
  attempts?: number
  decided?: {
    at: string
    status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
    code: number
    outcome?: string
    reasons: ReasonFacts[]
    token?: string
    chunk?: number
    counts?: Counts
    /** Whether failed calls to providers must be compensated, or were. */
    reversal?: 'REQUIRED' | 'COMPLETED'
  }
  told: Announced[]
  /** Where the job is now; undefined if it is in no queue. */
  queued?: { queue: Kind; state: JobState; workers?: number }
  failed?: { id: string; kind: Kind; code: string; attempts: number; at: string; can_be_retried: boolean }
  /** What the person on call can do; one sentence each. */
  next: string[]
}

/** Those of the names that have a receipt or another stored answer, found by one look-up. */
export async function whichAreStored(names: readonly JobName[], { store }: Sources): Promise<JobName[]> {
  const ids = names.map(({ receiptId }) => receiptId)
  const [found, told] = await Promise.all([receipts.findAll(store, ids), outbox.findTold(store, ids)])
  const receiptOf = new Map(found.map(receipt => [receipt.receiptId, receipt]))
  return names.flatMap(name => {
    const receipt = receiptOf.get(name.receiptId)
    return receipt || told.includes(name.receiptId) ? [{ ...name, receipt }] : []
  })
}

/** Those of the names that are in a queue. */
export async function whichAreQueued(names: readonly JobName[], { queues }: Sources): Promise<JobName[]> {
  const queued = await Promise.all(
    names.map(({ client, jti }) => findQueued(queues, KINDS, jobId(client.clientId, jti))),
  )
  return names.filter((_, index) => queued[index] !== undefined)
}

/** The facts of a job; undefined if nothing about it is stored or queued. */
export async function factsOf(name: JobName, sources: Sources): Promise<JobFacts | undefined> {
  const { store, queues } = sources
  const [receipt, rows] = await Promise.all([
    name.receipt ?? receipts.find(store, name.receiptId),
    outbox.listOf(store, name.receiptId),
  ])
  const kinds = receipt ? [receipt.kind] : KINDS
  const queued = await findQueued(queues, kinds, jobId(name.client.clientId, name.jti))
  const failed = receipt || queued ? undefined : await findFailed(queues, jobId(name.client.clientId, name.jti))
  if (!receipt && rows.length === 0 && !queued && !failed) return undefined
  const told = await Promise.all(rows.map(row => announced(row, queues)))
  const facts: JobFacts = {
    receipt_id: name.receiptId,
    client: { id: name.client.clientId, name: name.client.name },
    jti: name.jti,
    ...(receipt ? await decidedBy(receipt, store) : {}),
    told,
    ...(queued ? { queued } : {}),
    ...(failed ? { failed } : {}),
    next: [],
  }
  return { ...facts, next: nextSteps(facts) }
}

async function decidedBy(receipt: receipts.Receipt, store: Db): Promise<Partial<JobFacts>> {
  const [token] = receipt.tokenId === null ? [] : await shownTokens.findByIds(store, [receipt.tokenId])
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
      ...(token ? { token: reuseTokenOf(token) } : {}),
      ...(receipt.chunk === null ? {} : { chunk: receipt.chunk }),
      ...(receipt.counts === null ? {} : { counts: receipt.counts }),
      ...(receipt.reversal === null ? {} : { reversal: receipt.reversal }),
    },
  }
}

async function announced(row: outbox.Announcement, queues: Queues): Promise<Announced> {
  const queue = resultsQueue(row.clientId, row.replyTo)
  const isThere = row.state === 'SENT' && (await isUnread(row, queues))
  const says = saysOf(row.body)
  return {
    revision: row.revision,
    at: timeOf(row.createdAt),
    queue,
    ...(row.replyTo === null ? {} : { reply_to: row.replyTo }),
    state: row.state === 'NEW' ? 'waiting' : isThere ? 'unread' : 'read',
    ...(says ? { says } : {}),
  }
}

const Told = z.object({ code: z.int(), error: Problem.pick({ details: true }).optional() })

/** What an error text of the outbox says; undefined if it isn't an error. */
function saysOf(body: string | null): Announced['says'] {
  if (body === null) return undefined
  const { data } = Told.safeParse(JSON.parse(body))
  if (!data) return undefined
  const details = Object.entries(data.error?.details ?? {})
  return {
    code: data.code,
    reasons: details.map(([field, { code, message }]) => ({ field, reason: code, text: message })),
  }
}

async function findQueued(queues: Queues, kinds: readonly Kind[], id: string): Promise<JobFacts['queued']> {
  const states = await Promise.all(kinds.map(async kind => ({ kind, state: await queues.stateOf(kind, id) })))
  for (const { kind, state } of states) {
    if (state === undefined) continue
    const workers = await queues.workersOf(kind)
    return { queue: kind, state, ...(workers === undefined ? {} : { workers }) }
  }
  return undefined
}

async function findFailed(queues: Queues, id: string): Promise<JobFacts['failed']> {
  for (const kind of KINDS) {
    const { waiting } = await queues.depth(FAILED_QUEUE(kind))
    const copy = waiting === 0 ? undefined : (await failedList(queues, kind)).find(job => job.jobId === id)
    if (copy) return failedFacts(kind, copy)
  }
  return undefined
}

function failedFacts(kind: Kind, copy: FailedJob): NonNullable<JobFacts['failed']> {
  return {
    id: copy.id,
    kind: isKind(copy.kind) ? copy.kind : kind,
    code: copy.code,
    attempts: copy.attempt,
    at: timeOf(copy.failedAt),
    can_be_retried: copy.jws !== '',
  }
}

function nextSteps({ decided, told, queued, failed, client }: JobFacts): string[] {
  const steps: string[] = []
  if (queued) steps.push(queuedStep(queued))
  if (failed)
    steps.push(
      failed.can_be_retried
        ? `Send the job again: tokenmill failed retry ${failed.id}`
        : 'The sender has to submit the job again: its card data were removed from the failed set.',
    )
  if (decided?.status === 'FAILED' && decided.code < 500)
    steps.push('The sender corrects the fields that are named and submits the work again under a new jti.')
  if (decided?.status === 'CANCELLED') steps.push('The sender may submit the work again under a new jti.')
  if (decided?.reversal === 'REQUIRED')
    steps.push('A reversal is queued; if it stays so, see whether workers of the kind reversal run.')
  if (!decided && told.some(({ says }) => says && says.code < 500))
    steps.push('The sender corrects what is named; the same jti may be used, since no receipt was written.')
  const waiting = told.find(({ state }) => state === 'waiting')
  const unread = told.find(({ state }) => state === 'unread')
  if (waiting) steps.push(`A result waits in the outbox: see whether ${client.name} reads ${waiting.queue}.`)
  else if (unread) steps.push(unreadStep(unread, client.name))
  else if (told[0]) steps.push(replayStep(told[0]))
  return steps
}

function unreadStep({ queue, reply_to }: Announced, name: string): string {
  const reader = reply_to === undefined ? '' : ' (a command that made this queue and has ended never will)'
  return `A result is unread: ${name} has to read ${queue}${reader}.`
}

function replayStep({ at, reply_to }: Announced): string {
  const where = reply_to === undefined ? '' : ` --reply-to ${reply_to}`
  return `To publish the result once more: tokenmill results replay --since ${at} --client FILE${where}`
}

function queuedStep({ queue, state, workers }: NonNullable<JobFacts['queued']>): string {
  if (workers === 0) return `No worker listens to ${queue}: start one with tokenmill workers.`
  if (state === 'active') return 'A worker has the job now.'
  if (state === 'delayed') return 'The job waits for its next attempt.'
  return `The job waits in the queue ${queue} for a worker.`
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
