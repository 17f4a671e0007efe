// Owners and their cards against a sequential model: chunks of several batches in any order and again, single creates and
// updates, and reversals, also side by side. After each, owners, tokens and what was told are what some order of them makes.
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { OnFileRequest, ownerOf as ownerIdOf } from '../../../src/job/on-file.ts'
import * as released from '../../../src/store/reference/released-references.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type OnFileWorld, openOnFile, owner as ownerOf, record } from '../on-file-bundle.ts'
import type { Job } from '../provider/bundle.ts'
import {
  act,
  type BatchPlan,
  type Deed,
  type Given,
  LINES,
  liveToken,
  type Model,
  NOTHING,
  shape,
} from './claims-model.ts'

const RUNS = Number(process.env['CLAIMS_RUNS'] ?? 25)
const CARDS = 4
const OWNERS = 3
/** Before the times of all jobs. */
const BASE = Math.floor(Date.now() / 1000) * 1000 - 60_000

const given: fc.Arbitrary<Given> = fc.record({
  card: fc.nat(CARDS - 1),
  owner: fc.option(fc.nat(OWNERS - 1), { freq: 6, nil: undefined }),
  nti: fc.option(fc.constantFrom('n1', 'n2'), { nil: undefined }),
  age: fc.integer({ min: 1, max: 3 }),
})
const batch: fc.Arbitrary<BatchPlan> = fc.record({
  policy: fc.record(
    {
      on_orphan: fc.constantFrom('keep' as const, 'suspend' as const, 'delete' as const),
      relink: fc.boolean(),
      on_conflict: fc.constantFrom('update' as const, 'keep' as const, 'newest' as const, 'newest' as const),
    },
    { requiredKeys: [] },
  ),
  chunks: fc.array(fc.array(given, { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 3 }),
})

/** A deed as it is drawn: an update names a card, a reversal a single job that came before. */
type Drawn =
  | Extract<Deed, { do: 'chunk' | 'create' | 'release' }>
  | { do: 'update'; given: Given }
  | { do: 'delete'; card: number }
  | { do: 'link'; card: number; by: number }
  | { do: 'reverse'; nth: number }
const drawn: fc.Arbitrary<Drawn> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('chunk' as const), batch: fc.nat(1), chunk: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('create' as const), given }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('update' as const), given }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reverse' as const), nth: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), owner: fc.nat(OWNERS - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), card: fc.nat(CARDS - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('link' as const),
      card: fc.nat(CARDS - 1),
      by: fc.integer({ min: 1, max: CARDS - 1 }),
    }),
  },
)
const step = fc.oneof({ weight: 3, arbitrary: fc.tuple(drawn) }, { weight: 2, arbitrary: fc.tuple(drawn, drawn) })

/** One run of the test. */
interface Run {
  onFile: OnFileWorld
  id: string
  batches: readonly BatchPlan[]
  /** All that may be: two orders of deeds that look alike may differ in what a later reversal takes back. */
  models: readonly Model[]
  jobs: Job[]
}

interface Settled {
  deed: Deed
  /** The number of a single job. */
  number?: number
}

describeStore('owners and their cards', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it('are what some order of the deeds makes of them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(batch, batch),
        fc.array(step, { minLength: 3, maxLength: 10 }),
        async (batches, steps) => {
          const scope = await makeScope(installation.vault, {
            entityId: ENTITY,
            par: false,
            networkTokens: false,
            requestor: 'MERCHANT',
            binDigits: 8,
          })
          const onFile = await openOnFile(installation, scope.tokenScope)
          const run: Run = { onFile, id: randomUUID(), batches, models: [NOTHING], jobs: [] }
          for (const one of steps.flatMap(one => inOrder(one, batches))) await play(run, one)
        },
      ),
      {
        numRuns: RUNS,
        includeErrorInReport: true,
        ...(process.env['CLAIMS_SEED'] && { seed: Number(process.env['CLAIMS_SEED']) }),
      },
    )
  })

  /** Chunks of a batch with `relink`, or that ends orphans, are sent one after the other (docs/upstream.md). */
  function inOrder(step: readonly Drawn[], batches: readonly BatchPlan[]): (readonly Drawn[])[] {
    const [one, other] = step
    // The token may get the same number by the other deed.
    if (one && other && step.some(({ do: what }) => what === 'link')) return [[one], [other]]
    if (one?.do !== 'chunk' || other?.do !== 'chunk' || one.batch !== other.batch) return [step]
    const { relink = false, on_orphan: onOrphan = 'keep' } = batches[one.batch]?.policy ?? {}
    return relink || onOrphan !== 'keep' ? [[one], [other]] : [step]
  }

  async function play(run: Run, step: readonly Drawn[]): Promise<void> {
    const settled = run.models.map(model => ({ model, deeds: deedsOf(run, model, step) }))
    // Models differ in the number of a token that a deed names, not in the job that is sent.
    const deeds = settled[0]?.deeds ?? []
    const jobs = await Promise.all(deeds.map(({ deed }) => jobOf(run, deed)))
    for (const [index, { number }] of deeds.entries()) {
      const job = jobs[index]
      if (number !== undefined && job) run.jobs[number] = job
    }
    const seen = await Promise.all(jobs.map(async job => told(await run.onFile.world.run(job))))
    const found = JSON.stringify(await read(run))
    const ends = settled.flatMap(({ model, deeds }) => endsOf(run, model, deeds))
    const matching = ends.filter(
      end => JSON.stringify(shape(end.model)) === found && JSON.stringify(end.seen) === JSON.stringify(seen),
    )
    if (matching.length === 0) {
      const possible = ends.map(end => JSON.stringify({ ...shape(end.model), seen: end.seen }))
      throw new Error(
        [JSON.stringify(deeds), JSON.stringify({ found: JSON.parse(found), seen }), ...possible].join('\n'),
      )
    }
    run.models = [...new Map(matching.map(({ model }) => [inspect(model, { depth: null }), model])).values()]
  }

  const deedsOf = (run: Run, model: Model, step: readonly Drawn[]) =>
    step.flatMap((one, index) => settle(run, model, one, index) ?? [])

  /** What each order of the deeds makes of the model, and what each deed is told then. */
  function endsOf({ batches }: Run, start: Model, deeds: readonly Settled[]): { model: Model; seen: string[] }[] {
    const forward = [...deeds.keys()]
    const orders = deeds.length === 2 ? [forward, forward.toReversed()] : [forward]
    return orders.map(order => {
      let model = start
      const seen: string[] = []
      for (const index of order) {
        const one = deeds[index]
        if (!one) continue
        const after = act(model, one.deed, one.number ?? -1, batches)
        model = after.model
        seen[index] = after.seen
      }
      return { model, seen }
    })
  }

  /** With the number of a single job. */
  function settle(run: Run, model: Model, one: Drawn, index: number): Settled | undefined {
    const number = run.jobs.length + index
    if (one.do === 'chunk' || one.do === 'release') return { deed: one }
    if (one.do === 'delete') return { deed: { ...one, token: liveToken(model, one.card) } }
    if (one.do === 'create') return { deed: one, number }
    if (one.do === 'link') {
      const { card, by } = one
      return { deed: { do: 'link', token: liveToken(model, card), card, to: (card + by) % CARDS }, number }
    }
    if (one.do === 'update')
      return { deed: { do: 'update', token: liveToken(model, one.given.card), given: one.given }, number }
    const known = Object.keys(run.jobs).map(Number)
    const job = known[one.nth % Math.max(1, known.length)]
    return job === undefined ? undefined : { deed: { do: 'reverse', job } }
  }

  async function jobOf({ onFile, id, batches, jobs }: Run, deed: Deed): Promise<Job> {
    const onFileOf = ({ owner, nti }: Given) =>
      owner === undefined ? undefined : ownerOf(`${owner}`, nti === undefined ? {} : { network_transaction_ids: [nti] })
    if (deed.do === 'chunk') {
      const plan = batches[deed.batch]
      const { policy, timeOf } = timed(plan?.policy ?? {}, deed.batch)
      const records = plan?.chunks[deed.chunk]?.map(one => record(one.card, onFileOf(one), timeOf(one))) ?? []
      const place = { batchId: `m${deed.batch}-${id}`, number: deed.chunk, line: deed.chunk * LINES + 1 }
      return onFile.chunkJob(records, { ...place, policy })
    }
    if (deed.do === 'create') return onFile.createJob(deed.given.card, onFileOf(deed.given))
    const nameOf = async (card: number) => {
      const [row] = (await tokenRows(onFile.scope)).filter(
        ({ last_four: lastFour, status }) => lastFour === lastFourOf(card) && status !== 'DELETED',
      )
      return formatReuseToken(row?.token_id ?? randomUUID())
    }
    if (deed.do === 'delete')
      return onFile.world.job('token-lifecycle', { id: await nameOf(deed.card), action: 'DELETE' })
    if (deed.do === 'release')
      return onFile.world.job('reference', {
        token_scope: onFile.scope,
        ...ownerOf(`${deed.owner}`),
        action: 'RELEASE',
      })
    if (deed.do === 'update') {
      const on_file = onFileOf(deed.given)
      const request = { id: await nameOf(deed.given.card), ...(on_file ? { on_file } : {}) }
      return onFile.world.job('token-update', request)
    }
    if (deed.do === 'link') {
      const request = { id: await nameOf(deed.card), ...(await onFile.world.cardOf(testPan(deed.to))) }
      return onFile.world.job('token-update', request)
    }
    const job = jobs[deed.job]
    const request = { receipt_id: job?.receiptId, envelope: job?.envelope }
    return onFile.world.job('reversal', request, { bySystem: true })
  }

  /** Source times before the beginning of every batch, and inputs in the order of the batches' numbers. */
  function timed(policy: BatchPlan['policy'], batch: number) {
    if (policy.on_conflict !== 'newest') return { policy, timeOf: () => ({}) }
    const timeOf = ({ age }: Given) => ({ source_time: new Date(BASE - age * 1000).toISOString() })
    return { policy: { ...policy, input_sha256: `${batch}`.repeat(64) }, timeOf }
  }

  const lastFourOf = (card: number) => testPan(card).slice(-4)

  const tokenRows = async (scope: string) =>
    (
      await installation.vault.store.query<{ token_id: string; last_four: string | null; status: string }>({
        text: 'select token_id, last_four, status from tokenmill.token where token_scope = $1',
        values: [scope],
      })
    ).rows

  /** What the store shows, in the words of the model. */
  async function read({ onFile: { scope } }: Run): Promise<ReturnType<typeof shape>> {
    const rows = await tokenRows(scope)
    const { rows: references } = await installation.vault.store.query<{
      card_id: string
      token_id: string
      on_file: { network_transaction_ids?: string[]; network_transaction_id?: string }
    }>({
      text: 'select card_id, token_id, on_file from tokenmill.source_reference where token_scope = $1',
      values: [scope],
    })
    const cards = Array.from({ length: CARDS }, (_, card) => lastFourOf(card))
    const cardOf = (token: string) => {
      const lastFour = rows.find(({ token_id: id }) => id === token)?.last_four
      return lastFour ? cards.indexOf(lastFour) : 'gone'
    }
    return {
      cards: rows
        .flatMap(({ last_four: lastFour, status }) => (lastFour ? `${cards.indexOf(lastFour)} ${status}` : []))
        .sort(),
      deleted: rows.filter(({ status }) => status === 'DELETED').length,
      owners: references
        .map(({ card_id: card, token_id: token, on_file: told }) => {
          const { network_transaction_ids: ids = [], network_transaction_id: used = '-' } = told
          return [card.replace('card_', ''), cardOf(token), ids.join('+'), used].join(' ')
        })
        .sort(),
      released: await readReleased(scope),
    }
  }

  /** The owners of whom a release is noted. */
  async function readReleased(scope: string): Promise<number[]> {
    const { store, ring } = installation.vault
    const all = Array.from({ length: OWNERS }, (_, owner) => owner)
    const sought = all.map(owner => {
      const hashes = ring.ownerHashes(ownerKey(ownerIdOf(OnFileRequest.parse(ownerOf(`${owner}`)), scope)))
      return { key: `${owner}`, hashes }
    })
    const found = await released.find(store, sought, ring.ownerVersions())
    return all.filter(owner => found.has(`${owner}`))
  }
})

function told({ records, record: answer, code }: Result): string {
  if (records) return records.map(({ reference_outcome: outcome }) => outcome ?? '-').join()
  if (answer?.['reversal_status']) return 'reversed'
  return code === 200 ? String(answer?.['reference_outcome'] ?? answer?.['outcome'] ?? '-') : String(code)
}
