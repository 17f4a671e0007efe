// A selection of the failed set: the copies of one kind that a filter matches, and that failed up to a moment. The console shows
// it and a worker finds it again, both by this file; the digest of its ids says whether they found the same.
import { createHash } from 'node:crypto'
import type { Queues } from '../engine.ts'
import { type FailedJob, failedCopies } from '../failed.ts'
import { ownerOf, type WhyNot, whyNot } from './copy.ts'

/** All given members must match. Moments in ms since the epoch. */
export interface CopyFilter {
  /** The fault's code. */
  code?: string | undefined
  clientId?: string | undefined
  /** Failed at this moment or later. */
  since?: number | undefined
}

/** A client's row, as far as it decides about its copies. */
export interface CopyClient {
  isRevoked: boolean
}

/**
 * What somebody may see of the failed set: the client of a copy that is the person's to see, `unknown` for a copy whose
 * client nobody knows and that is nevertheless the person's, undefined for a copy of others.
 */
export type ClientSeen<Client extends CopyClient> = (
  clientId: string | undefined,
) => Promise<Client | 'unknown' | undefined>

/** A copy without its job. */
export interface SelectedCopy {
  id: string
  jobId: string
  code: string
  clientId: string | undefined
  /** Undefined: it can be sent again. */
  whyNot: WhyNot | undefined
}

/** Copies are in the order in which workers made them, and the clocks of workers may differ by this, in ms. */
export const SKEW_MS = 10_000

export function matches(copy: Pick<FailedJob, 'code' | 'failedAt'>, { code, since }: CopyFilter): boolean {
  return (code === undefined || copy.code === code) && (since === undefined || copy.failedAt >= since)
}

/**
 * The selection, newest first; undefined if it has more than `most` copies, or if looking takes longer than `lookMs`. It keeps
 * no job in memory.
 */
export async function selectCopies<Client extends CopyClient>(
  queues: Queues,
  { kind, upTo, ...filter }: CopyFilter & { kind: string; upTo: number },
  { seen, now, most, lookMs }: { seen: ClientSeen<Client>; now: number; most: number; lookMs: number },
): Promise<SelectedCopy[] | undefined> {
  const until = performance.now() + lookMs
  const selected: SelectedCopy[] = []
  for await (const copy of failedCopies(queues, kind, { before: upTo + SKEW_MS })) {
    if (performance.now() > until) return undefined
    if (filter.since !== undefined && copy.failedAt < filter.since - SKEW_MS) break
    if (copy.failedAt > upTo || !matches(copy, filter)) continue
    const clientId = ownerOf(copy)
    if (filter.clientId !== undefined && clientId !== filter.clientId) continue
    const client = await seen(clientId)
    if (client === undefined) continue
    if (selected.length === most) return undefined
    selected.push(selectedOf(copy, client, now))
  }
  return selected
}

export function selectedOf(copy: FailedJob, client: CopyClient | 'unknown', now: number): SelectedCopy {
  const { id, jobId, code } = copy
  const isRevoked = client !== 'unknown' && client.isRevoked
  return { id, jobId, code, clientId: ownerOf(copy), whyNot: whyNot(copy, { now, isRevoked }) }
}

/** Binds exactly these copies, in any order. 43 characters. */
export function digestOf(copies: readonly Pick<SelectedCopy, 'id'>[]): string {
  const ids = copies.map(({ id }) => id).sort()
  return createHash('sha256').update(ids.join('\n')).digest('base64url')
}

/** The clients of copies, each asked for once. */
export function remembering<Client extends CopyClient>(
  find: (clientId: string) => Promise<Client | undefined>,
  { seesAll }: { seesAll: boolean },
): ClientSeen<Client> {
  const known = new Map<string, Promise<Client | undefined>>()
  return async clientId => {
    if (clientId === undefined) return seesAll ? 'unknown' : undefined
    const client = known.get(clientId) ?? find(clientId)
    known.set(clientId, client)
    return (await client) ?? (seesAll ? 'unknown' : undefined)
  }
}
