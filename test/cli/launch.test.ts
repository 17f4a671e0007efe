// The launcher on each Node of this machine: the process that it starts gets its signals, and ends when the launcher
// ends, also by kill -9.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WORKER_SCRIPT } from '../../cli/process/local-workers.ts'
import { COUNT_FILES, FILES_MAX } from '../support/count-files.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { type Child, startScript } from '../support/process.ts'
import { freePort } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** The Node of the machine, which may be older than the one that npm brought along. */
const own = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter(folder => !folder.includes('node_modules'))
  .map(folder => join(folder, 'node'))
  .find(existsSync)

const NODES = [
  { name: 'the Node that npm brought along', node: process.execPath, nodeArgs: [] },
  {
    name: 'a Node that can not become another process',
    node: process.execPath,
    nodeArgs: ['--import', 'data:text/javascript,process.execve = undefined'],
  },
  ...(own === undefined ? [] : [{ name: 'the machine’s own Node', node: own, nodeArgs: [] }]),
]

/** Help, and command lines that are refused: a name, an option, an argument. */
const AT_ONCE = [
  { words: ['--help'] },
  { words: ['no-such-command'] },
  { words: ['scope', 'add', '--no-such-option'] },
  { words: ['batch', 'show'] },
]
describe.each(NODES)('the launcher on $name', ({ node, nodeArgs }) => {
  let database: FreshDatabase
  let installation: Installation
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{launch}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
  })

  const launch = (words: string[], env: Record<string, string> = {}) =>
    startScript('bin/tokenmill.mjs', words, {
      node,
      nodeArgs,
      env: { ...(installation.env as Record<string, string>), TOKENMILL_LOG_LEVEL: 'info', ...env },
    })

  it('ends as the command does', async () => {
    const child = launch(['--version'])
    expect(await child.exit).toEqual({ code: 0, signal: null })
    expect(child.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(child.stderr()).toBe('')
    expect(await launch(['no-such-command']).exit).toEqual({ code: 64, signal: null })
  })

  it('passes SIGTERM on, and the role closes in order', async () => {
    const port = await freePort()
    const child = launch(['gateway'], { TOKENMILL_HTTP_PORT: String(port) })
    const healthy = () =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      )
    await until(healthy, { what: 'the gateway' })
    child.signal('SIGTERM')
    expect(await child.exit).toEqual({ code: 0, signal: null })
    expect(child.stderr()).toMatch(/"signal":"SIGTERM","msg":"closing"/)
  })

  it('takes the gateway with it when it is killed, so that the next one has its port', async () => {
    const port = await freePort()
    const begin = async () => {
      const child = launch(['gateway'], { TOKENMILL_HTTP_PORT: String(port) })
      await child.line(/"msg":"serving"/, { stream: 'stderr' })
      return child
    }
    await (await begin()).kill9()
    await until(async () => !(await answers(port)), { what: 'the end of the gateway' })
    const next = await begin()
    await next.kill9()
  })

  it('takes the workers and their supervisor with it when it is killed', async () => {
    const child = launch(['workers'], { TOKENMILL_PROCESSES: '1' })
    const pids = await until(() => twoWorking(child), { what: 'two worker processes' })
    await child.kill9()
    await until(() => !pids.some(isAlive), { what: 'the end of the worker processes' })
  })
})

describe('help and refusals', () => {
  it.each(AT_ONCE)(`load at most ${FILES_MAX} files, so that they come at once: $words`, async ({ words }) => {
    const child = startScript('cli/main.ts', words, { nodeArgs: ['--import', COUNT_FILES] })
    await child.exit
    const [, files] = /\nfiles (\d+)\n$/.exec(child.stderr()) ?? []
    expect(Number(files)).toBeLessThanOrEqual(FILES_MAX)
  })
})

describe('a worker process', () => {
  it('ends with its supervisor, though that dies before the worker is ready', async () => {
    const database = await freshDatabase()
    const installation = await openInstallation({
      name: 'postgres',
      prefix: '{launch}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    const child = fork(WORKER_SCRIPT, { env: installation.env, execArgv: [] })
    child.disconnect()
    await once(child, 'exit')
    expect(child.exitCode === 0 || child.signalCode === 'SIGTERM').toBe(true)
    await installation.close()
    await database.drop()
  })
})

function twoWorking(child: Child): number[] | undefined {
  const pids = [...child.stderr().matchAll(/"pid":(\d+)[^\n]*"msg":"working"/g)].map(([, pid]) => Number(pid))
  return pids.length >= 2 ? pids : undefined
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
