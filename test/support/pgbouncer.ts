// A pgbouncer for one test file, in front of the PostgreSQL of a URL. A test gives its settings.
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { inject } from 'vitest'
import { findPgbouncer } from './postgres-tools.ts'
import { killAtExit } from './process.ts'
import { freePort } from './redis.ts'
import { until } from './until.ts'

export interface Pgbouncer {
  /** The same database through the pooler. */
  url: string
  /** Starts it again on the same port with other settings. */
  restart(settings: Record<string, string>): Promise<void>
  stop(): Promise<void>
}

/** `connectQuery`: what the pooler sends first on each of its connections to PostgreSQL. */
export async function startPgbouncer(
  server: string,
  settings: Record<string, string>,
  { connectQuery }: { connectQuery?: string } = {},
): Promise<Pgbouncer> {
  const { username, password, hostname, port, pathname } = new URL(server)
  const dir = mkdtempSync(join(inject('runDir'), 'pgbouncer-'))
  const listenPort = await freePort()
  const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined
  const write = (name: string, text: string) => {
    const path = join(dir, name)
    writeFileSync(path, text)
    if (account) chownSync(path, account.uid, account.gid)
    return path
  }
  chmodSync(dir, 0o711)
  const users = write('users', `"${username}" "${password}"\n`)
  let running: ChildProcess | undefined

  async function begin(given: Record<string, string>): Promise<void> {
    const all = { listen_addr: '127.0.0.1', listen_port: listenPort, unix_socket_dir: '', auth_file: users, ...given }
    const lines = Object.entries({ auth_type: 'trust', ...all }).map(([name, value]) => `${name} = ${value}`)
    const first = connectQuery === undefined ? '' : ` connect_query='${connectQuery}'`
    const file = write(
      'pgbouncer.ini',
      ['[databases]', `* = host=${hostname} port=${port}${first}`, '[pgbouncer]', ...lines, ''].join('\n'),
    )
    const child = spawn(findPgbouncer() ?? '', ['-q', file], { stdio: 'ignore', detached: true, ...account })
    killAtExit(child)
    running = child
    await until(() => accepts(listenPort), { what: 'pgbouncer' })
  }

  async function end(): Promise<void> {
    const child = running
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  await begin(settings)
  return {
    url: `postgresql://${username}:${password}@127.0.0.1:${listenPort}${pathname}`,
    async restart(next) {
      await end()
      await begin(next)
    },
    async stop() {
      await end()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function accountOf(name: string): { uid: number; gid: number } {
  const line =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find(one => one.startsWith(`${name}:`)) ?? ''
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
