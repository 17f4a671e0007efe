// Case (p): how fast new cards are inserted into a large store, beside a store of 100,000 tokens, and how much WAL a card
// takes there, with the settings of the embedded server. There are no files and queues. With `--tokens 10000000` it takes
// some minutes to make the tokens, and 5 GB.
import type { Installation } from '../../test/support/installation.ts'
import type { Line } from '../line.ts'
import { type ProcessorTime, watchProcessor } from '../single/processor.ts'
import { fillStatements } from '../store/fill.ts'
import { insertCards } from '../store/insert.ts'
import { type Asked, onItsOwn } from './asked.ts'
import { besides } from './files.ts'

const SMALL = 100_000
/** A scope that no client has. */
const SCOPE = '5aa8d5d2-65bf-450b-bc8f-37e351b45fca'

interface Inserted {
  perSecond: number
  walPerCard: number
  processor: ProcessorTime
}

export async function insertRate(asked: Asked): Promise<Line[]> {
  const { engine, rows, tokens } = asked
  return onItsOwn(asked, async installation => {
    await fill(installation, 0, SMALL)
    const small = await insert(installation, rows, 0)
    await fill(installation, SMALL, tokens)
    const large = await insert(installation, rows, rows)
    const line = { case: `p: insert at ${tokens} tokens`, engine, rows, ...large, limitWalPerCard: small.walPerCard }
    return [{ ...line, ...besides(`the same at ${SMALL}`, large.perSecond, small) }]
  })
}

/** A store that grew over months has been vacuumed since. */
async function fill({ vault }: Installation, from: number, to: number): Promise<void> {
  const statements = [...fillStatements(SCOPE, from, to), 'vacuum (analyze)', 'checkpoint']
  for (const text of statements) await vault.store.query({ text })
}

async function insert(installation: Installation, rows: number, from: number): Promise<Inserted> {
  const before = await readWal(installation)
  const processor = await watchProcessor(installation)
  const { perSecond } = await insertCards(installation, rows, from)
  const used = processor(rows)
  const walPerCard = Math.round(((await readWal(installation)) - before) / rows)
  return { perSecond, walPerCard, processor: used }
}

async function readWal({ vault }: Installation): Promise<number> {
  const text = `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint as bytes`
  return (await vault.store.query<{ bytes: number }>({ text })).rows[0]?.bytes ?? 0
}
