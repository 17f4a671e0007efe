// The servers of a bench: an embedded PostgreSQL and, for the Redis engine, a separate redis-server, in a temporary
// folder. Each case has its own installation, so that no case finds another's rows. A folder that the caller names is kept with
// its first installation, so that a store that took long to fill is measured again.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { attach, discard } from '../src/embedded/server.ts'
import { type Installation, openInstallation } from '../test/support/installation.ts'
import { startRedis } from '../test/support/redis.ts'

export type EngineName = 'redis' | 'postgres'

export interface Place {
  dir: string
  open(engine: EngineName, settings?: Record<string, string>): Promise<Installation>
  close(): Promise<void>
}

export async function openPlace(kept?: string): Promise<Place> {
  const dir = kept ?? (await mkdtemp(join(tmpdir(), 'tokenmill-bench-')))
  await mkdir(dir, { recursive: true })
  const embedded = await attach(dir)
  const redis = await startRedis()
  let count = 0
  return {
    dir,
    async open(engine, settings = {}) {
      count += 1
      const database = `bench_${count}`
      const client = new pg.Client({ connectionString: embedded.url })
      await client.connect()
      const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
      if (rowCount === 0) await client.query(`create database ${database}`)
      await client.end()
      const url = new URL(embedded.url)
      url.pathname = `/${database}`
      return openInstallation(
        {
          name: engine,
          prefix: `{bench-${count}}`,
          redisUrls: engine === 'redis' ? [redis.url] : undefined,
          databaseUrl: url.href,
        },
        { TOKENMILL_LOCK_SECONDS: '60', ...settings },
        kept && join(dir, database),
      )
    },
    async close() {
      await redis.stop()
      await embedded.release()
      if (kept !== undefined) return
      discard(dir)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
