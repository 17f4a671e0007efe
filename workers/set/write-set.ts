// Writes the single jobs that ask at the same time in one transaction. Sets, chunks and jobs that are written alone
// take their locks in one order: receipts; cards of new tokens; tokens; guesses; sequences. A job leaves the set before
// anything of the job is written if it can't get the lock of its receipt or its token at once, or if its decision is
// outdated. Nothing is decided here.

import { toFault } from '../../src/errors.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { ALONE, gather } from '../../src/queue/gather.ts'
import { levelOfFailure } from '../../src/server-error.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Db, LostRace, limitLockWaits, type Store, tryHoldAll } from '../../src/store/pool.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import { type EffectDeps, writeEffects } from '../effect/write-effect.ts'
import type { WorkerMetrics } from '../metrics/metrics.ts'
import { keysOf, type Sets, type Single, tokensOf, type WrittenSingle } from './single.ts'

interface SetDeps extends EffectDeps {
  store: Pick<Store, 'transaction'>
  metrics: Pick<WorkerMetrics, 'sets' | 'setJobs'>
  log: Logger
  tracer?: Tracer | undefined
}

/**
 * LOST: another transaction has changed what the job was decided on, so the job is decided again. BUSY: another
 * transaction has a lock that the job needs, or the job's misses may pass a limit, so the job is written alone.
 */
type End = WrittenSingle | 'LOST' | 'BUSY'
type Ends = Map<Single, End>

const SET = { max: 64, lockMsMax: 100 } as const

/**
 * How many sets (`lanes`), and how many jobs alone, are written at once. Each of them takes a database connection, and
 * may wait for locks with it.
 */
interface Bounds {
  lanes: number
  loneMax: number
}

/** Both together take at most 15 of the 20 connections of an interactive process, because other work needs the rest. */
export const SETS_BOUNDS = {
  usual: { lanes: 2, loneMax: 8 },
  background: { lanes: 1, loneMax: 4 },
} as const satisfies Record<string, Bounds>

export function openSets(deps: SetDeps, { lanes, loneMax }: Bounds = SETS_BOUNDS.usual): Sets {
  const { max } = SET
  return {
    write: gather(
      { together: set => writeSet(set, deps), alone: single => alone(single, deps) },
      { max, lanes, loneMax, keysOf },
    ),
  }
}

function alone(single: Single, { metrics }: SetDeps): Promise<WrittenSingle> {
  metrics.setJobs.inc({ written: 'alone' })
  return single.alone()
}

async function writeSet(set: readonly Single[], deps: SetDeps) {
  const { store, metrics, log, tracer } = deps
  const links = set.flatMap(({ trace }) => (trace?.sampled ? trace : []))
  const span = links.length > 0 ? tracer?.start('set', { links, attributes: { 'set.jobs': set.length } }) : undefined
  try {
    const ends = await store.transaction(db => write(db, set, deps))
    span?.end()
    metrics.sets.inc({ end: 'written' })
    metrics.setJobs.inc({ written: 'together' }, [...ends.values()].filter(end => typeof end === 'object').length)
    return set.map(single => {
      const end = ends.get(single)
      if (end === 'LOST') return new LostRace('others were first')
      return typeof end === 'object' ? end : ALONE
    })
  } catch (error) {
    span?.end(toFault(error).code)
    metrics.sets.inc({ end: 'rolled_back' })
    log[levelOfFailure(error)](
      { jobs: set.length, error: describeError(error) },
      'a set was rolled back; its jobs are written alone',
    )
    throw error
  }
}

async function write(db: Db, set: readonly Single[], deps: EffectDeps): Promise<Ends> {
  const ends: Ends = new Map()
  await claim(db, set, ends)
  const claimed = set.filter(single => !ends.has(single))
  await holdTokens(db, claimed, ends)
  const staying = claimed.filter(single => !ends.has(single))
  if (staying.length === 0) return ends
  const rows = staying.map(({ receipt }) => receipt)
  const effects = staying.map(({ effect: { inserts: _, ...effect } }) => effect)
  const [, written] = await Promise.all([writeEffects(db, effects, deps), receipts.insertAll(db, deps.ring, rows)])
  for (const [index, single] of staying.entries()) {
    const own = written[index]
    if (own) ends.set(single, { row: single.receipt, ...own })
  }
  return ends
}

/** Locks the receipts. Puts each job that may not write its receipt here into `ends`. */
async function claim(db: Db, set: readonly Single[], ends: Ends): Promise<void> {
  const ids = set.map(({ receipt }) => receipt.receiptId)
  const misses = set.flatMap(({ effect }) => effect.misses ?? [])
  const [, free, found, counts] = await Promise.all([
    limitLockWaits(db, SET.lockMsMax),
    tryHoldAll(db, ids),
    receipts.findAll(db, ids),
    misses.length === 0 ? [] : guesses.countAll(db, misses),
  ])
  const done = new Set(found.map(({ receiptId }) => receiptId))
  const counted = new Map(misses.map((miss, index) => [guessKey(miss), counts[index] ?? 0]))
  for (const single of set) {
    const { receiptId } = single.receipt
    if (!free.has(receiptId)) ends.set(single, 'BUSY')
    else if (done.has(receiptId)) ends.set(single, 'LOST')
    else if (mayExceed(single, counted)) ends.set(single, 'BUSY')
  }
}

const guessKey = ({ clientId, tokenScope, digits }: guesses.Guess) => `${clientId} ${tokenScope} ${digits}`

/** Whether the job's misses could pass a limit. If they can't, adds them to `counted`. */
function mayExceed({ effect: { misses = [] } }: Single, counted: Map<string, number>): boolean {
  const isBeyond = misses.some(
    ({ missesMax = Number.POSITIVE_INFINITY, ...miss }) => (counted.get(guessKey(miss)) ?? 0) + 1 > missesMax,
  )
  if (!isBeyond) for (const miss of misses) counted.set(guessKey(miss), (counted.get(guessKey(miss)) ?? 0) + 1)
  return isBeyond
}

/**
 * Inserts the new tokens, then locks the changed ones. A chunk locks in the same order: cards before rows of tokens.
 */
async function holdTokens(db: Db, singles: readonly Single[], ends: Ends): Promise<void> {
  const marks = singles.flatMap(({ effect }) => effect.sequences ?? [])
  const [losers, versions, stored] = await Promise.all([
    tokens.insertMissing(
      db,
      singles.flatMap(({ effect }) => effect.inserts ?? []),
    ),
    tokens.holdFree(
      db,
      singles.flatMap(({ effect }) => tokensOf(effect)),
    ),
    marks.length === 0 ? [] : sequences.findAll(db, marks),
  ])
  const last = new Map(stored.map(mark => [markKey(mark), mark.sequence]))
  for (const single of singles) {
    const { inserts = [], updates = [], touches = [], sequences: own = [] } = single.effect
    const read = [...updates.map(({ tokenId, version }) => ({ tokenId, version: version - 1 })), ...touches]
    if (inserts.some(({ tokenId }) => losers.has(tokenId))) ends.set(single, 'LOST')
    else if (tokensOf(single.effect).some(tokenId => !versions.has(tokenId))) ends.set(single, 'BUSY')
    else if (read.some(({ tokenId, version }) => versions.get(tokenId) !== version)) ends.set(single, 'LOST')
    else if (own.some(mark => (last.get(markKey(mark)) ?? -1) >= mark.sequence)) ends.set(single, 'LOST')
  }
}

const markKey = ({ clientId, tokenId }: sequences.SequenceMark) => `${tokenId} ${clientId}`
