// An effect is all that one decision writes, as data: the rows for each table, and nothing that reads or runs. The handlers of
// the kinds make effects, write-effect.ts writes them. No kind is known here.
import type { NewScheme } from '../../src/store/provider/scheme-row.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import type { BeforeImage } from '../../src/store/token/before-images.ts'
import type { Guess } from '../../src/store/token/guesses.ts'
import type { SequenceMark } from '../../src/store/token/sequences.ts'
import type { StoredToken, Touch } from '../../src/store/token/tokens.ts'

/** A list left out is empty. */
export interface Effect {
  /** New tokens. */
  inserts?: readonly StoredToken[]
  /** Tokens changed, each one version above the one that was read. */
  updates?: readonly StoredToken[]
  /** Tokens that were answered for and stay as they are. */
  touches?: readonly Touch[]
  /** Tokens, by id, whose earlier rows no reversal may put back. */
  erasedImages?: readonly string[]
  /** Rows as they were before this job, sealed, for a reversal of it. */
  beforeImages?: readonly BeforeImage[]
  /** Source references of owners who had none under their ids. */
  newReferences?: readonly StoredReference[]
  /** Source references changed, each one version above the one that was read. */
  changedReferences?: readonly StoredReference[]
  /** Cards asked for that weren't known. */
  misses?: readonly Miss[]
  /** Where the client's sequence on a token is now. */
  sequences?: readonly SequenceMark[]
  /** Tokens of third parties that this job's tokens take up. */
  takeUps?: readonly TakeUp[]
  /** Scheme tokens to be provisioned for new tokens. */
  provisions?: readonly NewScheme[]
  /** Tokens, by id, whose provisionings are to go from their providers. */
  retirements?: readonly string[]
  /** Tokens that stand for another card now, and what becomes of their scheme tokens. */
  replacements?: readonly Replacement[]
  /** What jobs that are refused have left at providers. */
  compensations?: readonly Compensation[]
}

export interface Miss extends Guess {
  /** More misses than this, and others have used the limit up meanwhile. Left out: the miss is only counted. */
  missesMax?: number
}

/** A job that named a contract with a third party: whatever else it intended there is abandoned. */
export interface TakeUp {
  receiptId: string
  provisionIds: readonly string[]
}

/** The scheme token of a former card goes, and perhaps another one comes. */
export interface Replacement {
  tokenId: string
  /** The current provisioning as it was read; another one by now, and the decision is made again. */
  former: FormerScheme | undefined
  /** The new card's. */
  fresh: NewScheme | undefined
}

export interface FormerScheme {
  provisionId: string
  /** The provider has it, or may have it. */
  isLive: boolean
  /** The token was used with it, or was to be. */
  isInUse: boolean
}

/** What becomes of the intents of one job that has done, or may have done, something at providers in vain. */
export interface Compensation {
  receiptId: string
  /** Intents that a reversal is to undo. */
  owed: readonly string[]
  /** Intents that came to nothing, and never will. */
  abandoned: readonly string[]
  /** Provisionings of those, which the provider wasn't asked for. */
  withdrawn: readonly string[]
}

/** All rows of several effects, table by table. */
export function mergeEffects(effects: readonly Effect[]): Required<Effect> {
  return {
    inserts: effects.flatMap(({ inserts = [] }) => inserts),
    updates: effects.flatMap(({ updates = [] }) => updates),
    touches: effects.flatMap(({ touches = [] }) => touches),
    erasedImages: effects.flatMap(({ erasedImages = [] }) => erasedImages),
    beforeImages: effects.flatMap(({ beforeImages = [] }) => beforeImages),
    newReferences: effects.flatMap(({ newReferences = [] }) => newReferences),
    changedReferences: effects.flatMap(({ changedReferences = [] }) => changedReferences),
    misses: effects.flatMap(({ misses = [] }) => misses),
    sequences: effects.flatMap(({ sequences = [] }) => sequences),
    takeUps: effects.flatMap(({ takeUps = [] }) => takeUps),
    provisions: effects.flatMap(({ provisions = [] }) => provisions),
    retirements: effects.flatMap(({ retirements = [] }) => retirements),
    replacements: effects.flatMap(({ replacements = [] }) => replacements),
    compensations: effects.flatMap(({ compensations = [] }) => compensations),
  }
}
