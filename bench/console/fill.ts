// Opens an installation whose store is filled, and fills it the first time. How full it is says the number of its batches.
import pg from 'pg'
import type { Installation } from '../../test/support/installation.ts'
import { failCopy } from '../../test/workers/act/failed-copies.ts'
import type { Place } from '../place.ts'
import { fillStatements } from '../store/fill.ts'
import { fillConsole } from '../store/fill-console.ts'
import { CLIENTS, fillJobs, runOn } from '../store/fill-jobs.ts'

export interface Size {
  tokens: number
  receipts: number
  batches: number
}

/** So many jobs can be asked for: `asked-N`, `asked for N`. */
export const ASKED = 200
const AUDITS_MOST = 300_000
const FAILED_MOST = 2_000

const entityOf = (n: number) => `0b5a4f6e-6f0c-4a53-8d43-${String(n).padStart(12, '0')}`
/** Two clients in 20 act for each. */
const ENTITIES = 10
/** The entity of a person who sees a tenth of all. */
export const ENTITY_SEEN = entityOf(0)

export async function openFilled(place: Place, { tokens, receipts, batches }: Size): Promise<Installation> {
  const installation = await place.open('redis')
  const db = new pg.Client({ connectionString: installation.vault.database.url })
  await db.connect()
  const run = runOn(db)
  try {
    const { rows } = await run<{ batches: number }>('select count(*)::int as batches from tokenmill.batch')
    const isFull = (rows[0]?.batches ?? 0) >= batches
    if (!isFull) {
      const began = performance.now()
      for (let n = 0; n < CLIENTS; n += 1)
        await installation.addClient(`client-${n}`, { entity: entityOf(n % ENTITIES) })
      await run(`set statement_timeout = 0`)
      for (const statement of fillStatements(installation.scope, 0, tokens)) await run(statement)
      await fillJobs(run, { batches, receipts, asked: ASKED, now: Date.now() })
      await fillConsole(run, { audits: Math.min(AUDITS_MOST, 3 * batches) })
      process.stderr.write(`filled in ${Math.round((performance.now() - began) / 1000)} s\n`)
    }
    const size = await run<{ size: string }>('select pg_size_pretty(pg_database_size(current_database())) as size')
    process.stdout.write(`${tokens} tokens, ${receipts} receipts, ${batches} batches, ${size.rows[0]?.size}\n`)
  } finally {
    await db.end()
  }
  // The failed set is in Redis, which begins empty.
  const failed = Math.min(FAILED_MOST, Math.ceil(batches / 50))
  const now = Date.now()
  for (let n = 0; n < failed; n += 1)
    await failCopy(installation.queues, {
      credentials: installation.credentials,
      failedAt: now - n * 30_000,
      ...(n % 7 === 0 && { code: 'defect' }),
    })
  return installation
}
