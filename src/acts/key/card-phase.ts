// Replaces the fingerprint key, phase by phase: in BOTH cards are written under the former and the next version, in NEW
// under the next one alone, and then SINGLE begins again. In BOTH and NEW bulk workers change the tokens; the next
// phase waits for them.
import { BEAT } from '../../store/access/beat.ts'
import * as dataKeys from '../../store/access/data-keys.ts'
import * as processes from '../../store/access/processes.ts'
import { type Db, LostRace, type Store } from '../../store/pool.ts'
import * as schemeCards from '../../store/provider/scheme-cards.ts'
import * as reseals from '../../store/reseal/reseals.ts'
import * as cardPhases from '../../store/token/card-phases.ts'
import { estimateTokens } from '../../store/token/card-renewal.ts'
import * as cards from '../../store/token/cards.ts'
import * as tokens from '../../store/token/tokens.ts'
import { type ActResult, type By, perform } from '../act.ts'
import { ROTATE } from './key-rotation.ts'

const PURPOSE = 'fingerprint'
export const RETIRE = 'data-key.retire'

export interface PhaseBegun {
  phase: cardPhases.PhaseName
  /** The version that stays when all others are removed. */
  version: number
}

/** `raced`: another run has changed the phase. `unproved`: the workers aren't done. `lacking`: a process lacks the key. */
export type PhaseRefusal = 'raced' | 'unproved' | 'lacking'

type Waits = cardPhases.AloneOptions['waits']

/** Begins the phase BOTH: from now on cards are written under both versions. `version`: a PENDING one. */
export function beginBoth(
  store: Store,
  version: number,
  by: By,
  waits?: Waits,
): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return change({ store, by, waits }, async (db, { phase, writes, looks }) => {
    const [former] = writes
    if (phase !== 'SINGLE' || former === undefined || looks.includes(version)) return 'raced'
    if (!(await isPending(db, version))) return 'raced'
    if (await isLacking(db, version)) return 'lacking'
    await cardPhases.write(db, {
      phase: 'BOTH',
      writes: [former, version],
      looks: [former, version, ...rest(looks, [former])],
    })
    await reseals.begin(db, { purpose: PURPOSE, version, rowsExpected: await estimateTokens(db) })
    return { phase: 'BOTH', version }
  })
}

/** Begins the phase NEW: from now on cards are written only under the next version, which becomes the one in use. */
export function beginNew(store: Store, by: By, waits?: Waits): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return change({ store, by, waits }, async (db, { phase, writes, looks }) => {
    const [former, version] = writes
    if (phase !== 'BOTH' || former === undefined || version === undefined) return 'raced'
    if (!(await isProved(db, version))) return 'unproved'
    if (await isLacking(db, version)) return 'lacking'
    await cardPhases.write(db, { phase: 'NEW', writes: [version], looks: [version, ...rest(looks, [version])] })
    const keys = await dataKeys.lockPurpose(db, PURPOSE)
    await dataKeys.retire(db, PURPOSE, former)
    await dataKeys.activate(db, PURPOSE, version)
    await reseals.begin(db, { purpose: PURPOSE, version, rowsExpected: await estimateTokens(db) })
    // After a compromise the workers wait: the command lists the fingerprints under the former version before they remove them.
    if (keys.some(key => key.compromisedAt !== null && key.exposedAt === null)) await reseals.cancel(db, PURPOSE)
    return { phase: 'NEW', version }
  })
}

/**
 * Begins the phase SINGLE, which ends the rotation. Cards aren't looked for any more under former versions without
 * cards.
 */
export async function beginSingle(store: Store, by: By, waits?: Waits): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  // Nobody writes under another version in this phase, so what is counted before the change can only become fewer.
  const { looks } = await cardPhases.find(store)
  const empty: number[] = []
  for (const version of looks.slice(1)) {
    const cards = await store.transaction(
      async db => (await cardPhases.countUnder(db, version)) + (await schemeCards.countUntakenUnder(db, version)),
    )
    if (cards === 0) empty.push(version)
  }
  return change({ store, by, waits }, async (db, now) => {
    const [version] = now.writes
    if (now.phase !== 'NEW' || version === undefined || now.looks.join() !== looks.join()) return 'raced'
    if (!(await isProved(db, version))) return 'unproved'
    await cardPhases.write(db, { phase: 'SINGLE', writes: [version], looks: rest(looks, empty) })
    return { phase: 'SINGLE', version }
  })
}

/**
 * Ends the look-up of cards under a former version. Refused with `orphans` if tokens without a number are known under it alone;
 * with `isForced` it isn't, and the card of each such token gets a second token when it is next presented.
 */
export async function retireVersion(
  store: Store,
  { version, isForced }: { version: number; isForced: boolean },
  by: By,
  waits?: Waits,
): Promise<ActResult<{ orphans: number }, 'turning' | 'in_use' | 'unknown' | 'orphans'>> {
  const deed = { action: RETIRE, subject: `${PURPOSE}/${version}` }
  const orphans = await store.transaction(db => cardPhases.countUnder(db, version))
  return perform(cardPhases.storeAlone(store, { waits }), deed, by, async db => {
    const { phase, writes, looks } = await cardPhases.find(db)
    if (phase !== 'SINGLE') return { refused: 'turning' }
    if (writes.includes(version)) return { refused: 'in_use' }
    if (!looks.includes(version) && orphans === 0) return { refused: 'unknown' }
    if (orphans > 0 && !isForced) return { refused: 'orphans' }
    if (looks.includes(version)) await cardPhases.write(db, { phase, writes, looks: rest(looks, [version]) })
    return { done: { orphans }, detail: { orphans } }
  })
}

const ROWS_AT_ONCE = 1_000
/** Lower than every fingerprint. */
const LOWEST = '00000000-0000-0000-0000-000000000000'

/** Removes the fingerprints under a version that was retired. If it was killed, another run continues. */
export async function removeRetired(store: Store, version: number): Promise<void> {
  for (let after: string | undefined = LOWEST; after !== undefined; )
    after = await removePage(store, version, after).catch(goOnFrom(after))
  await store.transaction(async db => {
    const { looks } = await cardPhases.find(db)
    if (!looks.includes(version)) await schemeCards.removeUnder(db, version)
  })
}

/** Returns the last fingerprint of the page; undefined: there is none after it. Tokens are locked first, as jobs do it. */
function removePage(store: Store, version: number, after: string): Promise<string | undefined> {
  return store.transaction(async db => {
    const { looks } = await cardPhases.find(db)
    if (looks.includes(version)) return undefined
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

async function change(
  { store, by, waits }: { store: Store; by: By; waits: Waits },
  decide: (db: Db, now: cardPhases.CardPhase) => Promise<PhaseBegun | PhaseRefusal>,
): Promise<ActResult<PhaseBegun, PhaseRefusal>> {
  return perform<PhaseBegun, PhaseRefusal>(
    cardPhases.storeAlone(store, { waits }),
    { action: ROTATE, subject: PURPOSE },
    by,
    async db => {
      const decided = await decide(db, await cardPhases.find(db))
      if (typeof decided === 'string') return { refused: decided }
      return { done: decided, detail: { step: decided.phase, version: decided.version } }
    },
  )
}

/** Whether a whole pass of the workers, begun in this phase, has found nothing to do. */
async function isProved(db: Db, version: number): Promise<boolean> {
  const found = await reseals.hold(db, PURPOSE)
  return found?.state === 'DONE' && found.version === version
}

/** Whether the version is PENDING still: it may have been dropped since the caller made it. */
async function isPending(db: Db, version: number): Promise<boolean> {
  return (await dataKeys.lockPurpose(db, PURPOSE)).some(key => key.version === version && key.state === 'PENDING')
}

async function isLacking(db: Db, version: number): Promise<boolean> {
  return (await processes.listLacking(db, `${PURPOSE}/${version}`, BEAT.deadMs)).length > 0
}

function rest(versions: readonly number[], without: readonly number[]): number[] {
  return versions.filter(version => !without.includes(version))
}
