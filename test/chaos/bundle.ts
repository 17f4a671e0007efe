// What the suites share that break things on purpose: a PostgreSQL and a Redis of their own, an installation on them,
// the command under test, and what is counted afterwards.
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { type SampleCounts, writeSample } from '../../producers/migrate/sample.ts'
import { makeScope } from '../../src/cli/scope.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type OwnPostgres, startPostgres } from '../support/own-postgres.ts'
import { type Child, type Exit, startCommand } from '../support/process.ts'
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

export interface Chaos {
  engine: 'redis' | 'postgres'
  postgres: OwnPostgres
  /** Only on the engine that needs it. */
  redis: RedisServer
  installation: Installation
}

/** Locks and repeats are short, so that what was lost is found again within seconds. */
const QUICK = { TOKENMILL_LOCK_SECONDS: '3', TOKENMILL_RESEND_SECONDS: '2', TEST_LOG: 'silent' }

/** Describes laws over servers of the file's own. `chaos` is filled when they run. */
export function describeChaos(
  name: string,
  engine: Chaos['engine'],
  laws: (chaos: Chaos) => void,
  settings: Record<string, string> = {},
): void {
  const skipped = engine === 'redis' && !findRedis()
  ;(skipped ? describe.skip : describe)(`${name} (${engine})`, () => {
    const chaos = { engine } as Chaos
    beforeAll(async () => {
      const [postgres, redis] = await Promise.all([startPostgres(), engine === 'redis' ? startRedis() : undefined])
      Object.assign(chaos, { postgres, redis })
      const redisUrls = redis && [redis.url]
      const place = { name: engine, prefix: '{chaos}', redisUrls, databaseUrl: postgres.url }
      chaos.installation = await openInstallation(place, { ...QUICK, ...settings })
    }, 90_000)
    afterAll(async () => {
      await chaos.installation?.close()
      await chaos.redis?.stop()
      await chaos.postgres?.remove()
    }, 60_000)
    laws(chaos)
  })
}

export async function newScope({ installation }: Chaos): Promise<string> {
  const features = { par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
  return (await makeScope(installation.vault.store, { entityId: ENTITY, ...features })).tokenScope
}

/** Rows of one statement; the store may have been away a moment ago. */
export async function rows<R>({ installation }: Chaos, text: string, values: unknown[] = []): Promise<R[]> {
  return (await installation.vault.store.query<R>({ text, values })).rows
}

/** Children of this process whose command line names `program`. */
export function childrenRunning(program: string, parent = process.pid): number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' })
  return table.split('\n').flatMap(line => {
    const [, pid, ppid, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    return Number(ppid) === parent && args.includes(program) ? [Number(pid)] : []
  })
}

export interface File {
  path: string
  scope: string
  rows: number
  /** Cards in it, each counted once. */
  cards: number
  duplicates: number
  rejected: number
}

let seed = 1

/** A file of its own cards for a scope of its own. */
export async function newFile(chaos: Chaos, count: number): Promise<File> {
  const scope = await newScope(chaos)
  const path = join(chaos.installation.dataDir, `cards-${seed}.csv`)
  const sample: SampleCounts = await writeSample(path, { rows: count, seed: seed++, now: Date.now() })
  const { good, expired, duplicate, luhn, length, month, name, broken } = sample
  return {
    path,
    scope,
    rows: count,
    cards: good + expired,
    duplicates: duplicate,
    rejected: luhn + length + month + name + broken,
  }
}

export interface Run {
  child: Child
  /** What the command printed, once it ended well enough to print. */
  end(): Promise<Exit & { stderr: string; json: Record<string, unknown> }>
}

export function startMigrate({ installation }: Chaos, file: File, args: string[] = []): Run {
  const given = ['--scope', file.scope, '--client', installation.clientFile, '--json']
  const env = installation.env as Record<string, string>
  const child = startCommand(['migrate', file.path, ...given, ...args], { env })
  return {
    child,
    async end() {
      const exit = await child.exit
      return { ...exit, stderr: child.stderr(), json: JSON.parse(child.stdout() || '{}') as Record<string, unknown> }
    },
  }
}

/** Once a third of the file's chunks were worked; fails if the run is over before it was disturbed. */
export async function untilMiddle(chaos: Chaos, { scope, rows: count }: File, chunk: number): Promise<void> {
  const chunks = Math.ceil(count / chunk)
  const done = () => chunksDone(chaos, scope)
  await until(async () => (await done()) >= chunks / 3, { ms: 60_000, what: 'a third of the chunks' })
  expect(await done()).toBeLessThan(chunks)
}

export async function chunksDone(chaos: Chaos, scope: string): Promise<number> {
  const found = await rows<{ n: number }>(
    chaos,
    `select count(*)::int as n from tokenmill.receipt join tokenmill.batch using (batch_no) where token_scope = $1`,
    [scope],
  )
  return found[0]?.n ?? 0
}

/** The results file, by column, one entry per row of the file. */
export async function readResults(path: string): Promise<Record<string, string>[]> {
  const [head = '', ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n')
  const names = head.split(',')
  return lines.map(line => Object.fromEntries(line.split(',').map((cell, index) => [names[index], cell])))
}

/** Everything about the tokens of a scope that a second run could have changed. */
export async function stateOf(chaos: Chaos, scope: string): Promise<Record<string, unknown>> {
  const [state = {}] = await rows<Record<string, unknown>>(
    chaos,
    `select count(*)::int as tokens, count(distinct fingerprint)::int as cards, sum(version)::int as versions,
      max(updated_at) as updated, count(*) filter (where status = 'DELETED')::int as deleted,
      md5(string_agg(t::text, ';' order by token_id)) as digest from tokenmill.token as t where token_scope = $1`,
    [scope],
  )
  return state
}
