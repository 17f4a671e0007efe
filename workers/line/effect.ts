// An effect: everything that one decision writes, as data. It is a list of rows for each table, without any code. The
// kinds' handlers make effects; write-effect.ts writes them.
import type { NewScheme } from '../../src/store/provider/scheme-row.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import type { BeforeImage } from '../../src/store/token/before-images.ts'
import type { Guess } from '../../src/store/token/guesses.ts'
import type { SequenceMark } from '../../src/store/token/sequences.ts'
import type { StoredToken, Touch } from '../../src/store/token/tokens.ts'

/** The members are lists; a missing list is empty. */
export interface Effect {
  /** New tokens. */
  inserts?: readonly StoredToken[]
  /** Changed tokens; each has a version one above the one that was read. */
  updates?: readonly StoredToken[]
  /** Tokens whose rows stay the same except for the last receipt. */
  touches?: readonly Touch[]
  /** Ids of tokens whose earlier rows no reversal may restore. */
  erasedImages?: readonly string[]
  /** Sealed copies of rows before this job, for a reversal of it. */
  beforeImages?: readonly BeforeImage[]
  /** New source references. */
  newReferences?: readonly StoredReference[]
  /** Changed source references; each has a version one above the one that was read. */
  changedReferences?: readonly StoredReference[]
  /** Cards that the client named and that have no token. */
  misses?: readonly Miss[]
  /** The client's new sequence on each token. */
  sequences?: readonly SequenceMark[]
  /** Tokens of third parties that this job's tokens take up. */
  takeUps?: readonly TakeUp[]
  /** Scheme tokens to be provisioned for new tokens. */
  provisions?: readonly NewScheme[]
  /** Ids of tokens whose provisionings are to be retired. */
  retirements?: readonly string[]
  /** Tokens that are linked to another card now, and what happens to their scheme tokens. */
  replacements?: readonly Replacement[]
  /** Receipts of jobs that may have had scheme tokens made for cards that their tokens don't get: those are retired. */
  leftovers?: readonly string[]
  /** What refused jobs have left at providers. */
  compensations?: readonly Compensation[]
}

export interface Miss extends Guess {
  /**
   * If more misses than this are counted now, other jobs have used up the limit meanwhile. Undefined: the miss is only
   * counted.
   */
  missesMax?: number
  /** The turn of the fingerprint key in which the card was asked for, unless the effect also writes the card. */
  turn?: number
}

/**
 * For a job that named a contract with a third party: the provisionings that its tokens use. All other open intents of
 * the job are abandoned.
 */
export interface TakeUp {
  receiptId: string
  provisionIds: readonly string[]
}

/** The former card's scheme token is retired, and perhaps the new card gets one. */
export interface Replacement {
  tokenId: string
  /** The current provisioning as it was read. If another one is current at the write, the decision is made again. */
  former: FormerScheme | undefined
  /** The provisioning of the new card. */
  fresh: NewScheme | undefined
  /** The provisioning that the job has had made for the new card; absent if it asked for none. */
  made?: string | undefined
}

export interface FormerScheme {
  provisionId: string
  /** The provider has the token, or may have it. */
  isLive: boolean
  /** The scheme token was in use, or was to be. */
  isInUse: boolean
}

/** What happens to the intents of a refused job, whose provider calls must be undone. */
export interface Compensation {
  receiptId: string
  /** Intents whose effect a reversal must undo. */
  owed: readonly string[]
  /** Intents whose calls had no effect and never will. */
  abandoned: readonly string[]
  /** Provisionings of abandoned intents, for which the provider was never called. */
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
    leftovers: effects.flatMap(({ leftovers = [] }) => leftovers),
    compensations: effects.flatMap(({ compensations = [] }) => compensations),
  }
}
