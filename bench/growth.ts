// Measures what a change costs in a large store: rate and WAL per new card, with several values of `max_wal_size`, and
// WAL per suspension, with and without an index whose condition names the status. `node bin/launch.mjs bench/growth.ts
// --tokens 4000000 --rows 1000000 --wal 128MB,2GB --suspensions 50000`
//
// A smaller store needs a smaller `max_wal_size`: a quarter of both gives as many checkpoints for each page of the
// index.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { findBinaries } from '../src/embedded/binaries.ts'
import { findPostmaster, initialise, start, stop, USER } from '../src/embedded/cluster.ts'
import { discard, findClusterLocation } from '../src/embedded/cluster-location.ts'
import { openLog } from '../src/log.ts'
import { openStore } from '../src/store/pool.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { openInstallation } from '../test/support/installation.ts'
import { fillStatements } from './store/fill.ts'
import { insertCards } from './store/insert.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '4000000' },
    rows: { type: 'string', default: '1000000' },
    wal: { type: 'string', default: '128MB,1GB,2GB' },
    suspensions: { type: 'string', default: '50000' },
  },
})
const DATABASE = 'growth'
/** A scope that no client has. */
const SCOPE = '5aa8d5d2-65bf-450b-bc8f-37e351b45fca'
/** Tokens that are suspended in one transaction. */
const SET = 10
const LOWEST = '00000000-0000-0000-0000-000000000000'
const sizes = values.wal.split(',').filter(size => size !== '')

const dir = await mkdtemp(join(tmpdir(), 'tokenmill-growth-'))
const place = await findClusterLocation(dir)
const binaries = await findBinaries(place)
await initialise(place, binaries)
try {
  const [first = '16GB'] = sizes
  await start(place, binaries, { max_wal_size: first })
  await ask('create database growth', 'postgres')
  const installation = await openInstallation({
    name: 'postgres',
    prefix: '{growth}',
    redisUrls: undefined,
    databaseUrl: urlOf(DATABASE),
  })
  let from = 0
  const measure = async (name: string, rows: number, work: () => Promise<unknown>) => {
    await ask('checkpoint')
    const before = await readWal()
    const began = performance.now()
    await work()
    const seconds = (performance.now() - began) / 1000
    const after = await readWal()
    console.log(
      JSON.stringify({
        name,
        tokens: after.tokens,
        rows,
        perSecond: Math.round(rows / seconds),
        walPerRow: Math.round((after.bytes - before.bytes) / rows),
        images: after.images - before.images,
        checkpoints: after.checkpoints - before.checkpoints,
        hot: after.hot - before.hot,
      }),
    )
  }
  const insert = (name: string, rows: number) =>
    measure(name, rows, async () => {
      await insertCards(installation, rows, from)
      from += rows
    })
  await insert('small store', 100_000)
  await fill(Number(values.tokens))
  for (const size of sizes) {
    await stop(place, binaries)
    await start(place, binaries, { max_wal_size: size })
    await insert(size, Number(values.rows))
  }
  const suspensions = Number(values.suspensions)
  await ask(`create index token_expires on tokenmill.token (token_expiry_date, token_id)
  where token_expiry_date is not null and status = 'ACTIVE'`)
  await ask('vacuum tokenmill.token')
  await measure('suspensions, status in an index', suspensions, () => suspend(suspensions))
  await ask('drop index tokenmill.token_expires')
  await ask('vacuum tokenmill.token')
  await measure('suspensions', suspensions, () => suspend(suspensions))
  await installation.close().catch(() => undefined)
} finally {
  await stop(place, binaries)
  discard(dir)
  await rm(dir, { recursive: true, force: true })
}

async function fill(tokens: number): Promise<void> {
  for (const statement of fillStatements(SCOPE, 0, tokens)) await ask(statement)
}

/** Suspends tokens that are active, in the order of their cards, and so at random places of the table. */
async function suspend(count: number): Promise<void> {
  const store = openStore(urlOf(DATABASE), { log: openLog('silent'), connectionsMax: 1 })
  try {
    for (let left = count, after = LOWEST; left > 0; left -= SET) {
      const { rows } = await store.query<{ id: string; fp: string }>({
        text: `select t.token_id as id, c.fp from (select fp, token_id from tokenmill.card where fp > $1 order by fp) as c
cross join lateral (select token_id from tokenmill.token where token_id = c.token_id and status = 'ACTIVE') as t limit $2`,
        values: [after, SET],
      })
      after = rows.at(-1)?.fp ?? after
      const read = await tokens.findByIds(
        store,
        rows.map(({ id }) => id),
      )
      const changed = read.map(row => ({
        ...row,
        status: 'SUSPENDED',
        suspendedReason: 'REQUEST',
        version: row.version + 1,
      }))
      await store.transaction(db => tokens.updateAll(db, changed as tokens.StoredToken[]))
    }
  } finally {
    await store.close()
  }
}
interface Wal {
  bytes: number
  hot: number
  images: number
  checkpoints: number
  tokens: number
}

async function readWal(): Promise<Wal> {
  const [row] = await ask<Record<keyof Wal, string>>(`select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes,
  (select wal_fpi from pg_stat_wal) as images,
  (select num_requested + num_timed from pg_stat_checkpointer) as checkpoints,
  (select n_live_tup from pg_stat_user_tables where relid = to_regclass('tokenmill.token')) as tokens,
  (select n_tup_hot_upd from pg_stat_user_tables where relid = to_regclass('tokenmill.token')) as hot`)
  return {
    bytes: Number(row?.bytes),
    images: Number(row?.images),
    checkpoints: Number(row?.checkpoints),
    tokens: Number(row?.tokens),
    hot: Number(row?.hot),
  }
}

async function ask<R extends object>(text: string, database = DATABASE): Promise<R[]> {
  const client = new pg.Client({ connectionString: urlOf(database) })
  await client.connect()
  try {
    return (await client.query<R>(text)).rows
  } finally {
    await client.end()
  }
}

function urlOf(database: string): string {
  return `postgresql://${USER}:${place.password.reveal()}@127.0.0.1:${findPostmaster(place)?.port}/${database}`
}
