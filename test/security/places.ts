// Reads every place that could hold a card as text: every table of every schema, every key of Redis, every file under a
// directory.
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Place } from './canary.ts'

/** Every table's rows, bytea as hex, and what PostgreSQL itself keeps of them: statistics, running statements. */
export async function readDatabase(url: string): Promise<Place[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'test search' })
  await client.connect()
  try {
    const tables = await client.query<{ name: string }>(
      `select format('%I.%I', space.nspname, rel.relname) as name from pg_class as rel
       join pg_namespace as space on space.oid = rel.relnamespace
       where rel.relkind in ('r', 'm') and space.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') order by 1`,
    )
    const places: Place[] = []
    for (const { name } of tables.rows) places.push({ name: `table ${name}`, text: await textOf(client, name) })
    await client.query('analyze')
    places.push({ name: 'statistics', text: await textOf(client, 'pg_stats') })
    // The server has the databases of other suites, too.
    const statements = '(select * from pg_stat_activity where datname = current_database())'
    places.push({ name: 'statements', text: await textOf(client, statements) })
    return places
  } finally {
    await client.end()
  }
}

async function textOf(client: pg.Client, table: string): Promise<string> {
  const { rows } = await client.query<{ row: string }>(`select t::text as row from ${table} as t`)
  return rows.map(({ row }) => row).join('\n')
}

/** Every key of this prefix with its value. */
export async function readRedis(url: string, prefix: string): Promise<Place[]> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 })
  try {
    const places: Place[] = []
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      for (const key of keys as string[]) {
        places.push({ name: `key ${key}`, text: `${key}\n${await contentOf(redis, key)}` })
      }
    }
    return places
  } finally {
    redis.disconnect()
  }
}

async function contentOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'string':
      return (await redis.get(key)) ?? ''
    case 'hash':
      return JSON.stringify(await redis.hgetall(key))
    case 'list':
      return (await redis.lrange(key, 0, -1)).join('\n')
    case 'set':
      return (await redis.smembers(key)).join('\n')
    case 'zset':
      return (await redis.zrange(key, '0', '-1', 'WITHSCORES')).join('\n')
    case 'stream':
      return JSON.stringify(await redis.xrange(key, '-', '+'))
    case 'none':
      return ''
    default:
      throw new Error('a key of a type that this search does not know')
  }
}

/** Files under `dir` of which `isWanted`. */
export async function readFiles(dir: string, isWanted: (path: string) => boolean = () => true): Promise<Place[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const paths = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
  const wanted = paths.filter(isWanted)
  return Promise.all(wanted.map(async path => ({ name: `file ${relative(dir, path)}`, text: await readText(path) })))
}

async function readText(path: string): Promise<string> {
  return `${path}\n${(await readFile(path)).toString('latin1')}`
}
