// What jobs ask of a network for their tokens, from the recorded intent over the call to the recorded answer. The calls
// are made outside every transaction; a crash anywhere is gone on from by the next attempt, which finds intent and row.
import { Fault, refuse } from '../../src/errors.ts'
import { spread } from '../../src/scheme/interleave.ts'
import type { Urgency } from '../../src/scheme/provider.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'
import { NotYet } from '../line/work.ts'
import { ask } from './call-provider.ts'
import { LOST_MS, outcomeOf, SCHEME_REASONS, worstOf } from './interpret-answer.ts'
import { allThrough, type Lease, openLease } from './lease.ts'
import { drive } from './reconcile/reconcile-row.ts'
import { type Acted, type Begun, begin, type Wish, type Wisher } from './record-intents.ts'
import { settle } from './write-answer.ts'

/** How often one attempt begins anew with what had to be found out first, or was lost to others. */
const ROUNDS_MAX = 4
const BUSY_MS_MAX = 5_000

type Leased = Extract<Begun, { begun: 'leased' }>

/**
 * What came of each wish, by line. Throws `NotYet` or `Fault('scheme_away')` where any of them isn't settled; those that
 * are stay so.
 */
export async function actAll(
  wisher: Wisher,
  wishes: readonly Wish[],
  urgency: Urgency,
  deps: Deps,
): Promise<Map<number, Acted>> {
  const acted = new Map<number, Acted>()
  for (const round of roundsOf(wishes)) {
    const left = await actRound(wisher, round, urgency, acted, deps)
    if (left) throw left
  }
  return acted
}

/** Records of one token follow each other; others don't wait. */
function roundsOf(wishes: readonly Wish[]): Wish[][] {
  const rounds: Wish[][] = []
  const seen = new Map<string, number>()
  for (const wish of wishes) {
    const at = seen.get(wish.token.tokenId) ?? 0
    seen.set(wish.token.tokenId, at + 1)
    rounds[at] = [...(rounds[at] ?? []), wish]
  }
  return rounds
}

async function actRound(
  wisher: Wisher,
  wishes: readonly Wish[],
  urgency: Urgency,
  acted: Map<number, Acted>,
  deps: Deps,
): Promise<Error | undefined> {
  let open = wishes
  const left: Error[] = []
  for (let round = 0; round < ROUNDS_MAX && open.length > 0; round += 1) {
    const lease = openLease(deps)
    try {
      const begun = await deps.store.transaction(db => begin(db, wisher, open, lease, deps))
      for (const one of begun) {
        if (one.begun === 'settled') acted.set(one.wish.line, one.acted)
        if (one.begun === 'busy') left.push(new NotYet(Math.min(one.ms, BUSY_MS_MAX)))
      }
      const leased = begun.filter(one => one.begun === 'leased')
      const ordered = spread(leased, ({ wish }) => wish.token.bin ?? '')
      const ends = await allThrough(ordered.map(one => actOne(one, lease, urgency, deps)))
      const came = ordered.map(({ wish }, index) => ({ wish, end: ends[index] ?? 'begin again' }))
      for (const { wish, end } of came) {
        if (end instanceof Error) left.push(end)
        else if (end !== 'begin again') acted.set(wish.line, end)
      }
      open = came.filter(({ end }) => end === 'begin again').map(({ wish }) => wish)
    } finally {
      lease.end()
    }
  }
  if (open.length > 0) left.push(new NotYet(LOST_MS))
  return worstOf(left, urgency)
}

async function actOne(
  { wish, call, provision, intentId }: Leased,
  lease: Lease,
  urgency: Urgency,
  deps: Deps,
): Promise<Acted | 'begin again' | Error> {
  const row = await storedSchemes.find(deps.store, provision)
  if (row?.lease !== lease.id) return 'begin again'
  if (!call) {
    const known = await drive(row, lease.id, urgency, deps)
    return known?.asked === null || known === undefined ? 'begin again' : new Fault('scheme_away')
  }
  const came = await ask(row, call, urgency, deps)
  const { told, end, intent } = outcomeOf(row, call, came, reason => refuse(SCHEME_REASONS[reason], wish.field), deps)
  if (await settle(told, lease.id, deps, { intent: { intentId, ...intent } })) return end
  if (call === 'PROVISION' && came.came === 'token') await schemeTokens.reclaim(deps.store, told, deps.clock())
  return 'begin again'
}
