// What the suites share that kill servers and processes: a separate PostgreSQL and Redis, an installation on them, and
// queries of its state.
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe } from 'vitest'
import { makeScope } from '../../cli/open/make-scope.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type OwnPostgres, startPostgres } from '../support/own-postgres.ts'
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts'

/** An installation as a command and a test use it. */
export interface Place {
  /** For commands. */
  env: NodeJS.ProcessEnv
  clientFile: string
  ask<R>(text: string, values?: unknown[]): Promise<R[]>
}

export interface Chaos extends Place {
  engine: 'redis' | 'postgres'
  postgres: OwnPostgres
  /** Only on the engine that needs it. */
  redis: RedisServer
  installation: Installation
}

/**
 * Settings with short locks and repeats, so that lost jobs are sent again within seconds. The log is silent unless
 * TEST_LOG is set, because errors are expected.
 */
export const QUICK = {
  TOKENMILL_LOCK_SECONDS: '3',
  TOKENMILL_RESEND_SECONDS: '2',
  TOKENMILL_LOG_LEVEL: process.env['TEST_LOG'] ?? 'silent',
}

/** Describes tests on servers of this file alone. `chaos` is filled when the tests run. */
export function describeChaos(name: string, engine: Chaos['engine'], laws: (chaos: Chaos) => void): void {
  const skipped = engine === 'redis' && !findRedis()
  describe.skipIf(skipped)(`${name} (${engine})`, () => {
    const chaos = { engine } as Chaos
    beforeAll(async () => {
      chaos.postgres = await startPostgres()
      if (engine === 'redis') chaos.redis = await startRedis()
      const redisUrls = engine === 'redis' ? [chaos.redis.url] : undefined
      const servers = { name: engine, prefix: '{chaos}', redisUrls, databaseUrl: chaos.postgres.url }
      const installation = await openInstallation(servers, QUICK)
      const { env, clientFile, vault } = installation
      const ask = async <R>(text: string, values: unknown[] = []) => (await vault.store.query<R>({ text, values })).rows
      Object.assign(chaos, { installation, env, clientFile, ask })
    })
    afterAll(async () => {
      await chaos.installation?.close()
      await chaos.redis?.stop()
      await chaos.postgres?.remove()
    })
    laws(chaos)
  })
}

export async function newScope({ installation }: Chaos): Promise<string> {
  const features = { par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
  return (await makeScope(installation.vault, { entityId: ENTITY, ...features })).tokenScope
}

/** Children of `parent` whose command line names `program`. */
export function childrenRunning(program: string, parent = process.pid): number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' })
  return table.split('\n').flatMap(line => {
    const [, pid, ppid, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    return Number(ppid) === parent && args.includes(program) ? [Number(pid)] : []
  })
}

/** Kills these processes at once. */
export function kill9(pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL')
}

/** Everything about the tokens of a scope that a further run could have changed. */
export async function stateOf({ ask }: Place, scope: string): Promise<Record<string, unknown>> {
  const [state = {}] = await ask<Record<string, unknown>>(
    `select count(*)::int as tokens, count(distinct cards)::int as cards, sum(version)::int as versions,
      max(updated_at) as updated, count(*) filter (where status = 'DELETED')::int as deleted,
      md5(string_agg(t::text, ';' order by token_id)) as digest from tokenmill.token as t where token_scope = $1`,
    [scope],
  )
  return state
}
