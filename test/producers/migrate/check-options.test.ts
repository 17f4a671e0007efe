// Options of a migration that can't go together.
import { expect, it } from 'vitest'
import { refuseImpossible } from '../../../producers/migrate/check-options.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'

const OPTIONS: MigrateOptions = {
  file: 'cards.csv',
  ignoreUnknown: false,
  echo: [],
  dryRun: false,
  again: false,
  scope: 's',
  onConflict: 'update',
  onExpired: 'import',
  chunk: 500,
  inFlight: 16,
  recordKind: 'token-create',
  profile: BUILT_IN.square,
}
const run = (changes: Partial<MigrateOptions>) => () => refuseImpossible({ ...OPTIONS, ...changes })

it.each([
  [{ rejects: './cards.csv' }, 'FILE and --rejects name the same file.'],
  [{ return: 'm.json.jws', manifest: 'm.json' }, 'the signature of --manifest and --return name the same file.'],
  [
    { rejects: 'cards.csv.results.csv.checkpoint.json' },
    'the checkpoint of --results and --rejects name the same file.',
  ],
])('no two files of a run may have one name: %j', (changes, text) => {
  expect(run(changes)).toThrow(text)
})

it.each([{ rejects: '-' }, { return: '-' }])('no file beside the results goes to standard output: %j', changes => {
  expect(run(changes)).toThrow(`--${Object.keys(changes)[0]} - is no name of a file.`)
})

it('each file with a name of its own is fine', () => {
  expect(run({ rejects: 'rejects.csv', return: 'back.csv' })).not.toThrow()
})

it.each<[Partial<MigrateOptions>, string]>([
  [{ onConflict: 'newest' }, '--on-conflict newest needs --source-time.'],
  [{ sourceTime: { column: 'updated' } }, '--source-time needs --on-conflict newest.'],
  [
    { onConflict: 'newest', sourceTime: { at: '2026-03-31T00:00:00.000Z' }, recordKind: 'token-update' },
    '--source-time goes with --record-kind token-create.',
  ],
])('source times and the policy newest need each other: %j', (changes, text) => {
  expect(run(changes)).toThrow(text)
})

it('source times with the policy newest are fine', () => {
  expect(run({ onConflict: 'newest', sourceTime: { column: 'updated' } })).not.toThrow()
})
