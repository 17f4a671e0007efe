// A comparison for (a) besides its limit: one BullMQ job per card and one INSERT each, on the same servers. It has no
// signature, no receipt and no result: so a first attempt at the task might look.

import { randomBytes, randomUUID } from 'node:crypto'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'
import { panOf } from '../bin/sample/pan.ts'
import { openRingNow } from '../cli/open/key-ring.ts'
import { Secret } from '../src/secret.ts'
import type { Installation } from '../test/support/installation.ts'
import { type ProcessorTime, watchProcessor } from './single/processor.ts'

const CHUNK = 1_000

/**
 * Returns cards per second, from adding the first job to the last row. Redis only. `concurrency`: BullMQ's default is
 * 1. `contents`: what a row says besides the number of its card, as JSON; it is repeated if there are fewer than `rows`.
 */
export async function runNaive(
  installation: Installation,
  rows: number,
  concurrency: number,
  contents: readonly string[] = [],
): Promise<{ rows: number; perSecond: number; processor: ProcessorTime }> {
  const { vault, scope, env } = installation
  const pool = new pg.Pool({ connectionString: vault.database.url, max: concurrency })
  await pool.query(
    'create table if not exists public.naive (token_id uuid primary key, fingerprint bytea unique, sealed bytea, last_four text, content jsonb)',
  )
  // A ring whose seals aren't counted, because no other process uses its keys.
  const ring = await openRingNow(vault.keks, vault.store, vault.lives)
  const connect = () => new Redis(env['REDIS_URL'] ?? '', { maxRetriesPerRequest: null })
  const clients = [connect(), connect()]
  const queue = new Queue('naive', { connection: clients[0] as Redis, prefix: '{naive}' })
  let done = 0
  const finished = Promise.withResolvers<void>()
  const worker = new Worker(
    'naive',
    async job => {
      const data = job.data as { pan: string; content: string | null }
      const pan = new Secret(data.pan)
      const tokenId = randomUUID()
      const { sealed } = ring.seal(pan, tokenId, scope)
      await pool.query('insert into public.naive values ($1, $2, $3, $4, $5) on conflict do nothing', [
        tokenId,
        ring.fingerprint(pan, scope),
        sealed,
        pan.reveal().slice(-4),
        data.content,
      ])
      done += 1
      if (done === rows) finished.resolve()
    },
    { connection: clients[1] as Redis, prefix: '{naive}', concurrency, removeOnComplete: { count: 0 } },
  )
  await worker.waitUntilReady()
  const processor = await watchProcessor(installation)
  const began = performance.now()
  for (let start = 0; start < rows; start += CHUNK) {
    const size = Math.min(CHUNK, rows - start)
    await queue.addBulk(
      Array.from({ length: size }, (_, index) => ({
        name: 'card',
        data: {
          pan: panOf(start + index, 1),
          salt: randomBytes(4).toString('hex'),
          content: contents[(start + index) % contents.length] ?? null,
        },
      })),
    )
  }
  await finished.promise
  const perSecond = (rows * 1000) / (performance.now() - began)
  const used = processor(rows)
  await worker.close()
  await queue.close()
  for (const client of clients) client.disconnect()
  await pool.end()
  return { rows, perSecond, processor: used }
}
