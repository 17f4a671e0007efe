// Jobs that are worked at the same time, by two processes, leave what the same jobs leave one by one: the same tokens,
// owners, receipts, before-images, guesses, sequences and answers. The order of their receipts is the order to compare
// with. Some sets fail at their last statement, and chunks come to the same cards and tokens.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from '../../../src/store/pool.ts'
import type { Sets } from '../../../workers/set/single.ts'
import { openSets } from '../../../workers/set/write-set.ts'
import { describeStore } from '../../support/engines.ts'
import { openInstallation } from '../../support/installation.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { volume } from '../../support/volume.ts'
import { openWorld, type World } from '../provider/bundle.ts'
import { differenceOf, leftBy, type Side } from './left-by.ts'
import { anyMix, GUESSES_MAX, IN_SETS, prepareMix } from './mix.ts'

/** Of the sets of the first process, one in so many fails. */
const FAILING = 5

describeStore('jobs that are worked at the same time', engine => {
  let together: Side
  let single: Side
  let drop: () => Promise<void>
  let mixes = 0
  /** By receipt, the jobs that were given to the sets: whether all times they were refused. */
  const joined = new Map<string, 'done' | 'refused'>()
  beforeAll(async () => {
    const database = await freshDatabase()
    drop = database.drop
    together = await openSide(engine)
    single = await openSide({ ...engine, prefix: '{single}', databaseUrl: database.url })
    const [first, second] = together.worlds
    first.deps.sets = noted(openSets({ ...first.deps, store: failing(first.deps.store) }))
    second.deps.sets = noted(second.deps.sets)
  })
  afterAll(async () => {
    await together?.installation.close()
    await single?.installation.close()
    await drop?.()
  })

  async function openSide(on: Parameters<typeof openInstallation>[0]): Promise<Side> {
    const installation = await openInstallation(on)
    const first = await openWorld(installation)
    const worlds: [World, World] = [first, await openWorld(installation, { beside: first })]
    for (const { deps } of worlds) deps.settings = { ...deps.settings, guessesMax: GUESSES_MAX }
    return { installation, worlds }
  }

  const noted = (sets: Sets): Sets => ({
    write(one) {
      const { receiptId, status } = one.receipt
      joined.set(receiptId, status === 'FAILED' && joined.get(receiptId) !== 'done' ? 'refused' : 'done')
      let times = 0
      const alone = () => {
        times += 1
        if (times > 1) throw new Error('broken law: a job of a set that failed is written alone once')
        return one.alone()
      }
      return sets.write({ ...one, alone })
    },
  })

  /** A store whose transactions sometimes end with a statement that PostgreSQL refuses. */
  function failing(store: Store): Pick<Store, 'transaction'> {
    let sets = 0
    return {
      transaction: (work, options) =>
        store.transaction(async db => {
          const end = await work(db)
          sets += 1
          if (sets % FAILING === 0) await db.query({ text: 'select 1 / 0' })
          return end
        }, options),
    }
  }

  async function setsThat(end: string): Promise<number> {
    const found = await Promise.all(together.worlds.map(({ deps }) => deps.metrics.sets.get()))
    const ends = found.flatMap(({ values }) => values).filter(({ labels }) => labels.end === end)
    return ends.reduce((sum, { value }) => sum + value, 0)
  }

  it('leave the same rows, receipts and answers as one by one, whatever the mix', async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(anyMix, fc.boolean(), async (mix, isOneProcess) => {
        mixes += 1
        const no = mixes
        const [first, second] = together.worlds
        const jobs = await prepareMix({ ...together, world: first }, mix, no)
        const deliveries = [1, 2].flatMap(time => jobs.filter((_, index) => (mix[index]?.deliveries ?? 0) >= time))
        await Promise.all(
          deliveries.map((job, index) => (isOneProcess || index % 3 > 0 ? first : second).run({ ...job })),
        )
        const { rows: order } = await together.installation.vault.store.query<{ receipt_id: string }>({
          text: `select receipt_id from tokenmill.outbox where receipt_id = any($1::uuid[]) group by 1 order by min(outbox_id)`,
          values: [`{${jobs.map(({ receiptId: id }) => id).join(',')}}`],
        })
        const numbers = order.map(row => jobs.findIndex(({ receiptId: id }) => id === row.receipt_id))
        expect(numbers.toSorted((a, b) => a - b)).toEqual(jobs.map((_, index) => index))
        const others = await prepareMix({ ...single, world: single.worlds[0] }, mix, no)
        for (const number of numbers) {
          const job = others[number]
          if (job) await single.worlds[0].run(job)
        }
        const all = { mix, no, order: numbers }
        const left = await leftBy(together, all, jobs)
        const difference = differenceOf(left, await leftBy(single, all, others))
        if (difference) throw new Error(difference)
        for (const [index, { receiptId }] of jobs.entries())
          if (joined.has(receiptId))
            expect(['all', joined.get(receiptId)]).toContain(IN_SETS[mix[index]?.ask.is ?? 'chunk'])
        refused += JSON.stringify(left.answers).split('"guesses"').length - 1
      }),
      {
        numRuns: volume(8, 80),
        endOnFailure: true,
        includeErrorInReport: true,
        ...(process.env['SETS_SEED'] && { seed: Number(process.env['SETS_SEED']) }),
      },
    )
    const counts = await Promise.all(together.worlds.map(({ deps }) => deps.metrics.setJobs.get()))
    const written = counts.flatMap(({ values }) => values).filter(({ labels }) => labels.written === 'together')
    expect(written.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(20)
    expect(await setsThat('rolled_back')).toBeGreaterThan(1)
    // A few mixes may hold no card too many.
    if (volume(8, 80) > 8) expect(refused).toBeGreaterThan(0)
  })
})
