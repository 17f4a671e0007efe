// Reads the failed set for its pages, as `tokenmill failed list` does: copies are in the queues, and what a person may see of them is
// decided by the row of their client. No more than a page of copies is in memory, and none of a job's envelope is returned.
import { ownerOf, type WhyNot, whyNot } from '../../../src/queue/failed/copy.ts'
import { type ClientSeen, type CopyFilter, matches, remembering, SKEW_MS } from '../../../src/queue/failed/selection.ts'
import { type FailedJob, failedFind, failedPlaces, type PlacedCopy } from '../../../src/queue/failed.ts'
import * as seenClients from '../../../src/store/access/seen-clients.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { From, Place } from './place.ts'

type SetDeps = Pick<ConsoleDeps, 'store' | 'queues' | 'clock' | 'catalogue'>

export interface ListedCopy {
  id: string
  kind: string
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

export interface Looked {
  listed: ListedCopy[]
  /** Where the next page begins; undefined: there is none. */
  next: From | undefined
  /** It took too long to look at all: about how far back it looked, ms since the epoch. */
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

/**
 * It ends a page after this time, in ms, though not before so many copies were looked at; and where so many were found
 * within seconds that their order isn't known yet.
 */
const LOOK = { ms: 150, least: 20, most: 200 } as const

/**
 * One page of the failed set, newest first. A page that took too long lists all that it found, whatever `limit` says: copies that
 * failed in the same seconds may then be on the next page.
 */
export async function look(
  deps: SetDeps,
  session: Pick<LiveSession, 'entities'>,
  filter: CopyFilter & { kind: string | undefined },
  { from, limit, bound = LOOK }: { from?: From | undefined; limit: number; bound?: Record<keyof typeof LOOK, number> },
): Promise<Looked> {
  const seen = clientsOf(deps, session)
  const until = performance.now() + bound.ms
  const heads = await openHeads(deps, filter.kind, from)
  const found: FoundCopy[] = []
  for (let looked = 0; ; looked += 1) {
    const newest = newestOf(heads)
    if (newest?.at === undefined) break
    const { kind } = newest
    const { copy } = newest.at
    if (filter.since !== undefined && copy.failedAt < filter.since - SKEW_MS) break
    // No copy that is still to come failed later than this.
    const latest = copy.failedAt + SKEW_MS
    if (found.length > limit && found.filter(({ failedAt }) => failedAt >= latest).length > limit) break
    if (found.length >= bound.most || (looked >= bound.least && performance.now() > until)) {
      await close(heads)
      return { listed: sorted(found), next: { place: from?.place, unread: unreadOf(heads) }, lookedTo: copy.failedAt }
    }
    const listed = await listedOf(copy, kind, { filter, seen, now: deps.clock() })
    if (listed && (from?.place === undefined || compare(from.place, listed) < 0))
      found.push({ ...listed, older: newest.at.older })
    await advance(newest)
  }
  await close(heads)
  const listed = sorted(found)
  const [shown, rest] = [listed.slice(0, limit), listed.slice(limit)]
  // The next page begins with a copy that this one doesn't show, so it shows one at least, however slow its reading is.
  const next = rest.length > 0 ? { place: shown.at(-1), unread: unreadOf(heads, rest) } : undefined
  return { listed: shown, next, lookedTo: undefined }
}

type FoundCopy = ListedCopy & Pick<PlacedCopy, 'older'>

/** How many of the oldest copies of each kind weren't looked at, or were found and not shown. */
function unreadOf(heads: readonly Head[], notShown: readonly FoundCopy[] = []): number[] {
  return heads.map(({ kind, at }) => {
    const own = notShown.filter(copy => copy.kind === kind)
    return Math.max(at ? at.older + 1 : 0, ...own.map(({ older }) => older + 1))
  })
}

/** One copy, if it is the person's to see. */
export async function findCopy(
  deps: SetDeps,
  session: Pick<LiveSession, 'entities'>,
  { kind, id }: { kind: string; id: string },
): Promise<ListedCopy | undefined> {
  const copy = await failedFind(deps.queues, kind, id)
  return copy && listedOf(copy, kind, { filter: {}, seen: clientsOf(deps, session), now: deps.clock() })
}

interface Head {
  kind: string
  copies: AsyncGenerator<PlacedCopy>
  /** Undefined: there are no more of this kind. */
  at: PlacedCopy | undefined
}

function openHeads({ queues, catalogue }: SetDeps, kind: string | undefined, from: From | undefined): Promise<Head[]> {
  const kinds = kind === undefined ? catalogue.kinds : [kind]
  const before = from?.place && from.place.failedAt + SKEW_MS
  // Of an address that was made for other kinds.
  const unread = from?.unread?.length === kinds.length ? from.unread : undefined
  return Promise.all(
    kinds.map(async (one, i) => {
      const copies = failedPlaces(queues, one, { before, oldest: unread?.[i] })
      const head: Head = { kind: one, copies, at: undefined }
      await advance(head)
      return head
    }),
  )
}

function close(heads: readonly Head[]): Promise<unknown> {
  return Promise.all(heads.map(({ copies }) => copies.return(undefined)))
}

async function advance(head: Head): Promise<void> {
  const { done, value } = await head.copies.next()
  head.at = done ? undefined : value
}

function newestOf(heads: readonly Head[]): Head | undefined {
  return heads.reduce<Head | undefined>(
    (newest, head) => ((head.at?.copy.failedAt ?? -1) > (newest?.at?.copy.failedAt ?? -1) ? head : newest),
    undefined,
  )
}

interface Listing {
  filter: CopyFilter
  seen: ClientSeen<seenClients.SeenClient>
  now: number
}

async function listedOf(
  copy: FailedJob,
  kind: string,
  { filter, seen, now }: Listing,
): Promise<ListedCopy | undefined> {
  if (!matches(copy, filter)) return undefined
  const clientId = ownerOf(copy)
  if (filter.clientId !== undefined && clientId !== filter.clientId) return undefined
  const client = await seen(clientId)
  if (client === undefined) return undefined
  const { id, code, attempt, failedAt, jobId, jti, reference } = copy
  const [clientName, isRevoked] = client === 'unknown' ? [undefined, false] : [client.name, client.isRevoked]
  const facts = { id, kind, code, attempt, failedAt, jobId, clientId, clientName, jti, reference }
  return { ...facts, whyNot: whyNot(copy, { now, isRevoked }) }
}

const sorted = (copies: readonly FoundCopy[]) => copies.toSorted(compare)

/** Negative if `a` stands before `b`. */
function compare(a: Place, b: Place): number {
  return b.failedAt - a.failedAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
