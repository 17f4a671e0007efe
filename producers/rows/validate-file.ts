// The first reading of a file: integrity, digests, header and number of rows, before anything is sent. It makes no
// records.

import { countRows, type RowOptions } from './file-rows.ts'
import { formatOf } from './input-format.ts'
import { checkColumns } from './layout.ts'
import type { PgpKeys } from './openpgp/decrypt.ts'
import type { Counted } from './rows.ts'
import type { SegmentDigests } from './segments.ts'
import { type SourceOptions, validateSource } from './source.ts'

/** `rows` also counts rejected rows: the run must end with this many outcomes. */
export interface ValidatedFile extends Counted {
  digests: SegmentDigests
  /** The keys that opened an encrypted file. */
  pgpKeys: PgpKeys | undefined
}

export async function validateFile(source: SourceOptions, rows: RowOptions): Promise<ValidatedFile> {
  if (!rows.profile) checkColumns(rows)
  const format = rows.profile ? rows.format : formatOf(source.path, rows.format)
  const { digests, pgpKeys, checked } = await validateSource(source, bytes => countRows(bytes, { ...rows, format }))
  return { digests, pgpKeys, ...checked }
}
