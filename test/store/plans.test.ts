// A worker's statements get index look-ups even from a plan that was made on empty tables and never made again.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Db, openStore, type Statement, type Store } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import { findByToken, pagesOf } from '../../src/store/reference/reference-views.ts'
import * as released from '../../src/store/reference/released-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { CODER } from './coder.ts'

describe('on an empty, never analysed table, the generic plan', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** Runs `use` on a store that explains each statement. Returns the plans. */
  async function plansOf(use: (db: Db) => Promise<unknown>): Promise<string> {
    const plans: string[] = []
    const explaining: Db = {
      async query<R>({ text }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({
          text: `explain (generic_plan, costs off) ${text}`,
        })
        plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
        return { rows: [] as R[], count: 0 }
      },
    }
    await use(explaining).catch(() => undefined)
    return plans.join('\n\n')
  }

  const id = '01890000-0000-7000-8000-000000000000'
  const mark = { clientId: 'c', tokenId: id, sequence: 1 }
  const guess = { clientId: 'c', tokenScope: id, digits: '4111111111' }
  const owner = { tokenScope: id, provider: 'p', providerAccount: '', customerId: '', cardId: 'c' }
  const SOUGHT = [{ key: 'k', hashes: [Buffer.alloc(32)] }]
  const receipt: receipts.NewReceipt = {
    receiptId: id,
    entityId: null,
    clientId: 'c',
    iss: 'c',
    kind: 'token-create',
    jti: 'j',
    requestDigest: Buffer.alloc(32),
    digestVersion: 1,
    envelopeDigest: Buffer.alloc(32),
    answers: Buffer.alloc(32),
    replyTo: null,
    reference: null,
    status: 'SUCCEEDED',
    code: 200,
    outcome: null,
    refusal: null,
    tokenId: null,
    batchNo: null,
    chunk: null,
    counts: null,
    outcomes: null,
    reasons: null,
    failedRecords: 0,
    revision: 1,
    reversal: null,
    attempt: 1,
    acceptedAt: 0,
    completedAt: 0,
  }
  it.each([
    [
      'finds cards by fingerprint',
      (db: Db) => tokens.findByCards(db, [id]),
      /Index Scan using card_pkey[\s\S]*Index Scan using token_pkey/,
    ],
    ['finds tokens by id', (db: Db) => tokens.findByIds(db, [id]), /Index Scan using token_pkey/],
    [
      'updates tokens by id',
      (db: Db) =>
        tokens.updateAll(db, [
          {
            tokenId: id,
            version: 2,
            createdAt: 0,
            updatedAt: 0,
            cards: [],
            sealed: null,
            mark: null,
          } as unknown as tokens.StoredToken,
        ]),
      /Index Scan using token_pkey/,
    ],
    ['finds sequence marks', (db: Db) => sequences.findAll(db, [mark]), /Index (Only )?Scan using sequence_mark_pkey/],
    [
      'moves sequence marks',
      (db: Db) => sequences.advanceAll(db, [mark]),
      /Conflict Arbiter Indexes: sequence_mark_pkey/,
    ],
    ['finds scheme tokens', (db: Db) => storedSchemes.findAll(db, [id]), /(using|on) scheme_token_pkey/],
    [
      'finds provisionings that nobody took',
      (db: Db) => schemeTokens.retireUntaken(db, 1, 2, 10),
      /Index Scan using scheme_token_untaken/,
    ],
    ['finds intents by receipts', (db: Db) => intents.findByReceipts(db, [id]), /Index Cond: \(receipt_id = ANY/],
    [
      'touches tokens by id',
      (db: Db) => tokens.touchAll(db, [{ tokenId: id, receiptId: id, version: 1 }]),
      /Index Scan using token_pkey/,
    ],
    ['counts guesses', (db: Db) => guesses.countAll(db, [guess]), /Index Scan using guess_pkey/],
    ['adds guesses', (db: Db) => guesses.addAll(db, [guess]), /Conflict Arbiter Indexes: guess_pkey/],
    [
      'writes receipts',
      (db: Db) => receipts.insertAll(db, CODER, [receipt]),
      /Insert on receipt_key[\s\S]*Conflict Arbiter Indexes: receipt_key_pkey/,
    ],
    [
      'finds that there is no receipt',
      (db: Db) => receipts.find(db, id),
      /^(?![\s\S]*receipt_\d)[\s\S]*receipt_key_pkey/,
    ],
    [
      'finds that there are no receipts',
      (db: Db) => receipts.findAll(db, [id, mark.tokenId]),
      /^(?![\s\S]*receipt_\d)[\s\S]*receipt_key_pkey/,
    ],
    [
      'finds the mark of a sequence',
      (db: Db) => sequences.findAll(db, [{ clientId: 'c', tokenId: id }]),
      /Index (Only )?Scan using sequence_mark_pkey/,
    ],
    ['locks tokens that nobody has', (db: Db) => tokens.holdFree(db, [id]), /Index Scan using token_pkey/],
    [
      'finds source references by owner',
      (db: Db) => references.findByOwners(db, [owner]),
      /Index Scan using one_token_per_source_reference/,
    ],
    [
      'removes the source references of tokens, and erases what was kept of others at them, in one statement',
      (db: Db) => references.removeOf(db, [id]),
      /Index Scan using source_reference_of_former_token[\s\S]*Index Scan using source_reference_of_token/,
    ],
    [
      'counts the claims of tokens',
      (db: Db) => references.countClaims(db, [id], 0),
      /Index (Only )?Scan using source_reference_of_token_by_age[\s\S]*Index Scan using source_reference_of_former_token/,
    ],
    [
      'reads the owners of a token on',
      (db: Db) => findByToken(db, { tokenId: id, after: 1, limit: 2 }),
      /Index Scan using source_reference_of_token_by_age/,
    ],
    [
      'reads source references on',
      (db: Db) => pagesOf(db, { ...owner, of: owner }).next(),
      /Index Scan using source_reference_pkey/,
    ],
    ['finds releases by owner', (db: Db) => released.find(db, SOUGHT, [1]), /released_reference_pkey/],
    ['finds releases by card', (db: Db) => released.findByCards(db, SOUGHT, [1]), /released_reference_of_card/],
  ])('%s by its index', async (_, use, index) => {
    const plan = await plansOf(use)
    expect(plan).toMatch(index)
    expect(plan).not.toMatch(
      /Seq Scan on (token|card|receipt(?!_fill)|sequence_mark|scheme_token|scheme_intent|guess|source_reference|released_reference)/,
    )
    expect(plan).not.toMatch(/Hash Join|Merge Join/)
  })
})
