// Migrates a generated file of cards twice: every row has one outcome, every card one token, and the second run changes
// nothing.
import { createReadStream } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { writeSample } from '../../bin/sample/cards.ts'
import { makeScope } from '../../cli/open/make-scope.ts'
import { ENTITY } from '../../test/support/installation.ts'
import { RESIDENT_MIB_MAX, runCommand, type SoakOptions } from './run.ts'

/** Rows per file. A sample's rows share no card up to here; more rows are several files, each with its own scope. */
const FILE_ROWS_MAX = 10_000_000

export async function soakMigrate(options: SoakOptions): Promise<void> {
  const installation = await options.place.open(options.engine)
  try {
    await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
    for (let done = 0, number = 1; done < options.rows; done += FILE_ROWS_MAX, number += 1)
      await soakFile(options, installation, number, Math.min(FILE_ROWS_MAX, options.rows - done))
  } finally {
    await installation.close()
  }
}

async function soakFile(
  { place, check }: SoakOptions,
  installation: Awaited<ReturnType<SoakOptions['place']['open']>>,
  number: number,
  rows: number,
): Promise<void> {
  const { vault } = installation
  const { store } = vault
  const file = join(place.dir, `soak-${number}.csv`)
  const sample = await writeSample(file, { rows, seed: number, now: Date.now() })
  const { good, expired, duplicate, luhn, length, month, name, broken } = sample
  const expected = { created: good + expired, duplicate, rejected: luhn + length + month + name + broken }
  const features = { par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
  const { tokenScope: scope } = await makeScope(vault, { entityId: ENTITY, ...features })
  const tokens = async () => {
    const text = `select count(distinct t.token_id)::int as tokens, count(distinct c.fp)::int as cards,
  sum(t.version)::int as versions, max(t.updated_at)::text as updated
from tokenmill.token as t left join tokenmill.card as c on c.token_id = t.token_id where t.token_scope = $1`
    return store.transaction(async db => {
      // Of ten million tokens it takes longer than any statement of the product may, and it needs the scans that are switched
      // off for those (docs/decisions/store.md).
      for (const setting of ['statement_timeout = 0', 'enable_seqscan = on', 'enable_hashjoin = on'])
        await db.query({ text: `set local ${setting}` })
      type Stored = { tokens: number; cards: number; versions: number; updated: string }
      return (await db.query<Stored>({ text, values: [scope] })).rows[0]
    })
  }
  const part = `migrate, file ${number} of ${rows} rows`
  const whole = { complete: true, rows, ...expected, failed: 0, cancelled: 0 }
  const pick = (summary: Record<string, unknown>) =>
    Object.fromEntries(Object.keys(whole).map(key => [key, summary[key]]))
  const { summary, peak } = await runCommand(installation, ['migrate', file, '--scope', scope])
  check(part, 'gives every row the outcome that it was made for', pick(summary), whole)
  const stored = await tokens()
  const { tokens: made, cards } = stored ?? {}
  check(part, 'makes one token of each card', [made, cards], [expected.created, expected.created])
  check(part, 'tells every line once and in order', await linesOf(`${file}.results.csv`), { lines: rows, misplaced: 0 })
  check(part, `holds at most ${RESIDENT_MIB_MAX} MiB (${peak})`, peak <= RESIDENT_MIB_MAX, true)
  const again = await runCommand(installation, ['migrate', file, '--scope', scope])
  check(part, 'says the same when it is run again', pick(again.summary), whole)
  check(part, 'changes nothing then', await tokens(), stored)
}

async function linesOf(path: string): Promise<{ lines: number; misplaced: number }> {
  const found = { lines: 0, misplaced: 0 }
  let column = -1
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    const cells = line.split(',')
    if (column < 0) {
      column = cells.indexOf('line')
      continue
    }
    found.lines += 1
    // Line 1 is the header.
    if (Number(cells[column]) !== found.lines + 1) found.misplaced += 1
  }
  return found
}
