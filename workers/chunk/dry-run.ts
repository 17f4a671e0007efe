// A chunk's dry run: the same rules, but no tokens are written. Cards are stored by fingerprint for the time of the
// run, so that later chunks of it predict duplicates. No token is named. Misses count as guesses, because a dry run
// also tells which cards have a token.
import { openCache } from '../../src/cache.ts'
import { refuse } from '../../src/errors.ts'
import * as dryRuns from '../../src/store/batch/dry-runs.ts'
import { pick, uuidBytes } from '../../src/store/binary.ts'
import { LostRace } from '../../src/store/pool.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { findByCards } from '../card/by-card.ts'
import { guessOf } from '../card/guess-limit.ts'
import type { Deps } from '../deps.ts'
import { writeEffects } from '../effect/write-effect.ts'
import { withFormer } from './batch.ts'
import type { ChunkContext } from './chunk.ts'
import { ownersOf } from './claims.ts'
import { cardsOf, type DecidedCreates } from './create/creates.ts'
import { byLine, type PlainCreates, placesOf, setApart, setKnownApart } from './create/plain-creates.ts'
import { guessesAt, predictPlain, scratchOf } from './create/plain-dry-run.ts'
import { type DryRunGuesses, openDryRunGuesses } from './dry-run-guesses.ts'
import { fold, type PreparedCreate, rejected } from './fold.ts'
import { openOlderClaims } from './older-claims.ts'
import { openRelinks } from './relinks.ts'
import { predictClaims } from './save-claims.ts'

/** The creates of a chunk. */
interface Creates {
  prepared: readonly PreparedCreate[]
  /** Those that are worked in columns. */
  plain: PlainCreates | undefined
}

const RUNS_MAX = 1_000
/**
 * The runs of which this process has met a card that another chunk had seen, or digits at the limit of guesses. In the
 * others neither is looked up for records in columns: if one turns up when the chunk is saved, nothing of it is written,
 * and it is decided again with look-ups.
 */
const lookedUp = openCache<true>({ max: RUNS_MAX })

export async function decideDryRun(
  { prepared: others, plain: columns }: Creates,
  begun: ChunkContext,
  deps: Deps,
): Promise<DecidedCreates> {
  if (others.length === 0 && !columns) return { save: async () => ({ outcomes: [], created: undefined }) }
  const { work } = begun
  const { chunk } = work.request
  const run = runOf(work.claims.jti)
  const version = await dryRuns.pinVersion(deps.store, run, deps.ring.cardPhase().writes[0] ?? 1)
  const creates = ofVersion(version, { prepared: others, plain: columns }, begun)
  const { stored, known, ...found } = await findKnown(creates, begun, deps)
  const printsOf = (some: readonly PreparedCreate[]) => pinnedPrints(some, version, deps)
  const isLookedUp = lookedUp.get(run) === true
  const asked = uuidBytes([...printsOf(found.prepared).values()])
  const alsoPlain = isLookedUp && found.plain ? [asked, printsIn(found.plain)] : [asked]
  const seen = await dryRuns.findScratch(deps.store, run, chunk, Buffer.concat(alsoPlain))
  const guesses = openDryRunGuesses(deps)
  await guesses.load(found.prepared.map(({ scope, facts }) => guessOf(work.client.clientId, scope.tokenScope, facts)))
  const { prepared, plain } = isLookedUp ? await setDecisionsApart(found, { seen, guesses }, begun) : found
  const prints = printsOf(prepared)
  for (const { key, facts } of prepared) {
    const row = seen.get(prints.get(key) ?? '')
    if (row) stored.set(key, { ...row, cards: facts.fingerprints.kept, sealed: null })
  }
  const { allowed, refused } = withinLimit(prepared, stored, guesses, work.client.clientId)
  const context = await withFormer({ stored, known }, begun, deps)
  const older = await openOlderClaims(allowed, { stored, known }, context, deps)
  const relinks = await openRelinks(stored, known, context, deps)
  const { outcomes, folded } = fold(allowed, stored, context, { relinks, older })
  predictClaims(outcomes, known, context)
  const entries = [...folded].flatMap(([key, { row }]) => {
    const fp = prints.get(key)
    return fp === undefined ? [] : { fp, row: scratchOf(row), isSeen: seen.has(fp) }
  })
  const predicted = plain && predictPlain(plain, context)
  if (plain) for (const guess of guessesAt(plain, begun)) guesses.miss(guess)
  const turns = new Set(prepared.map(({ facts }) => facts.fingerprints.turn))
  if (plain) turns.add(plain.cards.turn)
  return {
    save: async db => {
      // In another phase a card might be known under a version that wasn't looked for, and would be counted as a miss.
      for (const turn of turns) await cardPhases.assertTurn(db, turn)
      try {
        await dryRuns.saveScratch(db, run, chunk, [...entries, ...(predicted?.entries ?? [])])
        await writeEffects(db, [guesses.effect()], deps)
      } catch (error) {
        if (error instanceof LostRace) lookedUp.set(run, true)
        throw error
      }
      const beyond = refused.map(one => rejected(one, refuse('guesses', one.field)))
      return { outcomes: [...outcomes, ...beyond], created: predicted?.created }
    },
  }
}

/** All creates as objects, if the columns' fingerprints are of another version than those that the run keeps. */
function ofVersion(version: number, { prepared, plain }: Creates, context: ChunkContext): Creates {
  if (!plain || plain.cards.version === version) return { prepared, plain }
  return { prepared: byLine(prepared, setApart(plain, new Set(plain.order), context).prepared), plain: undefined }
}

interface FoundCreates extends Creates {
  /** The tokens of the creates' cards, by card. */
  stored: Map<string, StoredToken>
  /** The references of their owners, by `ownerKey`. */
  known: ReadonlyMap<string, StoredReference>
}

/** Records whose cards have tokens, or whose owners have references, become objects. */
async function findKnown({ prepared, plain }: Creates, context: ChunkContext, deps: Deps): Promise<FoundCreates> {
  const [stored, known, apart] = await Promise.all([
    findByCards(deps.store, cardsOf(prepared)),
    references.findByOwners(deps.store, ownersOf(prepared)),
    plain && setKnownApart(plain, context, deps),
  ])
  if (!apart) return { prepared, plain, stored, known }
  return {
    prepared: byLine(prepared, apart.prepared),
    plain: apart.plain,
    stored: new Map([...stored, ...apart.stored]),
    known: new Map([...known, ...apart.references]),
  }
}

const printsIn = ({ prints, order }: PlainCreates) => pick(prints, order)

/**
 * Records whose cards another chunk of the run has seen, or whose digits may reach the limit of guesses with this chunk,
 * become objects.
 */
async function setDecisionsApart(
  { prepared, plain }: Creates,
  { seen, guesses }: { seen: ReadonlyMap<string, unknown>; guesses: DryRunGuesses },
  context: ChunkContext,
): Promise<Creates> {
  if (!plain) return { prepared, plain }
  const ofPlain = guessesAt(plain, context)
  await guesses.load(ofPlain)
  const near = ofPlain.flatMap((guess, index) => (guesses.isNear(guess) ? (plain.order[index] ?? []) : []))
  const apart = setApart(plain, new Set([...placesOf([...seen.keys()], plain), ...near]), context)
  return { prepared: byLine(prepared, apart.prepared), plain: apart.plain }
}

/** The fingerprints by which the dry run knows the cards, by card: all under one version, also after a rotation of the key. */
function pinnedPrints(
  prepared: readonly PreparedCreate[],
  version: number,
  { ring }: Pick<Deps, 'ring'>,
): ReadonlyMap<string, string> {
  return new Map(
    prepared.map(({ key, facts, pan, scope, contract }) => {
      const isFirst = facts.fingerprints.versions[0] === version
      return [key, isFirst ? key : ring.fingerprintBy(pan, contract?.place ?? scope.tokenScope, version)]
    }),
  )
}

/**
 * Divides the records, in file order. The first record of a card is refused once the misses of its digits have reached
 * the limit; each record after an allowed one of the same card is allowed.
 */
function withinLimit(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  guesses: DryRunGuesses,
  clientId: string,
): { allowed: PreparedCreate[]; refused: PreparedCreate[] } {
  const asked = new Set<string>()
  const allowed: PreparedCreate[] = []
  const refused: PreparedCreate[] = []
  for (const one of prepared) {
    const { scope, facts, key } = one
    const guess = guessOf(clientId, scope.tokenScope, facts)
    const isFirst = !asked.has(key)
    if (isFirst && guesses.isSpent(guess)) {
      refused.push(one)
      continue
    }
    allowed.push(one)
    asked.add(key)
    if (isFirst && !stored.has(key)) guesses.miss(guess)
  }
  return { allowed, refused }
}

const runOf = (jti: string) => jti.slice(0, jti.lastIndexOf('-'))
