// Replaces the fingerprint key, phase by phase: in BOTH cards are written under the former and the next version, in NEW
// under the next one alone, and then SINGLE begins again. In BOTH and NEW bulk workers change the tokens; the next
// phase waits for them.
import { BEAT } from '../../store/access/beat.ts'
import * as processes from '../../store/access/processes.ts'
import { type Db, LostRace, type Store } from '../../store/pool.ts'
import * as schemeCards from '../../store/provider/scheme-cards.ts'
import * as reseals from '../../store/reseal/reseals.ts'
import * as cardPhases from '../../store/token/card-phases.ts'
import { estimateTokens } from '../../store/token/card-renewal.ts'
import * as cards from '../../store/token/cards.ts'
import * as tokens from '../../store/token/tokens.ts'
import type { PhaseName } from '../../vault/ring/card-prints.ts'
import { activating, type KeyLives, livesOf, withKeys, withPhase } from '../../vault/ring/key-lives.ts'
import type { ActResult, By } from '../act.ts'
import { type LivesKeeper, turnLives } from '../turn-lives.ts'
import { ROTATE } from './key-rotation.ts'

const PURPOSE = 'fingerprint'
export const RETIRE = 'data-key.retire'

export interface PhaseBegun {
  phase: PhaseName
  /** The version that stays when all others are removed. */
  version: number
}

/** `raced`: another run has changed the phase. `unproved`: the workers aren't done. `lacking`: a process lacks the key. */
export type PhaseRefusal = 'raced' | 'unproved' | 'lacking'

type Waits = cardPhases.AloneOptions['waits']

/** Begins the phase BOTH: from now on cards are written under both versions. `version`: a PENDING one. */
export function beginBoth(
  keeper: LivesKeeper,
  version: number,
  by: By,
  waits?: Waits,
): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return change(
    { keeper, by, waits },
    {
      plan: now => {
        const { phase, writes, looks } = now.phase
        const [former] = writes
        if (phase !== 'SINGLE' || former === undefined || looks.includes(version)) return 'raced'
        // It may have been dropped since the caller made it.
        if (!isPending(now, version)) return 'raced'
        return withPhase(unchanged(now), {
          phase: 'BOTH',
          writes: [former, version],
          looks: [former, version, ...rest(looks, [former])],
        })
      },
      effect: async db => {
        if (await isLacking(db, version)) return 'lacking'
        await reseals.begin(db, { purpose: PURPOSE, version, rowsExpected: await estimateTokens(db) })
        return { phase: 'BOTH', version }
      },
    },
  )
}

/** Begins the phase NEW: from now on cards are written only under the next version, which becomes the one in use. */
export function beginNew(keeper: LivesKeeper, by: By, waits?: Waits): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return change(
    { keeper, by, waits },
    {
      plan: now => {
        const { phase, writes, looks } = now.phase
        const [, version] = writes
        if (phase !== 'BOTH' || version === undefined) return 'raced'
        return withPhase(withKeys(now, PURPOSE, activating(version)), {
          phase: 'NEW',
          writes: [version],
          looks: [version, ...rest(looks, [version])],
        })
      },
      effect: async (db, next) => {
        const [version = 0] = next.phase.writes
        if (!(await isProved(db, version))) return 'unproved'
        if (await isLacking(db, version)) return 'lacking'
        await reseals.begin(db, { purpose: PURPOSE, version, rowsExpected: await estimateTokens(db) })
        // After a compromise the workers wait: the command lists the fingerprints under the former version before they remove
        // them.
        const isUnlisted = livesOf(next, PURPOSE).some(key => key.compromised !== undefined && !key.exposed)
        if (isUnlisted) await reseals.cancel(db, PURPOSE)
        return { phase: 'NEW', version }
      },
    },
  )
}

/**
 * Begins the phase SINGLE, which ends the rotation. Cards aren't looked for any more under former versions without
 * cards.
 */
export async function beginSingle(
  keeper: LivesKeeper,
  by: By,
  waits?: Waits,
): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  // Nobody writes under another version in this phase, so what is counted before the change can only become fewer.
  const { looks } = (await keeper.lives.read()).phase
  const empty: number[] = []
  for (const version of looks.slice(1)) {
    const cards = await keeper.store.transaction(
      async db => (await cardPhases.countUnder(db, version)) + (await schemeCards.countUntakenUnder(db, version)),
    )
    if (cards === 0) empty.push(version)
  }
  return change(
    { keeper, by, waits },
    {
      plan: now => {
        const { phase, writes } = now.phase
        if (phase !== 'NEW' || now.phase.looks.join() !== looks.join()) return 'raced'
        return withPhase(unchanged(now), { phase: 'SINGLE', writes, looks: rest(looks, empty) })
      },
      effect: async (db, next) => {
        const [version = 0] = next.phase.writes
        if (!(await isProved(db, version))) return 'unproved'
        return { phase: 'SINGLE', version }
      },
    },
  )
}

/**
 * Ends the look-up of cards under a former version. Refused with `orphans` if tokens without a number are known under it alone;
 * with `isForced` it isn't, and the card of each such token gets a second token when it is next presented.
 */
export async function retireVersion(
  keeper: LivesKeeper,
  { version, isForced }: { version: number; isForced: boolean },
  by: By,
  waits?: Waits,
): Promise<ActResult<{ orphans: number }, 'turning' | 'in_use' | 'unknown' | 'orphans'>> {
  const deed = { action: RETIRE, subject: `${PURPOSE}/${version}` }
  const orphans = await keeper.store.transaction(db => cardPhases.countUnder(db, version))
  return turnLives<{ orphans: number }, 'turning' | 'in_use' | 'unknown' | 'orphans'>(keeper, deed, by, {
    plan: now => {
      const { phase, writes, looks } = now.phase
      if (phase !== 'SINGLE') return 'turning'
      if (writes.includes(version)) return 'in_use'
      if (!looks.includes(version) && orphans === 0) return 'unknown'
      if (orphans > 0 && !isForced) return 'orphans'
      return withPhase(unchanged(now), { phase, writes, looks: rest(looks, [version]) })
    },
    effect: async () => ({ done: { orphans }, detail: { orphans } }),
    alone: { waits },
  })
}

const ROWS_AT_ONCE = 1_000
/** Lower than every fingerprint. */
const LOWEST = '00000000-0000-0000-0000-000000000000'

/** Removes the fingerprints under a version that was retired. If it was killed, another run continues. */
export async function removeRetired({ store, lives }: LivesKeeper, version: number): Promise<void> {
  // A version that was retired never comes back.
  const { looks } = (await lives.read()).phase
  if (looks.includes(version)) return
  for (let after: string | undefined = LOWEST; after !== undefined; )
    after = await removePage(store, version, after).catch(goOnFrom(after))
  await store.transaction(db => schemeCards.removeUnder(db, version))
}

/** Returns the last fingerprint of the page; undefined: there is none after it. Tokens are locked first, as jobs do it. */
function removePage(store: Store, version: number, after: string): Promise<string | undefined> {
  return store.transaction(async db => {
    const found = await cards.findUnder(db, { version, after, limit: ROWS_AT_ONCE })
    const held = [...new Set(found.map(({ tokenId }) => tokenId))]
    await tokens.holdAll(db, held)
    await cards.removeForgotten(db, found)
    await tokens.forgetCards(db, found)
    return found.length < ROWS_AT_ONCE ? undefined : found.at(-1)?.fp
  })
}

/** Lets a page that lost a race against a job be worked again. */
function goOnFrom(after: string): (error: unknown) => string {
  return error => {
    if (error instanceof LostRace) return after
    throw error
  }
}

interface PhaseChange {
  plan(now: KeyLives): KeyLives | PhaseRefusal
  effect(db: Db, next: KeyLives): Promise<PhaseBegun | PhaseRefusal>
}

function change(
  { keeper, by, waits }: { keeper: LivesKeeper; by: By; waits: Waits },
  { plan, effect }: PhaseChange,
): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return turnLives<PhaseBegun, PhaseRefusal>(keeper, { action: ROTATE, subject: PURPOSE }, by, {
    plan,
    effect: async (db, { next }) => {
      const decided = await effect(db, next)
      if (typeof decided === 'string') return { refused: decided }
      return { done: decided, detail: { step: decided.phase, version: decided.version } }
    },
    alone: { waits },
  })
}

/** The same keys in the next epoch. */
const unchanged = (now: KeyLives) => withKeys(now, PURPOSE, keys => keys)

/** Whether a whole pass of the workers, begun in this phase, has found nothing to do. */
async function isProved(db: Db, version: number): Promise<boolean> {
  const found = await reseals.hold(db, PURPOSE)
  return found?.state === 'DONE' && found.version === version
}

function isPending(now: KeyLives, version: number): boolean {
  return livesOf(now, PURPOSE).some(key => key.version === version && key.state === 'PENDING')
}

async function isLacking(db: Db, version: number): Promise<boolean> {
  return (await processes.listLacking(db, `${PURPOSE}/${version}`, BEAT.deadMs)).length > 0
}

function rest(versions: readonly number[], without: readonly number[]): number[] {
  return versions.filter(version => !without.includes(version))
}
