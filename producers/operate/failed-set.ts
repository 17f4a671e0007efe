// Lists the failed set for the person on call: the copies by kind, fault, client and time, who sent them, and whether
// they can be sent again. The result holds no card data and no envelope.
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { WhyNot } from '../../src/queue/failed/copy.ts'
import { type ClientSeen, remembering, selectedOf } from '../../src/queue/failed/selection.ts'
import { type FailedJob, failedCopies, failedFind } from '../../src/queue/failed.ts'
import * as seenClients from '../../src/store/access/seen-clients.ts'
import type { Db } from '../../src/store/pool.ts'
import { ALL } from '../../src/store/sight.ts'

export interface FailedSources {
  store: Db
  queues: Queues
  catalogue: Catalogue
  /** ms since the epoch. */
  now: number
}

/** All given members must match. */
export interface FailedFilter {
  ids?: readonly string[] | undefined
  /** The id of the copy or of its job, or the jti or reference. */
  name?: string | undefined
  kind?: string | undefined
  /** The fault's code. */
  fault?: string | undefined
  clientId?: string | undefined
  /** Failed at this time or later, and before that; ms since the epoch. */
  since?: number | undefined
  until?: number | undefined
}

export interface FailedFacts {
  id: string
  kind: string
  code: string
  attempt: number
  /** ms since the epoch. */
  failedAt: number
  jobId: string
  /** Undefined if the copy doesn't say who sent it. `name` is undefined if the client no longer exists. */
  client: { id: string; name?: string }
  jti?: string
  reference?: string
  /** Undefined: the copy can be sent again. */
  whyNot: WhyNot | undefined
}

/** The copies that match, by kind, and within a kind oldest first. */
export async function findFailed(filter: FailedFilter, sources: FailedSources): Promise<FailedFacts[]> {
  const seen = remembering(id => seenClients.find(ALL, sources.store, id), { seesAll: true })
  const found: FailedFacts[] = []
  for (const kind of filter.kind === undefined ? sources.catalogue.kinds : [filter.kind]) {
    const ofKind: FailedFacts[] = []
    for await (const copy of copiesOf(kind, filter, sources.queues)) {
      if (matches(copy, filter)) ofKind.push(await factsOfCopy(kind, copy, seen, sources.now))
    }
    found.push(...ofKind.reverse())
  }
  return found
}

/** The copies among which the filter chooses, newest first. Those that it names are fetched one by one. */
async function* copiesOf(kind: string, { ids }: FailedFilter, queues: Queues): AsyncGenerator<FailedJob> {
  if (ids === undefined) return yield* failedCopies(queues, kind)
  const named: FailedJob[] = []
  for (const id of new Set(ids)) {
    const copy = await failedFind(queues, kind, id)
    if (copy) named.push(copy)
  }
  yield* named.sort((a, b) => b.failedAt - a.failedAt)
}

function matches(copy: FailedJob, { ids, clientId, name, fault, since, until }: FailedFilter): boolean {
  return (
    (name === undefined || isNamed(copy, name)) &&
    (ids === undefined || ids.includes(copy.id)) &&
    (clientId === undefined || clientId === copy.clientId) &&
    (fault === undefined || copy.code === fault) &&
    (since === undefined || copy.failedAt >= since) &&
    (until === undefined || copy.failedAt < until)
  )
}

function isNamed(copy: FailedJob, name: string): boolean {
  const { jti, reference } = copy
  return [copy.id, copy.jobId, jti, reference].includes(name)
}

type Seen = ClientSeen<seenClients.SeenClient>

async function factsOfCopy(kind: string, copy: FailedJob, seen: Seen, now: number): Promise<FailedFacts> {
  const { id, code, attempt, failedAt, jobId, clientId, jti, reference } = copy
  const client = (await seen(clientId)) ?? 'unknown'
  return {
    id,
    kind,
    code,
    attempt,
    failedAt,
    jobId,
    client: { id: clientId, ...(client !== 'unknown' && { name: client.name }) },
    ...(jti !== undefined && { jti }),
    ...(reference !== undefined && { reference }),
    whyNot: selectedOf(copy, client, now).whyNot,
  }
}
