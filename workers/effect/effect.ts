// An effect: everything that one decision writes, as data. It is a list of rows for each table, without any code. The
// kinds' handlers make effects; write-effect.ts writes them.
import type { Db } from '../../src/store/pool.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import type { BeforeImage } from '../../src/store/token/before-images.ts'
import type { Missed } from '../../src/store/token/guesses.ts'
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
  /** What is written about card networks and third parties. */
  networks?: readonly NetworkEffect[]
}

/** If more misses than `missesMax` are counted now, other jobs have used up the limit meanwhile. */
export interface Miss extends Missed {
  /** The turn of the fingerprint key in which the card was asked for, unless the effect also writes the card. */
  turn?: string
}

/** The networks alone make one and read it (networks.ts). The core only passes it on. */
export interface NetworkEffect {
  of: 'networks'
}

/** Writes what effects say of networks, at its places among the statements of the core (write-effect.ts). */
export interface NetworkEffects {
  beforeTokens(db: Db, effects: readonly NetworkEffect[], now: number): Promise<unknown>
  /** `deleted`: the tokens that are deleted, whose scheme tokens end with them. */
  afterTokens(db: Db, effects: readonly NetworkEffect[], deleted: readonly string[], now: number): Promise<unknown>
  /** Reads first, so it begins after the other statements were answered. */
  last(db: Db, effects: readonly NetworkEffect[], now: number): Promise<unknown>
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
    networks: effects.flatMap(({ networks = [] }) => networks),
  }
}
