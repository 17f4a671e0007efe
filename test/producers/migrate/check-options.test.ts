// Options of a migration that can't go together.
import { expect, it } from 'vitest'
import { refuseImpossible } from '../../../producers/migrate/check-options.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'

const OPTIONS: MigrateOptions = {
  ...{ file: 'cards.csv', ignoreUnknown: false, echo: [], dryRun: false, again: false, scope: 's' },
  ...{ onConflict: 'update', onExpired: 'import', chunk: 500, inFlight: 16, recordKind: 'token-create' },
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
