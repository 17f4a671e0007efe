// A re-encryption under the lease of one worker, and how the worker waits. What it does under the lease is in reseal.ts and
// card-passes.ts.
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../src/logger.ts'
import { BEAT } from '../../src/store/access/beat.ts'
import * as processes from '../../src/store/access/processes.ts'
import { LostRace, type Store } from '../../src/store/pool.ts'
import * as reseals from '../../src/store/reseal/reseals.ts'
import type { SealedName } from '../../src/store/reseal/sealed-columns.ts'
import { measureLoad } from '../../src/store/reseal/store-load.ts'
import type { Load, Pace } from './pace.ts'
import type { VaultKeys } from './seal-anew.ts'

export interface ResealDeps extends VaultKeys {
  store: Store
  log: Logger
}

/** Times in ms, which tests shorten. */
export interface ResealTimes {
  /** How long a lease holds unless it is renewed. A worker that was killed is replaced after it. */
  leaseMs: number
  /**
   * For so long after the key was replaced a process may still write what it sealed under the former version: a process that
   * hasn't read the keys for 30 s doesn't seal, and no job takes longer than a minute from the seal to the write of its row.
   */
  writersMs: number
  /** If this worker lacks a key, the time until another worker tries. */
  retryMs: number
  /** The pause, in ms, after a pass that couldn't change any of the rows that it found. */
  stuckMs: number
}

/** A re-encryption under the lease of this worker. */
export interface Work {
  held: reseals.Held
  pace: Pace
  times: ResealTimes
  isStopping: () => boolean
  deps: ResealDeps
}

const LOOK_MS = 1_000

/** Waits, and renews the lease meanwhile: a wait may be longer than a lease. Throws `LostRace` if the lease was lost. */
export async function rest({ held, isStopping, deps }: Work, ms: number): Promise<void> {
  const stepMs = Math.min(LOOK_MS, held.leaseMs / 2)
  for (let left = ms; left > 0 && !isStopping(); left -= stepMs) {
    await pause(Math.min(left, stepMs))
    if (!(await reseals.renew(deps.store, held))) throw new LostRace('it was cancelled, or another worker has it')
  }
}

/** Whether a replica is too far behind. It logs when the pace falls below the full rate, and when it is back. */
export async function look({ pace, held, deps }: Work, name: SealedName): Promise<boolean> {
  const { share: former } = pace.share()
  const isBehind = await pace.isBehind(() => loadOf(deps.store, name))
  const { share, reasons } = pace.share()
  const { purpose } = held
  if (former === 1 && share < 1) deps.log.info({ purpose, reasons }, 'a re-encryption goes slower')
  if (former < 1 && share === 1) deps.log.info({ purpose }, 'a re-encryption goes at its full rate again')
  return isBehind
}

async function loadOf(store: Store, name: SealedName): Promise<Load | undefined> {
  const load = await measureLoad(store, name)
  return load && { ...load, workMs: await processes.findWorkMs(store, BEAT.lateMs) }
}
