// Ingests a generated file of transactions twice: every line is in the ledger once, with its amount, and the second run
// changes nothing.
import { createWriteStream } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CSV_HEADER, csvRowOf, transactionOf } from '../../test/producers/ingest/sample.ts'
import { ENTITY } from '../../test/support/installation.ts'
import { RESIDENT_MIB_MAX, runCommand, type SoakOptions } from './run.ts'

export async function soakIngest({ place, engine, rows, check }: SoakOptions): Promise<void> {
  const file = join(place.dir, 'soak-transactions.csv')
  const made = await writeTransactions(file, rows)
  const installation = await place.open(engine)
  try {
    await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
    const { store } = installation.vault
    const ledger = async () => {
      const text = `select count(*)::int as lines, count(distinct transaction_uid)::int as uids, sum(amount)::text as amount
from tokenmill.transaction`
      return (await store.query<Record<string, unknown>>({ text })).rows[0]
    }
    const part = `ingest, ${rows} lines`
    const stored = { lines: rows, uids: rows, amount: String(made.amount) }
    const whole = { complete: true, rows, created: rows, unchanged: 0, rejected: 0, failed: 0 }
    for (const time of ['the first time', 'again']) {
      const { summary, peak } = await runCommand(installation, ['ingest', 'transactions', file])
      const told = Object.fromEntries(Object.keys(whole).map(key => [key, summary[key]]))
      check(part, `takes every line, ${time}`, told, whole)
      check(part, `has each in the ledger once, ${time}`, await ledger(), stored)
      check(part, `holds at most ${RESIDENT_MIB_MAX} MiB (${peak}), ${time}`, peak <= RESIDENT_MIB_MAX, true)
    }
  } finally {
    await installation.close()
  }
}

/** Writes a CSV of transactions; returns the sum of their amounts, in the smallest units of their currencies. */
export async function writeTransactions(file: string, rows: number): Promise<{ lines: number; amount: bigint }> {
  const made = { lines: 0, amount: 0n }
  await pipeline(Readable.from(linesOf(rows, made)), createWriteStream(file, { mode: 0o600 }))
  return made
}

/** Yields lines, and counts lines and amounts in `made`. */
function* linesOf(rows: number, made: { lines: number; amount: bigint }): Generator<string> {
  let text = `${CSV_HEADER}\n`
  for (; made.lines < rows; made.lines += 1) {
    const transaction = transactionOf(made.lines, { entity: ENTITY, seed: 'soak' })
    made.amount += BigInt(transaction.amount)
    text += `${csvRowOf(transaction)}\n`
    if (text.length < 64 * 1024) continue
    yield text
    text = ''
  }
  yield text
}
