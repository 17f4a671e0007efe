// How a migration reads its file, and what it notes of a file that isn't migrated once more.

import { readRows } from '../rows/file-rows.ts'
import { formatOf } from '../rows/input-format.ts'
import { validateSource } from '../rows/source.ts'
import { type MigrateOptions, timeColumnOf } from './options.ts'
import { keptOf } from './output-files.ts'

/** Notes in the list of `--only` what a file has of it that isn't migrated once more. */
export async function noteListed(options: MigrateOptions, now: number): Promise<void> {
  const { source, rowOptions } = readingOf(options, now)
  await validateSource(source, async bytes => {
    // Each row that is read is noted.
    for await (const _ of readRows(bytes, rowOptions));
  })
}

/** How the file is read. `now`: ms since the epoch. */
export function readingOf(options: MigrateOptions, now: number) {
  const { file: path, decryptKeyFile, passphrase, verifyKeyFile } = options
  // With a profile, `format` isn't used.
  const format = options.profile ? 'csv' : formatOf(path, options.format)
  return {
    source: { path, decryptKeyFile, passphrase, verifyKeyFile },
    rowOptions: { ...options, format, keep: keptOf(options), timeColumn: timeColumnOf(options, now) },
  }
}
