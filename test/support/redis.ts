// A real Redis (or Valkey) server for tests, with the settings that production needs: AOF and noeviction. Tests that
// kill, restart or flush a server start their own; the others share the server of the run (engines.ts).
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { freePorts } from '../ops/free-ports.ts'
import { killAtExit } from './process.ts'
import { until } from './until.ts'

export interface RedisServer {
  url: string
  port: number
  pid(): number
  /** Kills the server at once; what its AOF holds survives. */
  kill9(): Promise<void>
  /** Starts the server again on the same port and files, after `kill9` or after it has ended the running one. */
  restart(): Promise<void>
  flush(): Promise<void>
  /** Ends it and removes its files. */
  stop(): Promise<void>
}

/** The path of a server program, if this machine has one. */
export function findRedis(): string | undefined {
  const names = ['redis-server', 'valkey-server']
  const paths = (process.env['PATH'] ?? '').split(delimiter).flatMap(dir => names.map(name => join(dir, name)))
  return paths.find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** `parent`: where its files go (the temporary directory). `config`: a file of settings. `args` are added to its command line. */
export async function startRedis(
  options: { parent?: string; config?: string; args?: string[] } = {},
): Promise<RedisServer> {
  const { parent = tmpdir(), config, args = [] } = options
  const program = findRedis()
  if (!program) throw new Error('neither redis-server nor valkey-server is on PATH')
  const dir = mkdtempSync(join(parent, 'redis-'))
  const port = await freePort()
  let running = launch()
  await ready(port)

  function launch() {
    const child = spawn(
      program ?? '',
      [
        config ?? [],
        ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--daemonize', 'no', '--loglevel', 'warning'],
        ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '', '--maxmemory-policy', 'noeviction'],
        args,
      ].flat(),
      // Detached, so that a Ctrl-C doesn't reach the server: the run ends its servers itself.
      { stdio: 'ignore', detached: true },
    )
    killAtExit(child)
    const ended = new Promise<void>(resolve => {
      child.once('error', () => resolve())
      child.once('exit', () => resolve())
    })
    return { child, ended }
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    running.child.kill(signal)
    await running.ended
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: () => running.child.pid ?? -1,
    kill9: () => kill('SIGKILL'),
    restart: async () => {
      await kill('SIGTERM')
      running = launch()
      await ready(port)
    },
    flush: async () => {
      const answer = await ask(port, 'FLUSHALL')
      if (!answer.startsWith('+OK')) throw new Error(`FLUSHALL: ${answer}`)
    },
    stop: async () => {
      await kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Resolves when the server answers and has read its AOF; one with a password says that it wants it. */
async function ready(port: number): Promise<void> {
  const isUp = async () => /^(\+PONG|-NOAUTH)/.test(await ask(port, 'PING').catch(() => ''))
  await until(isUp, { what: `Redis on port ${port}` })
}

/** Sends one inline command on a new connection. Returns the first piece of the answer. */
function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.setTimeout(2_000, () => socket.destroy(new Error('timed out')))
    socket.once('data', data => {
      resolve(data.toString('utf8').trim())
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
}

/** A free port that no process gets that asks for any: not even while the server that was started on it is killed. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}
