// Single jobs that are written together: each ends as if it had been written alone, and a job that can't go with the
// others leaves nothing in their transaction.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openLog } from '../../../src/log.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as receiptKeys from '../../../src/store/job/receipt-keys.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { hold, LostRace, openStore, type Store } from '../../../src/store/pool.ts'
import * as guesses from '../../../src/store/token/guesses.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import type { StartOptions, Tracer } from '../../../src/trace/tracer.ts'
import type { Effect } from '../../../workers/effect/effect.ts'
import { writeEffects } from '../../../workers/effect/write-effect.ts'
import { openWorkerMetrics } from '../../../workers/metrics/metrics.ts'
import { mayJoin, type Sets, type Single, type WrittenSingle } from '../../../workers/set/single.ts'
import { openSets } from '../../../workers/set/write-set.ts'
import { CODER } from '../../store/coder.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { beginPhase, deps, receipt, SCOPE, token } from '../line/new-rows.ts'

const traceOf = (sampled: boolean) => ({
  traceId: randomUUID().replaceAll('-', ''),
  spanId: randomUUID().slice(-12).padStart(16, '0'),
  sampled,
})

describe('single jobs that ask to be written at the same time', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 8 })
    await beginPhase(store)
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const alone = ({ effect, receipt: row }: Pick<Single, 'effect' | 'receipt'>): Promise<WrittenSingle> =>
    store.transaction(
      async db => {
        await writeEffects(db, [effect], deps)
        const [written] = await receipts.insertAll(db, CODER, [row])
        if (!written) throw new Error('broken law: a receipt that is written is answered for')
        return { row, ...written }
      },
      { lock: row.receiptId },
    )
  const put = async (...rows: StoredToken[]) => store.transaction(db => tokens.insertAll(db, rows))

  /** Sets, and how many jobs were written in which way. */
  function open(tracer?: Tracer) {
    const metrics = openWorkerMetrics(openRegistry({ role: 'test' }), CATALOGUE, ['token-create'])
    const sets = openSets({ ...deps, store, metrics, tracer, log: openLog(process.env['TEST_LOG'] ?? 'silent') })
    const counts = async () => {
      const { values } = await metrics.setJobs.get()
      const of = (written: string) => values.find(({ labels }) => labels.written === written)?.value
      return { together: of('together'), alone: of('alone') }
    }
    return { sets, counts }
  }

  const single = (effect: Effect, over: Partial<receipts.NewReceipt> = {}): Single => {
    const row = receipt(over)
    return { receipt: row, effect, trace: undefined, alone: () => alone({ effect, receipt: row }) }
  }
  const writeAll = async (sets: Sets, singles: readonly Single[]) => {
    const ends = await Promise.allSettled(singles.map(one => sets.write(one)))
    return ends.map(end => (end.status === 'fulfilled' ? 'written' : end.reason))
  }
  const transactionOf = async ({ receipt: row }: Single) =>
    (
      await store.query<{ xmin: string }>({
        text: 'select xmin from tokenmill.receipt where receipt_id = $1',
        values: [row.receiptId],
      })
    ).rows.map(({ xmin }) => xmin)
  const changed = (row: StoredToken): StoredToken => ({
    ...row,
    link: undefined,
    storedCards: row.cards,
    cardHolderName: 'BEN "Ö" \\',
    version: row.version + 1,
  })
  const created = (row = token(), digits = randomUUID()) =>
    single({ inserts: [row], misses: [{ clientId: 'c', tokenScope: SCOPE, digits, missesMax: 10 }] })

  it('are written in one transaction, with receipts, tokens, guesses, marks, before-images and outbox', async () => {
    const { sets, counts } = open()
    const [one, other] = [token(), token()]
    await put(one, other)
    const digits = randomUUID()
    const image = { tokenId: one.tokenId, sealed: Buffer.from('sealed'), keyVersion: 1, sealVersion: 1 }
    const receiptId = randomUUID()
    const singles = [
      created(undefined, digits),
      created(undefined, digits),
      single(
        {
          updates: [changed(one)],
          beforeImages: [{ ...image, receiptId }],
          sequences: [{ clientId: 'c', tokenId: one.tokenId, sequence: 3 }],
        },
        { receiptId },
      ),
      single({ touches: [{ tokenId: other.tokenId, receiptId, version: 1 }] }),
      single({}, { status: 'FAILED', code: 404, outcome: null, refusal: [] }),
    ]
    expect(await writeAll(sets, singles)).toEqual(singles.map(() => 'written'))
    expect(new Set((await Promise.all(singles.map(transactionOf))).flat()).size).toBe(1)
    expect(await counts()).toEqual({ together: 5, alone: 0 })
    expect(await guesses.countAll(store, [{ clientId: 'c', tokenScope: SCOPE, digits }])).toEqual([2])
    const rows = await tokens.findByIds(store, [one.tokenId, other.tokenId])
    expect(rows.map(({ cardHolderName, version, lastReceipt }) => [cardHolderName, version, lastReceipt])).toEqual([
      ['BEN "Ö" \\', 2, null],
      [null, 1, receiptId],
    ])
    const { rows: beside } = await store.query({
      text: `select (select count(*) from tokenmill.before_image where receipt_id = $1)::int as images,
(select max(sequence) from tokenmill.sequence_mark where token_id = $2)::int as sequence,
(select count(*) from tokenmill.outbox where receipt_id = any($3::uuid[]))::int as outbox`,
      values: [receiptId, one.tokenId, `{${singles.map(({ receipt: row }) => row.receiptId).join(',')}}`],
    })
    expect(beside).toEqual([{ images: 1, sequence: 3, outbox: 5 }])
  })

  it('get a revision above those of answers that were given before', async () => {
    const { sets } = open()
    const answered = single({})
    for (let answers = 0; answers < 4; answers += 1) await receiptKeys.countAnswer(store, answered.receipt.receiptId)
    const [, written] = await Promise.all([single({}), answered, single({})].map(one => sets.write(one)))
    expect(written).toMatchObject({ revision: 5, row: { receiptId: answered.receipt.receiptId } })
    expect(await receipts.find(store, answered.receipt.receiptId)).toMatchObject({ revision: 5 })
  })

  it.each<[string, (row: StoredToken) => Single | Promise<Single>]>([
    ['its token was changed', row => single({ updates: [{ ...changed(row), version: 9 }] })],
    [
      'its token was changed, which it only answers for',
      ({ tokenId }) => single({ touches: [{ tokenId, receiptId: randomUUID(), version: 4 }] }),
    ],
    ['its card got a token', row => created(token({ cards: row.cards, link: row.link }))],
    [
      'a later sequence took effect',
      async row => {
        const mark = (sequence: number) => [{ clientId: 'c', tokenId: row.tokenId, sequence }]
        await alone(single({ sequences: mark(8) }))
        return single({ updates: [changed(row)], sequences: mark(8) })
      },
    ],
    [
      'it was done already',
      async () => {
        const done = single({})
        await alone(done)
        return done
      },
    ],
  ])('leave one behind of which nothing is written if %s meanwhile', async (_, losing) => {
    const { sets, counts } = open()
    const row = token()
    await put(row)
    const lost = await losing(row)
    const others = [created(), created()]
    const before = await transactionOf(lost)
    const [first, end, last] = await writeAll(
      sets,
      [others[0], lost, others[1]].filter(one => one !== undefined),
    )
    expect([first, last]).toEqual(['written', 'written'])
    expect(end).toBeInstanceOf(LostRace)
    expect(await counts()).toEqual({ together: 2, alone: 0 })
    expect(await transactionOf(lost)).toEqual(before)
    const { inserts = [], misses = [] } = lost.effect
    expect(
      await tokens.findByIds(
        store,
        inserts.map(({ tokenId }) => tokenId),
      ),
    ).toEqual([])
    expect(await guesses.countAll(store, misses)).toEqual(misses.map(() => 0))
    expect(await tokens.findByIds(store, [row.tokenId])).toMatchObject([{ version: 1, lastReceipt: null }])
    expect(await tokens.findByCards(store, row.cards)).toMatchObject([{ tokenId: row.tokenId }])
  })

  it.each<[string, (row: StoredToken) => { one: Single; lock: (store: Store) => Promise<unknown>[] }]>([
    [
      'receipt',
      () => {
        const one = created()
        return { one, lock: db => [hold(db, one.receipt.receiptId)] }
      },
    ],
    ['token', row => ({ one: single({ updates: [changed(row)] }), lock: db => [tokens.holdAll(db, [row.tokenId])] })],
  ])('leave one behind whose %s is locked, which then waits alone', async (_, locked) => {
    const { sets, counts } = open()
    const row = token()
    await put(row)
    const { one, lock } = locked(row)
    const others = [created(), created()]
    const ends: string[] = []
    const told = (name: string) => () => ends.push(name)
    await store.transaction(async db => {
      await Promise.all(lock(db as Store))
      const writing = [single({}), ...others, one].map(each => sets.write(each))
      void writing[3]?.then(told('locked'))
      await Promise.all(writing.slice(0, 3)).then(told('others'))
      void Promise.all(writing).then(told('all'))
    })
    await expect.poll(() => ends).toEqual(['others', 'locked', 'all'])
    expect(await counts()).toEqual({ together: 3, alone: 1 })
  })

  it('leave one behind that could be a guess too many, which is decided alone', async () => {
    const { sets, counts } = open()
    const [digits, cards] = [randomUUID(), Array.from({ length: 12 }, () => token())]
    const ends = await writeAll(
      sets,
      cards.map(row => created(row, digits)),
    )
    expect(ends.filter(end => end === 'written')).toHaveLength(10)
    expect(ends.slice(10).every(end => end instanceof LostRace)).toBe(true)
    expect(await counts()).toEqual({ together: 10, alone: 2 })
    expect(await guesses.countAll(store, [{ clientId: 'c', tokenScope: SCOPE, digits }])).toEqual([10])
  })

  it('are written alone, once, if one makes their set fail', async () => {
    const { sets, counts } = open()
    const good = [created(), created()]
    const bad = single({}, { code: 100_000 })
    const [first, end, last] = await writeAll(
      sets,
      [good[0], bad, good[1]].filter(one => one !== undefined),
    )
    expect([first, last]).toEqual(['written', 'written'])
    expect(end).toMatchObject({ code: 'data' })
    expect(await counts()).toEqual({ together: 0, alone: 3 })
    expect((await Promise.all(good.map(transactionOf))).map(({ length }) => length)).toEqual([1, 1])
    expect(await transactionOf(bad)).toEqual([])
  })

  it('are one span with a link to each job that is traced', async () => {
    const started: { name: string; options: StartOptions | undefined; fault: string | undefined; ended: boolean }[] = []
    const never = () => {
      throw new Error('not asked for')
    }
    const tracer: Tracer = {
      close: never,
      start(name, options) {
        const span = { name, options, fault: undefined as string | undefined, ended: false }
        started.push(span)
        const end = (fault?: string) => {
          Object.assign(span, { fault, ended: true })
        }
        return { context: traceOf(true), child: never, set: never, end }
      },
    }
    const { sets } = open(tracer)
    const traced = [true, true, false].map(sampled => ({ ...created(), trace: traceOf(sampled) }))
    await writeAll(sets, [created(), ...traced])
    expect(started).toEqual([
      {
        name: 'set',
        ended: true,
        fault: undefined,
        options: { links: traced.slice(0, 2).map(({ trace }) => trace), attributes: { 'set.jobs': 4 } },
      },
    ])
    await writeAll(sets, [created(), created()])
    expect(started).toHaveLength(1)
    const bad = { ...single({}, { code: 100_000 }), trace: traceOf(true) }
    await writeAll(sets, [bad, created()])
    expect(started[1]).toMatchObject({ ended: true, fault: expect.any(String) })
  })

  it('don’t wait for long for another’s card: the others are written before it ends', async () => {
    const { sets, counts } = open()
    const contested = token()
    const others = [created(), created()]
    const late = created(token({ cards: contested.cards, link: contested.link }))
    let end: Promise<unknown> | undefined
    await store.transaction(async db => {
      await tokens.insertAll(db, [contested])
      const [, ...writing] = [single({}), ...others, late].map(each => sets.write(each))
      end = writing[2]?.catch(error => error)
      await Promise.all(writing.slice(0, 2))
    })
    expect(await end).toBeInstanceOf(LostRace)
    expect(await counts()).toEqual({ together: 0, alone: 4 })
  })

  it('may join others only with what names their own token and card', () => {
    const row = token()
    expect(mayJoin({ inserts: [row], networks: [] })).toBe(true)
    expect(mayJoin({ updates: [changed(row)] })).toBe(true)
    expect(mayJoin({ updates: [{ ...changed(row), cards: [randomUUID()] }] })).toBe(false)
    expect(mayJoin({ updates: [changed(row)], networks: [{ of: 'networks' }] })).toBe(false)
    expect(mayJoin({ inserts: [row], touches: [{ tokenId: randomUUID(), receiptId: randomUUID(), version: 1 }] })).toBe(
      false,
    )
  })
})
