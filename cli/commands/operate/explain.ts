// `tokenmill explain`: shows what happened to a job, which the person on call may name in several ways. It shows
// references, which are personal data, but never card data.

import { lockNotes } from '../../../producers/operate/checks/locks.ts'
import { type Explanation, explain } from '../../../producers/operate/explain.ts'
import type { Announced, JobFacts, ReasonFacts } from '../../../producers/operate/job-facts.ts'
import { wholeReader } from '../../../producers/operate/whole-reader.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'
import { openStore } from '../../../src/store/pool.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { type Database, openCommandStore, openQueues, type Session, withSession } from '../../open/open.ts'
import { facts, paragraphs, print, say, type Terminal } from '../../terminal.ts'
import { findClient } from '../client/find-client.ts'

type Options = JsonOption & { client?: string }

/** After this time, in ms, an answer is late. */
const LOCK_MS = 4_000

export function explainTo(terminal: Terminal, what: string, line: string | undefined, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    // One connection: a new connection first reads the partitions of all receipts, which takes longer than any search.
    const { database, store } = await openCommandStore(session, 1)
    const queues = await openQueues(session, database)
    const client = options.client === undefined ? undefined : await findClient(store, options.client)
    const question = line === undefined ? { what, client } : { what: line, batch: what, client }
    const sources = { store, queues, catalogue: CATALOGUE, now: Date.now() }
    const { notes, end } = watchLocks(terminal, session, database)
    const found = await explain(question, { ...sources, reader: wholeReader(sources) }).finally(end)
    const explanation = { ...found, notes: [...found.notes, ...(await notes())] }
    if (explanation.as === 'nothing') {
      print(terminal, options, explanation, '')
      throw new Stop(explanation.notes.join(' '))
    }
    print(terminal, options, explanation, textOf(explanation))
  })
}

/**
 * Somebody may hold a table that the explanation reads, or the job that is explained. So another connection looks who, and the
 * line comes while the explanation still waits.
 */
function watchLocks(terminal: Terminal, { log }: Session, { url }: Database) {
  const store = openStore(url, { log, connectionsMax: 1, application: 'tokenmill cli' })
  const notes = () => lockNotes(store).catch(() => [])
  const timer = setTimeout(async () => {
    for (const note of await notes()) say(terminal, `tokenmill: ${note}`)
  }, LOCK_MS)
  return {
    notes: () => notes().finally(() => store.close()),
    end: () => clearTimeout(timer),
  }
}

function textOf({ token, record, batches = [], jobs, notes }: Explanation): string[] {
  return paragraphs([
    ...(token ? [facts(token as unknown as Record<string, string>)] : []),
    ...(record ? [recordText(record)] : []),
    ...batches.map(({ batch, client_id: client, state, next }) => facts({ batch, client, state, next })),
    ...jobs.map(jobText),
    ...(notes.length > 0 ? [notes] : []),
  ])
}

function recordText(record: NonNullable<Explanation['record']>): string[] {
  const { batch, chunk, line, reference, outcome, reason, text, field, token } = record
  return facts({
    record: `line ${line} of ${batch} (chunk ${chunk})`,
    reference,
    outcome,
    reason: reason && `${reason}${field ? ` (${field})` : ''}: ${text ?? ''}`,
    token,
  })
}

function jobText(job: JobFacts): string[] {
  const { decided, queued, failed } = job
  const lines = facts({
    job: `${job.kind ?? queued?.queue ?? failed?.kind ?? 'unknown kind'}, jti ${job.jti ?? 'not known'}`,
    client: `${job.client.name} (${job.client.id})`,
    'signed by': job.signed_by,
    reference: job.reference,
    receipt: decided ? job.receipt_id : 'none: nothing was decided',
    asked: job.accepted_at,
    decided: decided && `${decided.at}: ${outcomeText(decided)}, attempt ${job.attempts}`,
    reasons: decided && reasonsText(decided.reasons),
    token: decided?.token,
    records: decided?.counts && countsText(decided.counts),
    reversal: decided?.reversal,
    queued: queued && `${queued.state} in ${queued.queue}`,
    failed: failed && `${failed.at}: ${failed.code}, after ${failed.attempts} attempts`,
  })
  return [...lines, ...job.told.map(told => `told  ${toldText(told)}`), ...job.next.map(step => `next  ${step}`)]
}

function outcomeText({ status, code, outcome, chunk }: NonNullable<JobFacts['decided']>): string {
  const what = chunk === undefined ? '' : `, chunk ${chunk}`
  return `${status} ${code}${outcome === undefined ? '' : ` ${outcome}`}${what}`
}

function reasonsText(reasons: readonly ReasonFacts[]): string | undefined {
  if (reasons.length === 0) return undefined
  return reasons.map(({ field, reason, text }) => `${reason} (${field}): ${text}`).join('; ')
}

function countsText(counts: NonNullable<NonNullable<JobFacts['decided']>['counts']>): string {
  return OUTCOMES.filter(outcome => counts[outcome] > 0)
    .map(outcome => `${counts[outcome]} ${outcome}`)
    .join(', ')
}

const PLACES = {
  waiting: 'it waits in the outbox for',
  unproved: 'it is not told, because tokenmill did not write it so (`tokenmill doctor`); it was for',
  unread: 'it lies unread in',
  read: 'it was read from',
  published: 'it was put on',
} as const

function toldText({ at, revision, queue, state, says }: Announced): string {
  const what = says ? ` (${says.code}${says.reasons.length > 0 ? `: ${reasonsText(says.reasons)}` : ''})` : ''
  return `${at} revision ${revision}${what}: ${PLACES[state]} ${queue}`
}
