// Releases owners: removes their references, notes their releases, and keeps, suspends or deletes a token that has no
// owner left, as its last owner's release says. It holds the locks of the tokens' rows meanwhile, so that no owner is
// counted twice or forgotten.
import { assert, type Refusal, refuse } from '../../src/errors.ts'
import type { OnOrphan } from '../../src/job/choices.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import * as released from '../../src/store/reference/released-references.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type OwnerId, ownerKey } from '../../src/token/on-file.ts'
import type { Moment } from '../../src/token/verdict.ts'
import { noteReleases, type ReleaseDeps } from '../effect/note-releases.ts'
import type { EffectDeps } from '../effect/write-effect.ts'
import { endOrphans } from './orphans.ts'

export interface AskedRelease {
  owner: OwnerId
  onOrphan: OnOrphan
}

export type ReleaseEnd = { outcome: 'UPDATED' | 'UNCHANGED'; token: StoredToken | undefined } | Refusal

/**
 * Returns what became of each release, in the order of `asked`. Throws `LostRace` where others have changed one of
 * these references meanwhile.
 */
export async function releaseAll(
  db: Db,
  asked: readonly AskedRelease[],
  job: Moment,
  deps: EffectDeps,
): Promise<ReleaseEnd[]> {
  const { found, wasReleased } = await look(db, asked, deps)
  const removed = [...found.values()]
  const held = await hold(
    db,
    removed.map(({ tokenId }) => tokenId),
  )
  await expectAbsent(db, asked, found)
  await references.removeAll(db, removed)
  await noteReleases(
    db,
    removed.map(reference => ({ reference, token: tokenOf(reference, held), receiptId: job.receiptId })),
    'RELEASED',
    deps,
  )
  const ended = await endOrphans(db, lastReleases(asked, found), job, deps)
  return endsOf(asked, found, wasReleased, new Map([...held, ...ended]))
}

/**
 * Throws `LostRace` if an owner who had no card was given one meanwhile: that owner would count for a token of which
 * another one is released here.
 */
async function expectAbsent(db: Db, asked: readonly AskedRelease[], found: Seen['found']): Promise<void> {
  const absent = asked.map(({ owner }) => owner).filter(owner => !found.has(ownerKey(owner)))
  if (found.size > 0 && absent.length > 0 && (await references.findByOwners(db, absent)).size > 0)
    throw new LostRace('an owner was given a card meanwhile')
}

/** What `releaseAll` would answer now. */
export async function predictReleases(
  db: Db,
  asked: readonly AskedRelease[],
  deps: Pick<ReleaseDeps, 'ring'>,
): Promise<ReleaseEnd[]> {
  const { found, wasReleased } = await look(db, asked, deps)
  return endsOf(asked, found, wasReleased, new Map())
}

interface Seen {
  /** By `ownerKey`. */
  found: ReadonlyMap<string, StoredReference>
  /** The owners, by key, that have none and once had. */
  wasReleased: ReadonlySet<string>
}

async function look(db: Db, asked: readonly AskedRelease[], { ring }: Pick<ReleaseDeps, 'ring'>): Promise<Seen> {
  const owners = new Map(asked.map(({ owner }) => [ownerKey(owner), owner]))
  const found = await references.findByOwners(db, [...owners.values()])
  const absent = [...owners.keys()].filter(key => !found.has(key)).map(key => ({ key, hashes: ring.ownerHashes(key) }))
  const known = await released.find(db, absent, ring.ownerVersions())
  return { found, wasReleased: new Set(known.keys()) }
}

/** The tokens as they are under their locks. */
async function hold(db: Db, tokenIds: readonly string[]): Promise<Map<string, StoredToken>> {
  const ids = [...new Set(tokenIds)]
  if (ids.length === 0) return new Map()
  await tokens.holdAll(db, ids)
  return new Map((await tokens.findByIds(db, ids)).map(row => [row.tokenId, row]))
}

/** A token that is deleted here was so before: a deletion meanwhile takes the reference, which `removeAll` then misses. */
function tokenOf({ tokenId }: StoredReference, held: ReadonlyMap<string, StoredToken>): StoredToken {
  const token = held.get(tokenId)
  assert(token, 'a source reference names a token')
  return token
}

/** What the last of these releases says of each token, by token id. A second release of one owner changes nothing. */
function lastReleases(asked: readonly AskedRelease[], found: Seen['found']): Map<string, OnOrphan> {
  const done = new Set<string>()
  return new Map(
    asked.flatMap(({ owner, onOrphan }) => {
      const key = ownerKey(owner)
      const reference = done.has(key) ? undefined : found.get(key)
      done.add(key)
      return reference ? [[reference.tokenId, onOrphan] as const] : []
    }),
  )
}

/** The end of each release. If two ask for the same owner, the second finds that owner released. */
function endsOf(
  asked: readonly AskedRelease[],
  found: Seen['found'],
  wasReleased: Seen['wasReleased'],
  rows: ReadonlyMap<string, StoredToken>,
): ReleaseEnd[] {
  const done = new Set(wasReleased)
  return asked.map(({ owner }) => {
    const key = ownerKey(owner)
    if (done.has(key)) return { outcome: 'UNCHANGED', token: undefined }
    const reference = found.get(key)
    if (!reference) return refuse('reference_unknown', 'body.card_id')
    done.add(key)
    return { outcome: 'UPDATED', token: rows.get(reference.tokenId) }
  })
}
