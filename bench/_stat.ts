import { join } from 'node:path'
import pg from 'pg'
import { mkdtempSync, rmSync } from 'node:fs'
import { attach, discard } from '../src/embedded/server.ts'
import { startRedis } from '../test/support/redis.ts'
import { openInstallation } from '../test/support/installation.ts'
import { startCommand } from '../test/support/process.ts'
import { writeSample } from '../producers/migrate/sample.ts'
const rows = Number(process.argv[2] ?? 100000)
const dir = mkdtempSync('/tmp/tm-stat-')
let e = await attach(dir)
let c = new pg.Client({ connectionString: e.url }); await c.connect()
await c.query(`alter system set shared_preload_libraries='pg_stat_statements'`); await c.query(`alter system set pg_stat_statements.track='top'`); await c.end(); await e.release()
e = await attach(dir)
c = new pg.Client({ connectionString: e.url }); await c.connect()
await c.query('create extension pg_stat_statements'); await c.query('create database b1')
const url = new URL(e.url); url.pathname = '/b1'
const redis = await startRedis()
const inst = await openInstallation({ name: 'redis', prefix: '{b}', redisUrls: [redis.url], databaseUrl: url.href }, { TOKENMILL_LOCK_SECONDS: '60' })
await inst.startWorkers({ processes: 2, roles: ['bulk'] })
const file = join(dir, 'cards.csv'); await writeSample(file, { rows, seed: 1, now: Date.now() })
const child = startCommand(['migrate', file, '--client', inst.clientFile, '--json'], { env: inst.env as never })
await child.exit
console.log(child.stdout().match(/"ms": \d+/)?.[0])
const r = await c.query(`select round(total_exec_time) ms, round((total_exec_time*1000/${rows})::numeric,1) us_card, calls, rows, round(wal_bytes/1e6) walmb, left(regexp_replace(query,'\\s+',' ','g'),110) q from pg_stat_statements where total_exec_time > 30 order by 1 desc limit 16`)
for (const x of r.rows) console.log(x.ms, x.us_card, x.calls, x.rows, x.walmb, x.q)
await c.end(); await inst.close(); await redis.stop(); await e.release(); discard(dir); rmSync(dir, { recursive: true })
