// Changes the lives of data keys: the only way to do so. The row that holds them is replaced in the act's own transaction, by a
// row that follows from the one that this process has verified, and that the key-encryption key proved before.
import { ConfigError } from '../config.ts'
import * as dataKeys from '../store/access/data-keys.ts'
import * as keyLives from '../store/access/key-lives.ts'
import { type Db, LostRace, type Store } from '../store/pool.ts'
import { type AloneOptions, storeAlone } from '../store/token/card-phases.ts'
import type { Keks, KeyProvider } from '../vault/kek/provider.ts'
import { type KeyLife, type KeyLives, type LivesRow, proveLives } from '../vault/ring/key-lives.ts'
import type { WrappedKey } from '../vault/ring/key-ring.ts'
import { type KnownLives, LIVES_TROUBLE } from '../vault/ring/known-lives.ts'
import { type ActResult, type By, type Decided, type Deed, perform } from './act.ts'

/** What an act on the lives of keys needs. */
export interface LivesKeeper {
  store: Store
  keks: Pick<Keks, 'current'>
  installationId: string
  lives: KnownLives
}

/** The lives that an act begins with, and those that it leaves. */
export interface Turn {
  before: KeyLives
  next: KeyLives
}

interface Turning<Done, Word extends string> {
  /** What becomes of the lives, or why nothing does. Called again if somebody else changes them meanwhile. */
  plan(now: KeyLives): KeyLives | Word | Promise<KeyLives | Word>
  /** What else the act asks and writes, in its transaction. The row of the lives is written after it. */
  effect(db: Db, turn: Turn): Promise<Decided<Done, Word>>
  /** Set if no transaction may write cards meanwhile. */
  alone?: AloneOptions
}

/** Another act has changed the lives meanwhile. */
class LivesMoved extends LostRace {
  override name = 'LivesMoved'

  constructor() {
    super('the lives of the data keys were changed meanwhile')
  }
}

/**
 * Runs an act that changes the lives of keys. Throws `ConfigError` if the stored lives aren't those that this process goes by:
 * then nothing turns until somebody has looked.
 */
export async function turnLives<Done, Word extends string>(
  keeper: LivesKeeper,
  deed: Deed,
  by: By,
  { plan, effect, alone }: Turning<Done, Word>,
): Promise<ActResult<Done, Word>> {
  const { store, keks, installationId, lives } = keeper
  const base = alone ? storeAlone(store, alone) : store
  let prepared: Word | (Turn & { row: LivesRow; former: Buffer })
  const prepare = async () => {
    const before = await verified(lives)
    const next = await plan(before)
    if (typeof next === 'string') return next
    return { before, next, row: await proveLives(keks.current, installationId, next), former: proofOf(lives) }
  }
  const turning: Store = {
    ...base,
    transaction: async work => {
      for (;;) {
        prepared = await prepare()
        try {
          return await base.transaction(work)
        } catch (error) {
          if (!(error instanceof LivesMoved)) throw error
        }
      }
    },
  }
  const result = await perform<Done, Word>(turning, deed, by, async db => {
    if (typeof prepared === 'string') return { refused: prepared }
    const { row, former, ...turn } = prepared
    const decided = await effect(db, turn)
    if ('refused' in decided) return decided
    if (!(await keyLives.replace(db, row, former))) throw new LivesMoved()
    await writeStates(db, turn)
    return { ...decided, detail: { ...decided.detail, epoch: row.epoch } }
  })
  if ('done' in result) await lives.read()
  return result
}

/** Adds keys for purposes that have none, in use at once. `write`: what else is written in the same transaction. */
export async function addKeys(
  keeper: LivesKeeper,
  keys: readonly WrappedKey[],
  write: (db: Db) => Promise<void>,
): Promise<void> {
  const { store, keks, installationId, lives } = keeper
  const { epoch, keys: known, phase } = await verified(lives)
  const next = epoch + 1
  const added = keys.map(({ purpose, version }) => ({ purpose, version, state: 'ACTIVE', made: next }) as const)
  const row = await proveLives(keks.current, installationId, { epoch: next, keys: [...known, ...added], phase })
  await store.transaction(async db => {
    for (const key of keys) await dataKeys.insert(db, key)
    if (!(await keyLives.replace(db, row, proofOf(lives)))) throw new LivesMoved()
    await write(db)
  })
}

/** The lives as they are, proved by another KEK: the row, and the proof of the one that it replaces. */
export async function proveLivesBy(
  kek: KeyProvider,
  { installationId, lives }: Pick<LivesKeeper, 'installationId' | 'lives'>,
): Promise<{ row: LivesRow; former: Buffer }> {
  return { row: await proveLives(kek, installationId, await verified(lives)), former: proofOf(lives) }
}

async function verified(lives: KnownLives): Promise<KeyLives> {
  const now = await lives.read()
  const trouble = lives.trouble()
  if (trouble)
    throw new ConfigError(
      `DATABASE_URL: ${LIVES_TROUBLE[trouble]}, so no key turns; see "When lives went back" in docs/keys.md`,
    )
  return now
}

function proofOf(lives: KnownLives): Buffer {
  const known = lives.current()
  if (!known) throw new Error('broken law: lives that were read are known')
  return known.row.proof
}

/** Writes what changed to `data_key`, where people and searches read it. */
async function writeStates(db: Db, { before, next }: Turn): Promise<void> {
  const changed = next.keys.flatMap(key => {
    const former = before.keys.find(one => one.purpose === key.purpose && one.version === key.version)
    return former === key ? [] : [{ key, former }]
  })
  // The ACTIVE key comes last: a purpose has one at most.
  const last = ({ key }: { key: KeyLife }) => (key.state === 'ACTIVE' ? 1 : 0)
  for (const { key, former } of changed.toSorted((a, b) => last(a) - last(b))) {
    if (key.state !== former?.state) await dataKeys.setState(db, key)
    if (key.compromised !== former?.compromised || key.exposed !== former?.exposed || key.ended !== former?.ended)
      await dataKeys.markCompromise(db, key, key.ended ? 'ended' : key.exposed ? 'exposed' : 'compromised')
  }
}
