// Gives each token the fingerprints under the versions of their key that the phase names: in BOTH the next version beside the
// former, in NEW the next version alone. It uses the same table, lease and pace as a re-encryption. The work of a phase ends
// with a whole pass over all tokens that found nothing to do.
import { describeError } from '../../src/logger.ts'
import * as reseals from '../../src/store/reseal/reseals.ts'
import { assertTurn } from '../../src/store/token/card-phases.ts'
import { type DueSet, type DueToken, findSet } from '../../src/store/token/card-renewal.ts'
import { CardTaken } from '../../src/store/token/cards.ts'
import { type RenewedCards, renewCards } from '../../src/store/token/tokens.ts'
import type { Fingerprints } from '../../src/token/token.ts'
import type { CardPhase } from '../../src/vault/ring/card-prints.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { look, rest, type Work } from './work.ts'

export const CARDS = 'fingerprint'
const COLUMN: string = 'token.cards'
/** Lower than every id. */
const LOWEST = '00000000-0000-0000-0000-000000000000'

/**
 * Works passes. Returns for how many ms no worker needs to look for this work again. Throws `CardPhaseChanged` if the
 * phase changes.
 */
export async function workCardPasses(work: Work): Promise<number> {
  const { held, times, deps } = work
  await deps.ring.refresh()
  const phase = deps.ring.cardPhase()
  for (;;) {
    const begun = await reseals.find(deps.store, held.purpose)
    if (!begun || deps.ring.cardPhase().turn !== phase.turn || !hasVersions(deps.ring, phase.writes))
      return times.retryMs
    const end = await workPass(work, begun.atKey ?? LOWEST, phase)
    if (end === 'stopped') return 0
    if (end === 'lacking') return times.retryMs
    const ended = await reseals.find(deps.store, held.purpose)
    if (!ended) return times.retryMs
    const { pass, passFound, passDone, rowsDone, version } = ended
    if (passFound === 0) {
      await reseals.finish(deps.store, held)
      deps.log.info(
        { purpose: held.purpose, phase: phase.phase, version, passes: pass, rows: rowsDone },
        'all cards have their fingerprints',
      )
      return 0
    }
    await reseals.beginPass(deps.store, held, version)
    if (passDone === 0) return times.stuckMs
  }
}

function hasVersions(ring: LiveRing, versions: readonly number[]): boolean {
  const names = new Set(ring.names())
  return versions.every(version => names.has(`${CARDS}/${version}`))
}

async function workPass(work: Work, from: string, phase: CardPhase): Promise<'ended' | 'stopped' | 'lacking'> {
  const { pace, isStopping, deps } = work
  const versions = phase.writes.toSorted((a, b) => a - b)
  for (let key = from; ; ) {
    if (isStopping()) return 'stopped'
    const set = await findSet(deps.store, { after: key, versions })
    key = set.last ?? key
    if (!(await writeSet(work, set, { key, phase }))) return 'lacking'
    await rest(work, pace.after({ scanned: set.scanned, found: set.rows.length }))
    while (!isStopping() && (await look(work, 'token.sealed'))) await rest(work, 1_000)
    if (set.isEnd) return 'ended'
  }
}

/** False if this process lacks the key of a row. */
async function writeSet(
  { held, pace, deps }: Work,
  { rows, scanned }: DueSet,
  { key, phase }: { key: string; phase: CardPhase },
): Promise<boolean> {
  const { store, log, ring } = deps
  const renewed: RenewedCards[] = []
  let failedRow: string | null = null
  let failed = 0
  for (const row of rows) {
    try {
      const link = linkOf(row, phase, ring)
      // If the directory lacks a row for a fingerprint that the token's row lists, the row is added.
      const storedCards = row.cards.filter((_, index) => row.versions[index] !== null)
      renewed.push({ tokenId: row.tokenId, version: row.version, storedCards, cards: link.kept, link })
    } catch (error) {
      if (!ring.names().includes(`seal/${row.sealVersion}`)) return false
      failed += 1
      failedRow = `token ${row.tokenId}`
      log.error({ row: failedRow, error: describeError(error) }, 'a card can not be opened')
    }
  }
  const write = (set: readonly RenewedCards[], before: Tally) =>
    store.transaction(async db => {
      await assertTurn(db, phase.turn)
      const done = before.done + (await renewCards(db, set))
      const counted = { ...before, scanned, found: rows.length, done, rowsPerSecond: pace.rate() }
      await reseals.advance(db, held, { at: { column: COLUMN, key }, ...counted })
    })
  const tally = { done: 0, failed, failedRow }
  await write(renewed, tally).catch(async error => {
    if (!(error instanceof CardTaken)) throw error
    await write([], await renewOneByOne(deps, renewed, { turn: phase.turn, tally }))
  })
  return true
}

interface Tally {
  done: number
  failed: number
  failedRow: string | null
}

/** Writes the rows of a set one by one, if one of their cards has another token: only that row is left out, and logged. */
async function renewOneByOne(
  { store, log }: Pick<Work['deps'], 'store' | 'log'>,
  renewed: readonly RenewedCards[],
  { turn, tally }: { turn: string; tally: Tally },
): Promise<Tally> {
  let { done, failed, failedRow } = tally
  for (const row of renewed) {
    try {
      done += await store.transaction(async db => {
        await assertTurn(db, turn)
        return renewCards(db, [row])
      })
    } catch (error) {
      if (!(error instanceof CardTaken)) throw error
      failed += 1
      failedRow = `token ${row.tokenId}`
      log.warn({ row: failedRow }, 'another token has the card of this one, so the fingerprint key can not turn')
    }
  }
  return { done, failed, failedRow }
}

/** The fingerprints that the row should have. A row without a number keeps those of its fingerprints that the phase names. */
function linkOf(
  { sealed, sealVersion, tokenId, tokenScope, cards, versions }: DueToken,
  { turn, writes }: CardPhase,
  ring: LiveRing,
): Fingerprints {
  if (sealed !== null && sealVersion !== null) {
    const number = ring.open(sealed, sealVersion, tokenId, tokenScope)
    const kept = writes.map(version => ring.fingerprintBy(number, tokenScope, version))
    return { kept, versions: writes, known: kept, turn }
  }
  const kept = cards.filter((_, index) => writes.includes(versions[index] ?? 0))
  return { kept, versions: kept.map(fp => versions[cards.indexOf(fp)] ?? 0), known: kept, turn }
}
