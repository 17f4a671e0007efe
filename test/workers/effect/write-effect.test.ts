// Effects of several decisions are written together: one statement for each list, always in the same order. A race that
// one of them lost is found.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { type Db, LostRace, openStore, type Store } from '../../../src/store/pool.ts'
import * as intents from '../../../src/store/provider/scheme-intents.ts'
import type { NewScheme } from '../../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import type { StoredReference } from '../../../src/store/reference/source-references.ts'
import * as guesses from '../../../src/store/token/guesses.ts'
import * as sequences from '../../../src/store/token/sequences.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { type Effect, mergeEffects } from '../../../workers/effect/effect.ts'
import { writeEffects } from '../../../workers/effect/write-effect.ts'
import { effectsOf, type ProviderEffect, providerEffects } from '../../../workers/provider/effect.ts'
import { findCompensations } from '../../../workers/provider/owed-compensation.ts'
import { formerOf } from '../../../workers/provider/scheme-replacement.ts'
import { CODER } from '../../store/coder.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { beginPhase, cardOf, deps as core, receipt, SCOPE, token } from '../line/new-rows.ts'

const deps = { ...core, networks: { effects: providerEffects } }
const ofNetworks = (effect: Omit<ProviderEffect, 'of'>): Effect => ({ networks: effectsOf(effect) })

function scheme(over: Partial<NewScheme> = {}): NewScheme {
  return {
    provisionId: randomUUID(),
    tokenId: randomUUID(),
    tokenScope: SCOPE,
    clientId: 'c',
    provider: 'visa',
    background: true,
    card: randomBytes(40),
    cardVersion: 1,
    dueAt: 0,
    createdAt: 0,
    ...over,
  }
}

function reference(over: Partial<StoredReference> = {}): StoredReference {
  return {
    referenceNo: undefined,
    tokenScope: SCOPE,
    provider: 'p',
    providerAccount: '',
    customerId: '',
    cardId: randomUUID(),
    tokenId: randomUUID(),
    onFile: {},
    version: 1,
    createdAt: 0,
    updatedAt: 0,
    lastReceipt: randomUUID(),
    mark: null,
    givenAt: null,
    before: null,
    ...over,
  }
}

/** An effect with one row in each list. */
function full(): Required<Effect> {
  const made = token()
  const receiptId = randomUUID()
  return {
    inserts: [made],
    updates: [token({ version: 2, link: undefined })],
    touches: [{ tokenId: randomUUID(), receiptId, version: 1 }],
    erasedImages: [randomUUID()],
    beforeImages: [{ receiptId, tokenId: randomUUID(), sealed: randomBytes(8), keyVersion: 1, sealVersion: 1 }],
    newReferences: [reference()],
    changedReferences: [reference({ referenceNo: 1, version: 2 })],
    misses: [{ clientId: 'c', tokenScope: SCOPE, digits: '4111111111', missesMax: 1 }],
    sequences: [{ clientId: 'c', tokenId: made.tokenId, sequence: 1 }],
    networks: effectsOf({
      takeUps: [{ receiptId, provisionIds: [randomUUID()] }],
      provisions: [scheme()],
      retirements: [randomUUID()],
      replacements: [{ tokenId: randomUUID(), former: undefined, fresh: scheme(), made: randomUUID() }],
      leftovers: [receiptId],
      compensations: [{ receiptId, owed: [], abandoned: [], withdrawn: [] }],
    }),
  }
}

/** The statements of the core for an effect with one row in each list, in their order. */
const OF_CORE = [
  'tokens-insert',
  'cards-insert',
  'tokens-hold',
  'tokens-update',
  'tokens-touch',
  'before-image-erase',
  'before-images-insert',
  'references-insert',
  'references-update',
  'guesses-add',
  'sequences-advance',
]

/** Notes the names of statements, and answers each with as many rows as it says. */
function openRecording(count: number): { recording: Db; sent: string[] } {
  const sent: string[] = []
  const recording: Db = {
    query: async ({ name = '' }) => {
      sent.push(name.replace(/-[1n]+$/, ''))
      return { rows: [], count }
    },
  }
  return { recording, sent }
}

/** Transactions of this database that wait for another. */
const WAITING = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

describe('an effect', () => {
  it('goes out table by table in one order, before anything has been answered', async () => {
    const { recording, sent } = openRecording(1)
    const written = writeEffects(recording, [full()], deps)
    expect(sent).toEqual([
      'third-party-take-up',
      'scheme-abandon-of',
      ...OF_CORE,
      'scheme-hold-current',
      'scheme-retire',
      'scheme-displace',
      'scheme-insert',
      'scheme-take-over',
      'scheme-retire-untaken-of',
      'scheme-abandon-of',
    ])
    await written
    // Compensations are read after all other statements were answered.
    expect(sent.slice(20)).toEqual(['scheme-intents-by-receipt'])
  })

  it('of a product without networks goes out in the same order, and holds nothing of theirs', async () => {
    const { recording, sent } = openRecording(1)
    await writeEffects(recording, [full()], core)
    expect(sent).toEqual(OF_CORE)
  })

  const deleted = () => token({ version: 2, status: 'DELETED', cards: [], link: undefined, sealed: null })
  it.each([
    ['and once for their scheme tokens', deps, ['scheme-retire']],
    ['and for nothing else without networks', core, []],
  ])('asks once for the owners, and the former owners, of all tokens that it deletes, %s', async (_, own, more) => {
    const { recording, sent } = openRecording(2)
    await writeEffects(recording, [{ updates: [deleted()] }, { updates: [deleted()] }], own)
    expect(sent).toEqual(['tokens-update', 'references-remove-of', ...more])
  })

  it('that is empty sends nothing', async () => {
    const silent: Db = { query: () => Promise.reject(new Error('a statement was sent')) }
    await writeEffects(silent, [{}, {}], deps)
    await writeEffects(silent, [], deps)
  })

  it('of several decisions is their rows, list by list, in the order of the decisions', () => {
    const [one, other] = [full(), full()]
    const merged = mergeEffects([one, {}, other])
    for (const name of Object.keys(one) as (keyof Effect)[])
      expect(merged[name]).toEqual([...one[name], ...other[name]])
  })
})

describe('effects of several decisions', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 4 })
    await beginPhase(store)
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const write = (effects: readonly Effect[]) => store.transaction(db => writeEffects(db, effects, deps))

  it('are written at once: tokens made, changed and answered for, sequences and misses', async () => {
    const [changed, touched, made] = [token(), token(), token()]
    await write([{ inserts: [changed] }, { inserts: [touched] }])
    const receiptId = randomUUID()
    const guess = { clientId: 'c', tokenScope: SCOPE, digits: '4000000001' }
    const mark = (tokenId: string, sequence: number) => [{ clientId: 'c', tokenId, sequence }]
    await write([
      {
        updates: [{ ...changed, storedCards: changed.cards, lastFour: '2222', version: 2 }],
        sequences: mark(changed.tokenId, 7),
      },
      { touches: [{ tokenId: touched.tokenId, receiptId, version: 1 }], sequences: mark(touched.tokenId, 9) },
      { inserts: [made], misses: [guess, { ...guess, digits: '4000000002' }] },
      { misses: [{ ...guess, missesMax: 2 }] },
    ])
    const rows = new Map(
      (
        await tokens.findByIds(
          store,
          [changed, touched, made].map(row => row.tokenId),
        )
      ).map(row => [row.tokenId, row]),
    )
    expect(rows.get(changed.tokenId)).toMatchObject({ lastFour: '2222', version: 2 })
    expect(rows.get(touched.tokenId)).toMatchObject({ lastReceipt: receiptId, version: 1 })
    expect(rows.get(made.tokenId)?.cards).toEqual(made.cards)
    expect(await guesses.countAll(store, [{ ...guess, digits: 'unknown' }, guess])).toEqual([0, 2])
    expect(
      await sequences.findAll(
        store,
        [touched].map(({ tokenId }) => ({ clientId: 'c', tokenId })),
      ),
    ).toMatchObject([{ sequence: 9 }])
  })

  /** Writers of the rows that two decisions may share: they answer for a token, count a miss, and advance a sequence. */
  const sharing = (row: StoredToken, sequence: number): Effect[] => [
    { touches: [{ ...touchOf(row), version: 1 }] },
    { misses: [{ clientId: 'c', tokenScope: SCOPE, digits: row.tokenId.slice(0, 8) }] },
    { sequences: [{ clientId: 'c', tokenId: row.tokenId, sequence }] },
  ]

  it.each([
    [0, 1],
    [0, 2],
    [1, 2],
  ])('wait for one another in one order; exchanged (%i and %i), one of them would have to end', async (one, other) => {
    const row = token()
    await write([{ inserts: [row] }])
    const both = async (theirs: [number, number], sequence: number) => {
      const [began, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const ours = sharing(row, sequence)
      const first = store.transaction(async db => {
        await writeEffects(db, [ours[one] ?? {}], deps)
        began.resolve()
        await goOn.promise
        await writeEffects(db, [ours[other] ?? {}], deps)
      })
      await Promise.race([began.promise, first])
      const later = sharing(row, sequence + 1)
      const second = store.transaction(async db => {
        for (const place of theirs) await writeEffects(db, [later[place] ?? {}], deps)
      })
      // The second waits for a row of the first, at once or after the row that it has.
      await until(async () => (await store.query({ text: WAITING })).rows.length > 0)
      goOn.resolve()
      return (await Promise.allSettled([first, second])).map(({ status }) => status)
    }
    expect(await both([one, other], 1)).toEqual(['fulfilled', 'fulfilled'])
    expect((await both([other, one], 3)).sort()).toEqual(['fulfilled', 'rejected'])
  })

  it.each<[string, (row: StoredToken) => Effect]>([
    ['a card has got its token', row => ({ inserts: [token({ cards: row.cards, link: row.link })] })],
    ['a token was changed', row => ({ updates: [{ ...row, version: 3 }] })],
    ['a token was changed that is only answered for', row => ({ touches: [{ ...touchOf(row), version: 2 }] })],
    ['a later sequence took effect', row => ({ sequences: [{ clientId: 'c', tokenId: row.tokenId, sequence: 5 }] })],
    ['others have used the limit of guesses up', () => ({ misses: [{ ...limited, missesMax: 1 }] })],
  ])('leave nothing where for one of them %s meanwhile', async (_, lostBy) => {
    const row = token()
    const sequence = { clientId: 'c', tokenId: row.tokenId, sequence: 5 }
    await write([{ inserts: [row], sequences: [sequence], misses: [limited] }])
    const other = token()
    await expect(write([{ inserts: [other] }, lostBy(row)])).rejects.toBeInstanceOf(LostRace)
    expect(await tokens.findByIds(store, [other.tokenId])).toEqual([])
  })

  it.each<[string, RegExp, () => Promise<Effect>]>([
    [
      'the former scheme token was retired',
      /a scheme token was changed/,
      async () => {
        const former = scheme()
        await schemeTokens.insertAll(store, [former])
        const [read] = await storedSchemes.findCurrent(store, [former.tokenId])
        if (!read) throw new Error('it is the current one')
        await schemeTokens.retireOf(store, [former.tokenId], 1)
        const fresh = scheme({ tokenId: former.tokenId })
        return ofNetworks({ replacements: [{ tokenId: former.tokenId, former: formerOf(read), fresh }] })
      },
    ],
    [
      'an intended step was done',
      /something was done at a provider/,
      async () => {
        const [receiptId, intentId, { tokenId, provisionId }] = [randomUUID(), randomUUID(), scheme()]
        await intents.intendAll(store, [{ intentId, receiptId, tokenId, provisionId, action: 'PROVISION' }], 1)
        const compensations = await findCompensations(store, [receiptId])
        expect(compensations).toEqual([{ receiptId, owed: [], abandoned: [intentId], withdrawn: [] }])
        await intents.confirmAll(store, [intentId], 2)
        return ofNetworks({ compensations })
      },
    ],
    [
      'the token of a third party was retired',
      /given up/,
      async () => {
        const [receiptId, theirs] = [randomUUID(), scheme({ thirdParty: true, link: cardOf().link })]
        await schemeTokens.insertAll(store, [theirs])
        await answered(theirs.provisionId)
        const effect = ofNetworks({ takeUps: [{ receiptId, provisionIds: [theirs.provisionId] }] })
        const undone = new Error('rolled back')
        const isStill = store.transaction(async db => {
          await writeEffects(db, [effect], deps)
          throw undone
        })
        await expect(isStill).rejects.toBe(undone)
        await schemeTokens.retireOf(store, [theirs.tokenId], 1)
        return effect
      },
    ],
    [
      'the scheme token that was made for the new card was retired',
      /given up/,
      async () => {
        const [former, made] = [scheme(), scheme({ isUntaken: true })]
        const { tokenId } = former
        await schemeTokens.insertAll(store, [former, { ...made, tokenId }])
        await answered(made.provisionId)
        const [read] = await storedSchemes.findCurrent(store, [tokenId])
        if (!read) throw new Error('it is the current one')
        await schemeTokens.withdrawAll(store, [made.provisionId], 1)
        const replacement = { tokenId, former: formerOf(read), fresh: undefined, made: made.provisionId }
        return ofNetworks({ replacements: [replacement] })
      },
    ],
  ])('leave nothing where %s meanwhile', async (_, message, lost) => {
    const other = token()
    const rest = scheme()
    const attempt = write([{ inserts: [other], ...ofNetworks({ provisions: [rest] }) }, await lost()])
    await expect(attempt).rejects.toThrow(message)
    await expect(attempt).rejects.toBeInstanceOf(LostRace)
    expect(await tokens.findByIds(store, [other.tokenId])).toEqual([])
    expect(await storedSchemes.findAll(store, [rest.provisionId])).toEqual([])
  })

  it('make the scheme token that was made for the new card the current one, and leave none that nobody took', async () => {
    const receiptId = randomUUID()
    const former = scheme()
    const { tokenId } = former
    const [made, unused, foreign] = [0, 1, 2].map(() => scheme({ tokenId, isUntaken: true, background: false }))
    if (!made || !unused || !foreign) throw new Error('there are three')
    await schemeTokens.insertAll(store, [former, made, unused, foreign])
    for (const { provisionId } of [made, unused, foreign]) await answered(provisionId)
    const intentOf = ({ provisionId }: NewScheme, job: string) => ({
      intentId: randomUUID(),
      receiptId: job,
      tokenId,
      provisionId,
      action: 'PROVISION' as const,
    })
    const named = [intentOf(made, receiptId), intentOf(unused, receiptId), intentOf(foreign, randomUUID())]
    await intents.intendAll(store, named, 1)
    const [read] = await storedSchemes.findCurrent(store, [tokenId])
    if (!read) throw new Error('it is the current one')
    expect(read.provisionId).toBe(former.provisionId)
    const replacement = { tokenId, former: formerOf(read), fresh: undefined, made: made.provisionId }
    await write([ofNetworks({ replacements: [replacement], leftovers: [receiptId] })])
    const ends = async () =>
      (
        await storedSchemes.findAll(
          store,
          [former, made, unused, foreign].map(({ provisionId }) => provisionId),
        )
      )
        .map(row => [row.provisionId, row.current, row.retiredAt !== null] as const)
        .sort()
    const rowsWith = (isForeignGone: boolean) =>
      [
        [former.provisionId, false, true],
        [made.provisionId, true, false],
        [unused.provisionId, false, true],
        [foreign.provisionId, false, isForeignGone],
      ].sort()
    expect(await ends()).toEqual(rowsWith(false))
    // What another job had made is that job's, until so much later that the job can't be worked any more.
    expect(await schemeTokens.retireUntaken(store, 1, 2, 10)).toBe(1)
    expect(await ends()).toEqual(rowsWith(true))
  })

  /** The provider has made the token of a provisioning. */
  const answered = (provisionId: string) =>
    store.query({
      text: `update tokenmill.scheme_token set state = 'ACTIVE', reference = provision_id::text,
  reference_sealed = uuid_send(provision_id), reference_version = 1, card = null, card_version = null
where provision_id = $1`,
      values: [provisionId],
    })
  const limited = { clientId: 'limited', tokenScope: SCOPE, digits: '4000000003' }
  const touchOf = ({ tokenId }: StoredToken) => ({ tokenId, receiptId: randomUUID() })

  it('that overlap in another order wait for one another, and never in a circle', async () => {
    const rows = [token(), token(), token()]
    await write([{ inserts: rows }])
    const receiptId = randomUUID()
    const touch = ({ tokenId }: StoredToken): Effect => ({ touches: [{ tokenId, receiptId, version: 1 }] })
    const misses: Effect = { misses: ['4000000004', '4000000005'].map(digits => ({ ...limited, digits })) }
    const turned: Effect = { misses: misses.misses?.toReversed() ?? [] }
    const ends = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        write(n % 2 === 0 ? [...rows.map(touch), misses] : [turned, ...rows.toReversed().map(touch)]),
      ),
    )
    expect(ends).toHaveLength(20)
  })

  it('are answered for by receipts that are written at once, each with its outbox row', async () => {
    const [one, other] = [receipt(), receipt({ kind: 'token-update', iss: 'gateway', counts: null, code: 204 })]
    const refused = receipt({
      status: 'FAILED',
      refusal: [{ field: 'body.id', reason: 'field_value' }],
      tokenId: SCOPE,
    })
    const written = await store.transaction(db => receipts.insertAll(db, CODER, [one, other, refused]))
    expect(written.map(({ revision }) => revision)).toEqual([1, 1, 1])
    expect(new Set(written.map(({ outboxId }) => outboxId)).size).toBe(3)
    const found = await receipts.findAll(
      store,
      [refused, one, other].map(({ receiptId }) => receiptId),
    )
    const day = new Date().toISOString().slice(0, 10)
    const stored = ({ answers: _, ...rest }: receipts.NewReceipt) => ({
      ...rest,
      day,
      askers: null,
      contentDigest: null,
      mac: expect.any(Buffer),
      macVersion: expect.any(Number),
    })
    expect(found).toEqual([refused, one, other].map(stored))
    const repeat = store.transaction(db => receipts.insertAll(db, CODER, [receipt(), one]))
    await expect(repeat).rejects.toBeInstanceOf(LostRace)
  })
})
