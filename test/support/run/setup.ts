// Runs once per run, before and after all test files: makes the directory of the run and starts one Redis. The first
// test file that asks for a database starts the PostgreSQL of the run (../postgres.ts), so that other tests don't wait
// for it; it is stopped here.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { attach } from '../../../src/embedded/server.ts'
import { missingPrometheus } from '../../ops/prometheus.ts'
import { missingPython } from '../../packages/installed-python.ts'
import { missingTools } from '../postgres-tools.ts'
import { findRedis, type RedisServer, startRedis } from '../redis.ts'
import { PARENTS, runParent } from './run-parent.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The directory of this run. */
    runDir: string
    /** REDIS_URL, or the server of this run; empty: none, tests that need one are skipped. */
    redisUrl: string
  }
}

const RUN = 'tokenmill-test-'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isClosed = process.env['TOKENMILL_TEST_CLOSED'] === '1'
  sweep()
  if (!isClosed) await askForTools()
  const dir = mkdtempSync(join(runParent(), `${RUN}${process.pid}-`))
  // If the run is started by root, the server runs under another account, which must be able to enter the directory.
  chmodSync(dir, 0o711)
  // Temporary files of tests and of the processes that they start are removed with the run.
  process.env['TMPDIR'] = join(dir, 'tmp')
  mkdirSync(process.env['TMPDIR'])
  chmodSync(process.env['TMPDIR'], 0o1777)
  const redis = isClosed || process.env['REDIS_URL'] ? undefined : await openRedis(dir)
  project.provide('runDir', dir)
  project.provide('redisUrl', process.env['REDIS_URL'] ?? redis?.url ?? '')
  return async () => {
    await redis?.stop()
    const data = join(dir, 'postgres')
    if (existsSync(data)) await (await attach(data)).release()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function openRedis(dir: string): Promise<RedisServer | undefined> {
  if (findRedis()) return startRedis({ parent: dir })
  const missing = 'no REDIS_URL, and neither redis-server nor valkey-server on PATH'
  if (process.env['REQUIRE_REDIS'] === '1') throw new Error(`REQUIRE_REDIS=1: ${missing}`)
  process.stderr.write(`\n*** EVERY REDIS TEST IS SKIPPED: ${missing} ***\n\n`)
  return undefined
}

async function askForTools(): Promise<void> {
  askFor('REQUIRE_POSTGRES_TOOLS', 'FAIL-OVER AND POOLERS', missingTools())
  askFor('REQUIRE_PROMETHEUS', 'ALERTS AND DASHBOARDS', missingPrometheus())
  askFor('REQUIRE_PYTHON', 'THE PYTHON CLIENT', missingPython())
  // The core alone has no tokens.
  if (!existsSync(new URL('../../../src/vault/pkcs11', import.meta.url))) return
  const { missingSoftHsm } = await import('../../vault/pkcs11/softhsm.ts')
  askFor('REQUIRE_SOFTHSM', 'KEYS IN A TOKEN', missingSoftHsm())
}

/** Says what is missing; throws if the environment variable `setting` is 1. */
function askFor(setting: string, what: string, missing: readonly string[]): void {
  if (missing.length === 0) return
  if (process.env[setting] === '1') throw new Error(`${setting}=1: ${missing.join(', ')}`)
  process.stderr.write(`\n*** TESTS OF ${what} ARE SKIPPED: ${missing.join(', ')} ***\n\n`)
}

/**
 * Kills the servers that killed runs left behind, which it finds by their working directory, and removes the files of
 * these runs.
 */
function sweep(): void {
  for (const dir of PARENTS.flatMap(runsIn)) {
    for (const pid of serversIn(dir)) process.kill(pid, 'SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The directories of runs that ended. */
function runsIn(parent: string): string[] {
  if (!existsSync(parent)) return []
  const owner = (name: string) => Number(/^tokenmill-test-(\d+)-/.exec(name)?.[1])
  const left = readdirSync(parent).filter(name => owner(name) > 0 && !isAlive(owner(name)))
  return left.map(name => join(parent, name))
}

function serversIn(dir: string): number[] {
  if (!existsSync('/proc/self/cwd')) return []
  const pids = readdirSync('/proc').filter(entry => /^\d+$/.test(entry))
  return pids.filter(pid => commandOf(pid).includes(`${dir}/`)).map(Number)
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
