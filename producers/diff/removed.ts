// The owners in the store whom a complete file doesn't name any more. The store is read in pages, and a second time if
// owners are missing; only keyed digests of those stay in memory.
import type { Db } from '../../src/store/pool.ts'
import { pagesOf } from '../../src/store/reference/reference-views.ts'
import { type OwnerId, ownerKey } from '../../src/token/on-file.ts'
import { isListed, type OnlyList } from '../rows/only/list.ts'
import {
  DIGEST_BYTES,
  type DigestText,
  digestIn,
  openPartitions,
  PARTITIONS,
  type Partitions,
  type SpillOptions,
} from '../rows/partitions.ts'
import type { Account } from './owners-of-file.ts'

export interface RemovedOwners {
  /** How many stored owners were compared. */
  stored: number
  count: number
  /** Oldest first. */
  all(): AsyncGenerator<OwnerId>
}

export interface Comparison {
  tokenScope: string
  accounts: readonly Account[]
  named: Partitions
  digestOf: DigestText
  /** Only owners of this list are compared. */
  only: OnlyList | undefined
}

export async function findRemoved(db: Db, compared: Comparison, options: SpillOptions = {}): Promise<RemovedOwners> {
  const known = openPartitions(0, options)
  try {
    let stored = 0
    for await (const owner of ownersOf(db, compared)) {
      known.add(digestOwner(owner, compared))
      stored += 1
    }
    const missing = missingIn(known, compared.named)
    return { stored, count: missing.length / DIGEST_BYTES, all: () => ownersIn(db, compared, missing) }
  } finally {
    known.close()
  }
}

async function* ownersOf(db: Db, { tokenScope, accounts, only }: Comparison): AsyncGenerator<OwnerId> {
  if (accounts.length === 0) return
  // A listing goes through the whole scope, so several accounts share one.
  const of = accounts.length === 1 ? accounts[0] : undefined
  const compared = new Set(accounts.map(accountKey))
  for await (const page of pagesOf(db, { tokenScope, of }))
    for (const owner of page)
      if (compared.has(accountKey(owner)) && (!only || isListed(placeOf(owner), only))) yield owner
}

function accountKey({ provider, providerAccount }: Account): string {
  return `${provider}\0${providerAccount}`
}

/** A stored owner has no place in a file. The reference of its row was, as a rule, the id of its card. */
function placeOf(owner: OwnerId) {
  return { reference: owner.cardId, owner, line: 0 }
}

async function* ownersIn(db: Db, compared: Comparison, missing: Buffer): AsyncGenerator<OwnerId> {
  if (missing.length === 0) return
  for await (const owner of ownersOf(db, compared)) if (holds(missing, digestOwner(owner, compared))) yield owner
}

function digestOwner(owner: OwnerId, { digestOf }: Comparison): Buffer {
  return digestOf(ownerKey({ ...owner, tokenScope: '' }))
}

/** The digests of `known` that aren't among those `named`, sorted. */
function missingIn(known: Partitions, named: Partitions): Buffer {
  const missing: Buffer[] = []
  for (let part = 0; part < PARTITIONS; part++) {
    const here = new Set<string>()
    for (const record of named.recordsOf(part)) here.add(digestIn(record))
    const gone = [...known.recordsOf(part)].filter(record => !here.has(digestIn(record)))
    if (gone.length > 0) missing.push(Buffer.concat(gone.sort(Buffer.compare)))
  }
  return Buffer.concat(missing)
}

/** Whether the sorted digests hold this one. */
function holds(sorted: Buffer, digest: Buffer): boolean {
  let low = 0
  let high = sorted.length / DIGEST_BYTES
  while (low < high) {
    const middle = (low + high) >>> 1
    const order = digest.compare(sorted, middle * DIGEST_BYTES, (middle + 1) * DIGEST_BYTES)
    if (order === 0) return true
    if (order > 0) low = middle + 1
    else high = middle
  }
  return false
}
