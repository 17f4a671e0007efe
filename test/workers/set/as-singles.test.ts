// Jobs that are worked at the same time, by two processes, leave what the same jobs leave one by one: the same tokens,
// receipts, before-images, guesses, sequences and answers. The order of their receipts is the order to compare with.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../producers/migrate/sample.ts'
import type { Kind } from '../../../src/job/catalogue.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { reuseTokenOf } from '../../../src/token/token.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { volume } from '../../support/volume.ts'
import { type Job, openWorld, type World } from '../provider/bundle.ts'

const CARDS = 8
const TOKENS = 8

/** A job, and how often it is delivered. Cards and tokens by number. */
const anyJob = fc.record({
  deliveries: fc.integer({ min: 1, max: 2 }),
  sequence: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  ask: fc.oneof(
    { weight: 3, arbitrary: fc.record({ card: fc.nat(CARDS - 1), month: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({ token: fc.nat(TOKENS - 1), name: fc.constantFrom('ANNA', 'BEN "Ö" \\', '{,}') }),
    },
    { weight: 1, arbitrary: fc.record({ token: fc.nat(TOKENS - 1), another: fc.constant(true) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        token: fc.nat(TOKENS - 1),
        action: fc.constantFrom('SUSPEND', 'SUSPEND', 'ACTIVATE', 'ACTIVATE', 'DELETE'),
      }),
    },
  ),
})
type AnyJob = typeof anyJob extends fc.Arbitrary<infer T> ? T : never

/** Says which rows differ, because a counterexample alone doesn't. */
function expectSame(one: Record<string, unknown>, other: Record<string, unknown>): void {
  const linesOf = (left: Record<string, unknown>) =>
    Object.entries(left).flatMap(([name, rows]) =>
      (rows as unknown[]).map(
        (row, index) => `${name} ${index} ${typeof row === 'string' ? row : JSON.stringify(row)}`,
      ),
    )
  const [ours, theirs] = [linesOf(one), linesOf(other)]
  const more = ours.filter(line => !theirs.includes(line)).map(line => `together: ${line}`)
  const less = theirs.filter(line => !ours.includes(line)).map(line => `one by one: ${line}`)
  expect(ours.length).toBeGreaterThan(0)
  if (more.length + less.length > 0) throw new Error([...more, ...less].sort().join('\n'))
}

/** `order`: of the jobs' receipts. */
interface Mix {
  mix: readonly AnyJob[]
  no: number
  order: readonly number[]
}

/** One installation, with two processes that work the same mix. */
interface Side {
  installation: Installation
  worlds: [World, World]
}

describeStore('jobs that are worked at the same time', engine => {
  let together: Side
  let single: Side
  let drop: () => Promise<void>
  let mixes = 0
  beforeAll(async () => {
    const database = await freshDatabase()
    drop = database.drop
    together = await openSide(engine)
    single = await openSide({ ...engine, prefix: '{single}', databaseUrl: database.url })
  })
  afterAll(async () => {
    await together?.installation.close()
    await single?.installation.close()
    await drop?.()
  })

  async function openSide(on: Parameters<typeof openInstallation>[0]): Promise<Side> {
    const installation = await openInstallation(on)
    const first = await openWorld(installation)
    return { installation, worlds: [first, await openWorld(installation, { beside: first })] }
  }

  /** The jobs of a mix on one side. Their tokens are made first, one by one. */
  async function prepare({ installation, worlds: [world] }: Side, mix: readonly AnyJob[], no: number) {
    const card = (index: number, month: number) =>
      world.cardOf(panOf(no * 100 + index, 41), { expiryMonth: month, expiryYear: 2031 })
    const scope = { token_scope: installation.scope }
    const ids: string[] = []
    for (let index = 0; index < TOKENS; index += 1) {
      const jti = `mix-${no}-token-${index}`
      const { record } = await world.ask('token-create', { ...scope, ...(await card(50 + index, 12)) }, { jti })
      ids.push(String(record?.['reuse_token']))
    }
    const jobs: Job[] = []
    for (const [index, { ask, sequence }] of mix.entries()) {
      const [kind, request]: [Kind, Record<string, unknown>] =
        'card' in ask
          ? ['token-create', { ...scope, ...(await card(ask.card, ask.month)) }]
          : 'action' in ask
            ? ['token-lifecycle', { id: ids[ask.token], action: ask.action }]
            : 'another' in ask
              ? ['token-update', { id: ids[ask.token], ...(await card(60 + index, 7)) }]
              : ['token-update', { id: ids[ask.token], card_holder_name: ask.name }]
      const options = sequence === undefined || kind === 'token-create' ? {} : { sequence }
      jobs.push(world.job(kind, request, { jti: `mix-${no}-${index}`, ...options }))
    }
    return jobs
  }

  /** Everything that a mix left, with numbers in place of ids. */
  async function leftBy({ installation, worlds }: Side, { mix, no, order }: Mix, jobs: readonly Job[]) {
    const { store, ring } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const own = Array.from({ length: TOKENS }, (_, index) => receiptId(clientId, `mix-${no}-token-${index}`))
    const receiptIds = [...own, ...order.flatMap(index => jobs[index]?.receiptId ?? [])]
    const names = new Map(receiptIds.map((id, index) => [id, `receipt ${index}`]))
    names.set(installation.scope, 'scope')
    const query = async <R>(text: string, ids: readonly string[]) =>
      (await store.query<R>({ text, values: [`{${ids.join(',')}}`] })).rows
    const receipts = await query<Record<string, unknown>>(
      `select receipt_id, kind, jti, status, code, outcome, refusal, token_id, revision, attempt, reversal, failed_records
from tokenmill.receipt where receipt_id = any($1::uuid[])`,
      receiptIds,
    )
    const byId = new Map(receipts.map(row => [row['receipt_id'], row]))
    const ids = [...new Set(receiptIds.flatMap(id => String(byId.get(id)?.['token_id'] ?? '') || []))]
    for (const [index, id] of ids.entries()) {
      names.set(id, `token ${index}`)
      names.set(reuseTokenOf({ tokenId: id, thirdParty: null }), `token ${index}`)
    }
    const named = (value: unknown) =>
      JSON.parse(
        JSON.stringify(value, (_, part) => (typeof part === 'string' ? (names.get(part) ?? part) : part)),
      ) as unknown
    const rows = await tokens.findByIds(store, ids)
    const of = await query<Record<string, unknown>>(
      `select token_id, count(*)::int as cards from tokenmill.card where token_id = any($1::uuid[]) group by token_id order by 1`,
      ids,
    )
    const images = await query(
      'select receipt_id, token_id from tokenmill.before_image where token_id = any($1::uuid[])',
      ids,
    )
    const marks = await query(
      'select token_id, sequence from tokenmill.sequence_mark where token_id = any($1::uuid[])',
      ids,
    )
    const guessed = await query(
      'select digits, misses from tokenmill.guess where digits = any($1::text[]) order by digits',
      [...new Set([...jobs.keys(), ...Array(100).keys()])].map(index => digitsOf(panOf(no * 100 + index, 41))),
    )
    const told = worlds.flatMap(world => world.told)
    const answers = receiptIds.map(id => {
      const result = told.filter(one => one.type === 'result' && one.receipt_id === id).at(-1)
      const { result_id, receipt_id, accepted_at, completed_at, error, ...rest } = result as unknown as Record<
        string,
        unknown
      >
      // A repeat is answered with the token as it is by then.
      const isRepeated = mix[jobs.findIndex(job => job.receiptId === id)]?.deliveries === 2
      return isRepeated ? rest['status'] : { ...rest, details: (error as { details?: unknown } | undefined)?.details }
    })
    const sortedBy = (list: unknown) => (named(list) as unknown[]).map(one => JSON.stringify(one)).sort()
    return {
      receipts: named(receiptIds.map(id => byId.get(id))),
      tokens: sortedBy(
        rows.map(
          ({
            sealed,
            sealVersion,
            createdAt,
            updatedAt,
            cards,
            storedCards,
            fingerprint,
            analyticsToken,
            givenAt,
            ...row
          }) => ({
            ...row,
            pan:
              sealed && sealVersion !== null
                ? ring.open(sealed, sealVersion, row.tokenId, row.tokenScope).reveal()
                : null,
            cards: cards.length,
            given: Object.keys(givenAt ?? {}).sort(),
          }),
        ),
      ),
      of: sortedBy(of),
      images: sortedBy(images),
      marks: sortedBy(marks),
      guessed,
      answers: named(answers),
    }
  }
  const digitsOf = (pan: string) => `${pan.slice(0, 8)}${pan.slice(-4)}`

  it('leave the same rows, receipts and answers as one by one, whatever the mix', async () => {
    const written = { together: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(anyJob, { minLength: 8, maxLength: 40 }), fc.boolean(), async (mix, isOneProcess) => {
        mixes += 1
        const no = mixes
        const jobs = await prepare(together, mix, no)
        const deliveries = [1, 2].flatMap(time => jobs.filter((_, index) => (mix[index]?.deliveries ?? 0) >= time))
        const [first, second] = together.worlds
        await Promise.all(
          deliveries.map((job, index) => (isOneProcess || index % 3 > 0 ? first : second).run({ ...job })),
        )
        const { rows: order } = await together.installation.vault.store.query<{ receipt_id: string }>({
          text: `select receipt_id from tokenmill.outbox where receipt_id = any($1::uuid[]) group by 1 order by min(outbox_id)`,
          values: [`{${jobs.map(({ receiptId: id }) => id).join(',')}}`],
        })
        const numbers = order.map(row => jobs.findIndex(({ receiptId: id }) => id === row.receipt_id))
        expect(numbers.toSorted((a, b) => a - b)).toEqual(jobs.map((_, index) => index))
        const others = await prepare(single, mix, no)
        for (const number of numbers) {
          const job = others[number]
          if (job) await single.worlds[0].run(job)
        }
        const all = { mix, no, order: numbers }
        expectSame(await leftBy(together, all, jobs), await leftBy(single, all, others))
      }),
      { numRuns: volume(12, 120), endOnFailure: true, includeErrorInReport: true },
    )
    for (const { deps } of together.worlds) {
      const { values } = await deps.metrics.setJobs.get()
      written.together += values.find(({ labels }) => labels.written === 'together')?.value ?? 0
    }
    expect(written.together).toBeGreaterThan(30)
  }, 300_000)
})
