// From any stored state, a diff of a new file and a migration of what it lists end as a migration of the whole file and
// a release of every owner whom the file doesn't name.
import { writeFile } from 'node:fs/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ON_CONFLICT, ON_ORPHAN } from '../../../src/job/choices.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { openWaves, type ShopRow, type Waves } from './waves.ts'

const CARDS = 4
const RUNS = Number(process.env['DIFF_RUNS'] ?? 6)
const SEED = process.env['DIFF_SEED']

const anyRow: fc.Arbitrary<ShopRow> = fc.record(
  {
    id: fc.constantFrom('', 'k1', 'k2', 'k3', 'k4'),
    account: fc.constantFrom('eu', 'us'),
    customer: fc.constantFrom('', 'c1', 'c2'),
    kind: fc.constantFrom('card', 'card', 'card', 'card', 'bank'),
    card: fc.oneof(
      { arbitrary: fc.nat({ max: CARDS - 1 }), weight: 9 },
      { arbitrary: fc.constant('4111111111111112'), weight: 1 },
    ),
    year: fc.constantFrom(2031, 2032, 2033),
    nti: fc.constantFrom('', 'n1', 'n2'),
  },
  { requiredKeys: ['id', 'account', 'customer', 'kind', 'card', 'year', 'nti'] },
)
const SIZES = [1, 2, 3, 7] as const
const anyFile = fc.array(anyRow, { minLength: 1, maxLength: 7 })
const KEYS = ['id', 'customer', 'card', 'year', 'nti'] as const
/** How the new file differs from the former one. */
const anyEdit = fc.record({
  what: fc.constantFrom('keep', 'keep', 'keep', 'drop', 'change', 'add', 'repeat'),
  key: fc.constantFrom(...KEYS),
  row: anyRow,
})
const anyFiles = fc
  .record({ old: anyFile, edits: fc.array(anyEdit, { minLength: 7, maxLength: 7 }), first: anyRow })
  .map(({ old, edits, first }) => {
    const fresh = old.flatMap((row, index) => {
      const { what = 'keep', key = 'year', row: other = row } = edits[index] ?? {}
      const changed = { ...row, [key]: other[key] }
      const ends = { keep: [row], drop: [], change: [changed], add: [row, other], repeat: [row, changed] }
      return ends[what]
    })
    return { old, fresh: fresh.length === 0 ? [first] : fresh }
  })
const anyPolicy = fc.record({
  onConflict: fc.constantFrom(...ON_CONFLICT.filter((policy: string) => policy !== 'newest')),
  onOrphan: fc.constantFrom(undefined, ...ON_ORPHAN),
  relink: fc.boolean(),
})

describeStore('a diff and what it lists', engine => {
  let installation: Installation
  let waves: Waves
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    waves = await openWaves(installation)
  })
  afterAll(() => installation?.close())

  it(
    'find nothing after their file was migrated, whatever repeats in it, nor does the file once more',
    async () => {
      const sizes = fc.record({ first: fc.constantFrom(...SIZES), second: fc.constantFrom(...SIZES) })
      await fc.assert(
        fc.asyncProperty(anyFile, anyPolicy, sizes, async (rows, policy, { first, second }) => {
          const file = await waves.put(rows)
          const scope = await waves.newScope()
          const run = { ...policy, scope, inFlight: 3 }
          await waves.migrate(file, { ...run, chunk: first })
          const before = await waves.state(scope, CARDS)
          for (const [index, chunk] of [second, first].entries()) {
            const own = { results: `${file}.${index}.csv`, manifest: `${file}.${index}.json` }
            const again = await waves.migrate(file, { ...run, ...own, chunk, again: true })
            expect(again.counts).toMatchObject({ CREATED: 0, UPDATED: 0, FAILED: 0 })
            const { UNCHANGED: _, OLDER: __, ...owners } = again.owners?.references ?? {}
            expect(owners).toEqual({})
            expect(await waves.state(scope, CARDS)).toEqual(before)
          }
          const found = await waves.diff(file, { ...run, chunk: second }, 'partial')
          const { skipped: _, unchanged: __, rejected: ___, ...changes } = found.changes
          expect(changes).toEqual({})
          // Cards without an owner are planned where a policy can take tokens away, and rejected rows always.
          if ((policy.onOrphan ?? 'keep') === 'keep' && !policy.relink && !found.changes.rejected)
            expect(found.plans).toEqual([])
        }),
        {
          numRuns: RUNS,
          endOnFailure: process.env['DIFF_SHRINK'] !== '1',
          ...(SEED === undefined ? {} : { seed: Number(SEED) }),
        },
      )
    },
    60_000 + RUNS * 90_000,
  )

  /** Releases all owners of `before` whom `after` doesn't name, at accounts that it names. */
  async function release(before: readonly ShopRow[], after: readonly ShopRow[], scope: string, onOrphan?: string) {
    const keyOf = ({ account, customer, id }: ShopRow) => [account, customer, id].join('/')
    const isOwner = ({ id }: ShopRow) => id !== ''
    const named = new Set(after.filter(isOwner).map(keyOf))
    const accounts = new Set(after.filter(isOwner).map(({ account }) => account))
    const known = await waves.state(scope, CARDS)
    const gone = [
      ...new Set(
        before
          .filter(isOwner)
          .filter(({ account }) => accounts.has(account))
          .map(keyOf),
      ),
    ]
      .filter(key => !named.has(key) && key in known)
      .sort()
    if (gone.length === 0) return
    const lines = gone.map(key => {
      const [account, customer, id] = key.split('/')
      return JSON.stringify({
        provider: 'shop',
        provider_account: account,
        card_id: id,
        action: 'RELEASE',
        ...(customer ? { customer_id: customer } : {}),
        ...(onOrphan ? { on_orphan: onOrphan } : {}),
      })
    })
    const file = `${await waves.put([])}.gone.ndjson`
    await writeFile(file, `${lines.join('\n')}\n`)
    await waves.migrate(file, { profile: undefined, recordKind: 'reference', scope })
  }

  it(
    'end as the whole file does, with the release of whom it does not name',
    async () => {
      await fc.assert(
        fc.asyncProperty(anyFiles, anyPolicy, async ({ old, fresh }, policy) => {
          const [former, current] = [await waves.put(old), await waves.put(fresh)]
          const [whole, parted] = [await waves.newScope(), await waves.newScope()]
          for (const scope of [whole, parted]) {
            const own = { scope, results: `${former}.${scope}.csv`, manifest: `${former}.${scope}.json` }
            await waves.migrate(former, { ...own })
          }
          expect(await waves.state(parted, CARDS)).toEqual(await waves.state(whole, CARDS))
          await waves.migrate(current, { ...policy, scope: whole })
          await release(old, fresh, whole, policy.onOrphan)
          const before = await waves.state(parted, CARDS)
          const found = await waves.diff(current, { ...policy, scope: parted })
          expect(await waves.state(parted, CARDS)).toEqual(before)
          await waves.apply(current, found, { ...policy, scope: parted })
          expect(await waves.state(parted, CARDS)).toEqual(await waves.state(whole, CARDS))
          // A second diff finds nothing to release.
          expect((await waves.diff(current, { ...policy, scope: parted })).removed?.count).toBe(0)
        }),
        {
          numRuns: RUNS,
          endOnFailure: process.env['DIFF_SHRINK'] !== '1',
          ...(SEED === undefined ? {} : { seed: Number(SEED) }),
        },
      )
    },
    60_000 + RUNS * 90_000,
  )
})
