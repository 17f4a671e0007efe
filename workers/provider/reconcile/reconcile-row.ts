// Does for a leased row what is due: finds out what became of a lost call, provisions what the loop is to provision,
// deletes what is to go, or asks how it stands. It goes by the row alone, so that whoever was at it before may be dead.
import type { Urgency } from '../../../src/scheme/provider.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { StoredScheme, Told } from '../../../src/store/provider/scheme-row.ts'
import type { Deps } from '../../deps.ts'
import { ask, type Came, findOut } from '../call-provider.ts'
import { insertEvent, publishEvent } from '../events.ts'
import { VANISHED_MAX } from '../interpret-answer.ts'
import { settle } from '../write-answer.ts'
import { differs, gone, mirror, nothing, unchanged } from './apply-answer.ts'
import { noteDrift } from './drift.ts'

/** So often whoever doesn't know of a call is asked about it. */
const UNKNOWN_MAX = 9
const BACKOFF = { firstMs: 500, mostMs: 300_000 } as const

/** The row as it is then; undefined where the lease was lost. Never throws for the network's sake. */
export async function drive(
  row: StoredScheme,
  lease: string,
  urgency: Urgency,
  deps: Deps,
  { isQuiet = () => false, onChange }: DriveOptions = {},
): Promise<StoredScheme | undefined> {
  const told = await workOut(row, urgency, deps)
  // Before the transaction: what holds a connection mustn't wait for another one.
  const scope = await deps.directory.scope(row.tokenScope)
  const ended = Promise.withResolvers<void>()
  const writing = deps.store.transaction(async db => {
    const written = await settle(told, lease, deps, { db })
    const isNew = written !== undefined && isNews(row, written)
    if (isNew) await onChange?.(db, written)
    const isTold = isNew && !isQuiet(ended.promise)
    return { written, told: isTold ? await insertEvent(db, row, written, scope, deps.clock()) : undefined }
  })
  const event = await writing.finally(ended.resolve)
  if (event.told) await publishEvent(event.told, deps)
  return event.written
}

export interface DriveOptions {
  /** Whoever would be told by an event is told otherwise, by what is read once the transaction has `ended`. */
  isQuiet?: (ended: Promise<void>) => boolean
  /** In the transaction that writes what the token shows otherwise now. */
  onChange?: (db: Db, after: StoredScheme) => Promise<unknown>
}

/** What a job does is told to it alone; who didn't ask for it is told of what the token shows now. */
function isNews(before: StoredScheme, after: StoredScheme): boolean {
  if (!before.current || before.retiredAt !== null || after.retiredAt !== null) return false
  const byJob = before.asked !== null && !before.background
  return !byJob && differs(before, after)
}

async function workOut(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Told> {
  const now = deps.clock()
  if (row.state === 'DELETED' || row.state === 'VOID') return unchanged(row, null, null)
  if (row.retiredAt !== null) return remove(row, urgency, deps)
  if (row.state === 'PENDING') return row.background ? provision(row, urgency, deps) : clear(row, urgency, deps)
  const came = await ask(row, 'GET', urgency, deps)
  if (came.came === 'token') return { ...mirror(row, came.token, deps.ring), checkedAt: now }
  if (came.came === 'refused' && came.reason === 'token_unknown') {
    await noteDrift(deps.store, { what: 'missing', ...row }, deps)
    return { ...unchanged({ ...row, attempts: 0 }, null, null), checkedAt: now }
  }
  return later(row, came, deps)
}

/** The loop's own to provision; the first call is made at once, any other only after the network was asked. */
async function provision(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Told> {
  if (row.attempts > 1) {
    const found = await findOut(row, urgency, deps)
    if (found.came === 'token') return mirror(row, found.token, deps.ring)
    if (found.came !== 'nothing') return later(row, found, deps)
  }
  const came = await ask(row, 'PROVISION', urgency, deps)
  if (came.came === 'token') return mirror(row, came.token, deps.ring)
  if (came.came === 'refused') return nothing(row, came.reason)
  if (came.came === 'taken' || came.came === 'leaving') return nothing(row, null)
  // Its issuer ended it before we knew of it, and the network will never make another one under that name; or it has had
  // no answer from the issuer each time.
  if (came.came === 'nothing' && row.attempts > VANISHED_MAX) {
    if (came.vanished) return nothing(row, 'token_unknown')
    if (came.once) return nothing(row, 'card_declined')
  }
  return later(row, came, deps)
}

/** A job's, which goes on by itself: only what became of its call is found out. */
async function clear(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Told> {
  if (row.asked === null) return unchanged(row, null)
  const found = await findOut(row, urgency, deps)
  if (found.came === 'token') return mirror(row, found.token, deps.ring)
  if (found.came === 'taken' || found.came === 'leaving') return nothing(row, null)
  if (found.came !== 'nothing' || (row.thirdParty && mayStillCome(row))) return later(row, found, deps)
  return unchanged({ ...row, attempts: 0 }, null, null)
}

async function remove(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Told> {
  if (row.thirdParty) return removeForeign(row, urgency, deps)
  let known: Told = row
  if (row.state === 'PENDING') {
    const found: Came = row.asked === null ? { came: 'nothing', afterMs: undefined } : await findOut(row, urgency, deps)
    if (found.came === 'nothing' && (row.asked === null || !mayStillCome(row))) return nothing(row, null)
    if (found.came !== 'token') return later(row, found, deps)
    known = mirror(row, found.token, deps.ring)
  }
  if (known.state === 'DELETED') return known
  const came = await ask({ ...row, ...known }, 'DELETE', urgency, deps)
  if (came.came === 'token') return gone({ ...known, reference: came.token.reference })
  if (came.came === 'refused' && came.reason === 'token_unknown') return gone(known)
  return later(known === row ? row : { ...known, attempts: row.attempts }, came, deps)
}

/** Nothing of it stays, not even its name; one that is only found now may hold what must not be written down. */
async function removeForeign(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Told> {
  let { reference } = row
  if (reference === null) {
    if (row.asked === null) return nothing(row, null)
    const found = await findOut(row, urgency, deps)
    if (found.came === 'taken' || found.came === 'leaving') return nothing(row, null)
    if (found.came === 'nothing' && !mayStillCome(row)) return nothing(row, null)
    if (found.came !== 'token') return later(row, found, deps)
    reference = found.token.reference
  }
  const came = await ask({ ...row, reference }, 'DELETE', urgency, deps)
  const isGone = came.came === 'token' || (came.came === 'refused' && came.reason === 'token_unknown')
  return isGone ? nothing(row, null) : later(row, came, deps)
}

/** Whoever doesn't know of our call may still be at it, or it may yet be on its way: for more than a minute. */
function mayStillCome({ attempts }: StoredScheme): boolean {
  return attempts < UNKNOWN_MAX
}

/** Exponential, with full jitter, unless the network named a time. */
function later(row: Told, came: Came, { clock, log }: Deps): Told {
  if (came.came === 'refused')
    log.warn({ provision: row.provisionId, reason: came.reason }, 'a network refuses what is due of a scheme token')
  const most = Math.min(BACKOFF.firstMs * 2 ** Math.min(row.attempts, 20), BACKOFF.mostMs)
  const afterMs = 'afterMs' in came ? came.afterMs : undefined
  return unchanged(row, clock() + Math.max(afterMs ?? 0, Math.round(most * (0.5 + Math.random() / 2))))
}
