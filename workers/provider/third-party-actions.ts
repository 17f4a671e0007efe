// Has a third party make the reuse tokens of cards, before anything is decided inside: intent, call under our id, answer,
// each recorded. Several jobs may want a token for the same card under the same contract; one of them asks for it, and
// whoever makes the token's row takes it up.
import { isRefusal, refuse } from '../../src/errors.ts'
import { spread } from '../../src/scheme/interleave.ts'
import type { Urgency } from '../../src/scheme/provider.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'
import { NotYet } from '../line/work.ts'
import { ask, findOut } from './call-provider.ts'
import { LOST_MS, outcomeOf, THIRD_PARTY_REASONS, worstOf } from './interpret-answer.ts'
import { allThrough, type Lease, openLease } from './lease.ts'
import { type Begun, begin, type CardEnd, type CardWish, provisionedOf } from './plan-third-party.ts'
import type { Wisher } from './record-intents.ts'
import { settle } from './write-answer.ts'

/** How often one attempt begins anew with what was lost to others. */
const ROUNDS_MAX = 4
const BUSY_MS_MAX = 500

/** Single jobs of a process that speak to third parties: a slow one mustn't take the places of all other creates. */
const AT_ONCE = 4
const CROWDED_MS = 100
let underWay = 0

/** What came of each wish, by line; of one card there is but one. Throws `NotYet` or `Fault('scheme_away')` as `actAll`. */
export async function provisionAll(
  wisher: Wisher,
  wishes: readonly CardWish[],
  urgency: Urgency,
  deps: Deps,
): Promise<Map<number, CardEnd>> {
  if (urgency === 'bulk') return provisionRounds(wisher, wishes, urgency, deps)
  if (underWay >= AT_ONCE) throw new NotYet(Math.round(CROWDED_MS * (1 + Math.random())))
  underWay += 1
  try {
    return await provisionRounds(wisher, wishes, urgency, deps)
  } finally {
    underWay -= 1
  }
}

async function provisionRounds(
  wisher: Wisher,
  wishes: readonly CardWish[],
  urgency: Urgency,
  deps: Deps,
): Promise<Map<number, CardEnd>> {
  const ends = new Map<number, CardEnd>()
  const left: Error[] = []
  let open = wishes
  for (let round = 0; round < ROUNDS_MAX && open.length > 0; round += 1) {
    const lease = openLease(deps)
    try {
      const begun = await deps.store.transaction(db => begin(db, wisher, open, lease, deps))
      const ordered = spread(begun, ({ wish }) => wish.bin)
      const came = await allThrough(ordered.map(one => goOn(one, lease, urgency, deps)))
      open = []
      for (const [index, { wish }] of ordered.entries()) {
        const end = came[index] ?? 'begin again'
        if (end === 'begin again') open = [...open, wish]
        else if (end instanceof Error) left.push(end)
        else ends.set(wish.line, end)
      }
    } finally {
      lease.end()
    }
  }
  if (open.length > 0) left.push(new NotYet(LOST_MS))
  const worst = worstOf(left, urgency)
  if (worst) throw worst
  return ends
}

async function goOn(
  { wish, is }: Begun,
  lease: Lease,
  urgency: Urgency,
  deps: Deps,
): Promise<CardEnd | 'begin again' | Error> {
  switch (is.as) {
    case 'ended':
      return is.end
    case 'busy':
      return new NotYet(Math.min(is.ms, BUSY_MS_MAX))
    case 'lost':
      return 'begin again'
    case 'leased':
      return askFor(wish, is, lease, urgency, deps)
  }
}

/** Only where it is known that an earlier call had no effect it is called once more. */
async function askFor(
  { field }: CardWish,
  { provisionId, intentId, wasAsked }: Extract<Begun['is'], { as: 'leased' }>,
  lease: Lease,
  urgency: Urgency,
  deps: Deps,
): Promise<CardEnd | 'begin again' | Error> {
  const row = await storedSchemes.find(deps.store, provisionId)
  if (row?.lease !== lease.id || row.retiredAt !== null) return 'begin again'
  const found = wasAsked ? await findOut(row, urgency, deps) : undefined
  const came = found === undefined || found.came === 'nothing' ? await ask(row, 'PROVISION', urgency, deps) : found
  const outcome = outcomeOf(row, 'PROVISION', came, denial => refuse(THIRD_PARTY_REASONS[denial], field), deps)
  const written = await settle(outcome.told, lease.id, deps, { intent: { intentId, ...outcome.intent } })
  if (!written) {
    if (came.came === 'token') await schemeTokens.reclaim(deps.store, outcome.told, deps.clock())
    return 'begin again'
  }
  if (outcome.end instanceof Error || isRefusal(outcome.end)) return outcome.end
  return provisionedOf(written)
}
