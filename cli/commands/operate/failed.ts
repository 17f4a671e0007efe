// `tokenmill failed list` and `failed show`: the jobs of every kind that failed for good. Neither their envelopes nor card
// data are ever printed.
import {
  type FailedFacts,
  type FailedFilter,
  type FailedSources,
  findFailed,
} from '../../../producers/operate/failed-set.ts'
import { systemClock } from '../../../src/clock.ts'
import { FAULTS } from '../../../src/errors.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { RETRY_REFUSALS } from '../../../src/queue/failed/copy.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openCommandStore, openQueues, type Session, withSession } from '../../open/open.ts'
import { facts, moment, print, type Terminal, table } from '../../terminal.ts'
import { findClient } from '../client/find-client.ts'

export interface FilterOptions {
  kind?: string
  fault?: string
  client?: string
  since?: number
  until?: number
}

export interface OpenedSet extends FailedSources {
  store: Store
  queues: Queues
}

export async function openSet(session: Session): Promise<OpenedSet> {
  const { database, store } = await openCommandStore(session)
  return { store, queues: await openQueues(session, database), catalogue: CATALOGUE, now: systemClock() }
}

export async function filterOf(db: Db, options: FilterOptions): Promise<FailedFilter> {
  const { kind, fault, client, since, until } = options
  if (kind !== undefined && !CATALOGUE.find(kind))
    throw new Stop(`--kind: there is no such kind; the kinds are ${CATALOGUE.kinds.join(', ')}.`, EXIT.usage)
  return { kind, fault, since, until, clientId: client && (await findClient(db, client)).clientId }
}

export function list(terminal: Terminal, options: JsonOption & FilterOptions): Promise<void> {
  return withSession(terminal, async session => {
    const opened = await openSet(session)
    const found = await findFailed(await filterOf(opened.store, options), opened)
    const rows = found.map(job => [
      job.id,
      job.kind,
      job.code,
      clientText(job),
      `${job.attempt}`,
      moment(job.failedAt),
      job.whyNot === undefined ? 'yes' : `no: ${job.whyNot.replaceAll('_', ' ')}`,
    ])
    const headings = ['ID', 'KIND', 'FAULT', 'CLIENT', 'ATTEMPTS', 'FAILED', 'CAN BE RETRIED']
    print(terminal, options, found.map(shownFailed), table(headings, rows))
  })
}

export function show(terminal: Terminal, id: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const found = await findFailed({ ids: [id] }, await openSet(session))
    const [job] = found
    if (!job) throw new Stop('There is no such failed job; `tokenmill failed list` lists them.')
    const { whyNot } = job
    const text = facts({
      id: job.id,
      kind: job.kind,
      fault: faultText(job.code),
      client: clientText(job),
      jti: job.jti,
      reference: job.reference,
      attempts: `${job.attempt}`,
      failed: moment(job.failedAt),
      job: job.jobId,
      'can be retried': whyNot === undefined ? 'yes' : `no: ${RETRY_REFUSALS[whyNot]}`,
      next:
        whyNot === undefined ? `tokenmill failed retry ${job.id}` : `tokenmill failed discard ${job.id} --reason TEXT`,
    })
    print(terminal, options, shownFailed(job), text)
  })
}

function shownFailed(job: FailedFacts): Record<string, unknown> {
  const { id, kind, code, attempt, failedAt, jobId, client, jti, reference, whyNot } = job
  return {
    id,
    kind,
    code,
    attempt,
    failed_at: moment(failedAt),
    job_id: jobId,
    client,
    jti,
    reference,
    can_be_retried: whyNot === undefined,
    why_not: whyNot,
    card_data_removed: whyNot === 'card_data_removed',
  }
}

const clientText = ({ client }: FailedFacts) =>
  client.name === undefined ? client.id : `${client.name} (${client.id})`

function faultText(code: string): string {
  const fault = Object.entries(FAULTS).find(([name]) => name === code)
  return fault ? `${code}: ${fault[1].text}` : code
}
