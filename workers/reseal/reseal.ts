// A bulk worker takes the lease of a re-encryption. Set by set, it seals anew every row that names another version of the key
// than the active one. It writes its place with each set, so that another worker can go on from there. It repeats whole
// passes until one that began after the last writer of a former version has found nothing.
import { randomUUID } from 'node:crypto'
import { describeError } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import { LostRace } from '../../src/store/pool.ts'
import * as reseals from '../../src/store/reseal/reseals.ts'
import { type SealedName, sealedNamesOf, sealingPurpose } from '../../src/store/reseal/sealed-columns.ts'
import * as sealedRows from '../../src/store/reseal/sealed-rows.ts'
import { readClock } from '../../src/store/server.ts'
import { PURPOSES } from '../../src/vault/ring/key-ring.ts'
import { CARDS, workCardPasses } from './card-passes.ts'
import { openPace, type PaceOptions } from './pace.ts'
import { NotReady, sealSetAnew } from './seal-anew.ts'
import { look, type ResealDeps, type ResealTimes, rest, type Work } from './work.ts'

export type { ResealTimes } from './work.ts'

const TIMES: ResealTimes = { leaseMs: 10_000, writersMs: 90_000, retryMs: 2_000, stuckMs: 30_000 }
const LOOK_MS = 1_000

export type ResealOptions = PaceOptions & Partial<ResealTimes>

/** Looks for re-encryptions; returns a function that stops it after the set that is being worked. */
export function startReseals(deps: ResealDeps, options: ResealOptions): () => Promise<void> {
  let stopping = false
  const stop = every(LOOK_MS, () => workReseal(deps, options, () => stopping), deps)
  return async () => {
    stopping = true
    await stop()
  }
}

/** Works a re-encryption until it is done, cancelled or given back. Returns its purpose; undefined if none was due. */
export async function workReseal(
  deps: ResealDeps,
  options: ResealOptions,
  isStopping: () => boolean = () => false,
): Promise<string | undefined> {
  const times = { ...TIMES, ...options }
  const lease = randomUUID()
  const taken = await reseals.take(deps.store, lease, times.leaseMs)
  if (!taken) return undefined
  const held = { purpose: taken.purpose, lease, leaseMs: times.leaseMs }
  const work = { held, pace: openPace(options), times, isStopping, deps }
  let restMs = 0
  try {
    restMs = held.purpose === CARDS ? await workCardPasses(work) : await workPasses(work)
  } catch (error) {
    if (!(error instanceof LostRace)) throw error
    deps.log.debug({ purpose: held.purpose, why: error.message }, 'a re-encryption goes on elsewhere, or later')
  } finally {
    await reseals.giveBack(deps.store, held, restMs)
  }
  return held.purpose
}

/** Works passes. Returns for how many ms no worker needs to look for this re-encryption again. */
async function workPasses(work: Work): Promise<number> {
  const { held, times, deps } = work
  const purpose = PURPOSES.find(known => known === held.purpose)
  if (purpose) await deps.ring.reserve(purpose)
  for (;;) {
    const version = await dataKeys.findActiveVersion(deps.store, held.purpose)
    const before = await reseals.find(deps.store, held.purpose)
    if (version === undefined || !before || !(await isHere(work, version))) return times.retryMs
    if (before.version !== version) await reseals.beginPass(deps.store, held, version)
    const end = await workPass(work, version)
    if (end === 'stopped') return 0
    if (end === 'lacking') return times.retryMs
    const restMs = end === 'turned' ? undefined : await endPass(work, version)
    if (restMs !== undefined) return restMs
  }
}

/** Whether this process can seal under the version. */
async function isHere({ held, deps }: Work, version: number): Promise<boolean> {
  const purpose = sealingPurpose(held.purpose)
  if (!purpose) return false
  await deps.ring.reserve(purpose)
  return deps.ring.names().includes(`${purpose}/${version}`)
}

/** What follows a whole pass. Undefined: the next pass begins at once; else the ms for which the re-encryption rests. */
async function endPass({ held, times, deps }: Work, version: number): Promise<number | undefined> {
  const { store, log } = deps
  const ended = await reseals.find(store, held.purpose)
  if (!ended) return times.retryMs
  const { pass, passFound, passDone, passBeganAt, startedAt, rowsDone } = ended
  const provesFrom = startedAt + times.writersMs
  if (passFound === 0 && passBeganAt >= provesFrom) {
    await reseals.finish(store, held)
    log.info({ purpose: held.purpose, version, passes: pass, rows: rowsDone }, 'a re-encryption is done')
    return 0
  }
  // The store's clock wrote these times.
  const waitMs = provesFrom - (await readClock(store))
  if (waitMs > 0) return waitMs
  await reseals.beginPass(store, held, version)
  return passFound > 0 && passDone === 0 ? times.stuckMs : undefined
}

type PassEnd = 'ended' | 'stopped' | 'lacking' | 'turned'

async function workPass(work: Work, version: number): Promise<PassEnd> {
  const { held, deps } = work
  const names = sealedNamesOf(held.purpose)
  const reached = await reseals.find(deps.store, held.purpose)
  const isReached = (name: SealedName) => name === reached?.atColumn
  const from = Math.max(0, names.findIndex(isReached))
  for (const [index, name] of names.slice(from).entries()) {
    const after = index === 0 ? (reached?.atKey ?? '') : ''
    const end = await workColumn(work, { name, next: names[from + index + 1], after, version })
    if (end !== 'ended') return end
  }
  return 'ended'
}

interface Column {
  name: SealedName
  /** The column after it in the pass. */
  next: SealedName | undefined
  after: string
  version: number
}

async function workColumn(work: Work, { name, next, after, version }: Column): Promise<PassEnd> {
  const { pace, isStopping, deps } = work
  for (let key = after; ; ) {
    if (isStopping()) return 'stopped'
    if (await hasTurned(work, version)) return 'turned'
    const set = await sealedRows.findSet(deps.store, name, { after: key, version })
    key = set.last ?? key
    const at = set.isEnd && next ? { column: next, key: '' } : { column: name, key }
    if (!(await isWritten(work, { name, set, at, version }))) return 'lacking'
    await rest(work, pace.after({ scanned: set.scanned, found: set.rows.length }))
    while (!isStopping() && (await look(work, name))) await rest(work, LOOK_MS)
    if (set.isEnd) return 'ended'
  }
}

/** Whether another version is active now. It reads the store at most once a second. */
async function hasTurned({ held, pace, deps }: Work, version: number): Promise<boolean> {
  return pace.isWatchDue() && (await dataKeys.findActiveVersion(deps.store, held.purpose)) !== version
}

/** False if this process can't seal under the version now, though it has read its keys again. */
async function isWritten(work: Work, found: FoundSet): Promise<boolean> {
  for (const isAgain of [false, true]) {
    try {
      // It also reserves further seals.
      if (isAgain) await work.deps.ring.refresh()
      await writeSet(work, found)
      return true
    } catch (error) {
      if (!(error instanceof NotReady)) throw error
    }
  }
  return false
}

interface FoundSet {
  name: SealedName
  set: sealedRows.SealedSet
  /** The place that the pass reaches with this set. */
  at: { column: string; key: string }
  version: number
}

async function writeSet({ held, pace, deps }: Work, { name, set, at, version }: FoundSet): Promise<void> {
  const { store, log } = deps
  const { rows, failed, failedRow, failure } = await sealSetAnew(name, { rows: set.rows, version }, deps)
  if (failedRow) log.error({ row: failedRow, rows: failed, error: describeError(failure) }, 'a row can not be opened')
  await store.transaction(async db => {
    const done = await sealedRows.replaceSet(db, name, { rows, version })
    const found = set.rows.length
    const counted = { scanned: set.scanned, found, done, failed, failedRow, rowsPerSecond: pace.rate() }
    await reseals.advance(db, held, { at, ...counted })
  })
}
