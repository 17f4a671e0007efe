// Digests the rows of some chunks from the sealed cards of their tokens: HMAC-SHA-256(key, number LF expiry LF
// reference). A row is left out, with a reason, if its token no longer has the card or the expiry date that the row
// gave.
import { createHmac, type KeyObject } from 'node:crypto'
import { assert, Fault } from '../../src/errors.ts'
import { type UnpackedOutcome, unpack } from '../../src/job/chunk-outcomes.ts'
import { tookEffect } from '../../src/job/outcome.ts'
import { checkOf, expiryText, type PresentedCard, readPresented } from '../../src/job/presented-card.ts'
import type { LeftOutReason } from '../../src/job/system/manifest-total.ts'
import { isProved } from '../../src/store/job/receipt.ts'
import * as receiptSearch from '../../src/store/job/receipt-search.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { findOwnership } from '../../src/store/reference/owned-rows.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { BUCKETS, type DigestRun } from '../../src/store/total/digest-runs.ts'
import type { LeftOut } from '../../src/store/total/total-parts.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import type { Deps } from '../deps.ts'

export interface DigestedRows {
  runs: DigestRun[]
  leftOut: LeftOut[]
}

/** How many chunks are read at once; a chunk has up to a thousand records. */
const CHUNKS_AT_ONCE = 4

export async function digestRows(
  { batchNo, chunkFrom, chunkTo }: { batchNo: number; chunkFrom: number; chunkTo: number },
  key: KeyObject,
  deps: Pick<Deps, 'store' | 'ring' | 'onUnproved'>,
): Promise<DigestedRows> {
  const runs = openRuns()
  const leftOut: LeftOut[] = []
  for (let chunk = chunkFrom; chunk < chunkTo; ) {
    const page = await receiptSearch.chunksFrom(deps.store, batchNo, chunk, CHUNKS_AT_ONCE)
    const due = page.filter(found => found.chunk < chunkTo)
    for (const outcomes of await provedOutcomes(due, deps))
      leftOut.push(...(await digestChunk(unpack(outcomes), { runs, key }, deps)))
    chunk = due.length < CHUNKS_AT_ONCE ? chunkTo : (due.at(-1)?.chunk ?? chunkTo) + 1
  }
  return { runs: runs.runs(), leftOut }
}

/** A total is signed off, so it is computed from receipts alone that tokenmill wrote as they are. */
async function provedOutcomes(
  chunks: readonly receiptSearch.ChunkOutcomes[],
  { store, ring, onUnproved }: Pick<Deps, 'store' | 'ring' | 'onUnproved'>,
): Promise<string[]> {
  const found = await receipts.findAll(
    store,
    chunks.map(({ receiptId }) => receiptId),
  )
  const unproved = chunks.filter(
    ({ receiptId }) => !found.some(receipt => receipt.receiptId === receiptId && isProved(ring, receipt)),
  )
  for (const { receiptId } of unproved) onUnproved('receipt', receiptId)
  if (unproved.length > 0) throw new Fault('data', new Error('a receipt of the batch is unproved'))
  const byId = new Map(found.map(receipt => [receipt.receiptId, receipt.outcomes]))
  return chunks.flatMap(({ receiptId }) => byId.get(receiptId) ?? [])
}

async function digestChunk(
  records: readonly UnpackedOutcome[],
  { runs, key }: { runs: SortedRuns; key: KeyObject },
  { store, ring }: Pick<Deps, 'store' | 'ring'>,
): Promise<LeftOut[]> {
  const counted = records.filter(({ outcome }) => tookEffect(outcome))
  const ids = new Set(counted.flatMap(({ tokenId }) => tokenId ?? []))
  const found = new Map((await tokens.findByIds(store, [...ids])).map(row => [row.tokenId, row]))
  const moved = await findMoved(counted, store)
  const leftOut: LeftOut[] = []
  for (const record of counted) {
    const { line, reference = null } = record
    const row = judge(record, found.get(record.tokenId ?? ''), moved.has(record), ring)
    if (typeof row === 'string') {
      leftOut.push({ line, reference, reason: row })
      continue
    }
    const { tokenId, tokenScope, expiryMonth, expiryYear, brand } = row.token
    const number = ring.open(row.sealed, row.sealVersion, tokenId, tokenScope).reveal()
    const text = `${number}\n${expiryText(expiryMonth, expiryYear)}\n${reference ?? ''}`
    runs.add(brand ?? '', createHmac('sha256', key).update(text, 'utf8').digest())
  }
  return leftOut
}

/** The token of a row that counts, or why the row is left out. */
function judge(
  { tokenId, presented }: UnpackedOutcome,
  token: StoredToken | undefined,
  isMoved: boolean,
  ring: KeyRing,
): { token: StoredToken; sealed: Buffer; sealVersion: number } | LeftOutReason {
  if (tokenId === undefined) return 'no_token'
  if (!token || token.status === 'DELETED') return 'token_deleted'
  assert(presented !== undefined, 'the receipt of a created token says which card was given')
  const given = readPresented(presented)
  if (!isGiven(given, token, ring)) return 'number_differs'
  if (isMoved) return 'owner_moved'
  if (given.expiry !== expiryText(token.expiryMonth, token.expiryYear)) return 'expiry_differs'
  const { sealed, sealVersion } = token
  return sealed && sealVersion !== null ? { token, sealed, sealVersion } : 'no_number'
}

/** Whether the token has the card that the row gave. The fingerprint key may have turned since. */
function isGiven({ check, keyVersion }: PresentedCard, token: StoredToken, ring: KeyRing): boolean {
  const { sealed, sealVersion, tokenId, tokenScope, cards } = token
  if (cards.some(fp => checkOf(fp) === check)) return true
  // Without the number, the fingerprint under the row's version of the key can't be computed. Such a row is left out
  // later (`no_number`).
  if (sealed === null || sealVersion === null) return keyVersion !== 1 || ring.cardPhase().writes[0] !== 1
  const number = ring.open(sealed, sealVersion, tokenId, tokenScope)
  return checkOf(ring.fingerprintBy(number, tokenScope, keyVersion)) === check
}

const CARDS_SHARE = 10

/**
 * Rows of owners who have left the row's token. If the reference of at least every tenth row with an owner is the id of a
 * card, those of all rows are, so each row's owner is known; fewer are such ids by chance. Otherwise a row counts as moved
 * only if its token has no owner left.
 */
async function findMoved(
  records: readonly UnpackedOutcome[],
  store: Deps['store'],
): Promise<ReadonlySet<UnpackedOutcome>> {
  const claiming = records.filter(({ claimed, tokenId }) => claimed !== undefined && tokenId !== undefined)
  const wanted = claiming.map(({ tokenId = '', reference = null }) => ({ tokenId, reference }))
  const found = await findOwnership(store, wanted)
  const owned = found.filter(({ isOwned }) => isOwned)
  const areCards = CARDS_SHARE * owned.filter(({ isNamed }) => isNamed).length >= owned.length
  return new Set(claiming.filter((_, index) => !found[index]?.isOwned || (areCards && !found[index]?.isNamed)))
}

/** Sorts the digests of a part's rows, for each brand, and marks where each first byte begins. */
interface SortedRuns {
  add(brand: string, digest: Buffer): void
  runs(): DigestRun[]
}

function openRuns(): SortedRuns {
  const byBrand = new Map<string, Buffer[]>()
  return {
    add(brand, digest) {
      const known = byBrand.get(brand)
      if (known) known.push(digest)
      else byBrand.set(brand, [digest])
    },
    runs: () => [...byBrand].map(([brand, digests]) => runOf(brand, digests.sort(Buffer.compare))),
  }
}

function runOf(brand: string, sorted: readonly Buffer[]): DigestRun {
  const counts = new Array<number>(BUCKETS).fill(0)
  for (const [first = 0] of sorted) counts[first] = (counts[first] ?? 0) + 1
  const starts = [0]
  for (const count of counts) starts.push((starts.at(-1) ?? 0) + count)
  return { brand, starts, digests: Buffer.concat(sorted) }
}
