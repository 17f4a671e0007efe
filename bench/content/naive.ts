// The naive yardstick with the content of a file: what its rows say of owners, dates and names travels in each job and is
// inserted with the card. The numbers of the cards are made up, because this way has no protection for them.
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { profileOf } from '../../cli/commands/profile.ts'
import { jsonOf } from '../../producers/rows/column-record.ts'
import { readRows } from '../../producers/rows/file-rows.ts'
import type { RecordKind } from '../../src/job/choices.ts'
import type { Installation } from '../../test/support/installation.ts'
import { runNaive } from '../naive.ts'

const AT_ONCE = 50
const JOBS_MAX = 20_000

interface Content {
  file: string
  /** Options of `migrate`. */
  args: readonly string[]
  rows: number
}

export async function naiveOf(installation: Installation, content: Content) {
  const jobs = Math.min(content.rows, JOBS_MAX)
  return runNaive(installation, jobs, AT_ONCE, await contentsOf(content, jobs))
}

/** What the first rows say besides the number of the card, as JSON. */
async function contentsOf({ file, args }: Content, most: number): Promise<string[]> {
  const option = (name: string) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined)
  const from = option('--from')
  const contents: string[] = []
  const raw = createReadStream(file)
  const rows = readRows(file.endsWith('.gz') ? raw.pipe(createGunzip()) : raw, {
    format: /\.csv(\.gz)?$/.test(file) ? 'csv' : 'ndjson',
    recordKind: (option('--record-kind') ?? 'token-create') as RecordKind,
    timeColumn: option('--source-time'),
    profile: from === undefined ? undefined : await profileOf(from),
  })
  for await (const part of rows) {
    for (const row of part) if (!row.skipped) contents.push(withoutNumber(jsonOf(row)))
    if (contents.length >= most) break
  }
  return contents.slice(0, most)
}

function withoutNumber(json: string): string {
  const record = JSON.parse(json) as { request?: { card?: { cardNumber?: string } } }
  delete record.request?.card?.cardNumber
  return JSON.stringify(record)
}
