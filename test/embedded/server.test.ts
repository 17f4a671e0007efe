import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { attach } from '../../src/embedded/server.ts'
import { type Child, startScript } from '../support/process.ts'
import { until } from '../support/until.ts'

let made: string
let dir: string
let children: Child[]

beforeAll(async () => {
  made = newDir()
  await (await attach(made)).release()
})

beforeEach(() => {
  dir = made
  children = []
})

afterEach(async () => {
  await Promise.all(children.map(child => child.kill9()))
  const pid = serverPid()
  if (pid && isAlive(pid)) process.kill(pid, 'SIGKILL')
})

afterAll(() => rmSync(made, { recursive: true, force: true }))

function newDir(): string {
  const fresh = mkdtempSync(join(inject('runDir'), 'embedded-'))
  chmodSync(fresh, 0o711)
  return fresh
}

const cluster = () => join(dir, 'postgresql/data')
const pidFile = () => join(cluster(), 'postmaster.pid')

/** undefined: no server runs here. The server may take its file away at any moment. */
function serverPid(): number | undefined {
  try {
    return Number(readFileSync(pidFile(), 'utf8').split('\n')[0])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  // A killed server that its parent hasn't waited for still has a pid, but no command line.
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}

async function killServer(): Promise<void> {
  const pid = serverPid() ?? -1
  process.kill(pid, 'SIGKILL')
  await until(() => !isAlive(pid))
}

function hold(options: { group?: boolean } = {}): Child {
  const child = startScript('test/embedded/holder.ts', [dir], options)
  children.push(child)
  return child
}

async function attached(child: Child): Promise<string> {
  return (await child.line(/attached (\S+)\n/))[1] ?? ''
}

async function leave(child: Child): Promise<void> {
  child.write()
  expect(await child.exit).toEqual({ code: 0, signal: null })
}

async function query<T>(url: string, text: string): Promise<T | undefined> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query({ text, rowMode: 'array' })).rows[0]?.[0] as T
  } finally {
    await client.end()
  }
}

describe('attach refuses', () => {
  it('a cluster of another major version, in one line', async () => {
    dir = newDir()
    mkdirSync(cluster(), { recursive: true })
    writeFileSync(join(dir, 'postgresql.password'), 'known\n')
    writeFileSync(join(cluster(), 'PG_VERSION'), '9\n')
    const refused = await attach(dir).catch(error => error)
    expect(refused).toBeInstanceOf(ConfigError)
    expect(refused.message).toMatch(/^TOKENMILL_DATA_DIR: \S+ was made by PostgreSQL 9, this release embeds 18[^\n]*$/)
  })

  it('a cluster whose password is gone, or is another', async () => {
    const embedded = await attach(dir)
    const file = join(dir, 'postgresql.password')
    const password = readFileSync(file, 'utf8')
    rmSync(file)
    await expect(attach(dir)).rejects.toThrow(ConfigError)
    writeFileSync(file, 'another\n', { mode: 0o600 })
    await expect(attach(dir)).rejects.toThrow(/does not accept the password/)
    writeFileSync(file, password)
    await embedded.release()
  })
})

describe('the embedded server', () => {
  it('is made at the first attach: UTF-8, checksums, scram, loopback only, durable, a password only its owner reads', async () => {
    dir = newDir()
    const embedded = await attach(dir)
    expect(embedded.url).toMatch(/^postgresql:\/\/tokenmill:[0-9a-f]{48}@127\.0\.0\.1:\d+\/tokenmill$/)
    const settings = {
      server_encoding: 'UTF8',
      data_checksums: 'on',
      password_encryption: 'scram-sha-256',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      fsync: 'on',
      synchronous_commit: 'on',
    }
    for (const [name, value] of Object.entries(settings))
      expect(await query(embedded.url, `select current_setting('${name}')`), name).toBe(value)
    expect(
      await query(embedded.url, "select count(*) from pg_hba_file_rules where auth_method <> 'scram-sha-256'"),
    ).toBe('0')
    expect(statSync(join(dir, 'postgresql.password')).mode & 0o777).toBe(0o600)
    await embedded.release()
  })

  it('lets the last go at once, though another attaches at that moment and starts the server again', async () => {
    let last = await attach(dir)
    try {
      for (let rounds = 0; rounds < 10; rounds++) {
        const leaving = last.release()
        await until(() => !serverPid())
        last = await attach(dir)
        // It throws when it has waited for long.
        await leaving
      }
    } finally {
      await last.release()
    }
  })

  it('stays while anyone is attached and is stopped by the last to leave', async () => {
    const first = hold()
    const url = await attached(first)
    const second = hold()
    expect(await attached(second)).toBe(url)
    const pid = serverPid()
    await leave(first)
    expect(serverPid()).toBe(pid)
    expect(await query(url, 'select 1')).toBe(1)
    await leave(second)
    expect(serverPid()).toBeUndefined()
    expect(isAlive(pid ?? -1)).toBe(false)
  })

  it('is one, however many start it for the first time at once', async () => {
    dir = newDir()
    const holders = [hold(), hold(), hold()]
    const urls = await Promise.all(holders.map(attached))
    expect(new Set(urls).size).toBe(1)
    expect(readdirSync(join(dir, 'postgresql')).sort()).toEqual(['data', 'server.log'])
    await Promise.all(holders.map(leave))
    expect(serverPid()).toBeUndefined()
  })

  it('serves everyone who comes while others leave', async () => {
    const busy = [0, 1, 2].map(() => startScript('test/embedded/holder.ts', [dir, '6']))
    children.push(...busy)
    for (const child of busy) expect(await child.exit, child.stderr()).toEqual({ code: 0, signal: null })
    expect(serverPid()).toBeUndefined()
  })

  it('survives a Ctrl-C in the terminal of the process that started it', async () => {
    const holder = hold({ group: true })
    await attached(holder)
    const pid = serverPid()
    holder.signalGroup('SIGINT')
    expect(await holder.exit).toEqual({ code: null, signal: 'SIGINT' })
    const embedded = await attach(dir)
    expect(serverPid()).toBe(pid)
    // The server notices the end of a killed process a little later. Until then this process isn't the last one.
    const holding = "select count(*) from pg_stat_activity where application_name = 'tokenmill attached'"
    await until(async () => (await query(embedded.url, holding)) === '1', { what: 'the end of the other connection' })
    await embedded.release()
    expect(serverPid()).toBeUndefined()
  })

  it('is started again on its port with all that was committed, after everything was killed', async () => {
    const holder = hold()
    const url = await attached(holder)
    await query(url, 'create table kept as select 42 as n')
    await killServer()
    await holder.kill9()
    expect(existsSync(pidFile())).toBe(true)
    const embedded = await attach(dir)
    expect(embedded.url).toBe(url)
    expect(await query(url, 'select n from kept')).toBe(42)
    await embedded.release()
  })

  it('is started again though the pid in a stale postmaster.pid is now another process', async () => {
    writeFileSync(pidFile(), `${process.pid}\n${cluster()}\n1\n1\n\n127.0.0.1\n0 0\nready\n`)
    const embedded = await attach(dir)
    expect(serverPid()).not.toBe(process.pid)
    await embedded.release()
  })

  it('comes back under a process that stays attached, when it alone was killed', async () => {
    const embedded = await attach(dir)
    const before = serverPid()
    await killServer()
    await until(() => serverPid() !== before && query(embedded.url, 'select 1').catch(() => undefined))
    await embedded.release()
    expect(serverPid()).toBeUndefined()
  })
})
