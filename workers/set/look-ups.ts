// Reads rows of the store for single jobs, outside of transactions. Jobs that ask at the same time share a statement.

import { gather } from '../../src/queue/gather.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { SchemeRow } from '../../src/token/scheme.ts'

type StoredReceipt = Awaited<ReturnType<typeof receipts.findAll>>[number]
type Mark = Pick<sequences.SequenceMark, 'clientId' | 'tokenId'>

/** Several jobs may get the same row object, so no job may change it. */
export interface LookUps {
  receipt(receiptId: string): Promise<StoredReceipt | undefined>
  /** Finds a token by its id, also a deleted one. */
  token(tokenId: string): Promise<StoredToken | undefined>
  /** The live tokens that have one of these fingerprints. */
  tokensOfCard(fps: readonly string[]): Promise<StoredToken[]>
  /** How many misses are counted for the client with these digits in the scope. */
  misses(guess: guesses.Guess): Promise<number>
  /** The last sequence of the client on the token. */
  sequence(mark: Mark): Promise<number | undefined>
  /** The scheme token that the token's record shows. */
  shownScheme(tokenId: string): Promise<SchemeRow | undefined>
}

type FindShown = (db: Db, tokenIds: readonly string[]) => Promise<ReadonlyMap<string, SchemeRow>>

const BOUNDS = { max: 64, lanes: 2 }

/** `findShown`: the scheme tokens that these tokens' records show. */
export function openLookUps(store: Db, findShown: FindShown): LookUps {
  return {
    receipt: byKey(async ids => mapOf(await receipts.findAll(store, ids), ({ receiptId }) => receiptId)),
    token: byKey(async ids => mapOf(await tokens.findByIds(store, ids), ({ tokenId }) => tokenId)),
    tokensOfCard: shared(async asked => {
      const found = await tokens.findByCards(store, [...new Set(asked.flat())])
      const owners = new Map(found.flatMap(row => row.cards.map(fp => [fp, row] as const)))
      return asked.map(fps => [...new Set(fps.flatMap(fp => owners.get(fp) ?? []))])
    }),
    misses: shared(asked => guesses.countAll(store, asked)),
    sequence: shared(async asked => {
      const found = mapOf(await sequences.findAll(store, asked), markKey)
      return asked.map(mark => found.get(markKey(mark))?.sequence)
    }),
    shownScheme: byKey(ids => findShown(store, ids)),
  }
}

const markKey = ({ clientId, tokenId }: Mark) => `${tokenId} ${clientId}`

/** Finds a set of items by one call of `find`; a single item is a set of one. */
function shared<Item, Out>(find: (items: readonly Item[]) => Promise<readonly Out[]>): (item: Item) => Promise<Out> {
  const alone = async (item: Item) => (await find([item]))[0] as Out
  return gather({ together: find, alone }, BOUNDS)
}

function byKey<Out>(
  find: (keys: readonly string[]) => Promise<ReadonlyMap<string, Out>>,
): (key: string) => Promise<Out | undefined> {
  return shared(async keys => {
    const found = await find([...new Set(keys)])
    return keys.map(key => found.get(key))
  })
}

function mapOf<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row> {
  return new Map(rows.map(row => [keyOf(row), row]))
}
