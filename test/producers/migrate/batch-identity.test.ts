// Which batch a run is, by the profile that reads its file.
import { expect, it } from 'vitest'
import { batchIdOf, layoutOf } from '../../../producers/migrate/batch-identity.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { type Profile, withAccount } from '../../../producers/rows/profile/profile.ts'
import { profile } from '../rows/profile/profiled.ts'

const by = (one: Profile): MigrateOptions => ({
  file: 'cards.csv',
  profile: one,
  ignoreUnknown: false,
  echo: [],
  dryRun: false,
  again: false,
  onConflict: 'update',
  onExpired: 'import',
  chunk: 500,
  inFlight: 16,
  recordKind: 'token-create',
})
const identity = (changes: Record<string, unknown>, columns: Record<string, unknown> = {}) => {
  const options = by(profile(changes, columns))
  return [batchIdOf(options, undefined), JSON.stringify(layoutOf(options))]
}

it.each([{ title: 'Another' }, { notes: ['A note.'] }, { add: ['A thing to compare.'] }])(
  'a batch is the same whatever a profile tells its user: %j',
  changes => expect(identity(changes)).toEqual(identity({})),
)

it.each([
  { trim: true },
  { null_words: ['NULL'] },
  { where: [{ field: 'a', is: ['b'] }] },
  { no_card: 'skip' },
  { drop: ['x'] },
  { format: { type: 'delimited', delimiter: ';' } },
])('a batch is another one where the profile reads otherwise: %j', changes => {
  const [id, layout] = identity({})
  expect(identity(changes)[0]).not.toBe(id)
  expect(identity(changes)[1]).not.toBe(layout)
})

it('a batch is another one for each account at the provider, and for what it does with owners that move', () => {
  const owned = profile({ on_file: { provider: 'shop', card_id: '{id}' } })
  const plain = by(owned)
  const others: MigrateOptions[] = [
    by(withAccount(owned, 'one')),
    by(withAccount(owned, 'other')),
    { ...plain, onOrphan: 'keep' },
    { ...plain, onOrphan: 'suspend' },
    { ...plain, relink: true },
  ]
  const ids = [plain, ...others].map(options => batchIdOf(options, undefined))
  expect(new Set(ids).size).toBe(ids.length)
  expect(layoutOf(plain)).not.toHaveProperty('on_orphan')
  expect(layoutOf({ ...plain, relink: false })).toEqual(layoutOf(plain))
  expect(others.map(layoutOf)).toMatchObject([
    { provider_account: 'one' },
    { provider_account: 'other' },
    { on_orphan: 'keep' },
    { on_orphan: 'suspend' },
    { relink: true },
  ])
})

it('a batch is another one for each source time, and as before without one', () => {
  const plain = by(profile())
  expect(Object.keys(layoutOf(plain)).filter(name => name.startsWith('source_time'))).toEqual([])
  const timed = [{ at: '2026-03-31T00:00:00.000Z' }, { at: '2026-04-30T00:00:00.000Z' }, { column: 'updated' }]
  const ids = [plain, ...timed.map(sourceTime => ({ ...plain, sourceTime }))].map(one => batchIdOf(one, undefined))
  expect(new Set(ids).size).toBe(4)
})
