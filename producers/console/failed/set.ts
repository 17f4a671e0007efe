// Reads the failed set for its pages, as `tokenmill failed list` does: copies are in the queues, and what a person may see of them is
// decided by the row of their client. No more than a page of copies is in memory, and none of a job's envelope is returned.
import { KINDS, type Kind } from '../../../src/job/catalogue.ts'
import { ownerOf, senderOf, type WhyNot, whyNot } from '../../../src/queue/failed/copy.ts'
import { type ClientSeen, type CopyFilter, matches, remembering, SKEW_MS } from '../../../src/queue/failed/selection.ts'
import { type FailedJob, failedCopies, failedFind } from '../../../src/queue/failed.ts'
import * as seenClients from '../../../src/store/console/seen-clients.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/console/sight.ts'
import type { ConsoleDeps } from '../deps.ts'

type SetDeps = Pick<ConsoleDeps, 'store' | 'queues' | 'clock'>

export interface ListedCopy {
  id: string
  kind: Kind
  code: string
  attempt: number
  /** ms since the epoch. */
  failedAt: number
  jobId: string
  /** Undefined: the copy doesn't say. */
  clientId: string | undefined
  /** Undefined: there is no such client any more. */
  clientName: string | undefined
  jti: string | undefined
  reference: string | undefined
  /** Undefined: it can be sent again. */
  whyNot: WhyNot | undefined
}

/** A place in the order of the list: newest first, by ids where the moment is the same. */
export type Place = Pick<ListedCopy, 'failedAt' | 'id'>

export interface Looked {
  listed: ListedCopy[]
  /** Where the next page begins; undefined: there is none. */
  next: Place | undefined
  /** It took too long to look at all: how far back it looked, ms since the epoch. */
  lookedTo: number | undefined
}

/** What the session's person may see. */
export function clientsOf(
  { store }: Pick<SetDeps, 'store'>,
  { entities }: Pick<LiveSession, 'entities'>,
): ClientSeen<seenClients.SeenClient> {
  const find = (clientId: string) => seenClients.find(sightOf(entities), store, clientId)
  return remembering(find, { seesAll: entities === null })
}

/** After this time, in ms, and after this many copies it says how far it looked. */
const LOOK = { ms: 150, least: 200 } as const

/** One page of the failed set, newest first. */
export async function look(
  deps: SetDeps,
  session: Pick<LiveSession, 'entities'>,
  filter: CopyFilter & { kind: Kind | undefined },
  { before, limit, bound = LOOK }: { before?: Place | undefined; limit: number; bound?: { ms: number; least: number } },
): Promise<Looked> {
  const seen = clientsOf(deps, session)
  const heads = await openHeads(deps, filter.kind, before)
  const until = performance.now() + bound.ms
  const found: ListedCopy[] = []
  for (let looked = 0; ; looked += 1) {
    const newest = newestOf(heads)
    if (newest?.copy === undefined) break
    const { copy, kind } = newest
    if (filter.since !== undefined && copy.failedAt < filter.since - SKEW_MS) break
    // No copy that is still to come failed later than this.
    const latest = copy.failedAt + SKEW_MS
    if (found.length > limit && found.filter(({ failedAt }) => failedAt >= latest).length > limit) break
    const isLong = looked >= bound.least && performance.now() > until
    if (isLong && (before === undefined || latest < before.failedAt)) {
      const listed = sorted(found).filter(({ failedAt }) => failedAt >= latest)
      return { listed, next: { failedAt: latest, id: '' }, lookedTo: latest }
    }
    const listed = await listedOf(copy, kind, { filter, seen, now: deps.clock() })
    if (listed && (before === undefined || compare(before, listed) < 0)) found.push(listed)
    await advance(newest)
  }
  await Promise.all(heads.map(({ copies }) => copies.return(undefined)))
  const listed = sorted(found)
  const shown = listed.slice(0, limit)
  return { listed: shown, next: listed.length > limit ? shown.at(-1) : undefined, lookedTo: undefined }
}

/** One copy, if it is the person's to see. */
export async function findCopy(
  deps: SetDeps,
  session: Pick<LiveSession, 'entities'>,
  { kind, id }: { kind: Kind; id: string },
): Promise<ListedCopy | undefined> {
  const copy = await failedFind(deps.queues, kind, id)
  return copy && listedOf(copy, kind, { filter: {}, seen: clientsOf(deps, session), now: deps.clock() })
}

interface Head {
  kind: Kind
  copies: AsyncGenerator<FailedJob>
  /** Undefined: there are no more of this kind. */
  copy: FailedJob | undefined
}

function openHeads({ queues }: SetDeps, kind: Kind | undefined, before: Place | undefined): Promise<Head[]> {
  const kinds = kind === undefined ? KINDS : [kind]
  return Promise.all(
    kinds.map(async one => {
      const copies = failedCopies(queues, one, { before: before && before.failedAt + SKEW_MS })
      const head: Head = { kind: one, copies, copy: undefined }
      await advance(head)
      return head
    }),
  )
}

async function advance(head: Head): Promise<void> {
  const { done, value } = await head.copies.next()
  head.copy = done ? undefined : value
}

function newestOf(heads: readonly Head[]): Head | undefined {
  return heads.reduce<Head | undefined>(
    (newest, head) => ((head.copy?.failedAt ?? -1) > (newest?.copy?.failedAt ?? -1) ? head : newest),
    undefined,
  )
}

interface Listing {
  filter: CopyFilter
  seen: ClientSeen<seenClients.SeenClient>
  now: number
}

async function listedOf(copy: FailedJob, kind: Kind, { filter, seen, now }: Listing): Promise<ListedCopy | undefined> {
  if (!matches(copy, filter)) return undefined
  const clientId = ownerOf(copy)
  if (filter.clientId !== undefined && clientId !== filter.clientId) return undefined
  const client = await seen(clientId)
  if (client === undefined) return undefined
  const { id, code, attempt, failedAt, jobId } = copy
  const { jti, reference } = senderOf(copy)
  const [clientName, isRevoked] = client === 'unknown' ? [undefined, false] : [client.name, client.isRevoked]
  const facts = { id, kind, code, attempt, failedAt, jobId, clientId, clientName, jti, reference }
  return { ...facts, whyNot: whyNot(copy, { now, isRevoked }) }
}

const sorted = (copies: readonly ListedCopy[]) => copies.toSorted(compare)

/** Negative if `a` stands before `b`. */
function compare(a: Place, b: Place): number {
  return b.failedAt - a.failedAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
