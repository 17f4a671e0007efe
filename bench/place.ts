// The servers of a bench: an embedded PostgreSQL and, for the Redis engine, a separate redis-server, in a temporary
// folder. Each case has its own installation, so that no case finds another's rows.
import { mkdtemp, rm } from 'node:fs/promises'
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

export async function openPlace(): Promise<Place> {
  const dir = await mkdtemp(join(tmpdir(), 'tokenmill-bench-'))
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
      await client.query(`create database ${database}`)
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
      )
    },
    async close() {
      await redis.stop()
      await embedded.release()
      discard(dir)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
