// The page of one job: what to do, what happened as a timeline, and what is known. References, which are personal data, are
// shown to people who may act.
import { Fault } from '../../../src/errors.ts'
import { receiptId as receiptIdOf } from '../../../src/job/envelope/ids.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { factsOf, type JobName, type Sources } from '../../operate/find-facts.ts'
import type { JobFacts } from '../../operate/job-facts.ts'
import type { KnownClient, ReadReceipt } from '../../operate/job-reader.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { type Explained, jobContent } from './job-content.ts'
import { readerOf } from './reader.ts'
import { LOOK_MS } from './search.ts'
import { findUndecided } from './undecided.ts'

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
const JOB = /^j_[A-Za-z0-9_-]{43}$/
/** How many jobs with the same reference or jti are listed beside a job. */
const OTHERS_MAX = 20

export interface Asked {
  receiptId: string
  /** The id of the job in its queue, if the address names one. */
  jobId: string | undefined
}

export function jobRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string }; Querystring: { job?: string } }>('/explain/jobs/:id', async (request, reply) => {
    const session = sessionOf(request)
    const { id } = request.params
    const { job } = request.query
    const jobId = typeof job === 'string' && JOB.test(job) ? job : undefined
    const found = UUID.test(id) ? await explained(deps, session, { receiptId: id, jobId }) : undefined
    if (!found) return sendPage(reply, 404, missingPage(deps, session))
    const content = jobContent(found, { showsReference: mayActOn(session), now: deps.clock() })
    return sendPage(reply, 200, framed(deps, { title: 'One job', session, at: 'explain', content }))
  })
}

/** A reference is personal data: people who only look don't need it. */
function mayActOn({ roles }: Pick<LiveSession, 'roles'>): boolean {
  return roles.includes('OPERATOR') || roles.includes('ADMIN')
}

/** The job, with what the queues say of it if they answer. */
async function explained(deps: ConsoleDeps, session: LiveSession, asked: Asked): Promise<Explained | undefined> {
  try {
    return await explainedBy(deps, deps.queues, session, asked)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'queue_away') throw error
    const found = await explainedBy(deps, undefined, session, asked)
    // The job of this address may be in a queue.
    if (!found && asked.jobId !== undefined) throw error
    return found
  }
}

async function explainedBy(
  { store, clock, catalogue }: ConsoleDeps,
  queues: Sources['queues'],
  { entities }: LiveSession,
  asked: Asked,
): Promise<Explained | undefined> {
  const now = clock()
  const sight = sightOf(entities)
  const reader = readerOf(sight, { store, queues, catalogue, now })
  const sources: Sources = { reader, queues, catalogue, now, until: performance.now() + LOOK_MS }
  const name = await nameOf(asked, sources)
  const facts = name && (await factsOf(name, sources))
  if (!facts) return undefined
  const batchNo = name.receipt?.batchNo ?? null
  const { queued } = facts
  const pulse = queued && (await seenNow.findPulse(sight, store, queued.queue))
  const others = await othersOf(facts, sources)
  return { facts, others, batchNo, sawQueues: queues !== undefined, heardMs: pulse?.heardMs ?? null }
}

/** Who sent the job with this receipt: its receipt, its operation or an answer to it says so, or the job in its queue. */
async function nameOf({ receiptId, jobId }: Asked, sources: Sources): Promise<JobName | undefined> {
  const { reader, queues, catalogue, until = 0 } = sources
  const clients = await reader.clients()
  const clientOf = (id: string): KnownClient =>
    clients.find(({ clientId }) => clientId === id) ?? { clientId: id, name: id, isWhole: false }
  const [[receipt], operation, [answer]] = await Promise.all([
    reader.receipts([receiptId]),
    reader.operation(receiptId),
    reader.announcements(receiptId),
  ])
  if (receipt) return { receiptId, client: clientOf(receipt.clientId), jti: receipt.jti, receipt }
  if (operation) return { receiptId, client: clientOf(operation.clientId), jti: undefined, jobId: operation.jobId }
  if (jobId !== undefined && queues) {
    const found = await findUndecided(jobId, { queues, catalogue, clients, until })
    if (found?.receiptId === receiptId) return found
  }
  return answer && { receiptId, client: clientOf(answer.clientId), jti: answer.says?.jti }
}

async function othersOf({ receipt_id: own, reference, jti }: JobFacts, { reader }: Sources): Promise<ReadReceipt[]> {
  const byReference = reference === undefined ? [] : await reader.byReference(reference, OTHERS_MAX + 1)
  const clients = jti === undefined ? [] : await reader.clients()
  const byJti = clients.map(({ clientId }) => receiptIdOf(clientId, jti ?? ''))
  const ids = new Set([...byReference, ...byJti])
  ids.delete(own)
  const found = await reader.receipts([...ids])
  return found.toSorted((a, b) => b.completedAt - a.completedAt).slice(0, OTHERS_MAX)
}
