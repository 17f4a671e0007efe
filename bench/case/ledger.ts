// Case (o): `tokenmill ingest transactions` of a file, and for comparison a `COPY` of the same rows into the same table with
// the same months and indexes, before and after it on the same server.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { availableParallelism } from 'node:os'
import { ensureMonths } from '../../src/store/ledger/ledger-months.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from '../../test/producers/ingest/sample.ts'
import { ENTITY, type Installation } from '../../test/support/installation.ts'
import { startCommand } from '../../test/support/process.ts'
import { copyFile } from '../copy.ts'
import type { Line } from '../line.ts'
import { workersPeakMiB } from '../migrate.ts'
import { watchProcessor } from '../single/processor.ts'
import { type Asked, fileOf, onItsOwn } from './asked.ts'
import { besides } from './files.ts'

const DAYS = 60
const MONTHS = ['2026-01', '2026-02', '2026-03']

export async function ingestedLines(asked: Asked): Promise<Line[]> {
  const { engine, rows } = asked
  const csv = fileOf(asked, 'transactions.csv')
  const plain = fileOf(asked, 'copy.csv')
  await writeLines(csv, rows, csvRowOf, CSV_HEADER)
  await writeLines(plain, rows, line => `${Object.values(line).join(',')},1`)
  const before = await copy(asked, plain)
  const run = await onItsOwn(asked, installation => ingest(installation, csv))
  const after = await copy(asked, plain)
  const line = { case: 'o: ingest transactions', engine, ...run }
  return [{ ...line, ...besides('COPY', run.perSecond, before, after) }]
}

async function ingest(installation: Installation, file: string) {
  await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
  const processor = await watchProcessor(installation)
  const child = startCommand(['ingest', 'transactions', file, '--client', installation.clientFile, '--json'], {
    env: installation.env as Record<string, string>,
  })
  const { code } = await child.exit
  if (code !== 0) throw new Error(`ingest ended with ${code}: ${child.stderr()}`)
  const { ms, created } = JSON.parse(child.stdout()) as { ms: number; created: number }
  const residentMiB = { workers: workersPeakMiB() }
  return { rows: created, perSecond: (created * 1000) / ms, processor: processor(created), residentMiB }
}

/** The processor time is PostgreSQL's, and that of this process, which sends the file. */
async function copy(asked: Asked, file: string) {
  return onItsOwn(asked, async installation => {
    await ensureMonths(installation.vault.store, MONTHS)
    const statement = `copy tokenmill.transaction (${CSV_HEADER}, batch_no) from stdin (format csv)`
    const processor = await watchProcessor(installation)
    const seconds = await copyFile(installation.vault.database.url, statement, file)
    return { perSecond: asked.rows / seconds, processor: processor(asked.rows) }
  })
}

type Transaction = ReturnType<typeof transactionOf>

/** The lines are in the order of their times, as if daily exports followed one another. */
async function writeLines(
  path: string,
  rows: number,
  textOf: (line: Transaction) => string,
  header?: string,
): Promise<void> {
  const out = createWriteStream(path)
  let part = header === undefined ? '' : `${header}\n`
  for (let index = 0; index < rows; index += 1) {
    const at = Date.UTC(2026, 0, 1) + Math.floor((index / rows) * DAYS * 86_400) * 1000
    const made = transactionOf(index, { entity: ENTITY, days: DAYS })
    part += `${textOf({ ...made, created_at: new Date(at).toISOString().replace('.000Z', 'Z') })}\n`
    if (part.length < 1_000_000) continue
    if (!out.write(part)) await once(out, 'drain')
    part = ''
  }
  out.end(part)
  await once(out, 'finish')
}
