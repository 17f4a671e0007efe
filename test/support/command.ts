// Runs the tokenmill command for tests of what it does. One process per test file runs all these commands
// (scripts/command-server.ts). Tests of signals, of killing, or of a standard input that goes on use `startCommand`
// (process.ts).
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import { childEnvironment, killAtExit } from './process.ts'
import type { CommandEnd, CommandRequest } from './scripts/command-server.ts'

const SERVER = fileURLToPath(new URL('scripts/command-server.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Ended {
  code: number
  stdout: string
  stderr: string
}

export interface RunOptions {
  /** Added to the environment of the test; undefined removes a variable. */
  env?: Record<string, string | undefined>
  cwd?: string
  stdin?: string
}

let server: ChildProcess | undefined
let last: Promise<unknown> = Promise.resolve()

/** Runs one command to its end, after the commands of earlier calls. */
export function runCommand(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const ended = last.then(() => ask(words, options))
  last = ended.catch(() => undefined)
  return ended
}

async function ask(words: readonly string[], { env = {}, cwd = ROOT, stdin = '' }: RunOptions): Promise<Ended> {
  server ??= startServer()
  const mark = `\n${randomUUID()}\n`
  const request: CommandRequest = { words, env: childEnvironment(env), cwd, stdin, mark }
  const heard = Promise.all([end(server), untilMark(server.stdout, mark), untilMark(server.stderr, mark)])
  server.send(request)
  const [{ code }, stdout, stderr] = await heard
  return { code, stdout, stderr }
}

function startServer(): ChildProcess {
  const child = fork(SERVER, { execArgv: HEAP_FLAGS, silent: true, env: childEnvironment({}) })
  child.stdout?.setEncoding('utf8')
  child.stderr?.setEncoding('utf8')
  child.once('exit', () => {
    server = undefined
  })
  killAtExit(child)
  return child
}

function end(child: ChildProcess): Promise<CommandEnd> {
  return new Promise((resolve, reject) => {
    const fail = (code: number | null) => reject(new Error(`the commands' process ended by itself, with ${code}`))
    child.once('exit', fail)
    child.once('message', message => {
      child.off('exit', fail)
      resolve(message as CommandEnd)
    })
  })
}

/** What the command wrote to one of its streams. */
function untilMark(stream: Readable | null, mark: string): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    const hear = (part: string) => {
      text += part
      if (!text.endsWith(mark)) return
      stream?.off('data', hear)
      resolve(text.slice(0, -mark.length))
    }
    stream?.on('data', hear)
  })
}
